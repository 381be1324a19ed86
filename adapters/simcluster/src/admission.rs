//! What the server decides beside the object itself: addresses, service accounts, priorities,
//! storage classes and quotas.

use serde_json::{Value, json};

use crate::json;
use crate::kinds::Kind;
use crate::state::State;
use crate::status::{ApiError, ApiResult};
use crate::write::random_suffix;

mod quota;

pub(crate) use quota::usage;

/// Fields that the server allocates when an object is made.
pub(crate) fn prepare_new(state: &mut State, kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => allocate_service(state, object),
        ("", "PersistentVolumeClaim") => {
            add_finalizer(object, "kubernetes.io/pvc-protection");
            default_class(state, object);
        }
        ("", "PersistentVolume") => {
            add_finalizer(object, "kubernetes.io/pv-protection");
            json::set(
                object,
                "/status/lastPhaseTransitionTime",
                state.clock.stamp(),
            );
        }
        ("batch", "Job") => label_job(object),
        ("apiextensions.k8s.io", _) => unestablished(object),
        ("", "Node") => json::set_default(
            object,
            "/spec/taints",
            json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
        ),
        _ => {}
    }
}

/// Fields that the server keeps when a write leaves them out.
pub(crate) fn prepare_change(state: &mut State, kind: &Kind, live: &Value, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => keep_service(state, live, object),
        ("", "PersistentVolumeClaim") => keep(
            live,
            object,
            &["/spec/volumeName", "/spec/storageClassName"],
        ),
        ("batch", "Job") if !json::flag(object, "/spec/manualSelector") => {
            keep(live, object, &["/spec/selector"]);
        }
        ("apps", "DaemonSet") => count_template(live, object),
        _ => {}
    }
}

/// Daemon sets count the changes of their template in an annotation.
fn count_template(live: &Value, object: &mut Value) {
    let pointer = "/metadata/annotations/deprecated.daemonset.template.generation";
    let mut number: u64 = json::text(live, pointer).parse().unwrap_or(1);
    if json::at(live, "/spec/template") != json::at(object, "/spec/template") {
        number += 1;
    }
    json::set(object, pointer, number.to_string());
}

/// Admission of a new object.
///
/// # Errors
/// 403 when a service account or priority class is missing or a quota is used up.
pub(crate) fn admit_new(state: &mut State, kind: &Kind, object: &mut Value) -> ApiResult<()> {
    if kind.is("pods") {
        admit_pod(state, kind, object)?;
    }
    quota::check(state, kind, object)
}

fn keep(live: &Value, object: &mut Value, pointers: &[&str]) {
    for pointer in pointers {
        if json::has(live, pointer) && !json::has(object, pointer) {
            json::set(object, pointer, json::at(live, pointer).clone());
        }
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = json::list_mut(object, "/metadata/finalizers");
    if !finalizers.iter().any(|f| f == finalizer) {
        finalizers.push(json!(finalizer));
    }
}

fn allocate_service(state: &mut State, object: &mut Value) {
    if json::text(object, "/spec/type") == "ExternalName" {
        return;
    }
    json::set_default(object, "/spec/ipFamilies", json!(["IPv4"]));
    json::set_default(object, "/spec/ipFamilyPolicy", "SingleStack");
    if json::text(object, "/spec/clusterIP").is_empty() {
        let address = state.allocate_service_address();
        json::set(object, "/spec/clusterIP", address);
    }
    if !json::has(object, "/spec/clusterIPs") {
        let address = json::at(object, "/spec/clusterIP").clone();
        json::set(object, "/spec/clusterIPs", vec![address]);
    }
    allocate_node_ports(state, object);
}

fn allocate_node_ports(state: &mut State, object: &mut Value) {
    if !matches!(
        json::text(object, "/spec/type"),
        "NodePort" | "LoadBalancer"
    ) || !json::has(object, "/spec/ports")
    {
        return;
    }
    for port in json::list_mut(object, "/spec/ports") {
        if json::int(port, "/nodePort", 0) == 0 {
            json::set(port, "/nodePort", state.allocate_node_port());
        }
    }
}

fn keep_service(state: &mut State, live: &Value, object: &mut Value) {
    if json::text(object, "/spec/type") == "ExternalName" {
        return;
    }
    keep(
        live,
        object,
        &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/healthCheckNodePort",
        ],
    );
    keep(live, object, &["/spec/ipFamilies", "/spec/ipFamilyPolicy"]);
    // A client that changes clusterIP alone means both fields.
    if json::at(object, "/spec/clusterIP") != json::at(live, "/spec/clusterIP")
        && json::at(object, "/spec/clusterIPs") == json::at(live, "/spec/clusterIPs")
    {
        let address = json::at(object, "/spec/clusterIP").clone();
        json::set(object, "/spec/clusterIPs", vec![address]);
    }
    if json::has(object, "/spec/ports") {
        let had = json::list(live, "/spec/ports").to_vec();
        let wants_ports = matches!(
            json::text(object, "/spec/type"),
            "NodePort" | "LoadBalancer"
        );
        for port in json::list_mut(object, "/spec/ports")
            .iter_mut()
            .filter(|_| wants_ports)
        {
            let same = had
                .iter()
                .find(|h| h["port"] == port["port"] && h["protocol"] == port["protocol"]);
            if let Some(number) = same.and_then(|h| h.get("nodePort")) {
                json::set_default(port, "/nodePort", number.clone());
            }
        }
    }
    allocate_service(state, object);
}

