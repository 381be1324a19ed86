//! Readiness of what runs no pods.

use super::{Readiness, is_observed, waiting};
use crate::json;
use serde_json::Value;

/// Bound; whether it must be is for the caller to know, who knows the storage class.
pub(super) fn claim(object: &Value) -> Readiness {
    match json::text(object, "/status/phase") {
        "Bound" => Readiness::Ready,
        "Lost" => waiting(
            "Lost",
            "the volume that it was bound to does not exist any more",
            0,
        ),
        _ => waiting("Unbound", "no volume is bound to it yet", 0),
    }
}

pub(super) fn volume(object: &Value) -> Readiness {
    match json::text(object, "/status/phase") {
        "Failed" => waiting("VolumeFailed", json::text(object, "/status/message"), 0),
        "" | "Pending" => waiting("Creating", "it is not available yet", 0),
        _ => Readiness::Ready,
    }
}

/// A load balancer must have an address; external addresses count as one.
pub(super) fn service(object: &Value) -> Readiness {
    let balanced = json::text(object, "/spec/type") == "LoadBalancer"
        && json::entries(object, "/spec/externalIPs").is_empty()
        && json::entries(object, "/status/loadBalancer/ingress").is_empty();
    if balanced {
        return waiting("NoAddress", "the load balancer has given it no address", 0);
    }
    Readiness::Ready
}

pub(super) fn namespace(object: &Value) -> Readiness {
    match json::text(object, "/status/phase") {
        "Active" | "" => Readiness::Ready,
        phase => waiting("Deleting", format!("it is {phase}"), 0),
    }
}

/// A condition that the object must have.
pub(super) fn condition(object: &Value, kind: &str) -> Readiness {
    if json::holds(object, kind) {
        return Readiness::Ready;
    }
    match json::condition(object, kind) {
        Some(found) => waiting("Creating", told(kind, found), 0),
        None => waiting("Creating", format!("it is not {kind} yet"), 0),
    }
}

/// A custom resource that has a condition Ready or Available is ready when that holds; one that has none is ready at once.
pub(super) fn custom(object: &Value) -> Readiness {
    let Some((kind, found)) = ["Ready", "Available"]
        .iter()
        .find_map(|kind| json::condition(object, kind).map(|c| (*kind, c)))
    else {
        return Readiness::Ready;
    };
    let observed = object.pointer("/status/observedGeneration").is_none() || is_observed(object);
    if !observed {
        return waiting(
            "RollingOut",
            "its operator has not seen the newest state yet",
            0,
        );
    }
    if found["status"] == "True" {
        return Readiness::Ready;
    }
    let reason = match json::text(found, "/reason") {
        "" => "NotReady",
        reason => reason,
    };
    waiting(reason, told(kind, found), 0)
}

fn told(kind: &str, condition: &Value) -> String {
    format!(
        "{kind} is {}: {} {}",
        json::text(condition, "/status"),
        json::text(condition, "/reason"),
        json::text(condition, "/message")
    )
    .trim()
    .to_owned()
}
