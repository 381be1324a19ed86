//! Packages: SOL005 `vnfpkgm` for onboarding, with what SOL003 reads of it. `/v1` answers the same as `/v2`, for
//! the clients of Tacker.

mod api_versions;
mod content;
mod create;
mod delete;
mod list;
mod modify;
mod read;
mod vnfd;

use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::{Extension, Router};
use cairn_api_types::vnf_pkg_info::VnfPkgInfo;
use cairn_domain::ids::VnfPkgId;
use cairn_domain::ports::PackageRecord;
use std::collections::HashSet;

use crate::app::{App, tenant};
use crate::problem::ApiError;

/// Which major version the client speaks; links stay in it.
#[derive(Clone, Copy)]
pub(crate) struct Major(&'static str);

/// The resources of both major versions.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api_versions", get(api_versions::api_versions))
        .nest("/v1", packages(Major("v1")))
        .nest("/v2", packages(Major("v2")))
}

fn packages(major: Major) -> Router<App> {
    let package = "/vnf_packages/{vnfPkgId}";
    Router::new()
        .route("/api_versions", get(api_versions::api_versions))
        .route("/vnf_packages", get(list::list).post(create::create))
        .route(
            package,
            get(read::read).patch(modify::modify).delete(delete::delete),
        )
        .route(
            &format!("{package}/package_content"),
            get(content::download).put(content::upload),
        )
        .route(&format!("{package}/vnfd"), get(vnfd::vnfd))
        .route(
            &format!("{package}/artifacts/{{*artifactPath}}"),
            get(content::artifact),
        )
        // Bodies are read by our own reader, which has limits of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(Extension(major))
}

fn package_id(text: &str) -> Result<VnfPkgId, ApiError> {
    VnfPkgId::parse(text).map_err(|_| ApiError::not_found("VNF package", text))
}

async fn record(app: &App, id: &str) -> Result<PackageRecord, ApiError> {
    let record = app.packages.get(&package_id(id)?).await?;
    record.ok_or_else(|| ApiError::not_found("VNF package", id))
}

/// The packages that instances were made of.
async fn in_use(app: &App) -> Result<HashSet<String>, ApiError> {
    let used = app.reads.packages_in_use(&tenant()).await?;
    Ok(used.iter().map(VnfPkgId::to_string).collect())
}

fn shown(app: &App, major: Major, record: &PackageRecord, used: &HashSet<String>) -> VnfPkgInfo {
    VnfPkgInfo::of(
        record,
        used.contains(record.id.as_str()),
        &app.settings.public_url,
        major.0,
    )
}
