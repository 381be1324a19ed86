//! DELETE `vnf_instances/{vnfInstanceId}` (SOL003 5.4.3.3.5).

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use cairn_domain::ports::{Accepted, Request};

use super::{instance_id, modify, unexpected};
use crate::answer::{Answer, no_content};
use crate::app::{App, Asker};

pub(super) async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    headers: HeaderMap,
) -> Answer {
    let if_match = modify::expected_version(&app, &id, &headers).await?;
    let request = Request::DeleteInstance {
        id: instance_id(&id)?,
        if_match,
    };
    match app.commands.execute(caller, request).await? {
        Accepted::Done | Accepted::Instance(_) => Ok(no_content()),
        other => Err(unexpected(&other)),
    }
}
