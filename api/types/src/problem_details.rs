//! `ProblemDetails` (SOL013 6.3, RFC 7807): the body of every failure.

use cairn_domain::problem::Problem;
use serde::Serialize;

/// Its media type.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong; `status` and `detail` are always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemDetails {
    /// Kind of the problem; always the default, so that `title` alone names it.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Short name of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// HTTP status.
    pub status: u16,
    /// What happened here.
    pub detail: String,
}

impl From<Problem> for ProblemDetails {
    fn from(problem: Problem) -> Self {
        let Problem {
            status,
            title,
            detail,
        } = problem;
        Self {
            kind: "about:blank",
            title,
            status,
            detail,
        }
    }
}
