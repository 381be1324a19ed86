//! GET of one resource: `vnf_instances/{…}` (SOL003 5.4.3.3.2), `vnf_lcm_op_occs/{…}` (5.4.13.3.2),
//! `subscriptions/{…}` (5.4.19.3.2).

use axum::extract::{Path, RawQuery, State};
use axum::http::header;
use cairn_api_types::lccn_subscription::LccnSubscriptionDto;
use cairn_api_types::vnf_instance::VnfInstanceDto;
use cairn_api_types::vnf_lcm_op_occ::VnfLcmOpOccDto;
use cairn_domain::ids::{SubscriptionId, VnfInstanceId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::Row;
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;

use super::{instance_id, op_occ_id};
use crate::answer::{Answer, insert, ok};
use crate::app::{App, tenant};
use crate::headers::{etag, http_date};
use crate::problem::ApiError;
use crate::query::Query;

/// Selectors and filters are for lists (SOL013 5.2, 5.3).
const NO_PARAMETERS: &[&str] = &[];

pub(super) async fn vnf_instance(
    State(app): State<App>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    Query::parse(query.as_deref(), NO_PARAMETERS)?;
    let row = instance_row(&app, &instance_id(&id)?).await?;
    let mut response = ok(&VnfInstanceDto::of(&row.state, &app.settings.public_url));
    let headers = response.headers_mut();
    insert(headers, header::ETAG, &etag(row.version));
    insert(
        headers,
        header::LAST_MODIFIED,
        &http_date(row.state.changed_at),
    );
    Ok(response)
}

pub(super) async fn vnf_lcm_op_occ(
    State(app): State<App>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    Query::parse(query.as_deref(), NO_PARAMETERS)?;
    op_occ(&app, &id).await
}

pub(super) async fn subscription(
    State(app): State<App>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    Query::parse(query.as_deref(), NO_PARAMETERS)?;
    let row = subscription_row(&app, &id).await?;
    Ok(ok(&LccnSubscriptionDto::of(
        &row.state,
        &app.settings.public_url,
    )))
}

/// 200 with the occurrence.
pub(super) async fn op_occ(app: &App, id: &str) -> Answer {
    let row = op_occ_row(app, id).await?;
    Ok(ok(&VnfLcmOpOccDto::of(
        &row.state,
        &app.settings.public_url,
    )))
}

pub(crate) async fn instance_row(
    app: &App,
    id: &VnfInstanceId,
) -> Result<Row<VnfInstance>, ApiError> {
    let row = app.reads.instance(&tenant(), id).await?;
    row.ok_or_else(|| ApiError::not_found("VNF instance", id.as_str()))
}

pub(crate) async fn op_occ_row(app: &App, id: &str) -> Result<Row<VnfLcmOpOcc>, ApiError> {
    let row = app.reads.op_occ(&tenant(), &op_occ_id(id)?).await?;
    row.ok_or_else(|| ApiError::not_found("VNF LCM operation occurrence", id))
}

pub(crate) async fn subscription_row(
    app: &App,
    id: &str,
) -> Result<Row<LccnSubscription>, ApiError> {
    let absent = || ApiError::not_found("subscription", id);
    let parsed = SubscriptionId::parse(id).map_err(|_| absent())?;
    app.reads
        .subscription(&tenant(), &parsed)
        .await?
        .ok_or_else(absent)
}
