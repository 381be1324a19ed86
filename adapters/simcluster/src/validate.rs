//! What the server refuses with 422: missing and malformed fields, and changes of fixed ones.

use serde_json::Value;

use crate::json;
use crate::kinds::Kind;
use crate::names;
use crate::status::{ApiError, ApiResult, Cause};

mod custom;
mod fixed;
mod pod;

/// Judges an object that is to be created or stored.
///
/// # Errors
/// 422 with one cause per fault.
pub(crate) fn object(kind: &Kind, object: &Value) -> ApiResult<()> {
    let mut causes = Vec::new();
    metadata(kind, object, &mut causes);
    if let Some(schema) = &kind.schema {
        custom::check(schema, object, "", &mut causes);
    } else {
        built_in(kind, object, &mut causes);
    }
    answer(kind, object, &causes)
}

/// Judges the change of an object that exists.
///
/// # Errors
/// 422 with one cause per field that may not change.
pub(crate) fn change(kind: &Kind, before: &Value, after: &Value) -> ApiResult<()> {
    let mut causes = Vec::new();
    fixed::check(kind, before, after, &mut causes);
    answer(kind, after, &causes)
}

fn answer(kind: &Kind, object: &Value, causes: &[Cause]) -> ApiResult<()> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(kind, json::name(object), causes))
}

fn metadata(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    let name = json::name(object);
    let fault = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => names::label_1035_fault(name),
        ("", "Namespace") => names::label_fault(name),
        ("rbac.authorization.k8s.io", _) => names::path_segment_fault(name),
        _ => names::subdomain_fault(name),
    };
    if let Some(fault) = fault {
        causes.push(Cause::invalid("metadata.name", &Value::from(name), &fault));
    }
    for (key, value) in json::map(object, "/metadata/labels").into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if let Some(fault) = names::label_value_fault(text) {
            causes.push(Cause::invalid(
                format!("metadata.labels[{key}]"),
                value,
                &fault,
            ));
        }
    }
    for (index, owner) in json::list(object, "/metadata/ownerReferences")
        .iter()
        .enumerate()
    {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if json::text(owner, &format!("/{field}")).is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::invalid(path, &Value::from(""), "must not be empty"));
            }
        }
    }
}

fn built_in(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::spec(object, "spec", &["Always", "OnFailure", "Never"], causes),
        ("", "Service") => service(object, causes),
        ("", "PersistentVolumeClaim") => claim(object, "spec", causes),
        ("", "PersistentVolume") => volume(object, causes),
        ("", "ReplicationController") => pod::template(object, "spec", &["Always"], causes),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload(object, causes);
        }
        ("batch", "Job") => {
            pod::template(object, "spec", pod::ENDING, causes);
            not_negative(
                object,
                &[
                    "/spec/parallelism",
                    "/spec/completions",
                    "/spec/backoffLimit",
                ],
                causes,
            );
        }
        ("batch", "CronJob") => {
            required(object, &["spec.schedule"], causes);
            pod::template(object, "spec.jobTemplate.spec", pod::ENDING, causes);
        }
        ("autoscaling", _) => autoscaler(object, causes),
        ("rbac.authorization.k8s.io", k) if k.ends_with("Binding") => {
            required(object, &["roleRef.kind", "roleRef.name"], causes);
        }
        ("storage.k8s.io", "StorageClass") => required(object, &["provisioner"], causes),
        ("storage.k8s.io", "VolumeAttachment") => {
            required(object, &["spec.attacher", "spec.nodeName"], causes);
        }
        ("apiextensions.k8s.io", _) => crd(object, causes),
        ("networking.k8s.io", "IngressClass") => required(object, &["spec.controller"], causes),
        ("networking.k8s.io", "Ingress") => ingress(object, causes),
        _ => {}
    }
}

/// Faults of a workload with selector, template and number.
fn workload(object: &Value, causes: &mut Vec<Cause>) {
    not_negative(object, &["/spec/replicas", "/spec/minReadySeconds"], causes);
    let selector = json::at(object, "/spec/selector");
    let empty = !json::has(selector, "/matchLabels") && !json::has(selector, "/matchExpressions");
    if selector.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if empty {
        let detail = "empty selector is invalid for deployment";
        causes.push(Cause::invalid("spec.selector", selector, detail));
    }
    let labels = json::at(object, "/spec/template/metadata/labels");
    if selector.is_null() || !crate::selector::matches_labels(selector, labels) {
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            labels,
            "`selector` does not match template `labels`",
        ));
    }
    pod::template(object, "spec", &["Always"], causes);
    for (index, template) in json::list(object, "/spec/volumeClaimTemplates")
        .iter()
        .enumerate()
    {
        claim(
            template,
            &format!("spec.volumeClaimTemplates[{index}].spec"),
            causes,
        );
    }
}

