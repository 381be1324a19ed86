//! The kubelet: pods on the node start, become ready, crash, end and go, as their annotations say.
//!
//! | annotation of the pod | means |
//! |---|---|
//! | `simcluster.cairn.dev/ready-after` | a duration (`500ms`, `2s`) or `never`; 50 ms without it |
//! | `simcluster.cairn.dev/pull` | `fail`: the registry does not have the image; `never`: ErrImageNeverPull |
//! | `simcluster.cairn.dev/crash` | a number of starts that crash, or `always` |
//! | `simcluster.cairn.dev/crash-where` | `NAME=VALUE`: it crashes only where a container has that variable |
//! | `simcluster.cairn.dev/crash-until` | a `ConfigMap` of its namespace: it crashes only while there is none of that name |
//! | `simcluster.cairn.dev/crash-message` | what containers leave behind when they crash |
//! | `simcluster.cairn.dev/exit-after` | the containers end well after that time |
//! | `simcluster.cairn.dev/termination-message` | what containers leave behind when they end; `$(NAME)` is a variable |
//! | `simcluster.cairn.dev/terminate-after` | how long the pod takes to go when it is deleted |

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Pass;
use super::act::{controller_uid, is_ended, set_condition};
use crate::json;
use crate::state::NODE;

mod obstacles;
mod statuses;

use obstacles::Obstacle;

const MANAGER: &str = "kubelet";
const COMPONENT: &str = "kubelet";
/// How long a container runs before a scripted crash.
const CRASH_AFTER: Duration = Duration::from_millis(20);
/// How long a pod of a Job runs, and how long others take to become ready.
const USUAL: Duration = Duration::from_millis(50);
/// How long an image that cannot be pulled stays at `ErrImagePull` before back-off.
const PULL_TRY: Duration = Duration::from_millis(100);

/// What the kubelet knows of a pod.
#[derive(Debug, Clone)]
pub(super) struct PodMemory {
    seen: Instant,
    /// When the containers were started last.
    started: Option<(Instant, String)>,
    /// Whether the pod's sandbox stands, which has the address.
    sandbox: bool,
    /// When crashed containers are started again.
    restart_at: Option<Instant>,
    restarts: u32,
    last_end: Option<Value>,
    deleting_since: Option<Instant>,
}

impl PodMemory {
    fn new(now: Instant) -> Self {
        Self {
            seen: now,
            started: None,
            sandbox: false,
            restart_at: None,
            restarts: 0,
            last_end: None,
            deleting_since: None,
        }
    }
}

/// The state of a pod's containers, all of which share one fate here.
enum Containers {
    Waiting {
        reason: &'static str,
        message: String,
    },
    Running {
        ready: bool,
    },
    /// Ended with an error and about to be started again.
    Crashed,
    Ended {
        code: i64,
    },
}

pub(super) fn run(pass: &mut Pass<'_>) {
    for pod in pass.list("pods") {
        if json::text(&pod, "/spec/nodeName") == NODE {
            let uid = json::uid(&pod).to_owned();
            let now = pass.now;
            let memory = pass
                .state
                .memory
                .pods
                .remove(&uid)
                .unwrap_or_else(|| PodMemory::new(now));
            let memory = sync(pass, &pod, memory);
            pass.state.memory.pods.insert(uid, memory);
        } else if json::is_deleting(&pod) && json::text(&pod, "/spec/nodeName").is_empty() {
            finish(pass, &pod);
        }
    }
}

fn sync(pass: &mut Pass<'_>, pod: &Value, mut memory: PodMemory) -> PodMemory {
    if json::is_deleting(pod) {
        if memory.deleting_since.is_none() && memory.started.is_some() && !is_ended(pod) {
            let message = format!("Stopping container {}", first_name(pod));
            pass.event(pod, "Killing", &message, COMPONENT);
        }
        let since = *memory.deleting_since.get_or_insert(pass.now);
        let takes = duration(pod, "terminate-after").unwrap_or(Duration::ZERO);
        // However stubborn its containers are, the grace of a pod ends it.
        let grace = json::int(pod, "/metadata/deletionGracePeriodSeconds", 30);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let ends = since + takes.min(grace);
        if ends <= pass.now {
            finish(pass, pod);
        } else {
            pass.wake_at(ends);
        }
        return memory;
    }
    if is_ended(pod) {
        return memory;
    }
    let containers = decide(pass, pod, &mut memory);
    write(pass, pod, &memory, &containers);
    memory
}

