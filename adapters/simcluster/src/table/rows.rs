//! The columns that kubectl shows.

use serde_json::{Value, json};

use crate::clock::SimClock;
use crate::json;
use crate::kinds::Kind;

pub(crate) fn columns(kind: &Kind) -> Vec<String> {
    let own: &[&str] = match kind.qualified().as_str() {
        "pods" => &["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"],
        "deployments.apps" => &["Name", "Ready", "Up-to-date", "Available", "Age"],
        "replicasets.apps" | "replicationcontrollers" => {
            &["Name", "Desired", "Current", "Ready", "Age"]
        }
        "statefulsets.apps" => &["Name", "Ready", "Age"],
        "daemonsets.apps" => &[
            "Name",
            "Desired",
            "Current",
            "Ready",
            "Up-to-date",
            "Available",
            "Age",
        ],
        "jobs.batch" => &["Name", "Status", "Completions", "Duration", "Age"],
        "cronjobs.batch" => &["Name", "Schedule", "Suspend", "Active", "Age"],
        "services" => &[
            "Name",
            "Type",
            "Cluster-IP",
            "External-IP",
            "Port(s)",
            "Age",
        ],
        "namespaces" | "persistentvolumes" | "persistentvolumeclaims" => &["Name", "Status", "Age"],
        "nodes" => &["Name", "Status", "Roles", "Age", "Version"],
        "events" => &["Last Seen", "Type", "Reason", "Object", "Message"],
        "configmaps" | "secrets" => &["Name", "Data", "Age"],
        "horizontalpodautoscalers.autoscaling" => {
            &["Name", "Reference", "MinPods", "MaxPods", "Replicas", "Age"]
        }
        _ => &["Name", "Age"],
    };
    let mut columns: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
    if !kind.printer_columns.is_empty() {
        let named = kind
            .printer_columns
            .iter()
            .map(|c| json::text(c, "/name").to_owned());
        columns = std::iter::once("Name".to_owned()).chain(named).collect();
    }
    columns
}

pub(crate) fn cells(clock: &SimClock, kind: &Kind, object: &Value) -> Vec<Value> {
    let columns = columns(kind);
    columns
        .iter()
        .map(|column| cell(clock, kind, object, column))
        .collect()
}

fn cell(clock: &SimClock, kind: &Kind, object: &Value, column: &str) -> Value {
    let number = |pointer: &str| json!(json::int(object, pointer, 0));
    let printer = kind
        .printer_columns
        .iter()
        .find(|c| json::text(c, "/name") == column);
    if let Some(printer) = printer {
        let path = json::text(printer, "/jsonPath").replace('.', "/");
        return match (json::text(printer, "/type"), json::at(object, &path)) {
            ("date", stamp) => json!(age(clock, stamp.as_str().unwrap_or_default())),
            (_, value) => value.clone(),
        };
    }
    match (kind.qualified().as_str(), column) {
        (_, "Name") => json!(json::name(object)),
        (_, "Age") => json!(age(
            clock,
            json::text(object, "/metadata/creationTimestamp")
        )),
        ("pods", _) => pod(object, column),
        ("deployments.apps" | "statefulsets.apps", "Ready") => {
            json!(ratio(object, "/status/readyReplicas", "/spec/replicas"))
        }
        ("deployments.apps", "Up-to-date") => number("/status/updatedReplicas"),
        ("deployments.apps", "Available") => number("/status/availableReplicas"),
        ("replicasets.apps" | "replicationcontrollers", "Desired") => number("/spec/replicas"),
        ("replicasets.apps" | "replicationcontrollers", "Current") => number("/status/replicas"),
        ("replicasets.apps" | "replicationcontrollers", "Ready") => number("/status/readyReplicas"),
        ("daemonsets.apps", "Desired") => number("/status/desiredNumberScheduled"),
        ("daemonsets.apps", "Current") => number("/status/currentNumberScheduled"),
        ("daemonsets.apps", "Ready") => number("/status/numberReady"),
        ("daemonsets.apps", "Up-to-date") => number("/status/updatedNumberScheduled"),
        ("daemonsets.apps", "Available") => number("/status/numberAvailable"),
        ("jobs.batch", _) => job(clock, object, column),
        ("cronjobs.batch", "Schedule") => json!(json::text(object, "/spec/schedule")),
        ("cronjobs.batch", "Suspend") => json!(json::flag(object, "/spec/suspend")),
        ("cronjobs.batch", "Active") => json!(json::list(object, "/status/active").len()),
        ("services", _) => service(object, column),
        (_, "Status") if kind.is("nodes") => json!("Ready"),
        (_, "Status") => json!(json::text(object, "/status/phase")),
        ("nodes", "Roles") => json!("<none>"),
        ("nodes", "Version") => json!(json::text(object, "/status/nodeInfo/kubeletVersion")),
        ("events", _) => event(clock, object, column),
        ("configmaps" | "secrets", "Data") => {
            json!(json::map(object, "/data").map_or(0, serde_json::Map::len))
        }
        (_, "Reference") => json!(format!(
            "{}/{}",
            json::text(object, "/spec/scaleTargetRef/kind"),
            json::text(object, "/spec/scaleTargetRef/name")
        )),
        (_, "MinPods") => number("/spec/minReplicas"),
        (_, "MaxPods") => number("/spec/maxReplicas"),
        (_, "Replicas") => number("/status/currentReplicas"),
        _ => json!(""),
    }
}