fn service(object: &Value, causes: &mut Vec<Cause>) {
    let headless = json::text(object, "/spec/clusterIP") == "None";
    let kind = json::text(object, "/spec/type");
    let ports = json::list(object, "/spec/ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if kind == "ExternalName" {
        required(object, &["spec.externalName"], causes);
    }
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        if ports.len() > 1 && json::text(port, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        let number = json::int(port, "/port", 0);
        if !(1..=65535).contains(&number) {
            let detail = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(
                format!("{path}.port"),
                &Value::from(number),
                detail,
            ));
        }
        let protocol = json::text(port, "/protocol");
        if !["SCTP", "TCP", "UDP"].contains(&protocol) {
            let path = format!("{path}.protocol");
            causes.push(Cause::unsupported(path, protocol, &["SCTP", "TCP", "UDP"]));
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !types.contains(&kind) {
        causes.push(Cause::unsupported("spec.type", kind, &types));
    }
}

fn claim(object: &Value, path: &str, causes: &mut Vec<Cause>) {
    if json::list(object, "/spec/accessModes").is_empty() {
        let detail = "at least 1 access mode is required";
        causes.push(Cause::required(format!("{path}.accessModes"), detail));
    }
    if !json::has(object, "/spec/resources/requests/storage") {
        causes.push(Cause::required(format!("{path}.resources[storage]"), ""));
    }
}

const VOLUME_SOURCES: &[&str] = &[
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

fn volume(object: &Value, causes: &mut Vec<Cause>) {
    if json::list(object, "/spec/accessModes").is_empty() {
        causes.push(Cause::required("spec.accessModes", ""));
    }
    if !json::has(object, "/spec/capacity") {
        causes.push(Cause::required("spec.capacity", ""));
    }
    if !VOLUME_SOURCES
        .iter()
        .any(|source| json::has(object, &format!("/spec/{source}")))
    {
        causes.push(Cause::required("spec", "must specify a volume type"));
    }
}

fn autoscaler(object: &Value, causes: &mut Vec<Cause>) {
    let max = json::int(object, "/spec/maxReplicas", 0);
    if max < 1 {
        let detail = "must be greater than 0";
        causes.push(Cause::invalid(
            "spec.maxReplicas",
            &Value::from(max),
            detail,
        ));
    }
    if max < json::int(object, "/spec/minReplicas", 1) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid(
            "spec.maxReplicas",
            &Value::from(max),
            detail,
        ));
    }
    required(
        object,
        &["spec.scaleTargetRef.kind", "spec.scaleTargetRef.name"],
        causes,
    );
}

fn ingress(object: &Value, causes: &mut Vec<Cause>) {
    if json::list(object, "/spec/rules").is_empty() && !json::has(object, "/spec/defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", &Value::Null, detail));
    }
}

fn crd(object: &Value, causes: &mut Vec<Cause>) {
    required(
        object,
        &[
            "spec.group",
            "spec.names.plural",
            "spec.names.kind",
            "spec.scope",
        ],
        causes,
    );
    if json::list(object, "/spec/versions").is_empty() {
        causes.push(Cause::required("spec.versions", ""));
    }
    let expected = format!(
        "{}.{}",
        json::text(object, "/spec/names/plural"),
        json::text(object, "/spec/group")
    );
    if json::name(object) != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid(
            "metadata.name",
            &Value::from(json::name(object)),
            detail,
        ));
    }
    for (index, version) in json::list(object, "/spec/versions").iter().enumerate() {
        if !json::has(version, "/schema/openAPIV3Schema") {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(path, "schemas are required"));
        }
    }
}

fn required(object: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    for field in fields {
        let value = json::at(object, &format!("/{}", field.replace('.', "/")));
        if value.is_null() || value == "" {
            causes.push(Cause::required(*field, ""));
        }
    }
}

fn not_negative(object: &Value, pointers: &[&str], causes: &mut Vec<Cause>) {
    for pointer in pointers {
        let number = json::int(object, pointer, 0);
        if number < 0 {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let detail = "must be greater than or equal to 0";
            causes.push(Cause::invalid(field, &Value::from(number), detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use serde_json::json;

    #[test]
    fn all_faults_of_a_deployment_are_named_at_once() {
        let object_ = json!({"metadata": {"name": "web"}, "spec": {"template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"restartPolicy": "Always", "containers": [{"name": "web"}]}}}});
        let error = object(&Kinds::built_in().get("deployments.apps"), &object_).unwrap_err();
        assert_eq!(error.code, 422);
        assert_eq!(
            error.message,
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, \
             spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not \
             match template `labels`, spec.template.spec.containers[0].image: Required value]"
        );
    }

    #[test]
    fn the_cluster_address_of_a_service_is_fixed() {
        let before = json!({"metadata": {"name": "a"}, "spec": {"type": "ClusterIP",
            "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"]}});
        let mut after = before.clone();
        after["spec"]["clusterIP"] = json!("None");
        after["spec"]["clusterIPs"] = json!(["None"]);
        let error = change(&Kinds::built_in().get("services"), &before, &after).unwrap_err();
        assert!(
            error.message.contains("may not change once set"),
            "{}",
            error.message
        );
    }
}
