//! DELETE `vnf_packages/{vnfPkgId}` (SOL005 9.4.3.3.5).

use axum::extract::{Path, State};

use super::package_id;
use crate::answer::{Answer, no_content};
use crate::app::App;

pub(super) async fn delete(State(app): State<App>, Path(id): Path<String>) -> Answer {
    app.packages.delete(&package_id(&id)?).await?;
    Ok(no_content())
}
