//! `faults`: for tests of what happens when things break; there only with `--enable-faults`.

use axum::extract::State;
use cairn_domain::ports::{Fault, Faults};
use serde_json::Value;
use std::sync::Arc;

use crate::answer::{Answer, no_content, ok};
use crate::app::App;
use crate::body::AnyJson;
use crate::problem::ApiError;

/// Most faults at one time.
const FAULT_LIMIT: usize = 100;

pub(super) async fn list(State(app): State<App>) -> Answer {
    Ok(ok(&enabled(&app)?.list()))
}

pub(super) async fn replace(State(app): State<App>, AnyJson(body): AnyJson) -> Answer {
    let faults = enabled(&app)?;
    faults.replace(parse(body)?).await?;
    Ok(ok(&faults.list()))
}

pub(super) async fn remove(State(app): State<App>) -> Answer {
    enabled(&app)?.replace(Vec::new()).await?;
    Ok(no_content())
}

fn enabled(app: &App) -> Result<&Arc<dyn Faults>, ApiError> {
    app.faults.as_ref().ok_or_else(|| {
        ApiError::new(
            404,
            "faults are not enabled; start the server with --enable-faults",
        )
    })
}

fn parse(body: Value) -> Result<Vec<Fault>, ApiError> {
    let Value::Array(entries) = body else {
        return Err(ApiError::new(422, "the body must be a bare list of faults"));
    };
    if entries.len() > FAULT_LIMIT {
        return Err(ApiError::new(
            422,
            format!("at most {FAULT_LIMIT} faults are taken"),
        ));
    }
    entries
        .into_iter()
        .enumerate()
        .map(|(index, entry)| one(index, entry))
        .collect()
}

fn one(index: usize, entry: Value) -> Result<Fault, ApiError> {
    serde_json::from_value(entry).map_err(|error| {
        ApiError::new(
            422,
            format!(
                "fault {index}: {error}; a fault is {{\"operation\"?, \"vnfInstanceId\"?, \"at\", \"action\", \
                 \"times\"?}}, and at is one of {{\"state\": \"STARTING\"}}, {{\"errorPoint\": 0 to 7}}, \
                 {{\"step\", \"edge\"}}, {{\"undoStep\", \"edge\"}}"
            ),
        )
    })
}
