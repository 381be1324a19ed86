//! Eviction: a deletion that disruption budgets may refuse.

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::path::At;
use super::{Call, body};
use crate::cluster::SimCluster;
use crate::delete::DeleteOptions;
use crate::json;
use crate::kinds::Kind;
use crate::selector;
use crate::state::State;
use crate::status::{ApiError, ApiResult, json_response};
use crate::write::Options;

const BUDGETS: &str = "poddisruptionbudgets.policy";

pub(crate) fn answer(
    cluster: &SimCluster,
    call: &Call,
    kind: &Kind,
    at: &At,
) -> ApiResult<Response<Body>> {
    if call.method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let eviction = body::object(&call.content_type, &call.body)?;
    let mut options = DeleteOptions::read(json::at(&eviction, "/deleteOptions"))?;
    options.dry_run |= call.dry_run();
    cluster.inner.with(|state| {
        let pod = state
            .get("pods", &at.namespace, &at.name)
            .ok_or_else(|| ApiError::not_found(kind, &at.name))?;
        // Pods that do not run disturb nobody by going.
        let runs = json::text(&pod, "/status/phase") == "Running" && !json::is_deleting(&pod);
        if runs {
            spend_budget(state, &pod, options.dry_run)?;
        }
        state.delete(kind, (&at.namespace, &at.name), &options)?;
        let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Success", "code": 201});
        Ok(json_response(StatusCode::CREATED, &body))
    })
}

fn spend_budget(state: &mut State, pod: &Value, dry_run: bool) -> ApiResult<()> {
    let labels = json::at(pod, "/metadata/labels");
    let budgets: Vec<_> = state
        .list(BUDGETS, json::namespace(pod))
        .into_iter()
        .filter(|budget| selector::matches_labels(json::at(budget, "/spec/selector"), labels))
        .collect();
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            let text = "This pod has more than one PodDisruptionBudget, which the eviction \
                        subresource does not support.";
            return Err(ApiError::new(500, "InternalError", text));
        }
    };
    let name = json::name(budget);
    let observed = json::int(budget, "/status/observedGeneration", 0);
    if observed < json::int(budget, "/metadata/generation", 0) {
        let text = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refusal(&text, Some(10)));
    }
    let allowed = json::int(budget, "/status/disruptionsAllowed", 0);
    if allowed < 1 {
        let text = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            json::int(budget, "/status/desiredHealthy", 0),
            json::int(budget, "/status/currentHealthy", 0)
        );
        return Err(refusal(&text, None));
    }
    if dry_run {
        return Ok(());
    }
    let stamp = state.clock.stamp();
    let kind = state.kinds.get(BUDGETS);
    let disrupted = format!("/status/disruptedPods/{}", json::escape(json::name(pod)));
    let at = (json::namespace(budget), name);
    state.update(&kind, at, &Options::status_by("kube-apiserver"), |live| {
        let mut next = live.clone();
        json::set(&mut next, "/status/disruptionsAllowed", allowed - 1);
        json::set(&mut next, &disrupted, stamp);
        Ok(next)
    })?;
    Ok(())
}

fn refusal(cause: &str, retry_after: Option<u32>) -> ApiError {
    let text = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut error = ApiError::too_many(text, retry_after);
    error.details["causes"] = json!([{"reason": "DisruptionBudget", "message": cause}]);
    error
}
