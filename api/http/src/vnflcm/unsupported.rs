//! Task resources of SOL003 that no VNF here supports: 404 with a `ProblemDetails` that says so (5.4.7.3.1 and
//! likewise).

use axum::extract::OriginalUri;

use crate::problem::ApiError;

/// The tasks.
pub(super) const TASKS: [&str; 5] = [
    "change_flavour",
    "operate",
    "change_ext_conn",
    "create_snapshot",
    "revert_to_snapshot",
];

pub(super) async fn task(OriginalUri(uri): OriginalUri) -> ApiError {
    let task = uri.path().rsplit('/').next().unwrap_or_default();
    ApiError::new(404, format!("the VNF does not support the task {task}"))
}
