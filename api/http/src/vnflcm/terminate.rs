//! POST `terminate` (SOL003 5.4.8).

use axum::extract::{Path, State};
use cairn_api_types::request::TERMINATE_VNF;
use cairn_domain::operation::Operation;

use super::start;
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn terminate(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&TERMINATE_VNF)?;
    start(&app, caller, &id, Operation::Terminate, body, None).await
}
