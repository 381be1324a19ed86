//! How lists and maps of the known kinds merge: by key, as a set, or as one value.
//!
//! The built-in kinds are described by a table of paths. Custom resources say it in their schema.
//! What is named nowhere: maps merge member by member, lists are one value.

use serde_json::Value;

use crate::json;
use crate::kinds::Kind;

/// How the value at a path merges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Merge {
    /// A map whose members have owners of their own.
    Granular,
    /// One value, replaced as a whole.
    Atomic,
    /// A list whose items are told apart by these fields.
    ListMap(Vec<String>),
    /// A list of scalars in which each value has its owners.
    Set,
}

/// Rows match the end of a path of field names, list items left out. The first match counts.
const LIST_MAPS: &[(&str, &[&str], &[&str])] = &[
    ("Service", &["spec", "ports"], &["port", "protocol"]),
    (
        "*",
        &["containers", "ports"],
        &["containerPort", "protocol"],
    ),
    (
        "*",
        &["initContainers", "ports"],
        &["containerPort", "protocol"],
    ),
    ("*", &["spec", "containers"], &["name"]),
    ("*", &["spec", "initContainers"], &["name"]),
    ("*", &["spec", "ephemeralContainers"], &["name"]),
    ("*", &["spec", "volumes"], &["name"]),
    ("*", &["spec", "imagePullSecrets"], &["name"]),
    ("*", &["spec", "hostAliases"], &["ip"]),
    ("*", &["spec", "schedulingGates"], &["name"]),
    ("*", &["spec", "resourceClaims"], &["name"]),
    (
        "*",
        &["spec", "topologySpreadConstraints"],
        &["topologyKey", "whenUnsatisfiable"],
    ),
    ("*", &["ontainers", "env"], &["name"]),
    ("*", &["ontainers", "volumeMounts"], &["mountPath"]),
    ("*", &["ontainers", "volumeDevices"], &["devicePath"]),
    ("*", &["resources", "claims"], &["name"]),
    ("*", &["status", "conditions"], &["type"]),
    ("Pod", &["status", "podIPs"], &["ip"]),
    ("Pod", &["status", "hostIPs"], &["ip"]),
    ("*", &["metadata", "ownerReferences"], &["uid"]),
    ("ServiceAccount", &["secrets"], &["name"]),
    ("ValidatingWebhookConfiguration", &["webhooks"], &["name"]),
    ("MutatingWebhookConfiguration", &["webhooks"], &["name"]),
    (
        "ValidatingWebhookConfiguration",
        &["webhooks", "matchConditions"],
        &["name"],
    ),
];

const SETS: &[(&str, &[&str])] = &[("*", &["metadata", "finalizers"]), ("Node", &["podCIDRs"])];

/// Maps that are one value.
const ATOMIC_MAPS: &[(&str, &[&str])] = &[
    ("PersistentVolumeClaim", &["spec", "selector"]),
    ("Deployment", &["spec", "selector"]),
    ("ReplicaSet", &["spec", "selector"]),
    ("StatefulSet", &["spec", "selector"]),
    ("DaemonSet", &["spec", "selector"]),
    ("Job", &["spec", "selector"]),
    ("ReplicationController", &["spec", "selector"]),
    ("PodDisruptionBudget", &["spec", "selector"]),
    ("Service", &["spec", "selector"]),
    ("NetworkPolicy", &["spec", "podSelector"]),
    ("*", &["spec", "nodeSelector"]),
    ("*", &["requiredDuringSchedulingIgnoredDuringExecution"]),
    ("*", &["labelSelector"]),
    ("*", &["configMapKeyRef"]),
    ("*", &["secretKeyRef"]),
    ("*", &["fieldRef"]),
    ("*", &["resourceFieldRef"]),
    ("RoleBinding", &["roleRef"]),
    ("ClusterRoleBinding", &["roleRef"]),
    ("*", &["involvedObject"]),
    ("PersistentVolumeClaim", &["spec", "dataSource"]),
    ("Ingress", &["spec", "defaultBackend", "resource"]),
    ("ControllerRevision", &["data"]),
];

