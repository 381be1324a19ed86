//! The four kinds of patches.

use serde_json::{Value, json};

use super::{Call, body};
use crate::apply::strategic;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};

/// A patch that is not an apply.
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

/// What a PATCH asks for.
pub(crate) enum Asked {
    Apply(Value),
    Patch(Patch),
}

const ACCEPTED: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// Reads the body by its content type.
///
/// # Errors
/// 415 for other types, 400 for a body that cannot be read.
pub(crate) fn read(call: &Call) -> ApiResult<Asked> {
    let media = call
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    Ok(match media {
        "application/apply-patch+yaml" | "application/apply-patch+json" => {
            Asked::Apply(body::from_yaml(&call.body)?)
        }
        "application/merge-patch+json" => Asked::Patch(Patch::Merge(body::from_json(&call.body)?)),
        "application/strategic-merge-patch+json" => {
            Asked::Patch(Patch::Strategic(body::from_json(&call.body)?))
        }
        "application/json-patch+json" => {
            let patch = serde_json::from_slice(&call.body)
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
            Asked::Patch(Patch::Json(patch))
        }
        _ => {
            let mut error =
                ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            error.details = json!({});
            return Err(error);
        }
    })
}

impl Patch {
    /// Applies the patch to a copy of `live`.
    ///
    /// # Errors
    /// 422 when an operation of a JSON patch fails, 415 for a strategic patch of a custom resource.
    pub fn apply(&self, kind: &Kind, live: &Value) -> ApiResult<Value> {
        let mut next = live.clone();
        match self {
            Self::Merge(patch) => json_patch::merge(&mut next, patch),
            Self::Strategic(_) if kind.is_custom() => {
                return Err(ApiError::unsupported_media_type(&[
                    ACCEPTED[0],
                    ACCEPTED[1],
                    ACCEPTED[3],
                ]));
            }
            Self::Strategic(patch) => strategic::patch(kind, &mut next, patch)?,
            Self::Json(patch) => json_patch::patch(&mut next, patch).map_err(|error| {
                tracing::debug!(%error, "a JSON patch does not fit");
                let text = "the server rejected our request due to an error in our request";
                let mut error = ApiError::new(422, "Invalid", text);
                error.details = json!({});
                error
            })?,
        }
        Ok(next)
    }
}
