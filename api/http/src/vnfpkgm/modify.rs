//! PATCH `vnf_packages/{vnfPkgId}` (SOL005 9.4.3.3.4): enable or disable, change `userDefinedData`.

use axum::extract::{Path, State};
use cairn_api_types::request::VNF_PKG_INFO_MODIFICATIONS;
use cairn_api_types::vnf_pkg_info::operational_state;
use serde_json::{Map, Value};

use super::package_id;
use crate::answer::{Answer, ok};
use crate::app::App;
use crate::body::JsonBody;
use crate::problem::ApiError;

pub(super) async fn modify(
    State(app): State<App>,
    Path(id): Path<String>,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&VNF_PKG_INFO_MODIFICATIONS)?;
    let enabled = body.get("operationalState").map(|state| state == "ENABLED");
    let data = body.get("userDefinedData").and_then(Value::as_object);
    if enabled.is_none() && data.is_none() {
        let detail = "nothing to change; allowed: operationalState, userDefinedData";
        return Err(ApiError::new(422, detail));
    }
    let merged = data.cloned().unwrap_or_default();
    let id = package_id(&id)?;
    app.packages.modify(&id, enabled, &merged).await?;
    let mut changed = Map::new();
    if let Some(enabled) = enabled {
        changed.insert("operationalState".into(), operational_state(enabled).into());
    }
    if data.is_some() {
        changed.insert("userDefinedData".into(), merged.into());
    }
    Ok(ok(&changed))
}
