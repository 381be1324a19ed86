//! POST `scale_to_level` (SOL003 5.4.6).

use axum::extract::{Path, State};
use cairn_api_types::request::SCALE_VNF_TO_LEVEL;
use cairn_domain::operation::Operation;

use super::start;
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn scale_to_level(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&SCALE_VNF_TO_LEVEL)?;
    start(&app, caller, &id, Operation::ScaleToLevel, body, None).await
}
