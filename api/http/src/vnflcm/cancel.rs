//! POST `cancel` (SOL003 5.4.17).

use axum::extract::{Path, State};
use cairn_api_types::request::CANCEL_MODE;
use cairn_domain::operation::CancelMode;
use cairn_domain::ports::Request;

use super::{handle, op_occ_id};
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn cancel(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&CANCEL_MODE)?;
    let mode = if body["cancelMode"] == "FORCEFUL" {
        CancelMode::Forceful
    } else {
        CancelMode::Graceful
    };
    handle(&app, caller, Request::Cancel(op_occ_id(&id)?, mode)).await
}