/// The merge rule of the value at `path` (field names only).
pub(crate) fn merge_rule(kind: &Kind, path: &[&str], value: &Value) -> Merge {
    // The older version of this kind takes its target as one value, the newer one does not.
    if path == ["spec", "scaleTargetRef"] && kind.version == "v1" {
        return Merge::Atomic;
    }
    let in_metadata = path.first() == Some(&"metadata");
    if let (Some(schema), false) = (kind.schema.as_deref(), in_metadata) {
        return custom_rule(schema, path, value);
    }
    match value {
        Value::Object(_) if is_atomic_map(kind, path) => Merge::Atomic,
        Value::Object(_) => Merge::Granular,
        // Jobs replace their conditions as a whole, unlike everybody else.
        Value::Array(_) if kind.kind == "Job" && path == ["status", "conditions"] => Merge::Atomic,
        Value::Array(_) => list_rule(kind, path),
        _ => Merge::Atomic,
    }
}

fn is_atomic_map(kind: &Kind, path: &[&str]) -> bool {
    ATOMIC_MAPS
        .iter()
        .any(|(of, tail)| is_kind(of, kind) && ends_with(path, tail))
}

fn list_rule(kind: &Kind, path: &[&str]) -> Merge {
    if SETS
        .iter()
        .any(|(of, tail)| is_kind(of, kind) && ends_with(path, tail))
    {
        return Merge::Set;
    }
    LIST_MAPS
        .iter()
        .find(|(of, tail, _)| is_kind(of, kind) && ends_with(path, tail))
        .map_or(Merge::Atomic, |(_, _, keys)| {
            Merge::ListMap(keys.iter().map(|k| (*k).to_owned()).collect())
        })
}

fn is_kind(of: &str, kind: &Kind) -> bool {
    of == "*" || of == kind.kind
}

/// `ontainers` stands for containers, initContainers and ephemeralContainers at once.
fn ends_with(path: &[&str], tail: &[&str]) -> bool {
    path.len() >= tail.len()
        && path[path.len() - tail.len()..]
            .iter()
            .zip(tail)
            .all(|(have, want)| have == want || (*want == "ontainers" && have.ends_with(want)))
}

fn custom_rule(schema: &Value, path: &[&str], value: &Value) -> Merge {
    let mut here = schema;
    for field in path {
        let items = json::at(here, "/items");
        if items.is_object() {
            here = items;
        }
        let named = json::at(here, &format!("/properties/{}", json::escape(field)));
        here = if named.is_object() {
            named
        } else {
            json::at(here, "/additionalProperties")
        };
    }
    match value {
        Value::Object(_) => match json::text(here, "/x-kubernetes-map-type") {
            "atomic" => Merge::Atomic,
            _ => Merge::Granular,
        },
        Value::Array(_) => match json::text(here, "/x-kubernetes-list-type") {
            "map" => Merge::ListMap(
                json::list(here, "/x-kubernetes-list-map-keys")
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            ),
            "set" => Merge::Set,
            _ => Merge::Atomic,
        },
        _ => Merge::Atomic,
    }
}

/// Whether the items of this list are one value each.
pub(crate) fn is_atomic_item(names: &[String]) -> bool {
    names
        .last()
        .is_some_and(|name| matches!(name.as_str(), "ownerReferences" | "imagePullSecrets"))
}

/// The path element of a list item: `k:{"name":"web"}`. Absent protocols count as TCP.
pub(crate) fn item_key(keys: &[String], item: &Value) -> String {
    let mut named: Vec<&String> = keys.iter().collect();
    named.sort();
    let members: Vec<String> = named
        .into_iter()
        .filter_map(|key| {
            let value = match item.get(key) {
                Some(value) => value.clone(),
                None if key == "protocol" => Value::from("TCP"),
                None => return None,
            };
            Some(format!("{}:{value}", Value::from(key.as_str())))
        })
        .collect();
    format!("k:{{{}}}", members.join(","))
}

/// The path element of a member of a set: `v:"orphan"`.
pub(crate) fn set_key(item: &Value) -> String {
    format!("v:{item}")
}
