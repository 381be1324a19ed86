//! The root of a wait: what a container, a scheduler, a kubelet or an admission says, not its consequence.

use crate::errors::quota_numbers;
use crate::json;
use crate::pods::Pods;
use crate::readiness::Waiting;
use cairn_domain::waits::Obstacle;
use serde_json::Value;

/// Where a Deployment and its `ReplicaSet`s say which template they are of.
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";

/// Pods that are told of one workload at most.
const TOLD: usize = 5;

/// Events that say why a pod does not get its containers.
const STARTING: [&str; 5] = [
    "FailedMount",
    "FailedMapVolume",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
];

/// What is in the way of a workload that waits.
pub(crate) fn workload(
    object: &Value,
    waiting: &Waiting,
    pods: &Pods,
    events: &[Value],
) -> Vec<Obstacle> {
    let uid = json::uid(object);
    let kind = json::text(object, "/kind");
    let mine: Vec<&Value> = pods.of(uid).collect();
    let mut found: Vec<Obstacle> = mine
        .iter()
        .filter(|pod| !json::deleting(pod) && !is_over(pod) && !json::holds(pod, "Ready"))
        .filter(|pod| !is_outdated(object, pods, pod))
        // A pod of a Job that runs is on its way, ready or not.
        .filter(|pod| kind != "Job" || json::text(pod, "/status/phase") != "Running")
        .filter_map(|pod| self::pod(pod, events))
        .take(TOLD)
        .collect();
    found.sort_by(|a, b| {
        (&a.source, &a.reason, &a.message).cmp(&(&b.source, &b.reason, &b.message))
    });
    // A deadline that passed is told beside what the pods wait for: it begins a clock of its own.
    if waiting.reason == "ProgressDeadlineExceeded" && !found.is_empty() {
        found.push(own(object, waiting));
    }
    let is_final = matches!(waiting.reason.as_str(), "QuotaExceeded" | "Failed");
    if found.is_empty() || is_final {
        found.extend(refused(object, waiting, pods, events));
    }
    if found.is_empty() && kind != "Job" {
        found.extend(ended(&mine));
    }
    if found.is_empty() || is_final {
        found.push(own(object, waiting));
    }
    if !is_final && found.iter().all(|o| o.source == kind) {
        found.extend(
            mine.iter()
                .filter(|pod| json::deleting(pod))
                .take(1)
                .map(|pod| leaving(pod)),
        );
    }
    for obstacle in &mut found {
        obstacle.progress = waiting.progress;
    }
    found
}

/// What the object itself says.
pub(crate) fn own(object: &Value, waiting: &Waiting) -> Obstacle {
    let kind = json::text(object, "/kind");
    let source = match (kind, waiting.reason.as_str()) {
        ("Pod", _) => "pod",
        (_, "FailedCreate") => "event",
        (kind, _) => kind,
    };
    told(
        &format!("{kind}/{}", json::name(object)),
        source,
        &waiting.reason,
        &waiting.message,
        waiting.progress,
    )
}

/// A pod on its way out.
pub(crate) fn leaving(pod: &Value) -> Obstacle {
    let grace = json::number(pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(0);
    let message = format!("it is given up to {grace} s to end");
    told(
        &format!("Pod/{}", json::name(pod)),
        "pod",
        "Terminating",
        &message,
        0,
    )
}

fn told(object: &str, source: &str, reason: &str, message: &str, progress: u32) -> Obstacle {
    Obstacle {
        object: object.into(),
        source: source.into(),
        reason: reason.into(),
        message: message.into(),
        progress,
    }
}

/// Whether a pod is of a template that its workload had before. The rollout takes it away, so what is wrong with it
/// must not end the wait for the pods that are to come.
fn is_outdated(object: &Value, pods: &Pods, pod: &Value) -> bool {
    let kind = json::text(object, "/kind");
    if !matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet") {
        return false;
    }
    // Before the controller has seen the newest template, no pod can be of it.
    if json::number(object, "/status/observedGeneration")
        < json::number(object, "/metadata/generation")
    {
        return true;
    }
    match kind {
        "Deployment" => pods
            .controllers_of(json::uid(object))
            .filter(|set| pods.belongs(json::uid(pod), json::uid(set)))
            .any(|set| differ(json::text(set, REVISION), json::text(object, REVISION))),
        // With a partition, or if only a deletion moves them, pods stay as they are.
        "StatefulSet" => {
            json::text(object, "/spec/updateStrategy/type") != "OnDelete"
                && json::count(object, "/spec/updateStrategy/rollingUpdate/partition") == 0
                && json::label(pod, "controller-revision-hash")
                    .is_some_and(|hash| differ(hash, json::text(object, "/status/updateRevision")))
        }
        _ => false,
    }
}

