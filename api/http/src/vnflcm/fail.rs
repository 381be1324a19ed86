//! POST `fail` (SOL003 5.4.16): answered with the occurrence as it is then.

use axum::extract::{Path, State};
use cairn_domain::ports::{Accepted, Request};

use super::{op_occ_id, read, unexpected};
use crate::answer::Answer;
use crate::app::{App, Asker};

pub(super) async fn fail(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
) -> Answer {
    let op = op_occ_id(&id)?;
    match app.commands.execute(caller, Request::Fail(op)).await? {
        Accepted::Done | Accepted::Operation(_) => read::op_occ(&app, &id).await,
        other => Err(unexpected(&other)),
    }
}