/// A claim without a class gets the default one, when the cluster has one.
fn default_class(state: &State, object: &mut Value) {
    if json::has(object, "/spec/storageClassName") {
        return;
    }
    let default = "storageclass.kubernetes.io/is-default-class";
    let class = state
        .store
        .list("storageclasses.storage.k8s.io", "")
        .find(|class| json::annotation(class, default) == Some("true"))
        .map(|class| json::name(class).to_owned());
    if let Some(class) = class {
        json::set(object, "/spec/storageClassName", class);
    }
}

/// A Job finds its pods by its own UID, so the server makes selector and labels.
fn label_job(object: &mut Value) {
    if json::flag(object, "/spec/manualSelector") || json::has(object, "/spec/selector") {
        return;
    }
    let (uid, name) = (json::uid(object).to_owned(), json::name(object).to_owned());
    let labels = "/spec/template/metadata/labels";
    for (key, value) in [
        ("batch.kubernetes.io~1controller-uid", &uid),
        ("batch.kubernetes.io~1job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        json::set(object, &format!("{labels}/{key}"), value.clone());
    }
    let all = json::at(object, labels).clone();
    for (key, value) in all.as_object().into_iter().flatten() {
        json::set_default(
            object,
            &format!("/metadata/labels/{}", json::escape(key)),
            value.clone(),
        );
    }
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    json::set(object, "/spec/selector", selector);
}

/// A definition is served only when its controller has accepted its names.
fn unestablished(object: &mut Value) {
    let stored: Vec<Value> = json::list(object, "/spec/versions")
        .iter()
        .filter(|v| json::flag(v, "/storage"))
        .map(|v| v["name"].clone())
        .collect();
    let status = json!({"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    json::set(object, "/status", status);
}

fn admit_pod(state: &mut State, kind: &Kind, pod: &mut Value) -> ApiResult<()> {
    let (namespace, name) = (json::namespace(pod).to_owned(), json::name(pod).to_owned());
    json::set_default(pod, "/spec/serviceAccountName", "default");
    let account = json::text(pod, "/spec/serviceAccountName").to_owned();
    json::set(pod, "/spec/serviceAccount", account.clone());
    if state.get("serviceaccounts", &namespace, &account).is_none() {
        let why = format!(
            "error looking up service account {namespace}/{account}: serviceaccount \"{account}\" \
             not found"
        );
        return Err(ApiError::forbidden(kind, &name, &why));
    }
    let class = json::text(pod, "/spec/priorityClassName").to_owned();
    let priority = match class.as_str() {
        "" => 0,
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        class => {
            let found = state.get("priorityclasses.scheduling.k8s.io", "", class);
            let Some(found) = found else {
                let why = format!("no PriorityClass with name {class} was found");
                return Err(ApiError::forbidden(kind, &name, &why));
            };
            json::int(&found, "/value", 0)
        }
    };
    json::set(pod, "/spec/priority", priority);
    json::set_default(pod, "/spec/preemptionPolicy", "PreemptLowerPriority");
    add_tolerations(pod);
    if pod.pointer("/spec/automountServiceAccountToken") != Some(&json!(false)) {
        mount_token(pod);
    }
    let status = json!({"phase": "Pending", "qosClass": quality(pod)});
    json::set(pod, "/status", status);
    Ok(())
}

fn add_tolerations(pod: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerations = json::list_mut(pod, "/spec/tolerations");
        if !tolerations.iter().any(|t| t["key"] == key) {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}),
            );
        }
    }
}

fn mount_token(pod: &mut Value) {
    let volume = format!("kube-api-access-{}", random_suffix());
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    json::list_mut(pod, "/spec/volumes").push(json!({"name": volume, "projected": {
    "defaultMode": 420,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}}));
    for list in ["/spec/containers", "/spec/initContainers"] {
        if json::at(pod, list).is_array() {
            for container in json::list_mut(pod, list) {
                let mounts = json::list_mut(container, "/volumeMounts");
                if !mounts.iter().any(|m| m["mountPath"] == path) {
                    mounts.push(json!({"name": volume, "mountPath": path, "readOnly": true}));
                }
            }
        }
    }
}

/// The quality class by requests and limits.
fn quality(pod: &Value) -> &'static str {
    let containers = json::list(pod, "/spec/containers");
    let given = |c: &Value, what: &str| {
        json::map(c, &format!("/resources/{what}")).is_some_and(|m| !m.is_empty())
    };
    let full = |c: &Value| {
        ["cpu", "memory"].iter().all(|r| {
            let limit = json::at(c, &format!("/resources/limits/{r}"));
            !limit.is_null() && limit == json::at(c, &format!("/resources/requests/{r}"))
        })
    };
    if !containers.is_empty() && containers.iter().all(full) {
        "Guaranteed"
    } else if containers
        .iter()
        .any(|c| given(c, "limits") || given(c, "requests"))
    {
        "Burstable"
    } else {
        "BestEffort"
    }
}