/// Takes the pod out of the store, unless somebody's finalizer holds it.
fn finish(pass: &mut Pass<'_>, pod: &Value) {
    let kind = pass.state.kinds.get("pods");
    if json::list(pod, "/metadata/finalizers").is_empty() {
        pass.state.remove_now(&kind, pod);
        return;
    }
    if json::int(pod, "/metadata/deletionGracePeriodSeconds", 0) != 0 {
        let mut object = pod.clone();
        json::set(&mut object, "/metadata/deletionGracePeriodSeconds", 0);
        json::set(&mut object, "/status/phase", "Failed");
        pass.state.store.put("pods", object);
    }
}

fn decide(pass: &mut Pass<'_>, pod: &Value, memory: &mut PodMemory) -> Containers {
    if memory.started.is_none() {
        let obstacle = obstacles::find(pass, pod);
        memory.sandbox |= !matches!(obstacle, Some(Obstacle::Volume(_)));
        match obstacle {
            None => start(pass, pod, memory),
            Some(Obstacle::Volume(message)) => {
                pass.warn_once(pod, "FailedMount", &message, COMPONENT);
                return waiting("ContainerCreating", String::new());
            }
            Some(Obstacle::Image { reason, message }) => {
                return image_trouble(pass, pod, memory, reason, message);
            }
            Some(Obstacle::Config(message)) => {
                let text = format!("Error: {message}");
                pass.warn_once(pod, "Failed", &text, COMPONENT);
                return waiting("CreateContainerConfigError", message);
            }
        }
    }
    if let Some(at) = memory.restart_at {
        if pass.now < at {
            pass.wake_at(at);
            return crashed(pod, memory);
        }
        memory.restart_at = None;
        memory.restarts += 1;
        start(pass, pod, memory);
    }
    running(pass, pod, memory)
}

fn waiting(reason: &'static str, message: String) -> Containers {
    Containers::Waiting { reason, message }
}

fn start(pass: &mut Pass<'_>, pod: &Value, memory: &mut PodMemory) {
    memory.started = Some((pass.now, pass.stamp.clone()));
    for container in json::list(pod, "/spec/containers") {
        let image = json::text(container, "/image");
        if memory.restarts == 0 {
            let message = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the \
                 pod"
            );
            pass.event(pod, "Pulled", &message, COMPONENT);
        }
        pass.event(pod, "Created", "Container created", COMPONENT);
        pass.event(pod, "Started", "Container started", COMPONENT);
    }
}

fn image_trouble(
    pass: &mut Pass<'_>,
    pod: &Value,
    memory: &PodMemory,
    reason: &'static str,
    message: String,
) -> Containers {
    if reason != "ErrImagePull" {
        pass.warn_once(pod, reason_of_event(reason), &message, COMPONENT);
        pass.warn_once(pod, "Failed", &format!("Error: {reason}"), COMPONENT);
        return waiting(reason, message);
    }
    let image = obstacles::first_image(pod);
    let backs_off = memory.seen + PULL_TRY;
    if pass.now < backs_off {
        pass.event_once(
            pod,
            "Pulling",
            &format!("Pulling image \"{image}\""),
            COMPONENT,
        );
        let text = format!("Failed to pull image \"{image}\": {message}");
        pass.warn_once(pod, "Failed", &text, COMPONENT);
        pass.warn_once(pod, "Failed", "Error: ErrImagePull", COMPONENT);
        pass.wake_at(backs_off);
        return waiting("ErrImagePull", message);
    }
    pass.event_once(
        pod,
        "BackOff",
        &format!("Back-off pulling image \"{image}\""),
        COMPONENT,
    );
    pass.warn_once(pod, "Failed", "Error: ImagePullBackOff", COMPONENT);
    let text = format!("Back-off pulling image \"{image}\": ErrImagePull: {message}");
    waiting("ImagePullBackOff", text)
}

fn reason_of_event(reason: &str) -> &'static str {
    if reason == "InvalidImageName" {
        "InspectFailed"
    } else {
        "ErrImageNeverPull"
    }
}

