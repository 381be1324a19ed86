//! The status of pod disruption budgets.

use serde_json::{Value, json};

use super::Pass;
use super::act::{MANAGER, count, is_active, is_ready, set_condition, share};
use crate::json;
use crate::selector;

const BUDGETS: &str = "poddisruptionbudgets.policy";

pub(super) fn run(pass: &mut Pass<'_>) {
    for budget in pass.list(BUDGETS) {
        judge(pass, &budget);
    }
}

fn judge(pass: &mut Pass<'_>, budget: &Value) {
    let wanted = json::at(budget, "/spec/selector");
    let pods: Vec<_> = pass
        .state
        .store
        .list("pods", json::namespace(budget))
        .filter(|pod| is_active(pod))
        .filter(|pod| selector::matches_labels(wanted, json::at(pod, "/metadata/labels")))
        .cloned()
        .collect();
    let expected = expected_pods(pass, &pods);
    let healthy = count(pods.iter().filter(|pod| is_ready(pod)));
    let desired = match (
        json::at(budget, "/spec/maxUnavailable"),
        json::at(budget, "/spec/minAvailable"),
    ) {
        (Value::Null, Value::Null) => count(&pods).min(1),
        (Value::Null, least) => share(least, expected, true),
        (most, _) => (expected - share(most, expected, true)).max(0),
    };
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let mut status = json::at(budget, "/status").clone();
    json::set(
        &mut status,
        "/observedGeneration",
        json::int(budget, "/metadata/generation", 1),
    );
    json::set(&mut status, "/expectedPods", expected);
    json::set(&mut status, "/currentHealthy", healthy);
    json::set(&mut status, "/desiredHealthy", desired);
    json::set(&mut status, "/disruptionsAllowed", allowed);
    let (value, reason) = if allowed > 0 {
        (true, "SufficientPods")
    } else {
        (false, "InsufficientPods")
    };
    set_condition(
        &mut status,
        ("DisruptionAllowed", value),
        reason,
        "",
        &pass.stamp,
    );
    for condition in json::list_mut(&mut status, "/conditions") {
        json::set(condition, "/message", "");
        json::set(
            condition,
            "/observedGeneration",
            json::int(budget, "/metadata/generation", 1),
        );
    }
    forget_disrupted(&mut status, &pods);
    let kind = pass.state.kinds.get(BUDGETS);
    pass.set_status(&kind, budget, MANAGER, status);
}

/// The sum of what the pods' controllers want; a pod without one counts for itself.
fn expected_pods(pass: &Pass<'_>, pods: &[std::sync::Arc<Value>]) -> i64 {
    let mut seen = std::collections::BTreeSet::new();
    let mut expected = 0;
    for pod in pods {
        let uid = super::act::controller_uid(pod).to_owned();
        if uid.is_empty() {
            expected += 1;
        } else if seen.insert(uid.clone()) {
            let owner = [
                "replicasets.apps",
                "statefulsets.apps",
                "replicationcontrollers",
            ]
            .iter()
            .flat_map(|kind| pass.state.store.list(kind, json::namespace(pod)))
            .find(|owner| json::uid(owner) == uid);
            expected += owner.map_or(1, |owner| json::int(owner, "/spec/replicas", 1));
        }
    }
    expected
}

fn forget_disrupted(status: &mut Value, pods: &[std::sync::Arc<Value>]) {
    let Some(Value::Object(mut disrupted)) = json::remove(status, "/disruptedPods") else {
        return;
    };
    disrupted.retain(|name, _| pods.iter().any(|pod| json::name(pod) == name));
    if !disrupted.is_empty() {
        json::set(status, "/disruptedPods", json!(disrupted));
    }
}
