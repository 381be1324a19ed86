//! Defaults of pod specs, for pods and for templates alike.

use serde_json::{Value, json};

use super::quantity_map;
use crate::json::{self, list_mut, set_default};

/// Fills the pod spec at `pointer`; an absent one is left absent, for validation to refuse.
pub(crate) fn pod_spec(object: &mut Value, pointer: &str) {
    let Some(spec) = object.pointer_mut(pointer).filter(|spec| spec.is_object()) else {
        return;
    };
    set_default(spec, "/restartPolicy", "Always");
    set_default(spec, "/terminationGracePeriodSeconds", 30);
    set_default(spec, "/dnsPolicy", "ClusterFirst");
    set_default(spec, "/schedulerName", "default-scheduler");
    set_default(spec, "/securityContext", json!({}));
    let account = json::text(spec, "/serviceAccountName").to_owned();
    if !account.is_empty() {
        json::set(spec, "/serviceAccount", account);
    }
    for containers in ["/initContainers", "/containers"] {
        if json::at(spec, containers).is_array() {
            list_mut(spec, containers).iter_mut().for_each(container);
        }
    }
    if json::at(spec, "/volumes").is_array() {
        list_mut(spec, "/volumes").iter_mut().for_each(volume);
    }
}

fn container(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    set_default(container, "/terminationMessagePath", "/dev/termination-log");
    set_default(container, "/terminationMessagePolicy", "File");
    set_default(container, "/resources", json!({}));
    quantities(container, "/resources/limits");
    quantities(container, "/resources/requests");
    let policy = pull_policy(json::text(container, "/image"));
    set_default(container, "/imagePullPolicy", policy);
    if json::at(container, "/ports").is_array() {
        for port in list_mut(container, "/ports") {
            set_default(port, "/protocol", "TCP");
        }
    }
    if json::at(container, "/env").is_array() {
        for env in list_mut(container, "/env") {
            if json::has(env, "/valueFrom/fieldRef") {
                set_default(env, "/valueFrom/fieldRef/apiVersion", "v1");
            }
        }
    }
    for name in ["/livenessProbe", "/readinessProbe", "/startupProbe"] {
        if json::has(container, name) {
            probe(container, name);
        }
    }
}

fn probe(container: &mut Value, name: &str) {
    set_default(container, &format!("{name}/timeoutSeconds"), 1);
    set_default(container, &format!("{name}/periodSeconds"), 10);
    set_default(container, &format!("{name}/successThreshold"), 1);
    set_default(container, &format!("{name}/failureThreshold"), 3);
    if json::has(container, &format!("{name}/httpGet")) {
        set_default(container, &format!("{name}/httpGet/path"), "/");
        set_default(container, &format!("{name}/httpGet/scheme"), "HTTP");
    }
    if json::has(container, &format!("{name}/grpc")) {
        set_default(container, &format!("{name}/grpc/service"), "");
    }
}

/// What pods get and templates do not yet: a limit without a request is also the request.
pub(crate) fn pod_alone(pod: &mut Value) {
    if json::has(pod, "/spec") {
        set_default(pod, "/spec/enableServiceLinks", true);
    }
    for containers in ["/spec/initContainers", "/spec/containers"] {
        if json::at(pod, containers).is_array() {
            list_mut(pod, containers).iter_mut().for_each(copy_limits);
        }
    }
}

fn copy_limits(container: &mut Value) {
    let limits = json::map(container, "/resources/limits")
        .cloned()
        .unwrap_or_default();
    for (resource, limit) in limits {
        let pointer = format!("/resources/requests/{}", json::escape(&resource));
        set_default(container, &pointer, limit);
    }
}

/// An image without a tag, or with `latest`, is pulled at each start.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or(image);
    let latest = !last.contains('@') && (!last.contains(':') || last.ends_with(":latest"));
    if latest { "Always" } else { "IfNotPresent" }
}

fn volume(volume: &mut Value) {
    for source in ["/configMap", "/secret", "/downwardAPI", "/projected"] {
        if json::has(volume, source) {
            set_default(volume, &format!("{source}/defaultMode"), 420);
        }
    }
    if json::has(volume, "/hostPath") {
        set_default(volume, "/hostPath/type", "");
    }
    // A volume that names no source is an emptyDir.
    if volume
        .as_object()
        .is_some_and(|v| v.len() == 1 && v.contains_key("name"))
    {
        json::set(volume, "/emptyDir", json!({}));
    }
}

/// Quantities are stored as strings, also where the client wrote numbers.
pub(crate) fn quantities(object: &mut Value, pointer: &str) {
    if let Some(members) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        quantity_map(members);
    }
}