/// Whether two revisions are known and are not the same.
fn differ(one: &str, other: &str) -> bool {
    !one.is_empty() && !other.is_empty() && one != other
}

/// Pods that ended are leftovers, which controllers replace.
fn is_over(pod: &Value) -> bool {
    matches!(json::text(pod, "/status/phase"), "Failed" | "Succeeded")
}

/// Why the newest pod ended, where nothing came after it: evicted, or lost with its node.
fn ended(mine: &[&Value]) -> Option<Obstacle> {
    let newest = mine
        .iter()
        .max_by_key(|pod| json::text(pod, "/metadata/creationTimestamp"))?;
    let reason = json::text(newest, "/status/reason");
    let is_leftover = json::text(newest, "/status/phase") == "Failed" && !json::deleting(newest);
    (is_leftover && !reason.is_empty()).then(|| {
        let name = format!("Pod/{}", json::name(newest));
        told(
            &name,
            "pod",
            reason,
            json::text(newest, "/status/message"),
            0,
        )
    })
}

/// Events by which controllers say that they may not make pods, as long as no pod came after them.
fn refused(object: &Value, waiting: &Waiting, pods: &Pods, events: &[Value]) -> Vec<Obstacle> {
    if waiting.reason == "QuotaExceeded" || waiting.reason == "FailedCreate" {
        return Vec::new();
    }
    let uid = json::uid(object);
    let newest = pods
        .of(uid)
        .map(|pod| json::text(pod, "/metadata/creationTimestamp"))
        .max()
        .unwrap_or("");
    let kind = json::text(object, "/kind");
    let makers = pods.controllers_of(uid).chain(std::iter::once(object));
    makers
        .filter_map(|maker| latest(events, json::uid(maker), &["FailedCreate"]))
        .filter(|event| when(event) >= newest)
        .take(1)
        .map(|event| {
            let message = json::text(event, "/message");
            let name = format!("{kind}/{}", json::name(object));
            match quota_numbers(message) {
                Some(numbers) => told(&name, kind, "QuotaExceeded", &numbers, 0),
                None => told(&name, "event", "FailedCreate", message, 0),
            }
        })
        .collect()
}

fn when(event: &Value) -> &str {
    [
        "/lastTimestamp",
        "/series/lastObservedTime",
        "/eventTime",
        "/metadata/creationTimestamp",
    ]
    .iter()
    .map(|pointer| json::text(event, pointer))
    .find(|time| !time.is_empty())
    .unwrap_or("")
}

/// The newest event about an object with one of these reasons.
pub(crate) fn latest<'a>(events: &'a [Value], uid: &str, reasons: &[&str]) -> Option<&'a Value> {
    events
        .iter()
        .filter(|event| json::text(event, "/involvedObject/uid") == uid)
        .filter(|event| reasons.contains(&json::text(event, "/reason")))
        .max_by(|a, b| when(a).cmp(when(b)))
}

/// What is in the way of a pod that is not ready.
pub(crate) fn pod(pod: &Value, events: &[Value]) -> Option<Obstacle> {
    let name = format!("Pod/{}", json::name(pod));
    let told =
        |source: &str, reason: &str, message: &str| Some(told(&name, source, reason, message, 0));
    let scheduled = json::condition(pod, "PodScheduled");
    if let Some(refused) = scheduled.filter(|c| c["status"] == "False") {
        let reason = match json::text(refused, "/reason") {
            "" => "Pending",
            reason => reason,
        };
        return told("pod", reason, json::text(refused, "/message"));
    }
    if json::text(pod, "/status/reason") == "NodeLost" {
        return told("pod", "NodeLost", json::text(pod, "/status/message"));
    }
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let containers = statuses
        .iter()
        .flat_map(|pointer| json::entries(pod, pointer));
    let mut starting =
        scheduled.is_none() || json::entries(pod, "/status/containerStatuses").is_empty();
    for container in containers {
        match container_root(pod, container, events) {
            Some((reason, _))
                if matches!(reason.as_str(), "ContainerCreating" | "PodInitializing") =>
            {
                starting = true;
            }
            Some((reason, message)) => return told("container", &reason, &message),
            None => {}
        }
    }
    if starting {
        if let Some(event) = latest(events, json::uid(pod), &STARTING) {
            return told(
                "event",
                json::text(event, "/reason"),
                json::text(event, "/message"),
            );
        }
        let reason = if scheduled.is_some() {
            ("container", "ContainerCreating")
        } else {
            ("pod", "Pending")
        };
        return told(reason.0, reason.1, "its containers are being made");
    }
    not_ready(pod, events).and_then(|message| told("container", "NotReady", &message))
}

