//! Every resource and method that is served.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use crate::app::App;
use crate::frame::{Frame, around};
use crate::{cairn, health, vnflcm, vnfpkgm};

/// The whole API. Everything that is not listed is answered with 404 or 405 and a `ProblemDetails`.
pub fn router(app: App) -> Router {
    let frame = Frame::new(app.clone());
    Router::new()
        .nest("/vnflcm", vnflcm::routes())
        .nest("/vnfpkgm", vnfpkgm::routes())
        .nest("/cairn/v1", cairn::routes())
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .layer(from_fn_with_state(frame, around))
        .with_state(app)
}
