//! How objects look on the way to the cluster (with our marks) and on the way back (without what
//! section "What as before means" of the design drops).

use crate::discovery::{Kind, Located};
use crate::json::{self, member};
use crate::managed_fields;
use crate::marks;
use cairn_domain::ports::Scope;
use serde_json::{Map, Value, json};

/// Members of `metadata` that the server fills in.
const SERVERS: [&str; 9] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "uid",
    "generateName",
];

/// Labels that the Job controller gives to a Job's pods; another Job of the same name gets others.
const JOB_LABELS: [&str; 4] = [
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "job-name",
    "batch.kubernetes.io/job-name",
];

/// Where kinds keep the metadata of their pod templates.
pub(crate) fn template(kind: &Kind) -> Option<&'static [&'static str]> {
    match (kind.group(), kind.name.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => Some(&["spec", "template"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template"]),
        ("", "PodTemplate") => Some(&["template"]),
        _ => None,
    }
}

/// A manifest as it is applied: named, placed and marked. `live` is what is there already.
pub(crate) fn dressed(
    scope: &Scope,
    at: &Located,
    manifest: &Value,
    live: Option<&Value>,
) -> Value {
    let mut body = manifest.clone();
    json::remove(&mut body, "", "status");
    body["apiVersion"] = json!(at.kind.api_version);
    body["kind"] = json!(at.kind.name);
    for name in SERVERS {
        json::remove(&mut body, "/metadata", name);
    }
    let metadata = member(&mut body, "metadata");
    *member(metadata, "name") = json!(at.object.name);
    match &at.object.namespace {
        Some(namespace) => *member(metadata, "namespace") = json!(namespace),
        None => json::remove(&mut body, "/metadata", "namespace"),
    }
    let metadata = member(&mut body, "metadata");
    let annotations = member(metadata, "annotations");
    *member(annotations, marks::OPERATION) = json!(scope.operation.as_str());
    *member(annotations, marks::PACKAGE) = json!(scope.package_digest);
    label(scope, metadata);
    label_templates(scope, &at.kind, &mut body);
    if at.kind.is("apps", "StatefulSet") {
        mark_claims(scope, &mut body, live);
    }
    body
}

fn label(scope: &Scope, metadata: &mut Value) {
    *member(member(metadata, "labels"), marks::INSTANCE) = json!(scope.instance.as_str());
}

fn label_templates(scope: &Scope, kind: &Kind, body: &mut Value) {
    let Some(path) = template(kind) else { return };
    let mut template = &mut *body;
    for name in path {
        template = member(template, name);
    }
    label(scope, member(template, "metadata"));
    if kind.is("batch", "CronJob") {
        let job = member(member(body, "spec"), "jobTemplate");
        label(scope, member(job, "metadata"));
    }
}

/// Claims made from templates carry no owner, so the templates carry our marks. Templates cannot be changed:
/// what is there already keeps the marks that it has.
fn mark_claims(scope: &Scope, body: &mut Value, live: Option<&Value>) {
    let set = json::name(body).to_owned();
    let Some(templates) = body
        .pointer_mut("/spec/volumeClaimTemplates")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    for template in templates {
        let name = json::name(template).to_owned();
        let metadata = member(template, "metadata");
        let Some(live) = live else {
            label(scope, metadata);
            let annotations = member(metadata, "annotations");
            *member(annotations, marks::OPERATION) = json!(scope.operation.as_str());
            *member(annotations, marks::STATEFUL_SET) = json!(set);
            continue;
        };
        let known = json::entries(live, "/spec/volumeClaimTemplates")
            .iter()
            .find(|t| json::name(t) == name);
        set_or_remove(
            metadata,
            "labels",
            marks::INSTANCE,
            known.and_then(|t| json::label(t, marks::INSTANCE)),
        );
        for mark in [marks::OPERATION, marks::STATEFUL_SET] {
            let kept = known.and_then(|t| json::annotation(t, mark));
            set_or_remove(metadata, "annotations", mark, kept);
        }
    }
}

fn set_or_remove(metadata: &mut Value, map: &str, key: &str, value: Option<&str>) {
    match value {
        Some(value) => *member(member(metadata, map), key) = json!(value),
        None => json::remove(metadata, &format!("/{map}"), key),
    }
}

/// The body for an object that does not exist: without what belonged to an earlier one of its name.
pub(crate) fn fit_for_creation(kind: &Kind, body: &mut Value) {
    if kind.is("batch", "Job") && !json::truth(body, "/spec/manualSelector") {
        json::remove(body, "/spec", "selector");
        for label in JOB_LABELS {
            json::remove(body, "/spec/template/metadata/labels", label);
            json::remove(body, "/metadata/labels", label);
        }
    }
    if kind.is("", "PersistentVolumeClaim") {
        json::remove(
            body,
            "/metadata/annotations",
            "pv.kubernetes.io/bind-completed",
        );
        json::remove(
            body,
            "/metadata/annotations",
            "pv.kubernetes.io/bound-by-controller",
        );
    }
    if kind.is("", "PersistentVolume") {
        json::remove(body, "/spec/claimRef", "uid");
        json::remove(body, "/spec/claimRef", "resourceVersion");
    }
}

/// Takes the addresses and ports out of a Service that the server gave it; says whether there were any.
pub(crate) fn give_up_addresses(kind: &Kind, body: &mut Value) -> bool {
    if !kind.is("", "Service") {
        return false;
    }
    let before = body.clone();
    if json::text(body, "/spec/clusterIP") != "None" {
        json::remove(body, "/spec", "clusterIP");
        json::remove(body, "/spec", "clusterIPs");
    }
    json::remove(body, "/spec", "healthCheckNodePort");
    let ports = body
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        json::remove(port, "", "nodePort");
    }
    *body != before
}

/// The recorded form of a live object. `keep` is what is about to be applied onto it: fields of others that
/// it overwrites are recorded too.
pub(crate) fn recorded(live: &Value, manager: &str, keep: Option<&Value>) -> Value {
    let mut body = live.clone();
    managed_fields::without_foreign(&mut body, manager, keep);
    json::remove(&mut body, "", "status");
    let deleting = json::deleting(&body);
    for name in SERVERS {
        json::remove(&mut body, "/metadata", name);
    }
    without_marks(&mut body);
    if deleting
        && let Some(finalizers) = body
            .pointer_mut("/metadata/finalizers")
            .and_then(Value::as_array_mut)
    {
        finalizers.retain(|name| name != "foregroundDeletion");
    }
    for name in ["annotations", "finalizers"] {
        remove_if_empty(&mut body, name);
    }
    body
}

/// Takes off the annotations that we write: the object's own, and those that its claim templates hand down.
fn without_marks(body: &mut Value) {
    let templates = body
        .pointer_mut("/spec/volumeClaimTemplates")
        .and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten() {
        take_off_marks(template);
        remove_if_empty(template, "annotations");
    }
    take_off_marks(body);
}

fn take_off_marks(object: &mut Value) {
    if let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.retain(|key, _| !key.starts_with(marks::PREFIX) && key != marks::REVISION);
    }
}

