//! Whether a body speaks of the object that the path names.

use serde_json::Value;

use super::random_suffix;
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult, Cause};

pub(super) fn has_version(object: &Value) -> bool {
    !matches!(json::text(object, "/metadata/resourceVersion"), "" | "0")
}

pub(super) fn name_it(kind: &Kind, object: &mut Value) -> ApiResult<()> {
    if !json::name(object).is_empty() {
        return Ok(());
    }
    let prefix = json::text(object, "/metadata/generateName").to_owned();
    if prefix.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(ApiError::invalid(kind, "", &[cause]));
    }
    json::set(
        object,
        "/metadata/name",
        format!("{prefix}{}", random_suffix()),
    );
    Ok(())
}

/// The body must speak of the kind, namespace and name that the path names.
pub(super) fn check_identity(
    kind: &Kind,
    object: &Value,
    namespace: &str,
    name: &str,
) -> ApiResult<()> {
    let (version, body_kind) = (json::text(object, "/apiVersion"), json::kind(object));
    if !body_kind.is_empty() && body_kind != kind.kind {
        return Err(ApiError::bad_request(format!(
            "{body_kind} in version {version:?} cannot be handled as a {}: no kind {body_kind:?} is \
             registered for this path",
            kind.kind
        )));
    }
    if !version.is_empty() && version != kind.api_version() {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    let body_namespace = json::namespace(object);
    if kind.namespaced && !body_namespace.is_empty() && body_namespace != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let body_name = json::name(object);
    if !name.is_empty() && body_name != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({body_name}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

pub(super) fn check_apply_metadata(
    kind: &Kind,
    config: &Value,
    namespace: &str,
    name: &str,
) -> ApiResult<()> {
    if json::has(config, "/metadata/managedFields") {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    if json::kind(config).is_empty() || json::text(config, "/apiVersion").is_empty() {
        return Err(ApiError::bad_request("invalid object type: /, Kind="));
    }
    let name = if json::name(config).is_empty() {
        ""
    } else {
        name
    };
    check_identity(kind, config, namespace, name)
}

pub(super) fn check_uid(kind: &Kind, live: &Value, object: &Value) -> ApiResult<()> {
    let (have, want) = (json::uid(live), json::uid(object));
    if want.is_empty() || want == have {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {want}, UID in object meta: {have}");
    Err(ApiError::conflict(kind, json::name(live), &why))
}

/// An apply may not name another UID than that of the object which is there.
pub(super) fn check_applied_uid(kind: &Kind, live: &Value, config: &Value) -> ApiResult<()> {
    let want = json::uid(config);
    if want.is_empty() || want == json::uid(live) {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", &Value::from(want), "field is immutable");
    Err(ApiError::invalid(kind, json::name(live), &[cause]))
}
