//! Errors as the API server answers them: `Status` objects with reason, message and causes.

use axum::body::Body;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::kinds::Kind;

/// A refusal, carrying the `Status` body that a client gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Value,
    pub retry_after: Option<u32>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// One entry of `details.causes`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

impl Cause {
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            reason: "FieldValueRequired",
            message,
            field: field.into(),
        }
    }

    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let message = format!("Invalid value: {value}: {detail}");
        Self {
            reason: "FieldValueInvalid",
            message,
            field: field.into(),
        }
    }

    pub fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
        let message = format!(
            "Unsupported value: \"{value}\": supported values: {}",
            quoted.join(", ")
        );
        Self {
            reason: "FieldValueNotSupported",
            message,
            field: field.into(),
        }
    }

    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        let message = format!("Forbidden: {detail}");
        Self {
            reason: "FieldValueForbidden",
            message,
            field: field.into(),
        }
    }

    pub fn duplicate(field: impl Into<String>, value: &str) -> Self {
        let message = format!("Duplicate value: \"{value}\"");
        Self {
            reason: "FieldValueDuplicate",
            message,
            field: field.into(),
        }
    }

    fn to_json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            retry_after: None,
        }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// A path that leads nowhere: kubectl recognises exactly this message.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = json!({});
        error
    }

    /// A path of a group that is not served: the answer is plain text.
    pub fn no_such_group() -> Self {
        Self::new(404, "PlainText", "404 page not found\n")
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::not_found_in(&kind.plural, &kind.group, name)
    }

    pub fn not_found_in(plural: &str, group: &str, name: &str) -> Self {
        let resource = qualified(plural, group);
        let mut error = Self::new(404, "NotFound", format!("{resource} \"{name}\" not found"));
        error.details = details(plural, group, name);
        error
    }

    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.qualified()
        );
        Self::new(409, "Conflict", message).about(kind, name)
    }

    pub fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        )
    }

    /// Options of a request that are not valid; `of` is their kind in `meta.k8s.io`.
    pub fn invalid_options(of: &str, cause: &Cause) -> Self {
        let text = format!(
            "{of}.meta.k8s.io \"\" is invalid: {}: {}",
            cause.field, cause.message
        );
        let mut error = Self::new(422, "Invalid", text);
        error.details = json!({"group": "meta.k8s.io", "kind": of});
        error.with_causes(std::slice::from_ref(cause))
    }

    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    pub fn method_not_allowed() -> Self {
        let mut error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = json!({});
        error
    }

    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let texts: Vec<String> = causes
            .iter()
            .map(|c| format!("{}: {}", c.field, c.message))
            .collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let qualified_kind = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut error = Self::new(
            422,
            "Invalid",
            format!("{qualified_kind} \"{name}\" is invalid: {list}"),
        );
        error.details = json!({"kind": kind.kind});
        if !name.is_empty() {
            error.details["name"] = json!(name);
        }
        if !kind.group.is_empty() {
            error.details["group"] = json!(kind.group);
        }
        error.details["causes"] = causes.iter().map(Cause::to_json).collect();
        error
    }

    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn too_many(message: impl Into<String>, retry_after: Option<u32>) -> Self {
        let mut error = Self::new(429, "TooManyRequests", message);
        error.details = json!({});
        if let Some(seconds) = retry_after {
            error.details["retryAfterSeconds"] = json!(seconds);
            error.retry_after = Some(seconds);
        }
        error
    }

    /// Names the object in `details`, with the plural as kind, as the real server does.
    pub fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = details(&kind.plural, &kind.group, name);
        self
    }

    pub fn with_causes(mut self, causes: &[Cause]) -> Self {
        if !self.details.is_object() {
            self.details = json!({});
        }
        self.details["causes"] = causes.iter().map(Cause::to_json).collect();
        self
    }

    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }

    pub fn into_response(self) -> Response<Body> {
        let code = StatusCode::from_u16(self.code).expect("codes here are valid HTTP codes");
        if self.reason == "PlainText" {
            let mut response = Response::new(Body::from(self.message));
            *response.status_mut() = code;
            return response;
        }
        let mut response = json_response(code, &self.to_json());
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// A JSON answer.
pub(crate) fn json_response(code: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}

fn qualified(plural: &str, group: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

fn details(plural: &str, group: &str, name: &str) -> Value {
    let mut details = json!({"name": name, "kind": plural});
    if !group.is_empty() {
        details["group"] = json!(group);
    }
    details
}
