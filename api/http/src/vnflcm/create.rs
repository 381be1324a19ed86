//! POST `vnf_instances` (SOL003 5.4.2.3.1).

use axum::extract::State;
use cairn_api_types::request::CREATE_VNF;
use cairn_api_types::vnf_instance::VnfInstanceDto;
use cairn_domain::ports::{Accepted, Request};

use super::unexpected;
use crate::answer::{Answer, created};
use crate::app::{App, Asker, tenant};
use crate::body::JsonBody;
use crate::problem::ApiError;

pub(super) async fn create(State(app): State<App>, Asker(caller): Asker, body: JsonBody) -> Answer {
    let body = body.shaped(&CREATE_VNF)?;
    match app
        .commands
        .execute(caller, Request::CreateInstance { body })
        .await?
    {
        Accepted::Instance(id) => {
            let row = app.reads.instance(&tenant(), &id).await?;
            let row = row.ok_or_else(|| ApiError::not_found("VNF instance", id.as_str()))?;
            let url = &app.settings.public_url;
            Ok(created(
                &url.vnf_instance(id.as_str()),
                &VnfInstanceDto::of(&row.state, url),
            ))
        }
        other => Err(unexpected(&other)),
    }
}
