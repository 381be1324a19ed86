//! Objects of kinds with several served versions are stored in the one in which they were written
//! last and converted when they are read in another.

use serde_json::{Value, json};

use crate::json;
use crate::kinds::Kind;

/// The object in the version of `kind`.
pub(crate) fn to_version(kind: &Kind, object: &Value) -> Value {
    let mut shown = object.clone();
    if json::text(object, "/apiVersion") == kind.api_version() {
        return shown;
    }
    json::set(&mut shown, "/apiVersion", kind.api_version());
    if kind.group == "autoscaling" {
        if kind.version == "v1" {
            to_v1(&mut shown);
        } else {
            to_v2(&mut shown);
        }
    }
    shown
}

fn to_v1(scaler: &mut Value) {
    json::set_default(scaler, "/status/currentReplicas", 0);
    let Some(Value::Array(metrics)) = json::remove(scaler, "/spec/metrics") else {
        return;
    };
    let cpu = metrics
        .iter()
        .find(|m| json::text(m, "/resource/name") == "cpu");
    if let Some(percent) = cpu.and_then(|m| m.pointer("/resource/target/averageUtilization")) {
        json::set(
            scaler,
            "/spec/targetCPUUtilizationPercentage",
            percent.clone(),
        );
    }
}

fn to_v2(scaler: &mut Value) {
    let Some(percent) = json::remove(scaler, "/spec/targetCPUUtilizationPercentage") else {
        return;
    };
    json::set(
        scaler,
        "/spec/metrics",
        json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}}]),
    );
}
