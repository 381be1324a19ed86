//! Statuses of kinds that nothing else works on: API services.

use serde_json::{Value, json};

use super::Pass;
use super::act::set_condition;
use crate::json;

const SERVICES: &str = "apiservices.apiregistration.k8s.io";

pub(super) fn run(pass: &mut Pass<'_>) {
    for registration in pass.list(SERVICES) {
        judge(pass, &registration);
    }
}

/// Nothing answers behind an aggregated API here, so only local ones are available.
fn judge(pass: &mut Pass<'_>, registration: &Value) {
    let service = json::at(registration, "/spec/service");
    let (namespace, name) = (
        json::text(service, "/namespace"),
        json::text(service, "/name"),
    );
    let (value, reason, message) = if service.is_null() {
        (
            true,
            "Local",
            "Local APIServices are always available".to_owned(),
        )
    } else if pass.state.get("services", namespace, name).is_none() {
        let message = format!("service/{name} in \"{namespace}\" is not present");
        (false, "ServiceNotFound", message)
    } else {
        let message = format!("endpoints for service/{name} in \"{namespace}\" have no addresses");
        (false, "MissingEndpoints", message)
    };
    let mut status = json::at(registration, "/status").clone();
    if !status.is_object() {
        status = json!({});
    }
    set_condition(
        &mut status,
        ("Available", value),
        reason,
        &message,
        &pass.stamp,
    );
    let kind = pass.state.kinds.get(SERVICES);
    pass.set_status(&kind, registration, "kube-apiserver", status);
}
