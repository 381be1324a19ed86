//! Answers: JSON, `Location`, empty.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// What handlers give.
pub(crate) type Answer = Result<Response, crate::problem::ApiError>;

/// 200 with a body.
pub(crate) fn ok(body: &impl Serialize) -> Response {
    json(StatusCode::OK, body)
}

/// 201 with a body and its place.
pub(crate) fn created(location: &str, body: &impl Serialize) -> Response {
    at(location, json(StatusCode::CREATED, body))
}

/// 202 without a body, with the place of the operation.
pub(crate) fn accepted_at(location: &str) -> Response {
    at(location, empty(StatusCode::ACCEPTED))
}

/// 202 without a body.
pub(crate) fn accepted() -> Response {
    empty(StatusCode::ACCEPTED)
}

/// 204.
pub(crate) fn no_content() -> Response {
    empty(StatusCode::NO_CONTENT)
}

/// 303 to what exists already.
pub(crate) fn see_other(location: &str) -> Response {
    at(location, empty(StatusCode::SEE_OTHER))
}

/// 200 with bytes of a type.
pub(crate) fn bytes(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let text = serde_json::to_vec(body).expect("texts, numbers and maps by text are always JSON");
    let mut response = bytes("application/json", text);
    *response.status_mut() = status;
    response
}

fn empty(status: StatusCode) -> Response {
    status.into_response()
}

/// The one place where `Location` is set: an absolute URI without trailing slash.
fn at(location: &str, mut response: Response) -> Response {
    insert(response.headers_mut(), header::LOCATION, location);
    response
}

/// Sets a header to a text that was made of URLs, numbers or dates.
pub(crate) fn insert(headers: &mut HeaderMap, name: header::HeaderName, text: &str) {
    let value = HeaderValue::from_str(text).expect("URLs, numbers and dates are visible ASCII");
    headers.insert(name, value);
}