fn remove_if_empty(object: &mut Value, name: &str) {
    let empty = object
        .pointer(&format!("/metadata/{name}"))
        .is_some_and(|v| *v == json!({}) || *v == json!([]));
    if empty {
        json::remove(object, "/metadata", name);
    }
}

/// An object with nothing but its identity: applied, it gives up every field of its manager.
pub(crate) fn identity(at: &Located) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(at.object.name));
    if let Some(namespace) = &at.object.namespace {
        metadata.insert("namespace".into(), json!(namespace));
    }
    json!({"apiVersion": at.kind.api_version, "kind": at.kind.name, "metadata": metadata})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{located, scope};

    #[test]
    fn templates_carry_the_label_and_never_an_annotation() {
        let cron = json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata": null}}}}});
        let body = dressed(&scope(), &located("batch/v1", "CronJob", "c"), &cron, None);
        let job = &body["spec"]["jobTemplate"];
        assert_eq!(job["metadata"]["labels"][marks::INSTANCE], "instance-1");
        assert_eq!(
            job["spec"]["template"]["metadata"],
            json!({"labels": {marks::INSTANCE: "instance-1"}})
        );
        assert_eq!(
            body["metadata"]["annotations"][marks::OPERATION],
            "operation-1"
        );
        assert_eq!(body["metadata"]["namespace"], "ns");
    }

    #[test]
    fn claim_templates_keep_the_marks_that_they_have() {
        let set = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
        let at = located("apps/v1", "StatefulSet", "s");
        let made = dressed(&scope(), &at, &set, None);
        let claim = &made["spec"]["volumeClaimTemplates"][0]["metadata"];
        assert_eq!(claim["labels"][marks::INSTANCE], "instance-1");
        assert_eq!(claim["annotations"][marks::STATEFUL_SET], "s");
        let again = dressed(&scope(), &at, &set, Some(&set));
        assert_eq!(
            again["spec"]["volumeClaimTemplates"],
            set["spec"]["volumeClaimTemplates"]
        );
    }

    #[test]
    fn a_service_without_address_of_its_own_keeps_being_one() {
        let kind = located("v1", "Service", "s").kind;
        let mut headless = json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}});
        assert!(!give_up_addresses(&kind, &mut headless));
        let mut service =
            json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 1, "nodePort": 2}]}});
        assert!(give_up_addresses(&kind, &mut service));
        assert_eq!(service, json!({"spec": {"ports": [{"port": 1}]}}));
    }

    #[test]
    fn the_recorded_form_drops_what_the_server_and_we_add() {
        let live = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"},
                "annotations": {marks::OPERATION: "o", marks::REVISION: "1"}},
            "data": {"x": "y"}, "status": {"a": 1}
        });
        assert_eq!(
            recorded(&live, "cairn-instance-1", None),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}},
                "data": {"x": "y"}})
        );
        let template =
            |metadata: Value| json!({"spec": {"volumeClaimTemplates": [{"metadata": metadata}]}});
        let live = template(
            json!({"name": "data", "annotations": {marks::OPERATION: "o", marks::STATEFUL_SET: "s"}}),
        );
        assert_eq!(
            recorded(&live, "cairn-instance-1", None),
            template(json!({"name": "data"}))
        );
    }
}
