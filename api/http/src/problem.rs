//! What failures mean in HTTP: the one place where a refusal gets its status.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cairn_api_types::ProblemDetails;
use cairn_api_types::problem_details::MEDIA_TYPE;
use cairn_domain::ports::{CommandError, PortError};
use cairn_domain::problem::Problem;

/// After how many seconds a client may try again what was not available.
const RETRY_AFTER_S: u32 = 1;

/// A failure on its way to the client: always `application/problem+json`.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    problem: Problem,
    retry_after_s: Option<u32>,
}

impl ApiError {
    pub(crate) fn new(status: u16, detail: impl Into<String>) -> Self {
        Problem::new(status, detail).into()
    }

    /// There is no such resource.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        Self::new(404, format!("there is no {what} {id}"))
    }

    /// Too much is going on, or something that is needed is not there.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self {
            problem: Problem::new(503, detail),
            retry_after_s: Some(RETRY_AFTER_S),
        }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            retry_after_s: None,
        }
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::NotFound(detail) => Self::new(404, detail),
            CommandError::NotNow(detail) => Self::new(409, detail),
            CommandError::Changed { is } => Self::new(
                412,
                format!("the resource has changed: its ETag is \"{is}\" now; read it again"),
            ),
            CommandError::Invalid(problem) => problem.into(),
            CommandError::Port(error) => error.into(),
        }
    }
}

impl From<PortError> for ApiError {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Refused(problem) => problem.into(),
            PortError::Conflict(why) => {
                tracing::warn!(%why, "others kept changing the same resource");
                Self::unavailable("others kept changing the same resource; try again")
            }
            PortError::Fenced => {
                tracing::warn!("a request met a lost lease");
                Self::unavailable("the operation changed its owner meanwhile; try again")
            }
            PortError::Unavailable(why) => {
                tracing::warn!(%why, "a port is not available");
                Self::unavailable(format!("not available now: {why}"))
            }
            PortError::Corrupt(why) => {
                tracing::error!(%why, "stored data is impossible");
                Self::new(
                    500,
                    "stored data of this resource cannot be read; the log of the server says more",
                )
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status)
            .ok()
            .filter(|status| status.is_client_error() || status.is_server_error())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let details = ProblemDetails {
            status: status.as_u16(),
            title: self
                .problem
                .title
                .clone()
                .or_else(|| status.canonical_reason().map(str::to_owned)),
            ..ProblemDetails::from(self.problem)
        };
        let body = serde_json::to_vec(&details).expect("texts and numbers are always JSON");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
