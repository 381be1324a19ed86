//! GET `vnf_instances/{vnfInstanceId}/history`: audit replay, readable after the instance was deleted.

use axum::extract::{Path, RawQuery, State};
use cairn_api_types::cairn::HistoryDto;
use cairn_domain::ids::VnfInstanceId;

use crate::answer::{Answer, ok};
use crate::app::{App, tenant};
use crate::problem::ApiError;
use crate::query::Query;

pub(super) async fn history(
    State(app): State<App>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    // It is always whole: `?at=` of the instance would else seem to shorten it.
    Query::parse(query.as_deref(), &[])?;
    let absent = || ApiError::not_found("VNF instance", &id);
    let parsed = VnfInstanceId::parse(&id).map_err(|_| absent())?;
    let events = app.reads.history(&tenant(), &parsed).await?;
    if events.is_empty() {
        return Err(absent());
    }
    Ok(ok(&HistoryDto::of(&parsed, &events)))
}
