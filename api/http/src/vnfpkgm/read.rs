//! GET `vnf_packages/{vnfPkgId}` (SOL003 10.4.3.3.2).

use axum::Extension;
use axum::extract::{Path, State};

use super::{Major, in_use, record, shown};
use crate::answer::{Answer, ok};
use crate::app::App;

pub(super) async fn read(
    State(app): State<App>,
    Extension(major): Extension<Major>,
    Path(id): Path<String>,
) -> Answer {
    let record = record(&app, &id).await?;
    Ok(ok(&shown(&app, major, &record, &in_use(&app).await?)))
}
