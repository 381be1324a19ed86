//! Bodies: JSON and YAML are read, protobuf is not.

use bytes::Bytes;
use serde_json::Value;

use crate::status::{ApiError, ApiResult};

const ACCEPTED: &[&str] = &["application/json", "application/yaml"];

/// Reads an object.
///
/// # Errors
/// 415 for a media type that is not read here, 400 for text that is no object.
pub(crate) fn object(content_type: &str, body: &Bytes) -> ApiResult<Value> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => from_json(body),
        "application/yaml" => from_yaml(body),
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    }
}

/// Reads `DeleteOptions`; no body means none.
pub(crate) fn options(content_type: &str, body: &Bytes) -> ApiResult<Value> {
    if body.is_empty() {
        Ok(Value::Null)
    } else {
        object(content_type, body)
    }
}

pub(crate) fn from_json(body: &Bytes) -> ApiResult<Value> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("the object provided is unrecognized: {error}"))
    })?;
    Ok(value)
}

/// YAML contains JSON, so the quick reader is tried first.
pub(crate) fn from_yaml(body: &Bytes) -> ApiResult<Value> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(body)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}
