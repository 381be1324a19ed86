//! Paths that name no object: health, version, discovery, descriptions.

use axum::body::Body;
use http::{Method, Response, StatusCode};

use super::path::Target;
use super::{Call, text};
use crate::cluster::SimCluster;
use crate::discovery;
use crate::status::{ApiError, ApiResult, json_response};

pub(crate) fn answer(
    cluster: &SimCluster,
    call: &Call,
    target: &Target,
) -> ApiResult<Response<Body>> {
    if call.method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let state = cluster.inner.lock();
    let kinds = &state.kinds;
    let body = match target {
        Target::Health => return Ok(text("ok")),
        Target::Version => Some(discovery::version()),
        Target::CoreVersions => Some(discovery::core_versions()),
        Target::Groups => Some(discovery::groups(kinds)),
        Target::Group(name) => discovery::group(kinds, name),
        Target::Resources(group, version) => discovery::resources(kinds, group, version),
        Target::OpenApiIndex => Some(discovery::openapi_index(kinds)),
        Target::OpenApi(group, version) => Some(discovery::openapi(kinds, group, version)),
        Target::Resource(_) | Target::Nowhere => None,
    };
    body.map(|body| json_response(StatusCode::OK, &body))
        .ok_or_else(ApiError::no_such_group)
}
