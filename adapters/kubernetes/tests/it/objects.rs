//! Manifests of the cases.

use serde_json::{Value, json};

/// A web server of the test images.
pub fn container(image: &str) -> Value {
    json!({
        "name": "web",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    })
}

pub fn pod_spec(image: &str) -> Value {
    json!({"containers": [container(image)], "terminationGracePeriodSeconds": 2})
}

pub fn deployment(name: &str, replicas: u32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(image)},
        }
    })
}

pub fn stateful_set(name: &str, replicas: u32, image: &str) -> Value {
    let mut set = deployment(name, replicas, image);
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!(name);
    set
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

pub fn service(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
    })
}

pub fn job(name: &str, image: &str, command: &[&str], backoff: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": backoff, "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "run", "image": image, "imagePullPolicy": "IfNotPresent", "command": command}]
        }}}
    })
}
