//! Custom resource definitions: accepted and served a moment after they are written.

use serde_json::Value;

use super::Pass;
use super::act::set_condition;
use crate::json;
use crate::write::{DEFINITIONS, is_established};

pub(super) fn run(pass: &mut Pass<'_>) {
    for definition in pass.list(DEFINITIONS) {
        if json::is_deleting(&definition) {
            say_terminating(pass, &definition);
        } else if !is_established(&definition) {
            establish(pass, &definition);
        }
    }
}

fn establish(pass: &mut Pass<'_>, definition: &Value) {
    let now = pass.stamp.clone();
    let mut status = json::at(definition, "/status").clone();
    json::set(
        &mut status,
        "/acceptedNames",
        json::at(definition, "/spec/names").clone(),
    );
    let accepted = ("NamesAccepted", true);
    set_condition(
        &mut status,
        accepted,
        "NoConflicts",
        "no conflicts found",
        &now,
    );
    let message = "the initial names have been accepted";
    set_condition(
        &mut status,
        ("Established", true),
        "InitialNamesAccepted",
        message,
        &now,
    );
    let kind = pass.state.kinds.get(DEFINITIONS);
    pass.set_status(&kind, definition, "kube-apiserver", status);
}

fn say_terminating(pass: &mut Pass<'_>, definition: &Value) {
    let now = pass.stamp.clone();
    let mut status = json::at(definition, "/status").clone();
    let message = "CustomResource deletion is in progress";
    let condition = ("Terminating", true);
    set_condition(
        &mut status,
        condition,
        "InstanceDeletionInProgress",
        message,
        &now,
    );
    let kind = pass.state.kinds.get(DEFINITIONS);
    pass.set_status(&kind, definition, "kube-apiserver", status);
}
