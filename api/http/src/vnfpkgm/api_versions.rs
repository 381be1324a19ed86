//! GET `api_versions` (SOL013 9.3.3).

use axum::extract::State;
use axum::response::Response;
use cairn_api_types::api_versions::ApiVersionInformation;

use crate::answer::ok;
use crate::app::App;

pub(super) async fn api_versions(State(app): State<App>) -> Response {
    ok(&ApiVersionInformation::vnfpkgm(&app.settings.public_url))
}
