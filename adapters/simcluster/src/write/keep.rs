//! What a write may touch and what stays as the server has it.

use serde_json::{Value, json};

use crate::json;
use crate::kinds::Kind;

/// What an apply may claim: no server-owned metadata, and only its own half of the object.
pub(super) fn applicable(kind: &Kind, mut config: Value, subresource: &str) -> Value {
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "selfLink",
        "deletionGracePeriodSeconds",
    ] {
        json::remove(&mut config, &format!("/metadata/{field}"));
    }
    if subresource == "status" {
        json::as_map(&mut config).retain(|field, _| {
            matches!(
                field.as_str(),
                "apiVersion" | "kind" | "metadata" | "status"
            )
        });
        if let Some(metadata) = config.get_mut("metadata") {
            json::as_map(metadata).retain(|field, _| field == "name" || field == "namespace");
        }
    } else if kind.has_status {
        json::remove(&mut config, "/status");
    }
    config
}

/// Metadata that the server alone writes.
pub(super) fn keep_metadata(live: &Value, object: &mut Value) {
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
    ] {
        let pointer = format!("/metadata/{field}");
        match json::at(live, &pointer) {
            Value::Null => {
                json::remove(object, &pointer);
            }
            value => json::set(object, &pointer, value.clone()),
        }
    }
    // A deleted object takes no new finalizers, it only loses them.
    if json::is_deleting(live) && json::has(object, "/metadata/finalizers") {
        let had = json::list(live, "/metadata/finalizers").to_vec();
        json::list_mut(object, "/metadata/finalizers").retain(|f| had.contains(f));
    }
    for empty in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let pointer = format!("/metadata/{empty}");
        let is_empty = json::at(object, &pointer)
            .as_array()
            .is_some_and(Vec::is_empty)
            || json::at(object, &pointer)
                .as_object()
                .is_some_and(serde_json::Map::is_empty);
        if is_empty {
            json::remove(object, &pointer);
        }
    }
}

/// A write of the object leaves its status alone, a write of the status everything else.
pub(super) fn keep_other_half(kind: &Kind, live: &Value, object: &mut Value, subresource: &str) {
    if subresource == "status" {
        let status = json::at(object, "/status").clone();
        let managed = json::remove(object, "/metadata/managedFields");
        let annotations = json::at(object, "/metadata/annotations").clone();
        *object = live.clone();
        // Built-in kinds take annotations through the status too; deployments are numbered so.
        if !kind.is_custom() && annotations.is_object() {
            json::set(object, "/metadata/annotations", annotations);
        }
        json::remove(object, "/metadata/managedFields");
        if let Some(managed) = managed {
            json::set(object, "/metadata/managedFields", managed);
        }
        if status.is_null() {
            json::remove(object, "/status");
        } else {
            json::set(object, "/status", status);
        }
    } else if kind.has_status {
        match json::at(live, "/status") {
            Value::Null => {
                json::remove(object, "/status");
            }
            status => json::set(object, "/status", status.clone()),
        }
    }
}

pub(super) fn count_generation(kind: &Kind, live: &Value, object: &mut Value) {
    if !kind.counts_generations() {
        return;
    }
    let essence = |object: &Value| {
        let mut essence = object.clone();
        json::remove(&mut essence, "/metadata");
        json::remove(&mut essence, "/status");
        // Binding a pod is no change of what it asks for.
        if kind.is("pods") {
            json::remove(&mut essence, "/spec/nodeName");
        }
        essence
    };
    if essence(live) != essence(object) {
        let next = json::int(live, "/metadata/generation", 0) + 1;
        json::set(object, "/metadata/generation", next);
    }
}

/// The part of a new object that its creator does not own, since the server writes it.
pub(super) fn unowned(kind: &Kind, object: &Value) -> Value {
    let mut unowned = json!({});
    if kind.has_status && kind.kind != "Node" {
        unowned["status"] = json::at(object, "/status").clone();
    }
    if kind.is("namespaces") {
        unowned["spec"] = json!({"finalizers": json::at(object, "/spec/finalizers")});
    }
    json::drop_nulls(&mut unowned);
    unowned
}
