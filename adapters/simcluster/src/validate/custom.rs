//! Validation of custom resources by their structural schema.

use serde_json::Value;

use crate::json;
use crate::status::Cause;

/// Judges `value` by `schema`; `path` names it (empty for the object itself).
pub(crate) fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !has_type(schema, value) {
        let wanted = json::text(schema, "/type");
        causes.push(Cause {
            reason: "FieldValueTypeInvalid",
            message: format!(
                "Invalid value: \"{}\": {path} in body must be of type {wanted}: \"{}\"",
                type_of(value),
                type_of(value)
            ),
            field: path.to_owned(),
        });
        return;
    }
    check_enum(schema, value, path, causes);
    check_bounds(schema, value, path, causes);
    for field in json::list(schema, "/required")
        .iter()
        .filter_map(Value::as_str)
    {
        if value.is_object() && value.get(field).is_none() {
            causes.push(Cause::required(join(path, field), ""));
        }
    }
    match value {
        Value::Object(members) => {
            for (field, below) in members {
                let named = schema.get("properties").and_then(|p| p.get(field));
                let schema = named.or_else(|| schema.get("additionalProperties"));
                if let Some(schema) = schema.filter(|schema| schema.is_object()) {
                    check(schema, below, &join(path, field), causes);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(
                    json::at(schema, "/items"),
                    item,
                    &format!("{path}[{index}]"),
                    causes,
                );
            }
        }
        _ => {}
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if json::flag(schema, "/x-kubernetes-int-or-string") {
        return value.is_i64() || value.is_string();
    }
    if value.is_null() {
        return true;
    }
    match json::text(schema, "/type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => true,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_enum(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let allowed = json::list(schema, "/enum");
    if allowed.is_empty() || allowed.contains(value) {
        return;
    }
    let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
    causes.push(Cause::unsupported(
        path,
        value.as_str().unwrap_or_default(),
        &names,
    ));
}

fn check_bounds(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(number) = value.as_f64() else { return };
    if let Some(least) = json::at(schema, "/minimum")
        .as_f64()
        .filter(|least| number < *least)
    {
        let detail = format!("{path} in body should be greater than or equal to {least}");
        causes.push(Cause::invalid(path, value, &detail));
    }
    if let Some(most) = json::at(schema, "/maximum")
        .as_f64()
        .filter(|most| number > *most)
    {
        let detail = format!("{path} in body should be less than or equal to {most}");
        causes.push(Cause::invalid(path, value, &detail));
    }
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}
