//! Liveness, readiness, metrics.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;
use std::time::Duration;

use crate::answer::{Answer, bytes, ok};
use crate::app::App;
use crate::problem::ApiError;

/// How long the database may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// GET `/healthz`: the process answers.
pub(crate) async fn alive() -> Response {
    ok(&json!({"status": "alive"}))
}

/// GET `/readyz`: the log can be read, all of it.
pub(crate) async fn ready(State(app): State<App>) -> Answer {
    match tokio::time::timeout(PATIENCE, app.log.head()).await {
        Ok(Ok(_)) => {
            app.log.health()?;
            Ok(ok(&json!({"status": "ready"})))
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(ApiError::unavailable("the database does not answer")),
    }
}

/// GET `/metrics`: Prometheus text.
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    bytes(
        "text/plain; version=0.0.4; charset=utf-8",
        app.metrics.text(),
    )
}
