//! Namespaces: what each new one gets, and how one ends.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Pass;
use super::act::{MANAGER, set_condition};
use crate::json;
use crate::write::Options;

pub(super) fn run(pass: &mut Pass<'_>) {
    let Some(namespace) = pass.state.get("namespaces", "", &pass.namespace) else {
        return;
    };
    if json::is_deleting(&namespace) {
        empty(pass, &namespace);
    } else {
        furnish(pass, json::name(&namespace));
    }
}

/// Each namespace has a default service account and the cluster's authority.
fn furnish(pass: &mut Pass<'_>, namespace: &str) {
    let root = json!({"metadata": {"name": "kube-root-ca.crt", "annotations": {
        "kubernetes.io/description": "Contains a CA bundle that can be used to verify the \
            kube-apiserver when using internal endpoints such as the internal service IP or \
            kubernetes.default.svc. No other usage is guaranteed across distributions of \
            Kubernetes clusters."}},
        "data": {"ca.crt": "simulated"}});
    for (qualified, object) in [
        ("serviceaccounts", json!({"metadata": {"name": "default"}})),
        ("configmaps", root),
    ] {
        if pass
            .state
            .get(qualified, namespace, json::name(&object))
            .is_some()
        {
            continue;
        }
        let kind = pass.state.kinds.get(qualified);
        if let Err(error) = pass.state.create_as(MANAGER, &kind, namespace, object) {
            tracing::warn!(error = error.message, "a namespace could not be furnished");
        }
    }
}

/// Deletes what is in the namespace; when nothing is left the namespace goes too.
fn empty(pass: &mut Pass<'_>, namespace: &Value) {
    let name = json::name(namespace).to_owned();
    let content: Vec<(String, Value)> = pass
        .state
        .store
        .all_within(&name)
        .map(|(storage, object)| (storage.to_string(), (**object).clone()))
        .collect();
    for (storage, object) in &content {
        let Some(kind) = pass.state.kind_of(storage) else {
            continue;
        };
        if !json::is_deleting(object) {
            pass.delete(&kind, object);
        }
    }
    let left: Vec<(String, Value)> = pass
        .state
        .store
        .all_within(&name)
        .map(|(storage, object)| (storage.to_string(), (**object).clone()))
        .collect();
    if left.is_empty() {
        finish(pass, &name);
    } else {
        report(pass, namespace, &left);
    }
}

fn finish(pass: &mut Pass<'_>, name: &str) {
    let kind = pass.state.kinds.get("namespaces");
    let freed = pass
        .state
        .update(&kind, ("", name), &Options::by(MANAGER), |live| {
            let mut next = live.clone();
            json::remove(&mut next, "/spec/finalizers");
            Ok(next)
        });
    let gone = freed
        .ok()
        .filter(|w| json::list(&w.object, "/metadata/finalizers").is_empty());
    if let Some(written) = gone {
        pass.state.remove_now(&kind, &written.object);
    }
}

/// Conditions that are well as long as discovery and deletion work, which they do here.
const CLEAN: &[(&str, &str, &str)] = &[
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
];

/// The five conditions that say why a namespace is still there.
fn report(pass: &mut Pass<'_>, namespace: &Value, left: &[(String, Value)]) {
    let now = pass.stamp.clone();
    let mut status = json::at(namespace, "/status").clone();
    json::set(&mut status, "/phase", "Terminating");
    for (kind, reason, message) in CLEAN {
        set_condition(&mut status, (kind, false), reason, message, &now);
    }
    let kinds = left.iter().map(|(storage, _)| {
        if storage.contains('.') {
            storage.clone()
        } else {
            format!("{storage}.")
        }
    });
    let message = format!("Some resources are remaining: {}", listed(kinds, "has"));
    let remaining = ("NamespaceContentRemaining", true);
    set_condition(
        &mut status,
        remaining,
        "SomeResourcesRemain",
        &message,
        &now,
    );
    let finalizers = left
        .iter()
        .flat_map(|(_, object)| json::list(object, "/metadata/finalizers"))
        .filter_map(|finalizer| finalizer.as_str().map(str::to_owned));
    let listed = listed(finalizers, "in");
    let (held, reason, message) = if listed.is_empty() {
        let message = "All content-preserving finalizers finished".to_owned();
        (false, "ContentHasNoFinalizers", message)
    } else {
        let message = format!("Some content in the namespace has finalizers remaining: {listed}");
        (true, "SomeFinalizersRemain", message)
    };
    set_condition(
        &mut status,
        ("NamespaceFinalizersRemaining", held),
        reason,
        &message,
        &now,
    );
    let kind = pass.state.kinds.get("namespaces");
    pass.set_status(&kind, namespace, MANAGER, status);
}

/// `configmaps. has 1 resource instances, …`
fn listed(names: impl Iterator<Item = String>, what: &str) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(name, count)| format!("{name} {what} {count} resource instances"))
        .collect();
    parts.join(", ")
}
