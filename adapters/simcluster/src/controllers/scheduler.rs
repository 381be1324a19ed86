//! The scheduler: binds pods to the node, or says why it cannot.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Pass;
use super::act::set_condition;
use super::volume;
use crate::json;
use crate::state::NODE;
use crate::write::Options;

const COMPONENT: &str = "default-scheduler";

pub(super) fn run(pass: &mut Pass<'_>) {
    let waiting: Vec<Arc<Value>> = pass
        .state
        .store
        .within("pods", &pass.namespace)
        .filter(|pod| json::text(pod, "/spec/nodeName").is_empty() && !json::is_deleting(pod))
        .filter(|pod| json::list(pod, "/spec/schedulingGates").is_empty())
        .filter(|pod| json::text(pod, "/spec/schedulerName") == "default-scheduler")
        .cloned()
        .collect();
    let here = pass.namespace.clone();
    pass.state.memory.unplaced.remove(&here);
    for pod in waiting {
        match place(pass, &pod) {
            Ok(node) => bind(pass, &pod, &node),
            Err(why) => {
                refuse(pass, &pod, &why);
                pass.state.memory.unplaced.insert(here.clone());
            }
        }
    }
}

/// The node that a pod spec selects, if it is there and takes pods.
pub(super) fn node_for(pass: &Pass<'_>, spec: &Value) -> Option<Arc<Value>> {
    pass.state
        .store
        .list("nodes", "")
        .find(|node| selects(spec, node))
        .cloned()
}

fn selects(spec: &Value, node: &Value) -> bool {
    let labels = json::at(node, "/metadata/labels");
    let plain = json::map(spec, "/nodeSelector")
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let required =
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = json::list(spec, required);
    plain && (terms.is_empty() || terms.iter().any(|term| matches_term(term, node)))
}

fn matches_term(term: &Value, node: &Value) -> bool {
    let expressions = json!({"matchExpressions": json::at(term, "/matchExpressions")});
    let by_label =
        crate::selector::matches_labels(&expressions, json::at(node, "/metadata/labels"));
    let by_field = json::list(term, "/matchFields").iter().all(|field| {
        json::list(field, "/values")
            .iter()
            .any(|value| value == json::name(node))
    });
    by_label && by_field
}

fn place(pass: &mut Pass<'_>, pod: &Value) -> Result<String, String> {
    volume::ready_for(pass, pod)?;
    let spec = json::at(pod, "/spec");
    let nodes = pass.state.list("nodes", "");
    let total = nodes.len();
    let chosen: Vec<_> = nodes.iter().filter(|node| selects(spec, node)).collect();
    if chosen.is_empty() {
        return Err(format!(
            "0/{total} nodes are available: {total} node(s) didn't match Pod's node \
             affinity/selector. no new claims to deallocate, preemption: 0/{total} nodes are \
             available: {total} Preemption is not helpful for scheduling."
        ));
    }
    if chosen
        .iter()
        .all(|node| json::flag(node, "/spec/unschedulable"))
    {
        return Err(format!(
            "0/{total} nodes are available: {total} node(s) were unschedulable. no new claims to \
             deallocate, preemption: 0/{total} nodes are available: {total} Preemption is not \
             helpful for scheduling."
        ));
    }
    let fits = chosen
        .iter()
        .filter(|node| !json::flag(node, "/spec/unschedulable"))
        .find(|node| has_room(pass, pod, node));
    fits.map(|node| json::name(node).to_owned()).ok_or_else(|| {
        format!(
            "0/{total} nodes are available: {total} Insufficient {}. no new claims to deallocate, \
             preemption: 0/{total} nodes are available: {total} Preemption is not helpful for \
             scheduling.",
            scarce(pass, pod, chosen[0]).unwrap_or("pods")
        )
    })
}

fn has_room(pass: &Pass<'_>, pod: &Value, node: &Value) -> bool {
    scarce(pass, pod, node).is_none()
}

/// The resource that the node has too little of for this pod.
fn scarce(pass: &Pass<'_>, pod: &Value, node: &Value) -> Option<&'static str> {
    ["cpu", "memory"].into_iter().find(|resource| {
        let asked = requested(pod, resource);
        asked > 0.0 && asked > free(pass, node, resource)
    })
}

/// What of a resource is not yet asked for by pods on the node.
fn free(pass: &Pass<'_>, node: &Value, resource: &str) -> f64 {
    let taken: f64 = pass
        .state
        .store
        .list("pods", "")
        .filter(|pod| json::text(pod, "/spec/nodeName") == json::name(node))
        .filter(|pod| !super::act::is_ended(pod))
        .map(|pod| requested(pod, resource))
        .sum();
    quantity(json::text(node, &format!("/status/allocatable/{resource}"))) - taken
}

fn requested(pod: &Value, resource: &str) -> f64 {
    json::list(pod, "/spec/containers")
        .iter()
        .map(|c| quantity(json::text(c, &format!("/resources/requests/{resource}"))))
        .sum()
}

/// A quantity as a number; what cannot be read is nothing.
pub(super) fn quantity(text: &str) -> f64 {
    const UNITS: &[(&str, f64)] = &[
        ("Ki", 1_024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("m", 0.001),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];
    UNITS
        .iter()
        .find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
        .or_else(|| text.parse().ok())
        .unwrap_or(0.0)
}

fn bind(pass: &mut Pass<'_>, pod: &Value, node: &str) {
    let pods = pass.state.kinds.get("pods");
    let at = (json::namespace(pod), json::name(pod));
    let bound = pass
        .state
        .update(&pods, at, &Options::by("kube-scheduler"), |live| {
            let mut next = live.clone();
            json::set(&mut next, "/spec/nodeName", node);
            Ok(next)
        });
    let Ok(bound) = bound else { return };
    let mut status = json::at(&bound.object, "/status").clone();
    set_condition(&mut status, ("PodScheduled", true), "", "", &pass.stamp);
    pass.set_status(&pods, &bound.object, "kube-scheduler", status);
    let message = format!(
        "Successfully assigned {}/{} to {node}",
        json::namespace(pod),
        json::name(pod)
    );
    pass.event(pod, "Scheduled", &message, COMPONENT);
}

fn refuse(pass: &mut Pass<'_>, pod: &Value, why: &str) {
    let mut status = json::at(pod, "/status").clone();
    // Nothing to say: a claim is being bound.
    if why.is_empty() {
        return;
    }
    let said = super::act::condition(pod, "PodScheduled").map(|c| json::text(c, "/message"));
    if said == Some(why) {
        return;
    }
    set_condition(
        &mut status,
        ("PodScheduled", false),
        "Unschedulable",
        why,
        &pass.stamp,
    );
    let pods = pass.state.kinds.get("pods");
    pass.set_status(&pods, pod, "kube-scheduler", status);
    pass.warn(pod, "FailedScheduling", why, COMPONENT);
}

/// The name of the node on which everything runs, for volumes that ask for it.
pub(super) fn selected_node() -> &'static str {
    NODE
}
