//! POST `change_vnfpkg` (SOL003 5.4.11a).

use axum::extract::{Path, State};
use cairn_api_types::request::CHANGE_CURRENT_VNF_PKG;
use cairn_domain::operation::Operation;

use super::start;
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;

pub(super) async fn change_vnfpkg(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&CHANGE_CURRENT_VNF_PKG)?;
    start(&app, caller, &id, Operation::ChangeVnfpkg, body, None).await
}
