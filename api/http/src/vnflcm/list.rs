//! GET of lists, with filters and selectors: `vnf_instances` (SOL003 5.4.2.3.2), `vnf_lcm_op_occs`
//! (5.4.12.3.2), `subscriptions` (5.4.18.3.2), in pages (SOL013 5.4.2).

use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::Response;
use cairn_api_types::PublicUrl;
use cairn_api_types::attributes::{self, Attributes};
use cairn_api_types::lccn_subscription::LccnSubscriptionDto;
use cairn_api_types::vnf_instance::VnfInstanceDto;
use cairn_api_types::vnf_lcm_op_occ::VnfLcmOpOccDto;
use cairn_domain::ports::{Listed, Page, PortResult};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::answer::{Answer, insert, ok};
use crate::app::{App, tenant};
use crate::filter::Filter;
use crate::problem::ApiError;
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

/// The parameter that asks for the next page.
const MARKER: &str = "nextpage_opaque_marker";
/// How its values begin.
const MARKED: &str = "after-";
/// Most entries on a page.
const ENTRIES: usize = 1000;
/// Rows that are read at one time.
const PORTION: u32 = 250;
/// Portions that are read for one page: with a filter that hardly anything passes a page may hold less.
const PORTIONS: usize = 40;

pub(super) async fn vnf_instances(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let asked = Asked::of(query.as_deref(), &WITH_SELECTORS, "vnf_instances")?;
    let reads = Arc::clone(&app.reads);
    let read = move |page| {
        let reads = Arc::clone(&reads);
        async move { reads.instances(&tenant(), page).await }.boxed()
    };
    paged(
        &app,
        asked,
        attributes::vnf_instance(),
        read,
        VnfInstanceDto::of,
    )
    .await
}

pub(super) async fn vnf_lcm_op_occs(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let asked = Asked::of(query.as_deref(), &WITH_SELECTORS, "vnf_lcm_op_occs")?;
    let reads = Arc::clone(&app.reads);
    let read = move |page| {
        let reads = Arc::clone(&reads);
        async move { reads.op_occs(&tenant(), page).await }.boxed()
    };
    paged(
        &app,
        asked,
        attributes::vnf_lcm_op_occ(),
        read,
        VnfLcmOpOccDto::of,
    )
    .await
}

pub(super) async fn subscriptions(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let asked = Asked::of(query.as_deref(), &WITHOUT_SELECTORS, "subscriptions")?;
    let reads = Arc::clone(&app.reads);
    let read = move |page| {
        let reads = Arc::clone(&reads);
        async move { reads.subscriptions(&tenant(), page).await }.boxed()
    };
    paged(
        &app,
        asked,
        attributes::lccn_subscription(),
        read,
        LccnSubscriptionDto::of,
    )
    .await
}

/// A list that was asked for.
struct Asked {
    query: Query,
    /// The same as it was sent, without the marker.
    rest: String,
    resource: &'static str,
}

impl Asked {
    fn of(raw: Option<&str>, known: &[&str], resource: &'static str) -> Result<Self, ApiError> {
        let parts = raw.unwrap_or("").split('&');
        let rest: Vec<&str> = parts
            .filter(|part| !part.is_empty() && !part.starts_with(MARKER))
            .collect();
        Ok(Self {
            query: Query::parse(raw, known)?,
            rest: printable(&rest.join("&")),
            resource,
        })
    }

    /// The place behind which the page begins.
    fn after(&self) -> Result<u64, ApiError> {
        let Some(marker) = self.query.value(MARKER)? else {
            return Ok(0);
        };
        marker
            .strip_prefix(MARKED)
            .and_then(|place| u64::from_str_radix(place, 16).ok())
            .ok_or_else(|| bad(format!("{MARKER}: this is not a marker that was given out")))
    }

    /// `Link` to the page behind a place (SOL013 5.4.2.3).
    fn next(&self, url: &PublicUrl, place: u64) -> String {
        let and = if self.rest.is_empty() { "" } else { "&" };
        format!(
            "<{url}/vnflcm/v2/{}?{}{and}{MARKER}={MARKED}{place:x}>; rel=\"next\"",
            self.resource, self.rest
        )
    }
}

/// A query as it may stand in a header: what cannot is percent-encoded.
fn printable(query: &str) -> String {
    let mut text = String::with_capacity(query.len());
    for byte in query.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"') {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    text
}

/// 200 with a page of the entries that pass the filter, each as far as the selectors show it, and a `Link` to the next
/// page if there may be one. Rows are read in small portions, so that a long list takes little memory.
async fn paged<S, D: Serialize>(
    app: &App,
    asked: Asked,
    attributes: &'static Attributes,
    read: impl Fn(Page) -> BoxFuture<'static, PortResult<Vec<Listed<S>>>>,
    show: fn(&S, &PublicUrl) -> D,
) -> Answer {
    let url = &app.settings.public_url;
    let filter = filter(&asked.query, attributes)?;
    let selector = Selector::parse(&asked.query, attributes)?;
    let mut after = asked.after()?;
    let mut shown: Vec<Value> = Vec::new();
    for _ in 0..PORTIONS {
        let page = Page {
            after,
            limit: PORTION,
        };
        let rows = read(page).await?;
        let is_last = rows.len() < usize::try_from(PORTION).unwrap_or(usize::MAX);
        for listed in rows {
            if shown.len() >= ENTRIES {
                return Ok(with_next(&shown, &asked.next(url, after)));
            }
            after = listed.place;
            let entry = written(show(&listed.row.state, url));
            if filter.as_ref().is_none_or(|filter| filter.passes(&entry)) {
                shown.push(selector.select(entry, attributes));
            }
        }
        if is_last {
            return Ok(ok(&shown));
        }
    }
    Ok(with_next(&shown, &asked.next(url, after)))
}

fn with_next(shown: &[Value], next: &str) -> Response {
    let mut response = ok(&shown);
    insert(response.headers_mut(), header::LINK, next);
    response
}

fn filter(query: &Query, attributes: &Attributes) -> Result<Option<Filter>, ApiError> {
    let text = query.value("filter")?;
    text.map(|text| Filter::parse(text, attributes)).transpose()
}

fn written(entry: impl Serialize) -> Value {
    serde_json::to_value(entry).expect("answers are maps by text, so always JSON")
}

/// 200 with all entries that pass the filter, each as far as the selectors show it.
pub(crate) fn listed<T: Serialize>(
    query: &Query,
    attributes: &Attributes,
    entries: impl Iterator<Item = T>,
) -> Answer {
    if query.value(MARKER)?.is_some() {
        return Err(bad(format!(
            "{MARKER}: this is not a marker that was given out"
        )));
    }
    let filter = filter(query, attributes)?;
    let selector = Selector::parse(query, attributes)?;
    let shown: Vec<Value> = entries
        .map(written)
        .filter(|entry| filter.as_ref().is_none_or(|filter| filter.passes(entry)))
        .map(|entry| selector.select(entry, attributes))
        .collect();
    Ok(ok(&shown))
}