fn running(pass: &mut Pass<'_>, pod: &Value, memory: &mut PodMemory) -> Containers {
    let (started, since) = memory
        .started
        .clone()
        .expect("started before it is asked here");
    if crashes(pass, pod, memory) {
        let at = started + CRASH_AFTER;
        if pass.now < at {
            pass.wake_at(at);
            return Containers::Running { ready: false };
        }
        return crash(pass, pod, memory, &since);
    }
    if let Some(after) = run_time(pass, pod) {
        let at = started + after;
        if pass.now >= at {
            return Containers::Ended { code: 0 };
        }
        pass.wake_at(at);
    }
    if json::annotation(pod, "simcluster.cairn.dev/ready-after") == Some("never") {
        let message = "Readiness probe failed: the simulated container was told never to be ready";
        pass.warn_once(pod, "Unhealthy", message, COMPONENT);
        return Containers::Running { ready: false };
    }
    let at = started + duration(pod, "ready-after").unwrap_or(USUAL);
    if pass.now < at {
        pass.wake_at(at);
    }
    Containers::Running {
        ready: pass.now >= at,
    }
}

/// Whether this start of the containers is one that crashes.
fn crashes(pass: &Pass<'_>, pod: &Value, memory: &PodMemory) -> bool {
    is_script_of(pod) && !is_mended(pass, pod) && match_crash(pass, pod, memory)
}

/// Whether the script is about this pod among those of one template.
fn is_script_of(pod: &Value) -> bool {
    let Some(wanted) = json::annotation(pod, "simcluster.cairn.dev/crash-where") else {
        return true;
    };
    let (name, value) = wanted.split_once('=').unwrap_or((wanted, ""));
    statuses::variables(pod).any(|known| known == (name, value))
}

fn is_mended(pass: &Pass<'_>, pod: &Value) -> bool {
    json::annotation(pod, "simcluster.cairn.dev/crash-until").is_some_and(|name| {
        pass.state
            .store
            .list("configmaps", json::namespace(pod))
            .any(|known| json::name(known) == name)
    })
}

fn match_crash(pass: &Pass<'_>, pod: &Value, memory: &PodMemory) -> bool {
    match json::annotation(pod, "simcluster.cairn.dev/crash") {
        None => false,
        Some("always") => true,
        Some(number) => {
            let wanted: i64 = number.parse().unwrap_or(0);
            // Where each try is a pod of its own, the pods that failed before count too.
            let before = failed_siblings(pass, pod);
            before + i64::from(memory.restarts) < wanted
        }
    }
}

fn failed_siblings(pass: &Pass<'_>, pod: &Value) -> i64 {
    let owner = controller_uid(pod);
    if owner.is_empty() || json::text(pod, "/spec/restartPolicy") != "Never" {
        return 0;
    }
    super::act::count(
        pass.state
            .store
            .list("pods", json::namespace(pod))
            .filter(|other| {
                controller_uid(other) == owner && json::text(other, "/status/phase") == "Failed"
            }),
    )
}

fn crash(pass: &mut Pass<'_>, pod: &Value, memory: &mut PodMemory, since: &str) -> Containers {
    if json::text(pod, "/spec/restartPolicy") == "Never" {
        return Containers::Ended { code: 1 };
    }
    let end = statuses::ended(pod, 1, since, &pass.stamp);
    memory.last_end = Some(end);
    let wait = match memory.restarts {
        0 => CRASH_AFTER,
        restarts => Duration::from_millis(100) * 2_u32.pow(restarts.min(4)),
    };
    let at = pass.now + wait;
    memory.restart_at = Some(at);
    pass.wake_at(at);
    if memory.restarts == 0 {
        return crashed(pod, memory);
    }
    let text = format!(
        "Back-off restarting failed container {} in pod {}_{}({})",
        first_name(pod),
        json::name(pod),
        json::namespace(pod),
        json::uid(pod)
    );
    pass.warn(pod, "BackOff", &text, COMPONENT);
    crashed(pod, memory)
}

/// The first crash is followed by a start at once, the others by back-off.
fn crashed(pod: &Value, memory: &PodMemory) -> Containers {
    if memory.restarts == 0 {
        Containers::Crashed
    } else {
        back_off(pod, memory)
    }
}

