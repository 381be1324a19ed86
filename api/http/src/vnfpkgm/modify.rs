//! PATCH `vnf_packages/{vnfPkgId}` (SOL005 9.4.3.3.4): enable or disable.

use axum::extract::{Path, State};
use cairn_api_types::request::VNF_PKG_INFO_MODIFICATIONS;
use cairn_api_types::vnf_pkg_info::operational_state;
use serde_json::json;

use super::package_id;
use crate::answer::{Answer, ok};
use crate::app::App;
use crate::body::JsonBody;

pub(super) async fn modify(
    State(app): State<App>,
    Path(id): Path<String>,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&VNF_PKG_INFO_MODIFICATIONS)?;
    let enabled = body["operationalState"] == "ENABLED";
    app.packages.set_enabled(&package_id(&id)?, enabled).await?;
    Ok(ok(&json!({"operationalState": operational_state(enabled)})))
}
