//! PATCH `vnf_instances/{vnfInstanceId}` (SOL003 5.4.3.3.4): a merge patch, carried out as
//! `MODIFY_INFO`.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use cairn_api_types::request::VNF_INFO_MODIFICATION;
use cairn_domain::ids::VnfPkgId;
use cairn_domain::operation::Operation;
use serde_json::{Map, Value};

use super::{instance_id, read, start};
use crate::answer::Answer;
use crate::app::{App, Asker};
use crate::body::JsonBody;
use crate::headers::Preconditions;
use crate::problem::ApiError;

pub(super) async fn modify(
    State(app): State<App>,
    Path(id): Path<String>,
    Asker(caller): Asker,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer {
    let mut body = body.shaped(&VNF_INFO_MODIFICATION)?;
    let if_match = expected_version(&app, &id, &headers).await?;
    name_the_descriptor(&app, &mut body).await?;
    start(&app, caller, &id, Operation::ModifyInfo, body, if_match).await
}

/// The version that the executor must find, where the client sent preconditions.
pub(super) async fn expected_version(
    app: &App,
    id: &str,
    headers: &HeaderMap,
) -> Result<Option<u64>, ApiError> {
    let preconditions = Preconditions::of(headers);
    if preconditions.is_empty() {
        return Ok(None);
    }
    let row = read::instance_row(app, &instance_id(id)?).await?;
    preconditions.check(&row).map(Some)
}

/// The published `OpenAPI` file says `vnfPkgId` where the text says `vnfdId`: a package is taken for its VNFD.
async fn name_the_descriptor(app: &App, body: &mut Map<String, Value>) -> Result<(), ApiError> {
    let Some(Value::String(package)) = body.remove("vnfPkgId") else {
        return Ok(());
    };
    let unknown = || ApiError::new(422, "vnfPkgId: there is no such ONBOARDED package");
    let id = VnfPkgId::parse(package).map_err(|_| unknown())?;
    let record = app.packages.get(&id).await?.ok_or_else(unknown)?;
    let vnfd = record.vnfd.ok_or_else(unknown)?;
    body.entry("vnfdId").or_insert(Value::String(vnfd.vnfd_id));
    Ok(())
}
