//! Container statuses as the kubelet writes them.

use serde_json::{Value, json};

use super::{Containers, PodMemory};
use crate::json;

fn names(pod: &Value) -> Vec<&str> {
    json::list(pod, "/spec/containers")
        .iter()
        .map(|c| json::text(c, "/name"))
        .collect()
}

/// `containers with unready status: [a b]`.
pub(super) fn unready_text(pod: &Value) -> String {
    format!("containers with unready status: [{}]", names(pod).join(" "))
}

/// The `terminated` state of a container.
pub(super) fn ended(pod: &Value, code: i64, since: &str, now: &str) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let mut end = json!({"exitCode": code, "reason": reason, "startedAt": since,
        "finishedAt": now, "containerID": container_id(pod)});
    let name = if code == 0 {
        "simcluster.cairn.dev/termination-message"
    } else {
        "simcluster.cairn.dev/crash-message"
    };
    let said = json::annotation(pod, name)
        .or_else(|| json::annotation(pod, "simcluster.cairn.dev/termination-message"));
    if let Some(message) = said {
        // A kubelet keeps 4096 bytes.
        let kept: String = expanded(pod, message).chars().take(4096).collect();
        end["message"] = json!(kept);
    }
    end
}

/// The environment variables of all containers that are given as they are.
pub(super) fn variables(pod: &Value) -> impl Iterator<Item = (&str, &str)> {
    json::list(pod, "/spec/containers")
        .iter()
        .flat_map(|container| json::list(container, "/env"))
        .map(|variable| {
            (
                json::text(variable, "/name"),
                json::text(variable, "/value"),
            )
        })
}

/// Variables are put in as a kubelet does with commands.
fn expanded(pod: &Value, message: &str) -> String {
    variables(pod).fold(message.to_owned(), |text, (name, value)| {
        text.replace(&format!("$({name})"), value)
    })
}

fn container_id(pod: &Value) -> String {
    format!("sim://{}", json::uid(pod))
}

/// Writes the statuses of init containers, which all ended well, and of containers.
pub(super) fn write(
    status: &mut Value,
    pod: &Value,
    memory: &PodMemory,
    containers: &Containers,
    now: &str,
) {
    let since = memory
        .started
        .as_ref()
        .map_or(now, |(_, stamp)| stamp.as_str());
    let state = match containers {
        Containers::Waiting { reason, message } if message.is_empty() => {
            json!({"waiting": {"reason": reason}})
        }
        Containers::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        Containers::Crashed => json!({"terminated": memory.last_end}),
        Containers::Running { .. } => json!({"running": {"startedAt": since}}),
        Containers::Ended { code } => {
            let before = json::at(status, "/containerStatuses/0/state/terminated").clone();
            let end = if before.is_null() {
                ended(pod, *code, since, now)
            } else {
                before
            };
            json!({"terminated": end})
        }
    };
    let ready = matches!(containers, Containers::Running { ready: true });
    let started = matches!(containers, Containers::Running { .. });
    let last = match &memory.last_end {
        Some(end) if !matches!(containers, Containers::Crashed) => json!({"terminated": end}),
        _ => json!({}),
    };
    let shown: Vec<Value> = json::list(pod, "/spec/containers")
        .iter()
        .map(|container| {
            let mut shown = json!({
                "name": json::text(container, "/name"),
                "image": json::text(container, "/image"),
                "imageID": if memory.started.is_some() { "sim://image" } else { "" },
                "ready": ready,
                "started": started,
                "restartCount": memory.restarts,
                "state": state,
                "lastState": last,
            });
            if memory.started.is_some() {
                shown["containerID"] = json!(container_id(pod));
            }
            shown
        })
        .collect();
    json::set(status, "/containerStatuses", shown);
    if memory.started.is_some() {
        write_initial(status, pod);
    }
}

/// Init containers all ended well before the others were started.
fn write_initial(status: &mut Value, pod: &Value) {
    let initial = json::list(pod, "/spec/initContainers");
    if initial.is_empty() {
        return;
    }
    let shown: Vec<Value> = initial
        .iter()
        .map(|container| {
            json!({
                "name": json::text(container, "/name"),
                "image": json::text(container, "/image"),
                "imageID": "sim://image",
                "ready": true,
                "started": false,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": 0, "reason": "Completed",
                    "startedAt": json::text(status, "/startTime"),
                    "finishedAt": json::text(status, "/startTime")}},
                "lastState": {},
            })
        })
        .collect();
    json::set(status, "/initContainerStatuses", shown);
}
