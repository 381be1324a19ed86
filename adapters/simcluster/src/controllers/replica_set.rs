//! Replica sets and replication controllers: as many pods as they say.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Pass;
use super::act::{
    MANAGER, controller_reference, controller_uid, count, is_active, is_ready, set_condition,
    set_count,
};
use crate::json;
use crate::kinds::Kind;
use crate::selector;

pub(super) fn run(pass: &mut Pass<'_>) {
    for qualified in ["replicasets.apps", "replicationcontrollers"] {
        let kind = pass.state.kinds.get(qualified);
        for set in pass.list(qualified) {
            sync(pass, &kind, &set);
        }
    }
}

fn component(kind: &Kind) -> &'static str {
    if kind.group.is_empty() {
        "replication-controller"
    } else {
        "replicaset-controller"
    }
}

fn sync(pass: &mut Pass<'_>, kind: &Kind, set: &Value) {
    if !json::is_deleting(set) {
        adopt(pass, kind, set);
    }
    let active: Vec<Arc<Value>> = pass
        .pods_of(set)
        .into_iter()
        .filter(|pod| is_active(pod))
        .collect();
    let wanted = json::int(set, "/spec/replicas", 1);
    let missing = wanted - count(&active);
    let mut failure = None;
    if !json::is_deleting(set) {
        if missing > 0 {
            failure = create(pass, kind, set, missing);
        } else if missing < 0 {
            remove(pass, kind, set, &active, -missing);
        }
    }
    report(pass, kind, set, &active, failure);
}

/// A pod that matches and has no controller is taken in.
fn adopt(pass: &mut Pass<'_>, kind: &Kind, set: &Value) {
    let wanted = json::at(set, "/spec/selector");
    let matches = |labels: &Value| {
        if kind.group.is_empty() {
            selector::matches_map(wanted, labels)
        } else {
            selector::matches_labels(wanted, labels)
        }
    };
    let orphans: Vec<Arc<Value>> = pass
        .state
        .store
        .list("pods", json::namespace(set))
        .filter(|pod| controller_uid(pod).is_empty() && is_active(pod))
        .filter(|pod| matches(json::at(pod, "/metadata/labels")))
        .cloned()
        .collect();
    let pods = pass.state.kinds.get("pods");
    for orphan in orphans {
        let reference = controller_reference(kind, set);
        pass.change(&pods, &orphan, MANAGER, |pod| {
            json::list_mut(pod, "/metadata/ownerReferences").push(reference);
        });
    }
}

/// Makes the missing pods; returns the refusal that stopped it.
fn create(pass: &mut Pass<'_>, kind: &Kind, set: &Value, missing: i64) -> Option<String> {
    let old = super::act::condition(set, "ReplicaFailure")
        .map(|condition| json::text(condition, "/message").to_owned());
    if !pass.may_try(json::uid(set)) {
        return old;
    }
    let template = json::at(set, "/spec/template").clone();
    for _ in 0..missing {
        match pass.make_pod(kind, set, &template, "", |_| {}) {
            Ok(pod) => {
                let message = format!("Created pod: {}", json::name(&pod));
                pass.event(set, "SuccessfulCreate", &message, component(kind));
            }
            Err(error) => {
                let message = format!("Error creating: {}", error.message);
                pass.warn(set, "FailedCreate", &message, component(kind));
                pass.failed(json::uid(set));
                return Some(error.message);
            }
        }
    }
    pass.succeeded(json::uid(set));
    None
}

/// Deletes surplus pods: those that do not run first, then the youngest.
fn remove(pass: &mut Pass<'_>, kind: &Kind, set: &Value, active: &[Arc<Value>], surplus: i64) {
    let mut ranked: Vec<&Arc<Value>> = active.iter().collect();
    let version = |pod: &Value| {
        json::text(pod, "/metadata/resourceVersion")
            .parse::<u64>()
            .unwrap_or_default()
    };
    ranked.sort_by_key(|pod| {
        (
            !json::text(pod, "/spec/nodeName").is_empty(),
            json::text(pod, "/status/phase") == "Running",
            is_ready(pod),
            deletion_cost(pod),
            std::cmp::Reverse(json::text(pod, "/metadata/creationTimestamp").to_owned()),
            std::cmp::Reverse(version(pod)),
        )
    });
    let pods = pass.state.kinds.get("pods");
    for pod in ranked
        .into_iter()
        .take(usize::try_from(surplus).unwrap_or(0))
    {
        pass.delete(&pods, pod);
        let message = format!("Deleted pod: {}", json::name(pod));
        pass.event(set, "SuccessfulDelete", &message, component(kind));
    }
}

fn deletion_cost(pod: &Value) -> i64 {
    json::annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0)
}

fn report(
    pass: &mut Pass<'_>,
    kind: &Kind,
    set: &Value,
    active: &[Arc<Value>],
    failure: Option<String>,
) {
    let labels = json::at(set, "/spec/template/metadata/labels");
    let labelled = active.iter().filter(|pod| {
        labels.as_object().is_none_or(|labels| {
            labels
                .iter()
                .all(|(key, value)| pod["metadata"]["labels"].get(key) == Some(value))
        })
    });
    let ready = count(active.iter().filter(|pod| is_ready(pod)));
    let mut status = json::at(set, "/status").clone();
    if !status.is_object() {
        status = json!({});
    }
    json::set(&mut status, "/replicas", count(active));
    if !kind.group.is_empty() {
        let leaving = pass
            .pods_of(set)
            .into_iter()
            .filter(|pod| json::is_deleting(pod));
        json::set(&mut status, "/terminatingReplicas", count(leaving));
    }
    set_count(&mut status, "fullyLabeledReplicas", count(labelled));
    set_count(&mut status, "readyReplicas", ready);
    set_count(&mut status, "availableReplicas", ready);
    json::set(
        &mut status,
        "/observedGeneration",
        json::int(set, "/metadata/generation", 1),
    );
    if let Some(message) = failure {
        let condition = ("ReplicaFailure", true);
        set_condition(
            &mut status,
            condition,
            "FailedCreate",
            &message,
            &pass.stamp,
        );
    } else if json::has(&status, "/conditions") {
        json::list_mut(&mut status, "/conditions").retain(|c| c["type"] != "ReplicaFailure");
        if json::list(&status, "/conditions").is_empty() {
            json::remove(&mut status, "/conditions");
        }
    }
    pass.set_status(kind, set, MANAGER, status);
}
