//! POST `retry` (SOL003 5.4.14).

use axum::extract::{Path, State};
use cairn_domain::ports::Request;

use super::{handle, op_occ_id};
use crate::answer::Answer;
use crate::app::{App, Asker};

pub(super) async fn retry(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
) -> Answer {
    handle(&app, caller, Request::Retry(op_occ_id(&id)?)).await
}
