//! Fields that a kind does not have, and values that the wire allows and the types do not keep.

use serde_json::Value;

use super::FieldValidation;
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};
use crate::typed;

/// Drops unknown fields; strict validation refuses them, the others warn or keep silent.
pub(super) fn check_fields(
    kind: &Kind,
    object: &mut Value,
    validation: FieldValidation,
) -> ApiResult<Vec<String>> {
    if validation == FieldValidation::Trust {
        return Ok(Vec::new());
    }
    normalise(kind, object);
    let refused = |detail: String| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {detail}",
            kind.kind, kind.version, kind.kind
        ))
    };
    let unknown = typed::drop_unknown_fields(kind, object)
        .map_err(|detail| refused(format!("json: {detail}")))?;
    let texts: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    match validation {
        FieldValidation::Strict if !texts.is_empty() => Err(refused(format!(
            "strict decoding error: {}",
            texts.join(", ")
        ))),
        FieldValidation::Ignore | FieldValidation::Trust => Ok(Vec::new()),
        FieldValidation::Strict | FieldValidation::Warn => Ok(texts),
    }
}

/// An apply needs each field's place in the schema, so unknown ones are refused in every mode.
pub(super) fn check_applied_fields(kind: &Kind, config: &mut Value) -> ApiResult<()> {
    normalise(kind, config);
    let what = format!(
        "failed to create typed patch object ({}/{}; {}/{}, Kind={})",
        json::namespace(config),
        json::name(config),
        kind.group,
        kind.version,
        kind.kind
    );
    let unknown = typed::drop_unknown_fields(kind, config)
        .map_err(|detail| ApiError::new(500, "", format!("{what}: {detail}")))?;
    match unknown.first() {
        Some(path) => Err(ApiError::new(
            500,
            "",
            format!("{what}: .{path}: field not declared in schema"),
        )),
        None => Ok(()),
    }
}

/// What the wire allows and the types do not keep: numbers where quantities belong, empty maps.
fn normalise(kind: &Kind, object: &mut Value) {
    if !kind.is_custom() {
        number_quantities(object);
        json::drop_empty_metadata(object);
    }
}

fn number_quantities(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (field, below) in members.iter_mut() {
                let quantities = matches!(
                    field.as_str(),
                    "limits" | "requests" | "hard" | "capacity" | "allocatable" | "max" | "min"
                );
                if quantities && below.is_object() {
                    if let Some(members) = below.as_object_mut() {
                        for value in members.values_mut().filter(|value| value.is_number()) {
                            *value = Value::from(value.to_string());
                        }
                    }
                } else {
                    number_quantities(below);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(number_quantities),
        _ => {}
    }
}
