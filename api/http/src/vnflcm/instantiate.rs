//! POST `instantiate` (SOL003 5.4.4).

use axum::extract::{Path, State};
use cairn_api_types::request::INSTANTIATE_VNF;
use cairn_domain::operation::Operation;

use super::start;
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn instantiate(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&INSTANTIATE_VNF)?;
    start(&app, caller, &id, Operation::Instantiate, body, None).await
}
