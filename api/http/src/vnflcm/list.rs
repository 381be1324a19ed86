//! GET of lists, with filters and selectors: `vnf_instances` (SOL003 5.4.2.3.2), `vnf_lcm_op_occs`
//! (5.4.12.3.2), `subscriptions` (5.4.18.3.2). Answers are not paged.

use axum::extract::{RawQuery, State};
use cairn_api_types::attributes::{self, Attributes};
use cairn_api_types::lccn_subscription::LccnSubscriptionDto;
use cairn_api_types::vnf_instance::VnfInstanceDto;
use cairn_api_types::vnf_lcm_op_occ::VnfLcmOpOccDto;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, ok};
use crate::app::{App, tenant};
use crate::filter::Filter;
use crate::query::{Query, bad};
use crate::selector::Selector;

pub(crate) const WITH_SELECTORS: [&str; 6] = [
    "filter",
    "all_fields",
    "fields",
    "exclude_fields",
    "exclude_default",
    "nextpage_opaque_marker",
];
const WITHOUT_SELECTORS: [&str; 2] = ["filter", "nextpage_opaque_marker"];

pub(super) async fn vnf_instances(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(query.as_deref(), &WITH_SELECTORS)?;
    let rows = app.reads.instances(&tenant()).await?;
    let url = &app.settings.public_url;
    let entries = rows.iter().map(|row| VnfInstanceDto::of(&row.state, url));
    listed(&query, attributes::vnf_instance(), entries)
}

pub(super) async fn vnf_lcm_op_occs(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(query.as_deref(), &WITH_SELECTORS)?;
    let rows = app.reads.op_occs(&tenant()).await?;
    let url = &app.settings.public_url;
    let entries = rows.iter().map(|row| VnfLcmOpOccDto::of(&row.state, url));
    listed(&query, attributes::vnf_lcm_op_occ(), entries)
}

pub(super) async fn subscriptions(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(query.as_deref(), &WITHOUT_SELECTORS)?;
    let rows = app.reads.subscriptions(&tenant()).await?;
    let url = &app.settings.public_url;
    let entries = rows
        .iter()
        .map(|row| LccnSubscriptionDto::of(&row.state, url));
    listed(&query, attributes::lccn_subscription(), entries)
}

/// 200 with the entries that pass the filter, each as far as the selectors show it.
pub(crate) fn listed<T: Serialize>(
    query: &Query,
    attributes: &Attributes,
    entries: impl Iterator<Item = T>,
) -> Answer {
    if query.value("nextpage_opaque_marker")?.is_some() {
        return Err(bad(
            "nextpage_opaque_marker: this is not a marker that was given out",
        ));
    }
    let filter = query
        .value("filter")?
        .map(|text| Filter::parse(text, attributes))
        .transpose()?;
    let selector = Selector::parse(query, attributes)?;
    let shown: Vec<Value> = entries
        .map(|entry| serde_json::to_value(entry).expect("answers are maps by text, so always JSON"))
        .filter(|entry| filter.as_ref().is_none_or(|filter| filter.passes(entry)))
        .map(|entry| selector.select(entry, attributes))
        .collect();
    Ok(ok(&shown))
}
