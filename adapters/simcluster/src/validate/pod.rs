//! Faults of pod specs and templates.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json;
use crate::names;
use crate::status::Cause;

/// The restart policies of pods that run to an end.
pub(crate) const ENDING: &[&str] = &["OnFailure", "Never"];

/// Judges the template under `parent` (`spec` or `spec.jobTemplate.spec`).
pub(crate) fn template(object: &Value, parent: &str, policies: &[&str], causes: &mut Vec<Cause>) {
    spec(object, &format!("{parent}.template.spec"), policies, causes);
}

/// Judges the pod spec at `path`.
pub(crate) fn spec(object: &Value, path: &str, policies: &[&str], causes: &mut Vec<Cause>) {
    let spec = json::at(object, &format!("/{}", path.replace('.', "/")));
    let containers = json::list(spec, "/containers");
    if containers.is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    let mut volumes = volume_names(spec, path, causes);
    // A StatefulSet gives its pods a volume for each of its claims.
    let claims = json::list(object, "/spec/volumeClaimTemplates");
    volumes.extend(
        claims
            .iter()
            .map(|claim| json::text(claim, "/metadata/name").to_owned()),
    );
    let mut seen = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        for (index, container) in json::list(spec, &format!("/{list}")).iter().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            check_container(container, &path, &volumes, causes);
            let name = json::text(container, "/name");
            if !name.is_empty() && !seen.insert(name.to_owned()) {
                causes.push(Cause::duplicate(format!("{path}.name"), name));
            }
        }
    }
    let policy = json::text(spec, "/restartPolicy");
    if policies == ENDING && policy == "Always" {
        let path = format!("{path}.restartPolicy");
        causes.push(Cause::required(
            path,
            "valid values: \"OnFailure\", \"Never\"",
        ));
    } else if !policy.is_empty() && !policies.contains(&policy) {
        causes.push(Cause::unsupported(
            format!("{path}.restartPolicy"),
            policy,
            policies,
        ));
    }
}

fn volume_names(spec: &Value, path: &str, causes: &mut Vec<Cause>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (index, volume) in json::list(spec, "/volumes").iter().enumerate() {
        let name = json::text(volume, "/name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.volumes[{index}].name"), ""));
        } else if !seen.insert(name.to_owned()) {
            causes.push(Cause::duplicate(
                format!("{path}.volumes[{index}].name"),
                name,
            ));
        }
    }
    seen
}

fn check_container(
    container: &Value,
    path: &str,
    volumes: &BTreeSet<String>,
    causes: &mut Vec<Cause>,
) {
    let name = json::text(container, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else if let Some(fault) = names::label_fault(name) {
        causes.push(Cause::invalid(
            format!("{path}.name"),
            &Value::from(name),
            &fault,
        ));
    }
    let image = json::text(container, "/image");
    if image.is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(
            format!("{path}.image"),
            &Value::from(image),
            detail,
        ));
    }
    for (index, port) in json::list(container, "/ports").iter().enumerate() {
        let number = json::int(port, "/containerPort", 0);
        if number == 0 {
            causes.push(Cause::required(
                format!("{path}.ports[{index}].containerPort"),
                "",
            ));
        } else if !(1..=65535).contains(&number) {
            let path = format!("{path}.ports[{index}].containerPort");
            let detail = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(path, &Value::from(number), detail));
        }
    }
    for (index, mount) in json::list(container, "/volumeMounts").iter().enumerate() {
        let name = json::text(mount, "/name");
        if !volumes.contains(name) {
            causes.push(Cause {
                reason: "FieldValueNotFound",
                message: format!("Not found: \"{name}\""),
                field: format!("{path}.volumeMounts[{index}].name"),
            });
        }
        if json::text(mount, "/mountPath").is_empty() {
            causes.push(Cause::required(
                format!("{path}.volumeMounts[{index}].mountPath"),
                "",
            ));
        }
    }
}
