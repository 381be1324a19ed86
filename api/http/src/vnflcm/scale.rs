//! POST `scale` (SOL003 5.4.5).

use axum::extract::{Path, State};
use cairn_api_types::request::SCALE_VNF;
use cairn_domain::operation::Operation;

use super::start;
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn scale(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&SCALE_VNF)?;
    start(&app, caller, &id, Operation::Scale, body, None).await
}