/// The texts speak of the waits of a real kubelet, which are longer than those here.
fn back_off(pod: &Value, memory: &PodMemory) -> Containers {
    const WAITS: [&str; 6] = ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"];
    let wait = WAITS[usize::try_from(memory.restarts).unwrap_or(6).clamp(1, 6) - 1];
    let text = format!(
        "back-off {wait} restarting failed container={} pod={}_{}({})",
        first_name(pod),
        json::name(pod),
        json::namespace(pod),
        json::uid(pod)
    );
    waiting("CrashLoopBackOff", text)
}

fn first_name(pod: &Value) -> &str {
    json::text(pod, "/spec/containers/0/name")
}

/// How long the containers run before they end well; `None` means for ever.
fn run_time(pass: &Pass<'_>, pod: &Value) -> Option<Duration> {
    let of_job = json::list(pod, "/metadata/ownerReferences")
        .iter()
        .any(|owner| json::text(owner, "/kind") == "Job" && json::flag(owner, "/controller"));
    let never = json::annotation(pod, "simcluster.cairn.dev/exit-after") == Some("never");
    let scripted = duration(pod, "exit-after");
    if never || pass.state.faults.controllers_frozen {
        return None;
    }
    scripted.or_else(|| of_job.then_some(USUAL))
}

/// The duration in one of the simulation's annotations, if it can be read.
fn duration(pod: &Value, name: &str) -> Option<Duration> {
    let text = json::annotation(pod, &format!("simcluster.cairn.dev/{name}"))?;
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().ok().map(Duration::from_millis);
    }
    if let Some(number) = text.strip_suffix('m') {
        return number
            .parse::<u64>()
            .ok()
            .map(|minutes| Duration::from_secs(minutes * 60));
    }
    text.strip_suffix('s')?
        .parse()
        .ok()
        .map(Duration::from_secs_f64)
}

fn write(pass: &mut Pass<'_>, pod: &Value, memory: &PodMemory, containers: &Containers) {
    let mut status = json::at(pod, "/status").clone();
    let ready = matches!(containers, Containers::Running { ready: true });
    let phase = match containers {
        Containers::Ended { code: 0 } => "Succeeded",
        Containers::Ended { .. } => "Failed",
        Containers::Waiting { .. } if memory.started.is_none() => "Pending",
        Containers::Waiting { .. } | Containers::Running { .. } | Containers::Crashed => "Running",
    };
    json::set(&mut status, "/phase", phase);
    json::set(
        &mut status,
        "/observedGeneration",
        json::int(pod, "/metadata/generation", 1),
    );
    json::set_default(&mut status, "/startTime", pass.stamp.clone());
    json::set(&mut status, "/hostIP", "192.0.2.1");
    json::set(&mut status, "/hostIPs", json!([{"ip": "192.0.2.1"}]));
    if memory.sandbox && !json::has(&status, "/podIP") {
        let address = pass.state.allocate_pod_address();
        json::set(&mut status, "/podIPs", json!([{"ip": address}]));
        json::set(&mut status, "/podIP", address);
    }
    let now = pass.stamp.clone();
    let sandbox = memory.sandbox && !matches!(containers, Containers::Ended { .. });
    set_condition(
        &mut status,
        ("PodReadyToStartContainers", sandbox),
        "",
        "",
        &now,
    );
    let initialised = if phase == "Succeeded" {
        "PodCompleted"
    } else {
        ""
    };
    set_condition(&mut status, ("Initialized", true), initialised, "", &now);
    let (reason, message) = if ready {
        ("", String::new())
    } else if phase == "Succeeded" {
        ("PodCompleted", String::new())
    } else if phase == "Failed" {
        ("PodFailed", String::new())
    } else {
        ("ContainersNotReady", statuses::unready_text(pod))
    };
    set_condition(&mut status, ("Ready", ready), reason, &message, &now);
    set_condition(
        &mut status,
        ("ContainersReady", ready),
        reason,
        &message,
        &now,
    );
    statuses::write(&mut status, pod, memory, containers, &now);
    let generation = json::int(pod, "/metadata/generation", 1);
    for condition in json::list_mut(&mut status, "/conditions") {
        json::set(condition, "/observedGeneration", generation);
    }
    let pods = pass.state.kinds.get("pods");
    pass.set_status(&pods, pod, MANAGER, status);
}
