//! SOL003 `vnflcm/v2`.

mod api_versions;
mod cancel;
mod change_vnfpkg;
mod create;
mod delete;
mod fail;
mod heal;
mod instantiate;
mod list;
mod modify;
mod read;
mod retry;
mod rollback;
mod scale;
mod scale_to_level;
mod subscribe;
mod terminate;
mod unsubscribe;
mod unsupported;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::operation::Operation;
use cairn_domain::ports::{Accepted, Caller, Request};
use serde_json::{Map, Value};

use crate::answer::{Answer, accepted, accepted_at};
use crate::app::App;
use crate::problem::ApiError;

pub(crate) use list::{WITH_SELECTORS, listed};
pub(crate) use read::{op_occ_row, subscription_row};

/// The resources of SOL003 clause 5.4.
pub(crate) fn routes() -> Router<App> {
    let instance = "/v2/vnf_instances/{vnfInstanceId}";
    let op_occ = "/v2/vnf_lcm_op_occs/{vnfLcmOpOccId}";
    let mut router = Router::new()
        .route("/api_versions", get(api_versions::api_versions))
        .route("/v2/api_versions", get(api_versions::api_versions))
        .route(
            "/v2/vnf_instances",
            post(create::create).get(list::vnf_instances),
        )
        .route(
            instance,
            get(read::vnf_instance)
                .patch(modify::modify)
                .delete(delete::delete),
        )
        .route(
            &format!("{instance}/instantiate"),
            post(instantiate::instantiate),
        )
        .route(&format!("{instance}/scale"), post(scale::scale))
        .route(
            &format!("{instance}/scale_to_level"),
            post(scale_to_level::scale_to_level),
        )
        .route(&format!("{instance}/heal"), post(heal::heal))
        .route(
            &format!("{instance}/change_vnfpkg"),
            post(change_vnfpkg::change_vnfpkg),
        )
        .route(&format!("{instance}/terminate"), post(terminate::terminate))
        .route("/v2/vnf_lcm_op_occs", get(list::vnf_lcm_op_occs))
        .route(op_occ, get(read::vnf_lcm_op_occ))
        .route(&format!("{op_occ}/retry"), post(retry::retry))
        .route(&format!("{op_occ}/rollback"), post(rollback::rollback))
        .route(&format!("{op_occ}/fail"), post(fail::fail))
        .route(&format!("{op_occ}/cancel"), post(cancel::cancel))
        .route(
            "/v2/subscriptions",
            post(subscribe::subscribe).get(list::subscriptions),
        )
        .route(
            "/v2/subscriptions/{subscriptionId}",
            get(read::subscription).delete(unsubscribe::unsubscribe),
        );
    for task in unsupported::TASKS {
        router = router.route(&format!("{instance}/{task}"), post(unsupported::task));
    }
    router
}

fn instance_id(text: &str) -> Result<VnfInstanceId, ApiError> {
    VnfInstanceId::parse(text).map_err(|_| ApiError::not_found("VNF instance", text))
}

fn op_occ_id(text: &str) -> Result<VnfLcmOpOccId, ApiError> {
    VnfLcmOpOccId::parse(text)
        .map_err(|_| ApiError::not_found("VNF LCM operation occurrence", text))
}

/// Asks for an operation on an instance; its place is in `Location`.
async fn start(
    app: &App,
    caller: Caller,
    id: &str,
    operation: Operation,
    body: Map<String, Value>,
    if_match: Option<u64>,
) -> Answer {
    let request = Request::StartOperation {
        id: instance_id(id)?,
        operation,
        body,
        if_match,
    };
    match app.commands.execute(caller, request).await? {
        Accepted::Operation(op) => Ok(accepted_at(
            &app.settings.public_url.vnf_lcm_op_occ(op.as_str()),
        )),
        other => Err(unexpected(&other)),
    }
}

/// Asks for the handling of an error; there is no `Location` (SOL003 5.4.14.3.1).
async fn handle(app: &App, caller: Caller, request: Request) -> Result<Response, ApiError> {
    match app.commands.execute(caller, request).await? {
        Accepted::Done | Accepted::Operation(_) => Ok(accepted()),
        other => Err(unexpected(&other)),
    }
}

/// An answer that does not fit the request is a defect, never the client's fault.
fn unexpected(accepted: &Accepted) -> ApiError {
    tracing::error!(
        ?accepted,
        "a command was answered with something else than was asked"
    );
    ApiError::new(500, "a defect of the server; its log says more")
}