/// Reason and message of a container that does not run; none for one that runs or has done its work.
fn container_root(pod: &Value, container: &Value, events: &[Value]) -> Option<(String, String)> {
    let name = json::text(container, "/name");
    let reason = json::text(container, "/state/waiting/reason");
    let mut message = json::text(container, "/state/waiting/message").to_owned();
    if !reason.is_empty() {
        if matches!(reason, "ImagePullBackOff" | "ErrImagePull")
            && let Some(event) = latest(events, json::uid(pod), &["Failed"])
                .filter(|event| json::text(event, "/message").contains("Failed to pull"))
            && !message.contains("rpc error")
        {
            message = format!("{message}; {}", json::text(event, "/message"));
        }
        let last = container.pointer("/lastState/terminated");
        if let Some(last) = last.filter(|_| reason == "CrashLoopBackOff") {
            message = format!("{message}; it ended with {}", ending(last));
        }
        return Some((reason.to_owned(), format!("container {name}: {message}")));
    }
    let ended = container.pointer("/state/terminated")?;
    let code = json::number(ended, "/exitCode").unwrap_or(0);
    let is_init = json::entries(pod, "/status/initContainerStatuses")
        .iter()
        .any(|c| c["name"] == name);
    if code == 0 && is_init {
        return None;
    }
    let reason = match json::text(ended, "/reason") {
        "" => "Error",
        reason => reason,
    };
    Some((
        reason.to_owned(),
        format!("container {name} ended with {}", ending(ended)),
    ))
}

fn ending(terminated: &Value) -> String {
    let code = json::number(terminated, "/exitCode").unwrap_or(0);
    let reason = json::text(terminated, "/reason");
    let message = json::text(terminated, "/message");
    format!("exit code {code} ({reason}) {message}")
        .trim()
        .to_owned()
}

