//! Whether an object is ready, judged by itself alone: total functions over any JSON.
//!
//! What is not ready says why in a reason of the table of waits and counts its progress; `roots` looks for
//! the cause behind it.

mod others;
mod workloads;

use crate::json;
use serde_json::Value;

/// What an object itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    Waiting(Waiting),
}

/// Why it is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// A reason of the table of waits, or the object's own word.
    pub reason: String,
    pub message: String,
    /// Rises with each progress.
    pub progress: u32,
}

/// API groups of Kubernetes itself: their kinds are ready when they exist, but for those judged below.
const OWN_GROUPS: [&str; 19] = [
    "",
    "apps",
    "batch",
    "autoscaling",
    "policy",
    "rbac.authorization.k8s.io",
    "networking.k8s.io",
    "storage.k8s.io",
    "coordination.k8s.io",
    "scheduling.k8s.io",
    "apiregistration.k8s.io",
    "apiextensions.k8s.io",
    "admissionregistration.k8s.io",
    "discovery.k8s.io",
    "node.k8s.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
    "events.k8s.io",
];

/// Judges an object.
pub(crate) fn judge(object: &Value) -> Readiness {
    let group = group(object);
    match (group, json::text(object, "/kind")) {
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workloads::replica_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("batch", "Job") => workloads::job(object),
        ("", "Pod") => workloads::pod(object),
        ("", "PersistentVolumeClaim") => others::claim(object),
        ("", "PersistentVolume") => others::volume(object),
        ("", "Service") => others::service(object),
        ("", "Namespace") => others::namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            others::condition(object, "Established")
        }
        ("apiregistration.k8s.io", "APIService") => others::condition(object, "Available"),
        _ if OWN_GROUPS.contains(&group) => Readiness::Ready,
        _ => others::custom(object),
    }
}

/// Whether objects of a kind may have to be waited for at all.
pub(crate) fn is_awaited(group: &str, kind: &str) -> bool {
    !OWN_GROUPS.contains(&group)
        || matches!(
            (group, kind),
            (
                "apps",
                "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet"
            ) | ("batch", "Job")
                | (
                    "",
                    "Pod"
                        | "ReplicationController"
                        | "PersistentVolumeClaim"
                        | "PersistentVolume"
                        | "Service"
                        | "Namespace"
                )
                | ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("apiregistration.k8s.io", "APIService")
        )
}

/// API group of an object, empty for the core group.
pub(crate) fn group(object: &Value) -> &str {
    json::text(object, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group)
}

fn waiting(reason: &str, message: impl Into<String>, progress: u32) -> Readiness {
    Readiness::Waiting(Waiting {
        reason: reason.into(),
        message: message.into(),
        progress,
    })
}

/// Whether the controller has seen the newest generation.
fn is_observed(object: &Value) -> bool {
    let newest = json::number(object, "/metadata/generation").unwrap_or(0);
    json::number(object, "/status/observedGeneration").unwrap_or(0) >= newest
}

#[cfg(test)]
mod tests;
