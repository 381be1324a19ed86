//! POST `heal` (SOL003 5.4.9).

use axum::extract::{Path, State};
use cairn_api_types::request::HEAL_VNF;
use cairn_domain::operation::Operation;

use super::start;
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn heal(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&HEAL_VNF)?;
    start(&app, caller, &id, Operation::Heal, body, None).await
}
