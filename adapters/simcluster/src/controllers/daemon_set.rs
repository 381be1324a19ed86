//! Daemon sets: one pod on the node, if the node is selected.

use serde_json::{Value, json};

use super::act::{MANAGER, count, is_active, is_ended, is_ready, set_count};
use super::{Pass, revision, scheduler};
use crate::json;
use crate::kinds::Kind;
use crate::state::NODE;

const COMPONENT: &str = "daemonset-controller";

pub(super) fn run(pass: &mut Pass<'_>) {
    let kind = pass.state.kinds.get("daemonsets.apps");
    for set in pass.list("daemonsets.apps") {
        let update = revision::current(pass, &kind, &set);
        let wanted = scheduler::node_for(pass, json::at(&set, "/spec/template/spec")).is_some();
        if !json::is_deleting(&set) {
            sync(pass, &kind, &set, &update, wanted);
        }
        report(pass, &kind, &set, &update, wanted);
    }
}

fn sync(pass: &mut Pass<'_>, kind: &Kind, set: &Value, update: &str, wanted: bool) {
    let pods = pass.pods_of(set);
    let pod_kind = pass.state.kinds.get("pods");
    for pod in pods.iter().filter(|pod| !json::is_deleting(pod)) {
        let outdated = revision::of(pod) != update
            && json::text(set, "/spec/updateStrategy/type") != "OnDelete";
        if !wanted || outdated || is_ended(pod) {
            pass.delete(&pod_kind, pod);
            let message = format!("Deleted pod: {}", json::name(pod));
            pass.event(set, "SuccessfulDelete", &message, COMPONENT);
        }
    }
    if wanted && pods.is_empty() && pass.may_try(json::uid(set)) {
        make(pass, kind, set, update);
    }
}

fn make(pass: &mut Pass<'_>, kind: &Kind, set: &Value, update: &str) {
    let template = json::at(set, "/spec/template").clone();
    let outcome = pass.make_pod(kind, set, &template, "", |pod| {
        json::set(
            pod,
            &format!("/metadata/labels/{}", revision::LABEL),
            update,
        );
        json::set(
            pod,
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
            json!({"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [NODE]}]}]}),
        );
    });
    match outcome {
        Ok(pod) => {
            pass.succeeded(json::uid(set));
            let message = format!("Created pod: {}", json::name(&pod));
            pass.event(set, "SuccessfulCreate", &message, COMPONENT);
        }
        Err(error) => {
            pass.failed(json::uid(set));
            let message = format!("Error creating: {}", error.message);
            pass.warn(set, "FailedCreate", &message, COMPONENT);
        }
    }
}

fn report(pass: &mut Pass<'_>, kind: &Kind, set: &Value, update: &str, wanted: bool) {
    let pods: Vec<_> = pass
        .pods_of(set)
        .into_iter()
        .filter(|pod| is_active(pod))
        .collect();
    let ready = count(pods.iter().filter(|pod| is_ready(pod)));
    let desired = i64::from(wanted);
    let mut status = json::at(set, "/status").clone();
    json::set(
        &mut status,
        "/observedGeneration",
        json::int(set, "/metadata/generation", 1),
    );
    json::set(&mut status, "/desiredNumberScheduled", desired);
    json::set(
        &mut status,
        "/currentNumberScheduled",
        count(&pods).min(desired),
    );
    json::set(&mut status, "/numberReady", ready);
    json::set(&mut status, "/numberMisscheduled", 0);
    set_count(&mut status, "numberAvailable", ready);
    set_count(&mut status, "numberUnavailable", (desired - ready).max(0));
    let updated = count(pods.iter().filter(|pod| revision::of(pod) == update));
    set_count(&mut status, "updatedNumberScheduled", updated);
    pass.set_status(kind, set, MANAGER, status);
}