/// What a pod whose containers run still lacks.
fn not_ready(pod: &Value, events: &[Value]) -> Option<String> {
    let condition = json::condition(pod, "Ready").filter(|c| c["status"] != "True")?;
    let said = json::text(condition, "/message");
    let probe =
        latest(events, json::uid(pod), &["Unhealthy"]).map_or("", |e| json::text(e, "/message"));
    Some(
        [said, probe]
            .into_iter()
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// Whether a pod is broken, not just on its way: it will not become ready by itself soon.
pub(crate) fn is_broken(broken: &Value) -> bool {
    !json::holds(broken, "Ready")
        && pod(broken, &[]).is_some_and(|root| {
            !matches!(
                root.reason.as_str(),
                "ContainerCreating" | "PodInitializing" | "Pending" | "NotReady"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn waiting_pod(reason: &str, message: &str) -> Value {
        json!({"kind": "Pod", "metadata": {"name": "x", "uid": "u"}, "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
            "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": reason, "message": message}}}]
        }})
    }

    #[test]
    fn the_containers_reason_is_told_with_the_kubelets_text() {
        let root = pod(
            &waiting_pod("ImagePullBackOff", "Back-off pulling image \"a\""),
            &[],
        )
        .unwrap();
        assert_eq!(
            (root.source.as_str(), root.reason.as_str()),
            ("container", "ImagePullBackOff")
        );
        assert!(
            root.message.contains("Back-off pulling image"),
            "{}",
            root.message
        );
        assert_eq!(root.object, "Pod/x");
    }

    #[test]
    fn a_mount_that_fails_is_the_root_of_a_container_that_is_being_made() {
        let event = json!({"reason": "FailedMount", "message": "secret \"s\" not found", "involvedObject": {"uid": "u"}});
        let root = pod(&waiting_pod("ContainerCreating", ""), &[event]).unwrap();
        assert_eq!(
            (root.source.as_str(), root.reason.as_str()),
            ("event", "FailedMount")
        );
    }

    #[test]
    fn an_evicted_pod_that_nothing_followed_is_the_root() {
        let set = json!({"kind": "ReplicaSet", "metadata": {"name": "web", "uid": "s"}});
        let pod = |name: &str, second: u32, status: Value| {
            json!({"metadata": {"name": name, "uid": name, "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
                "ownerReferences": [{"kind": "ReplicaSet", "uid": "s"}]}, "status": status})
        };
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"});
        let waiting = Waiting {
            reason: "RollingOut".into(),
            message: "0 of 1".into(),
            progress: 0,
        };
        let first = pod("a", 1, evicted.clone());
        let pods = Pods::from_parts(vec![first.clone()], Vec::new(), String::new());
        let found = workload(&set, &waiting, &pods, &[]);
        assert_eq!(
            (found[0].source.as_str(), found[0].reason.as_str()),
            ("pod", "Evicted")
        );
        let after = pod(
            "b",
            2,
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
        );
        let pods = Pods::from_parts(vec![first, after], Vec::new(), String::new());
        assert_eq!(
            workload(&set, &waiting, &pods, &[])[0].reason,
            "RollingOut",
            "a leftover of before is in nobody's way"
        );
    }

    #[test]
    fn the_scheduler_is_heard() {
        let pending = json!({"metadata": {"name": "x"}, "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}});
        let root = pod(&pending, &[]).unwrap();
        assert_eq!(
            (
                root.source.as_str(),
                root.reason.as_str(),
                root.message.as_str()
            ),
            ("pod", "Unschedulable", "0/1 nodes")
        );
    }

    #[test]
    fn a_controller_that_may_not_make_pods_is_heard_until_a_pod_comes() {
        let set = json!({"kind": "StatefulSet", "metadata": {"name": "db", "uid": "s"}});
        let event = json!({"reason": "FailedCreate", "lastTimestamp": "2026-01-01T00:00:05Z", "involvedObject": {"uid": "s"},
            "message": "create Pod db-0 failed: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"});
        let waiting = Waiting {
            reason: "RollingOut".into(),
            message: "0 of 1".into(),
            progress: 3,
        };
        let found = workload(
            &set,
            &waiting,
            &Pods::default(),
            std::slice::from_ref(&event),
        );
        assert_eq!(found[0].reason, "QuotaExceeded");
        assert_eq!(found[0].progress, 3);
        let pod = json!({"metadata": {"uid": "p", "name": "db-0", "creationTimestamp": "2026-01-01T00:00:06Z",
            "ownerReferences": [{"kind": "StatefulSet", "uid": "s"}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let pods = Pods::from_parts(vec![pod], Vec::new(), String::new());
        assert_eq!(
            workload(&set, &waiting, &pods, &[event])[0].reason,
            "RollingOut"
        );
    }

    #[test]
    fn a_pod_of_an_older_template_is_not_in_the_way() {
        let revision = |n: &str| json!({"deployment.kubernetes.io/revision": n});
        let owned_by = |kind: &str, uid: &str| json!([{"kind": kind, "uid": uid}]);
        let set = |uid: &str, n: &str| {
            json!({"kind": "ReplicaSet", "metadata": {"uid": uid, "annotations": revision(n),
            "ownerReferences": owned_by("Deployment", "d")}})
        };
        let broken = |name: &str, set: &str, reason: &str| {
            let mut pod = waiting_pod(reason, "");
            pod["metadata"]["name"] = json!(name);
            pod["metadata"]["uid"] = json!(name);
            pod["metadata"]["ownerReferences"] = owned_by("ReplicaSet", set);
            pod
        };
        let pods = Pods::from_parts(
            vec![
                broken("old", "s1", "InvalidImageName"),
                broken("new", "s2", "ContainerCreating"),
            ],
            vec![set("s1", "1"), set("s2", "2")],
            String::new(),
        );
        let waiting = Waiting {
            reason: "RollingOut".into(),
            message: "0 of 1".into(),
            progress: 0,
        };
        let reasons = |observed: i64, newest: &str| -> Vec<String> {
            let deployment = json!({"kind": "Deployment", "metadata": {"name": "x", "uid": "d", "generation": 2,
                "annotations": revision(newest)}, "status": {"observedGeneration": observed}});
            let found = workload(&deployment, &waiting, &pods, &[]);
            found.into_iter().map(|o| o.reason).collect()
        };
        assert_eq!(reasons(2, "2"), ["ContainerCreating"]);
        assert_eq!(reasons(2, "1"), ["InvalidImageName"]);
        // Nobody knows yet which template is the newest.
        assert_eq!(reasons(1, "1"), ["RollingOut"]);
    }
}
