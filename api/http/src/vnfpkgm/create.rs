//! POST `vnf_packages` (SOL005 9.4.2.3.1): a record without content.

use axum::Extension;
use axum::extract::State;
use cairn_api_types::request::CREATE_VNF_PKG_INFO;
use cairn_domain::ids::VnfPkgId;
use serde_json::{Map, Value};
use std::collections::HashSet;

use super::{Major, shown};
use crate::answer::{Answer, created};
use crate::app::App;
use crate::body::JsonBody;

pub(super) async fn create(
    State(app): State<App>,
    Extension(major): Extension<Major>,
    body: JsonBody,
) -> Answer {
    let body = body.shaped(&CREATE_VNF_PKG_INFO)?;
    let data = match body.get("userDefinedData") {
        Some(Value::Object(data)) => data.clone(),
        Some(_) | None => Map::new(),
    };
    let id = VnfPkgId::parse(app.ids.fresh()).expect("a UUID is an identifier");
    let record = app
        .packages
        .create(id.clone(), data, app.clock.now())
        .await?;
    let location = app.settings.public_url.vnf_package(major.0, id.as_str());
    Ok(created(
        &location,
        &shown(&app, major, &record, &HashSet::new()),
    ))
}
