//! Fields that may not change once an object exists.

use serde_json::Value;

use crate::json;
use crate::kinds::Kind;
use crate::status::Cause;

const IMMUTABLE: &str = "field is immutable";

/// Judges the step from `before` to `after`.
pub(crate) fn check(kind: &Kind, before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => {
            same(before, after, "spec.selector", IMMUTABLE, causes);
        }
        ("apps", "StatefulSet") => stateful_set(before, after, causes),
        ("apps", "ControllerRevision") => same(before, after, "data", IMMUTABLE, causes),
        ("batch", "Job") => {
            for field in [
                "spec.selector",
                "spec.template",
                "spec.completions",
                "spec.completionMode",
            ] {
                same(before, after, field, IMMUTABLE, causes);
            }
        }
        ("", "PersistentVolumeClaim") => claim(before, after, causes),
        ("", "PersistentVolume") => volume(before, after, causes),
        ("", "Service") => service(before, after, causes),
        ("", "Pod") => pod(before, after, causes),
        ("", "ConfigMap" | "Secret") => data(kind, before, after, causes),
        ("rbac.authorization.k8s.io", _) if kind.kind.ends_with("Binding") => {
            same(before, after, "roleRef", "cannot change roleRef", causes);
        }
        ("storage.k8s.io", "StorageClass") => {
            forbidden(
                before,
                after,
                "parameters",
                "updates to parameters are forbidden.",
                causes,
            );
            let detail = "updates to provisioner are forbidden.";
            forbidden(before, after, "provisioner", detail, causes);
            same(before, after, "volumeBindingMode", IMMUTABLE, causes);
            let detail = "updates to reclaimPolicy are forbidden.";
            forbidden(before, after, "reclaimPolicy", detail, causes);
        }
        ("storage.k8s.io", "VolumeAttachment") => same(before, after, "spec", IMMUTABLE, causes),
        ("scheduling.k8s.io", _) => {
            forbidden(
                before,
                after,
                "value",
                "may not be changed in an update.",
                causes,
            );
        }
        ("networking.k8s.io", "IngressClass") => {
            same(before, after, "spec.controller", IMMUTABLE, causes);
        }
        ("apiextensions.k8s.io", _) => {
            for field in [
                "spec.group",
                "spec.scope",
                "spec.names.plural",
                "spec.names.kind",
            ] {
                same(before, after, field, IMMUTABLE, causes);
            }
        }
        _ => {}
    }
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn differs(before: &Value, after: &Value, field: &str) -> bool {
    json::at(before, &pointer(field)) != json::at(after, &pointer(field))
}

fn same(before: &Value, after: &Value, field: &str, detail: &str, causes: &mut Vec<Cause>) {
    if differs(before, after, field) {
        causes.push(Cause::invalid(
            field,
            json::at(after, &pointer(field)),
            detail,
        ));
    }
}

fn forbidden(before: &Value, after: &Value, field: &str, detail: &str, causes: &mut Vec<Cause>) {
    if differs(before, after, field) {
        causes.push(Cause::forbidden(field, detail));
    }
}

/// Whether the specs differ apart from the named members.
fn spec_differs_but_for(before: &Value, after: &Value, free: &[&str]) -> bool {
    let strip = |object: &Value| {
        let mut spec = json::at(object, "/spec").clone();
        for field in free {
            json::remove(&mut spec, &format!("/{field}"));
        }
        spec
    };
    strip(before) != strip(after)
}

fn stateful_set(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let free = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if spec_differs_but_for(before, after, &free) {
        causes.push(Cause::forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        ));
    }
}

fn claim(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let bound = json::text(before, "/status/phase") == "Bound";
    let naming = !json::has(before, "/spec/volumeName") && json::has(after, "/spec/volumeName");
    let mut free = vec!["volumeAttributesClassName"];
    if bound {
        free.push("resources");
    }
    if naming {
        free.push("volumeName");
    }
    if spec_differs_but_for(before, after, &free) {
        causes.push(Cause::forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        ));
    }
}

fn volume(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let free = [
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    if spec_differs_but_for(before, after, &free) {
        causes.push(Cause::forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation",
        ));
    }
}

/// The address may be given up only by becoming an `ExternalName`.
fn service(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let external = |object: &Value| json::text(object, "/spec/type") == "ExternalName";
    if external(before) || external(after) {
        return;
    }
    if differs(before, after, "spec.clusterIP") || differs(before, after, "spec.clusterIPs") {
        let new = match json::at(after, "/spec/clusterIPs") {
            Value::Null => Value::from(vec![json::at(after, "/spec/clusterIP").clone()]),
            list => list.clone(),
        };
        causes.push(Cause::invalid(
            "spec.clusterIPs[0]",
            &new,
            "may not change once set",
        ));
    }
}

fn pod(before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    let strip = |object: &Value| {
        let mut spec = json::at(object, "/spec").clone();
        for list in ["/containers", "/initContainers"] {
            if json::at(&spec, list).is_array() {
                for container in json::list_mut(&mut spec, list) {
                    json::remove(container, "/image");
                }
            }
        }
        for field in [
            "/tolerations",
            "/activeDeadlineSeconds",
            "/schedulingGates",
            "/nodeName",
        ] {
            json::remove(&mut spec, field);
        }
        spec
    };
    if strip(before) != strip(after) {
        causes.push(Cause::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,\
             `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
             additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to \
             be set to 1 if it was previously negative)",
        ));
    }
}

fn data(kind: &Kind, before: &Value, after: &Value, causes: &mut Vec<Cause>) {
    if kind.kind == "Secret" {
        same(before, after, "type", IMMUTABLE, causes);
    }
    if !json::flag(before, "/immutable") {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    for field in ["immutable", "data", "binaryData"] {
        forbidden(before, after, field, detail, causes);
    }
}
