//! GET `vnf_packages` (SOL003 10.4.2.3.2).

use axum::Extension;
use axum::extract::{RawQuery, State};
use cairn_api_types::attributes;

use super::{Major, in_use, shown};
use crate::answer::Answer;
use crate::app::App;
use crate::query::Query;
use crate::vnflcm::{WITH_SELECTORS, listed};

pub(super) async fn list(
    State(app): State<App>,
    Extension(major): Extension<Major>,
    RawQuery(query): RawQuery,
) -> Answer {
    let query = Query::parse(query.as_deref(), &WITH_SELECTORS)?;
    let records = app.packages.list().await?;
    let used = in_use(&app).await?;
    let entries = records
        .iter()
        .map(|record| shown(&app, major, record, &used));
    listed(&query, attributes::vnf_pkg_info(), entries)
}
