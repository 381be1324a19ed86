//! The fields that a real server fills in. Clients compare what they read with what they wrote, so
//! leaving defaults out would hide differences that exist in the field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::json::{self, as_map, list_mut, set_default};
use crate::kinds::Kind;

mod pod;

pub(crate) use pod::{pod_spec, quantities};

/// Fills the defaults of an object of this kind in place.
pub(crate) fn fill(kind: &Kind, object: &mut Value) {
    if let Some(schema) = &kind.schema {
        custom(schema, object);
        return;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => {
            pod_spec(object, "/spec");
            pod::pod_alone(object);
        }
        ("", "PodTemplate") => pod_spec(object, "/template/spec"),
        ("", "Service") => service(object),
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "PersistentVolume") => volume(object),
        ("", "ReplicationController") => replication_controller(object),
        ("", "ResourceQuota") => {
            quantities(object, "/spec/hard");
            set_default(object, "/status", json!({}));
        }
        ("", "LimitRange") => limit_range(object),
        ("policy", _) => set_default(
            object,
            "/status",
            json!({"disruptionsAllowed": 0,
            "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        ),
        ("networking.k8s.io", "Ingress") => {
            set_default(object, "/status", json!({"loadBalancer": {}}));
        }
        ("storage.k8s.io", "VolumeAttachment") => {
            set_default(object, "/status", json!({"attached": false}));
        }
        ("", "Event") => event(object),
        ("", "Endpoints") => endpoints(object),
        ("apps", _) => apps(kind, object),
        ("batch", _) => batch(kind, object),
        ("autoscaling", _) => {
            set_default(object, "/spec/minReplicas", 1);
            set_default(object, "/status/desiredReplicas", 0);
            if kind.version == "v1" {
                set_default(object, "/status/currentReplicas", 0);
            }
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("rbac.authorization.k8s.io", _) => rbac(kind, object),
        ("storage.k8s.io", "StorageClass") => storage_class(object),
        ("scheduling.k8s.io", _) => {
            set_default(object, "/preemptionPolicy", "PreemptLowerPriority");
        }
        ("apiextensions.k8s.io", _) => crd(object),
        ("apiregistration.k8s.io", _) => set_service_port(object),
        _ => {}
    }
}

/// A limit's maximum is its default, and its default is its default request.
fn limit_range(object: &mut Value) {
    if !json::has(object, "/spec/limits") {
        return;
    }
    for limit in list_mut(object, "/spec/limits") {
        if json::text(limit, "/type") != "Container" {
            continue;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest")] {
            let values = json::map(limit, &format!("/{from}"))
                .cloned()
                .unwrap_or_default();
            for (resource, value) in values {
                set_default(limit, &format!("/{to}/{}", json::escape(&resource)), value);
            }
        }
    }
}

fn set_service_port(object: &mut Value) {
    set_default(object, "/status", json!({}));
    if json::has(object, "/spec/service") {
        set_default(object, "/spec/service/port", 443);
    }
}

fn service(object: &mut Value) {
    set_default(object, "/spec/type", "ClusterIP");
    set_default(object, "/spec/sessionAffinity", "None");
    if json::text(object, "/spec/type") != "ExternalName" {
        set_default(object, "/spec/internalTrafficPolicy", "Cluster");
    }
    if matches!(
        json::text(object, "/spec/type"),
        "NodePort" | "LoadBalancer"
    ) {
        set_default(object, "/spec/externalTrafficPolicy", "Cluster");
    }
    if json::text(object, "/spec/type") == "LoadBalancer" {
        set_default(object, "/spec/allocateLoadBalancerNodePorts", true);
    }
    if json::text(object, "/spec/sessionAffinity") == "ClientIP" {
        set_default(
            object,
            "/spec/sessionAffinityConfig/clientIP/timeoutSeconds",
            10800,
        );
    }
    if json::has(object, "/spec/ports") {
        for port in list_mut(object, "/spec/ports") {
            set_default(port, "/protocol", "TCP");
            let number = json::at(port, "/port").clone();
            if !json::has(port, "/targetPort") && !number.is_null() {
                json::set(port, "/targetPort", number);
            }
        }
    }
    set_default(object, "/status", json!({"loadBalancer": {}}));
}

/// `stringData` is write-only: the server moves it into `data`. An apply keeps owning it under the
/// name `stringData`, so a key left out of a later apply stays in `data`, on a real server too.
fn secret(object: &mut Value) {
    set_default(object, "/type", "Opaque");
    let Some(Value::Object(plain)) = json::remove(object, "/stringData") else {
        return;
    };
    for (key, value) in plain {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        json::set(object, &format!("/data/{}", json::escape(&key)), encoded);
    }
}

fn namespace(object: &mut Value) {
    let name = json::name(object).to_owned();
    json::set(
        object,
        "/metadata/labels/kubernetes.io~1metadata.name",
        name,
    );
    if !json::is_deleting(object) {
        set_default(object, "/spec/finalizers", json!(["kubernetes"]));
    }
    set_default(object, "/status/phase", "Active");
}

fn claim(object: &mut Value) {
    quantities(object, "/spec/resources/requests");
    set_default(object, "/spec/volumeMode", "Filesystem");
    set_default(object, "/status/phase", "Pending");
}

fn volume(object: &mut Value) {
    quantities(object, "/spec/capacity");
    set_default(object, "/spec/volumeMode", "Filesystem");
    set_default(object, "/spec/persistentVolumeReclaimPolicy", "Retain");
    set_default(object, "/status/phase", "Pending");
    if json::has(object, "/spec/hostPath") {
        set_default(object, "/spec/hostPath/type", "");
    }
}

fn replication_controller(object: &mut Value) {
    set_default(object, "/spec/replicas", 1);
    pod_spec(object, "/spec/template/spec");
    let labels = json::at(object, "/spec/template/metadata/labels").clone();
    if labels.is_object() {
        set_default(object, "/spec/selector", labels.clone());
        set_default(object, "/metadata/labels", labels);
    }
    set_default(object, "/status", json!({"replicas": 0}));
}

fn event(object: &mut Value) {
    set_default(object, "/source", json!({}));
    set_default(object, "/reportingComponent", "");
    set_default(object, "/reportingInstance", "");
}

fn endpoints(object: &mut Value) {
    if !json::has(object, "/subsets") {
        return;
    }
    for subset in list_mut(object, "/subsets") {
        if json::has(subset, "/ports") {
            for port in list_mut(subset, "/ports") {
                set_default(port, "/protocol", "TCP");
            }
        }
    }
}

fn apps(kind: &Kind, object: &mut Value) {
    match kind.kind.as_str() {
        "Deployment" => {
            set_default(object, "/spec/replicas", 1);
            set_default(object, "/spec/revisionHistoryLimit", 10);
            set_default(object, "/spec/progressDeadlineSeconds", 600);
            set_default(object, "/spec/strategy/type", "RollingUpdate");
            if json::text(object, "/spec/strategy/type") == "RollingUpdate" {
                set_default(object, "/spec/strategy/rollingUpdate/maxSurge", "25%");
                set_default(object, "/spec/strategy/rollingUpdate/maxUnavailable", "25%");
            }
            set_default(object, "/status", json!({}));
        }
        "ReplicaSet" => {
            set_default(object, "/spec/replicas", 1);
            set_default(object, "/status", json!({"replicas": 0}));
        }
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => {
            set_default(object, "/spec/revisionHistoryLimit", 10);
            let generation = "/metadata/annotations/deprecated.daemonset.template.generation";
            set_default(object, generation, "1");
            set_default(object, "/spec/updateStrategy/type", "RollingUpdate");
            if json::text(object, "/spec/updateStrategy/type") == "RollingUpdate" {
                set_default(object, "/spec/updateStrategy/rollingUpdate/maxSurge", 0);
                set_default(
                    object,
                    "/spec/updateStrategy/rollingUpdate/maxUnavailable",
                    1,
                );
            }
            let status = json!({"currentNumberScheduled": 0, "numberMisscheduled": 0,
                "desiredNumberScheduled": 0, "numberReady": 0});
            set_default(object, "/status", status);
        }
        _ => return,
    }
    pod_spec(object, "/spec/template/spec");
}

fn stateful_set(object: &mut Value) {
    set_default(object, "/spec/replicas", 1);
    set_default(object, "/spec/serviceName", "");
    set_default(object, "/spec/revisionHistoryLimit", 10);
    set_default(object, "/spec/podManagementPolicy", "OrderedReady");
    set_default(object, "/spec/updateStrategy/type", "RollingUpdate");
    if json::text(object, "/spec/updateStrategy/type") == "RollingUpdate" {
        set_default(object, "/spec/updateStrategy/rollingUpdate/partition", 0);
    }
    let keep = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    set_default(object, "/spec/persistentVolumeClaimRetentionPolicy", keep);
    if json::has(object, "/spec/volumeClaimTemplates") {
        for template in list_mut(object, "/spec/volumeClaimTemplates") {
            set_default(template, "/apiVersion", "v1");
            set_default(template, "/kind", "PersistentVolumeClaim");
            quantities(template, "/spec/resources/requests");
            set_default(template, "/spec/volumeMode", "Filesystem");
            set_default(template, "/status/phase", "Pending");
        }
    }
    set_default(
        object,
        "/status",
        json!({"replicas": 0, "availableReplicas": 0}),
    );
}

fn batch(kind: &Kind, object: &mut Value) {
    if kind.kind == "CronJob" {
        set_default(object, "/spec/concurrencyPolicy", "Allow");
        set_default(object, "/spec/suspend", false);
        set_default(object, "/spec/successfulJobsHistoryLimit", 3);
        set_default(object, "/spec/failedJobsHistoryLimit", 1);
        set_default(object, "/status", json!({}));
        set_default(object, "/spec/jobTemplate/metadata", json!({}));
        pod_spec(object, "/spec/jobTemplate/spec/template/spec");
        return;
    }
    pod_spec(object, "/spec/template/spec");
    let labels = json::at(object, "/spec/template/metadata/labels").clone();
    if labels.is_object() {
        set_default(object, "/metadata/labels", labels);
    }
    set_default(object, "/spec/backoffLimit", 6);
    set_default(object, "/spec/completionMode", "NonIndexed");
    set_default(object, "/spec/suspend", false);
    set_default(object, "/spec/podReplacementPolicy", "TerminatingOrFailed");
    set_default(object, "/spec/manualSelector", false);
    // With neither number given one run completes the Job; parallelism alone makes a work queue.
    if !json::has(object, "/spec/completions") && !json::has(object, "/spec/parallelism") {
        json::set(object, "/spec/completions", 1);
    }
    set_default(object, "/spec/parallelism", 1);
    set_default(object, "/status", json!({}));
}

fn network_policy(object: &mut Value) {
    let types = if json::has(object, "/spec/egress") {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    set_default(object, "/spec/policyTypes", types);
    set_default(object, "/spec/podSelector", json!({}));
}

fn rbac(kind: &Kind, object: &mut Value) {
    if !kind.kind.ends_with("Binding") {
        return;
    }
    set_default(object, "/roleRef/apiGroup", "rbac.authorization.k8s.io");
    if json::has(object, "/subjects") {
        for subject in list_mut(object, "/subjects") {
            if matches!(json::text(subject, "/kind"), "User" | "Group") {
                set_default(subject, "/apiGroup", "rbac.authorization.k8s.io");
            }
        }
    }
}

fn storage_class(object: &mut Value) {
    set_default(object, "/reclaimPolicy", "Delete");
    set_default(object, "/volumeBindingMode", "Immediate");
}

fn crd(object: &mut Value) {
    let kind = json::text(object, "/spec/names/kind").to_owned();
    set_default(object, "/spec/names/singular", kind.to_lowercase());
    set_default(object, "/spec/names/listKind", format!("{kind}List"));
    set_default(object, "/spec/conversion/strategy", "None");
}

/// Defaults that a custom resource's schema names.
fn custom(schema: &Value, object: &mut Value) {
    for (field, below) in json::map(schema, "/properties").into_iter().flatten() {
        if matches!(field.as_str(), "metadata" | "apiVersion" | "kind") {
            continue;
        }
        let members = as_map(object);
        if let (false, Some(default)) = (members.contains_key(field), below.get("default")) {
            members.insert(field.clone(), default.clone());
        }
        match members.get_mut(field) {
            Some(value @ Value::Object(_)) => custom(below, value),
            Some(Value::Array(items)) => {
                let item_schema = json::at(below, "/items");
                items
                    .iter_mut()
                    .filter(|item| item.is_object())
                    .for_each(|i| custom(item_schema, i));
            }
            _ => {}
        }
    }
}

/// Writes numbers in a map of quantities as the strings that the server stores.
fn quantity_map(members: &mut Map<String, Value>) {
    for value in members.values_mut() {
        if value.is_number() {
            *value = Value::from(value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn a_deployment_without_replicas_gets_one() {
        let mut object = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "web", "image": "web:latest", "resources": {"limits": {"cpu": 1}}}]}}}});
        fill(&Kinds::built_in().get("deployments.apps"), &mut object);
        assert_eq!(object["spec"]["replicas"], 1);
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["resources"]["limits"]["cpu"], "1");
    }

    #[test]
    fn string_data_of_a_secret_becomes_data() {
        let mut object = json!({"stringData": {"k": "v"}});
        fill(&Kinds::built_in().get("secrets"), &mut object);
        assert_eq!(object, json!({"type": "Opaque", "data": {"k": "dg=="}}));
    }
}
