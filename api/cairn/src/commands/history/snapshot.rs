//! An instance as it was, in words.

use super::words::one_line;
use serde_json::Value;
use std::fmt::Write;

/// Tells the instance of `/cairn/v1`, a fact per line.
pub fn tell(instance: &Value) -> String {
    let mut text = String::new();
    for (name, fact) in facts(instance) {
        // Writing to a String cannot fail.
        let written = writeln!(text, "  {name:<14}  {}", one_line(&fact));
        debug_assert!(written.is_ok(), "a String takes everything");
    }
    text
}

fn facts(instance: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let mut facts = Vec::new();
    let mut fact = |name: &str, said: Option<String>| {
        facts.extend(said.map(|said| (name.to_owned(), said)));
    };
    fact("name", word(&instance["vnfInstanceName"]));
    fact("description", word(&instance["vnfInstanceDescription"]));
    fact("product", product(instance));
    fact("state", state(instance));
    let info = &instance["instantiatedVnfInfo"];
    fact("flavour", word(&info["flavourId"]));
    for scale in info["scaleStatus"].as_array().into_iter().flatten() {
        let aspect = scale["aspectId"].as_str().unwrap_or("?");
        fact(
            "scale status",
            Some(format!("{aspect} at level {}", scale["scaleLevel"])),
        );
    }
    for vnfc in info["vnfcResourceInfo"].as_array().into_iter().flatten() {
        let (id, vdu) = (
            vnfc["id"].as_str().unwrap_or("?"),
            vnfc["vduId"].as_str().unwrap_or("?"),
        );
        fact("VNFC", Some(format!("{id} ({vdu})")));
    }
    for member in [
        "metadata",
        "extensions",
        "vnfConfigurableProperties",
        "vimConnectionInfo",
    ] {
        let said = instance
            .get(member)
            .filter(|said| said.as_object().is_some_and(|m| !m.is_empty()));
        fact(member, said.map(Value::to_string));
    }
    for left in instance["leftovers"].as_array().into_iter().flatten() {
        fact("left behind", word(left));
    }
    facts
}

fn product(instance: &Value) -> Option<String> {
    let product = instance["vnfProductName"].as_str()?;
    let version = instance["vnfSoftwareVersion"].as_str()?;
    let provider = instance["vnfProvider"].as_str()?;
    let vnfd = instance["vnfdId"].as_str()?;
    Some(format!("{product} {version} of {provider}, vnfdId {vnfd}"))
}

fn state(instance: &Value) -> Option<String> {
    let instantiation = instance["instantiationState"].as_str()?;
    let provisioning = instance["provisioning"]["state"].as_str()?;
    let target = instance["provisioning"]["target"].as_str();
    let target = target
        .map(|target| format!(" → {target}"))
        .unwrap_or_default();
    Some(format!("{instantiation}, {provisioning}{target}"))
}
