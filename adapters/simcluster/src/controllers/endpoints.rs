//! Endpoints and endpoint slices of Services that select pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Pass;
use super::act::{MANAGER, controller_reference, is_ended, is_true};
use crate::json;
use crate::selector;
use crate::write::random_suffix;

const SLICES: &str = "endpointslices.discovery.k8s.io";

pub(super) fn run(pass: &mut Pass<'_>) {
    for service in pass.list("services") {
        let selects = json::map(&service, "/spec/selector").is_some_and(|map| !map.is_empty());
        let external = json::text(&service, "/spec/type") == "ExternalName";
        if selects && !external && !json::is_deleting(&service) {
            publish(pass, &service);
        }
    }
    remove_stale(pass);
}

fn publish(pass: &mut Pass<'_>, service: &Value) {
    let wanted = json::at(service, "/spec/selector");
    let pods: Vec<Arc<Value>> = pass
        .state
        .store
        .list("pods", json::namespace(service))
        .filter(|pod| selector::matches_map(wanted, json::at(pod, "/metadata/labels")))
        .filter(|pod| !json::text(pod, "/status/podIP").is_empty() && !is_ended(pod))
        .cloned()
        .collect();
    publish_endpoints(pass, service, &pods);
    publish_slice(pass, service, &pods);
}

fn target(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": json::namespace(pod), "name": json::name(pod),
        "uid": json::uid(pod)})
}

fn is_published(service: &Value, pod: &Value) -> bool {
    !json::is_deleting(pod)
        && (is_true(pod, "Ready") || json::flag(service, "/spec/publishNotReadyAddresses"))
}

/// The port on the pod: a number, or a name that the first pod's container resolves.
fn ports(service: &Value, pods: &[Arc<Value>]) -> Vec<Value> {
    json::list(service, "/spec/ports")
        .iter()
        .filter_map(|port| {
            let number = match json::at(port, "/targetPort") {
                Value::String(name) => named_port(pods.first()?, name)?,
                number => number.as_i64()?,
            };
            let mut shown = json!({"port": number, "protocol": port["protocol"]});
            if let Some(name) = port.get("name") {
                shown["name"] = name.clone();
            }
            Some(shown)
        })
        .collect()
}

fn named_port(pod: &Value, name: &str) -> Option<i64> {
    json::list(pod, "/spec/containers")
        .iter()
        .flat_map(|container| json::list(container, "/ports"))
        .find(|port| json::text(port, "/name") == name)
        .map(|port| json::int(port, "/containerPort", 0))
}

fn publish_endpoints(pass: &mut Pass<'_>, service: &Value, pods: &[Arc<Value>]) {
    let (mut ready, mut not_ready) = (Vec::new(), Vec::new());
    for pod in pods.iter().filter(|pod| !json::is_deleting(pod)) {
        let mut address = json!({"ip": json::text(pod, "/status/podIP"),
            "nodeName": json::text(pod, "/spec/nodeName"), "targetRef": target(pod)});
        if json::text(pod, "/spec/subdomain") == json::name(service) {
            json::set(&mut address, "/hostname", json::text(pod, "/spec/hostname"));
        }
        if is_published(service, pod) {
            ready.push(address);
        } else {
            not_ready.push(address);
        }
    }
    let mut subsets = Vec::new();
    if !ready.is_empty() || !not_ready.is_empty() {
        let mut subset = json!({"ports": ports(service, pods)});
        if !ready.is_empty() {
            subset["addresses"] = json!(ready);
        }
        if !not_ready.is_empty() {
            subset["notReadyAddresses"] = json!(not_ready);
        }
        subsets.push(subset);
    }
    let kind = pass.state.kinds.get("endpoints");
    let (namespace, name) = (json::namespace(service), json::name(service));
    let Some(found) = pass.state.get("endpoints", namespace, name) else {
        let mut labels = json::at(service, "/metadata/labels").clone();
        json::set(
            &mut labels,
            "/endpoints.kubernetes.io~1managed-by",
            "endpoint-controller",
        );
        let mut object = json!({"metadata": {"name": name, "labels": labels}});
        if !subsets.is_empty() {
            object["subsets"] = json!(subsets);
        }
        if let Err(error) = pass.state.create_as(MANAGER, &kind, namespace, object) {
            tracing::debug!(error = error.message, "endpoints were refused");
        }
        return;
    };
    if json::list(&found, "/subsets") != subsets.as_slice() {
        pass.change(&kind, &found, MANAGER, |endpoints| {
            if subsets.is_empty() {
                json::remove(endpoints, "/subsets");
            } else {
                json::set(endpoints, "/subsets", subsets);
            }
        });
    }
}

fn publish_slice(pass: &mut Pass<'_>, service: &Value, pods: &[Arc<Value>]) {
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|pod| {
            let terminating = json::is_deleting(pod);
            json!({"addresses": [json::text(pod, "/status/podIP")],
                "conditions": {"ready": is_published(service, pod),
                    "serving": is_true(pod, "Ready"), "terminating": terminating},
                "nodeName": json::text(pod, "/spec/nodeName"), "targetRef": target(pod)})
        })
        .collect();
    let ports = ports(service, pods);
    let kind = pass.state.kinds.get(SLICES);
    let namespace = json::namespace(service);
    let found = slices_of(pass, service).into_iter().next();
    let Some(found) = found else {
        let services = pass.state.kinds.get("services");
        let name = format!("{}-{}", json::name(service), random_suffix());
        let object = json!({
            "metadata": {"name": name, "generateName": format!("{}-", json::name(service)),
                "labels": {"kubernetes.io/service-name": json::name(service),
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
                "ownerReferences": [controller_reference(&services, service)]},
            "addressType": "IPv4", "endpoints": endpoints, "ports": ports});
        if let Err(error) = pass.state.create_as(MANAGER, &kind, namespace, object) {
            tracing::debug!(error = error.message, "an endpoint slice was refused");
        }
        return;
    };
    let same = json::list(&found, "/endpoints") == endpoints.as_slice()
        && json::list(&found, "/ports") == ports.as_slice();
    if !same {
        pass.change(&kind, &found, MANAGER, |slice| {
            json::set(slice, "/endpoints", endpoints);
            json::set(slice, "/ports", ports);
        });
    }
}

fn slices_of(pass: &Pass<'_>, service: &Value) -> Vec<Arc<Value>> {
    pass.state
        .store
        .list(SLICES, json::namespace(service))
        .filter(|slice| super::act::controller_uid(slice) == json::uid(service))
        .cloned()
        .collect()
}

/// Endpoints that the controller made go with their Service.
fn remove_stale(pass: &mut Pass<'_>) {
    let kind = pass.state.kinds.get("endpoints");
    let managed = "/metadata/labels/endpoints.kubernetes.io~1managed-by";
    for endpoints in pass.list("endpoints") {
        let at = (json::namespace(&endpoints), json::name(&endpoints));
        if json::has(&endpoints, managed) && pass.state.get("services", at.0, at.1).is_none() {
            pass.delete(&kind, &endpoints);
        }
    }
}