fn ratio(object: &Value, have: &str, want: &str) -> String {
    format!(
        "{}/{}",
        json::int(object, have, 0),
        json::int(object, want, 0)
    )
}

fn pod(object: &Value, column: &str) -> Value {
    let statuses = json::list(object, "/status/containerStatuses");
    match column {
        "Ready" => {
            let ready = statuses.iter().filter(|s| json::flag(s, "/ready")).count();
            json!(format!(
                "{ready}/{}",
                json::list(object, "/spec/containers").len()
            ))
        }
        "Status" => json!(pod_status(object, statuses)),
        "Restarts" => {
            let restarts: i64 = statuses
                .iter()
                .map(|s| json::int(s, "/restartCount", 0))
                .sum();
            json!(restarts.to_string())
        }
        "IP" => json!(or_none(json::text(object, "/status/podIP"))),
        _ => json!(or_none(json::text(object, "/spec/nodeName"))),
    }
}

fn pod_status<'a>(object: &'a Value, statuses: &'a [Value]) -> &'a str {
    if json::is_deleting(object) {
        return "Terminating";
    }
    for status in statuses {
        for state in ["/state/waiting/reason", "/state/terminated/reason"] {
            let reason = json::text(status, state);
            if !reason.is_empty() {
                return reason;
            }
        }
    }
    json::text(object, "/status/phase")
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

fn job(clock: &SimClock, object: &Value, column: &str) -> Value {
    let done = |what: &str| {
        json::list(object, "/status/conditions")
            .iter()
            .any(|c| json::text(c, "/type") == what && json::text(c, "/status") == "True")
    };
    match column {
        "Status" if done("Complete") => json!("Complete"),
        "Status" if done("Failed") => json!("Failed"),
        "Status" => json!("Running"),
        "Completions" => json!(ratio(object, "/status/succeeded", "/spec/completions")),
        _ => json!(age(clock, json::text(object, "/status/startTime"))),
    }
}

fn service(object: &Value, column: &str) -> Value {
    match column {
        "Type" => json!(json::text(object, "/spec/type")),
        "Cluster-IP" => json!(or_none(json::text(object, "/spec/clusterIP"))),
        "External-IP" if json::text(object, "/spec/type") == "LoadBalancer" => json!("<pending>"),
        "External-IP" => json!(or_none(json::text(object, "/spec/externalName"))),
        _ => {
            let ports: Vec<String> = json::list(object, "/spec/ports")
                .iter()
                .map(|p| {
                    let node = match json::int(p, "/nodePort", 0) {
                        0 => String::new(),
                        port => format!(":{port}"),
                    };
                    format!(
                        "{}{node}/{}",
                        json::int(p, "/port", 0),
                        json::text(p, "/protocol")
                    )
                })
                .collect();
            json!(or_none(&ports.join(",")))
        }
    }
}

fn event(clock: &SimClock, object: &Value, column: &str) -> Value {
    match column {
        "Last Seen" => json!(age(clock, json::text(object, "/lastTimestamp"))),
        "Type" => json!(json::text(object, "/type")),
        "Reason" => json!(json::text(object, "/reason")),
        "Object" => json!(format!(
            "{}/{}",
            json::text(object, "/involvedObject/kind").to_lowercase(),
            json::text(object, "/involvedObject/name")
        )),
        _ => json!(json::text(object, "/message")),
    }
}

/// Seconds up to two minutes, then minutes, hours, days.
fn age(clock: &SimClock, stamp: &str) -> String {
    if stamp.is_empty() {
        return "<unknown>".to_owned();
    }
    match clock.seconds_since(stamp).max(0) {
        seconds @ 0..=119 => format!("{seconds}s"),
        seconds @ 120..=7_199 => format!("{}m", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
