//! Our own API, `/cairn/v1`: what SOL003 has no words for.

mod deliveries;
mod faults;
mod history;
mod op_occ;
mod vims;
mod vnf_instance;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;

/// The resources of `/cairn/v1`.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(
            "/vnf_instances/{vnfInstanceId}",
            get(vnf_instance::vnf_instance),
        )
        .route(
            "/vnf_instances/{vnfInstanceId}/history",
            get(history::history),
        )
        .route("/vnf_lcm_op_occs/{vnfLcmOpOccId}", get(op_occ::op_occ))
        .route("/vims", post(vims::register).get(vims::list))
        .route(
            "/vims/{vimId}",
            get(vims::read).patch(vims::change).delete(vims::remove),
        )
        .route(
            "/subscriptions/{subscriptionId}/deliveries",
            get(deliveries::list),
        )
        .route(
            "/subscriptions/{subscriptionId}/deliveries/{deliveryId}/resend",
            post(deliveries::resend),
        )
        .route(
            "/faults",
            get(faults::list)
                .put(faults::replace)
                .delete(faults::remove),
        )
}
