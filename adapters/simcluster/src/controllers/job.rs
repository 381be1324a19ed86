//! Jobs: pods that run to an end, counted until enough succeeded or too many failed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Pass;
use super::act::{MANAGER, count, is_active, is_ready, is_true, set_condition, set_count};
use crate::json;
use crate::kinds::Kind;

const COMPONENT: &str = "job-controller";

pub(super) fn run(pass: &mut Pass<'_>) {
    let kind = pass.state.kinds.get("jobs.batch");
    for job in pass.list("jobs.batch") {
        if json::is_deleting(&job) {
            continue;
        }
        if is_finished(&job) {
            expire(pass, &kind, &job);
        } else {
            sync(pass, &kind, &job);
        }
    }
}

fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// Removes a finished job when its time is up.
fn expire(pass: &mut Pass<'_>, kind: &Kind, job: &Value) {
    let Some(seconds) = json::at(job, "/spec/ttlSecondsAfterFinished").as_i64() else {
        return;
    };
    let finished = json::list(job, "/status/conditions")
        .iter()
        .find(|c| c["type"] == "Complete" || c["type"] == "Failed")
        .map(|c| json::text(c, "/lastTransitionTime").to_owned())
        .unwrap_or_default();
    let left = seconds - pass.state.clock.seconds_since(&finished);
    if left <= 0 {
        pass.delete(kind, job);
    } else {
        let left = Duration::from_secs(u64::try_from(left).unwrap_or(1));
        let at = pass.now + left;
        pass.wake_at(at);
    }
}

fn sync(pass: &mut Pass<'_>, kind: &Kind, job: &Value) {
    let pods = pass.pods_of(job);
    let phase = |name: &str| {
        count(
            pods.iter()
                .filter(|p| json::text(p, "/status/phase") == name),
        )
    };
    let active: Vec<&Arc<Value>> = pods.iter().filter(|pod| is_active(pod)).collect();
    let (succeeded, failed) = (phase("Succeeded"), failures(job, &pods));
    let mut status = json::at(job, "/status").clone();
    let suspended = json::flag(job, "/spec/suspend");
    if !suspended {
        json::set_default(&mut status, "/startTime", pass.stamp.clone());
    }
    set_count(&mut status, "succeeded", succeeded);
    set_count(&mut status, "failed", phase("Failed"));
    json::set(
        &mut status,
        "/ready",
        count(active.iter().filter(|pod| is_ready(pod))),
    );
    json::set(
        &mut status,
        "/terminating",
        count(pods.iter().filter(|p| json::is_deleting(p))),
    );
    json::set(&mut status, "/uncountedTerminatedPods", json!({}));
    let wanted = json::at(job, "/spec/completions").as_i64();
    let done = wanted.map_or(succeeded > 0 && active.is_empty(), |wanted| {
        succeeded >= wanted
    });
    let late = too_late(pass, job);
    if done {
        complete(pass, job, &mut status, &active);
    } else if late || failed > json::int(job, "/spec/backoffLimit", 6) {
        fail(pass, job, &mut status, &active, late);
    } else if suspended {
        stop(pass, job, &active);
        set_condition(
            &mut status,
            ("Suspended", true),
            "JobSuspended",
            "Job suspended",
            &pass.stamp,
        );
    } else {
        let missing = missing(job, count(&active), succeeded, wanted);
        let made = start_pods(pass, kind, job, missing);
        set_count(&mut status, "active", count(&active) + made);
    }
    pass.set_status(kind, job, MANAGER, status);
}

/// Failed pods, and restarts of containers where pods are kept.
fn failures(job: &Value, pods: &[Arc<Value>]) -> i64 {
    let failed = count(
        pods.iter()
            .filter(|pod| json::text(pod, "/status/phase") == "Failed"),
    );
    if json::text(job, "/spec/template/spec/restartPolicy") != "OnFailure" {
        return failed;
    }
    let restarts: i64 = pods
        .iter()
        .flat_map(|pod| json::list(pod, "/status/containerStatuses"))
        .map(|status| json::int(status, "/restartCount", 0))
        .sum();
    failed + restarts
}

fn too_late(pass: &mut Pass<'_>, job: &Value) -> bool {
    let Some(limit) = json::at(job, "/spec/activeDeadlineSeconds").as_i64() else {
        return false;
    };
    let started = json::text(job, "/status/startTime");
    if started.is_empty() {
        return false;
    }
    let left = limit - pass.state.clock.seconds_since(started);
    if left > 0 {
        let at = pass.now + Duration::from_secs(u64::try_from(left).unwrap_or(1));
        pass.wake_at(at);
    }
    left <= 0
}

fn missing(job: &Value, active: i64, succeeded: i64, wanted: Option<i64>) -> i64 {
    let parallel = json::int(job, "/spec/parallelism", 1);
    let target = match wanted {
        Some(wanted) => parallel.min(wanted - succeeded),
        None if succeeded > 0 => active,
        None => parallel,
    };
    (target - active).max(0)
}

fn start_pods(pass: &mut Pass<'_>, kind: &Kind, job: &Value, missing: i64) -> i64 {
    if missing == 0 || !pass.may_try(json::uid(job)) {
        return 0;
    }
    let template = json::at(job, "/spec/template").clone();
    for made in 0..missing {
        match pass.make_pod(kind, job, &template, "", |_| {}) {
            Ok(pod) => {
                let message = format!("Created pod: {}", json::name(&pod));
                pass.event(job, "SuccessfulCreate", &message, COMPONENT);
            }
            Err(error) => {
                pass.failed(json::uid(job));
                let message = format!("Error creating: {}", error.message);
                pass.warn(job, "FailedCreate", &message, COMPONENT);
                return made;
            }
        }
    }
    missing
}

fn stop(pass: &mut Pass<'_>, job: &Value, active: &[&Arc<Value>]) {
    let pods = pass.state.kinds.get("pods");
    for pod in active {
        pass.delete(&pods, pod);
        let message = format!("Deleted pod: {}", json::name(pod));
        pass.event(job, "SuccessfulDelete", &message, COMPONENT);
    }
}

fn complete(pass: &mut Pass<'_>, job: &Value, status: &mut Value, active: &[&Arc<Value>]) {
    stop(pass, job, active);
    let stamp = pass.stamp.clone();
    json::remove(status, "/active");
    json::set(status, "/completionTime", stamp.clone());
    let (reason, message) = (
        "CompletionsReached",
        "Reached expected number of succeeded pods",
    );
    set_condition(
        status,
        ("SuccessCriteriaMet", true),
        reason,
        message,
        &stamp,
    );
    set_condition(status, ("Complete", true), reason, message, &stamp);
    add_probe_times(status, &stamp);
    pass.event(job, "Completed", "Job completed", COMPONENT);
}

fn fail(pass: &mut Pass<'_>, job: &Value, status: &mut Value, active: &[&Arc<Value>], late: bool) {
    stop(pass, job, active);
    let stamp = pass.stamp.clone();
    json::remove(status, "/active");
    let (reason, message) = if late {
        (
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        )
    } else {
        (
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        )
    };
    set_condition(status, ("FailureTarget", true), reason, message, &stamp);
    set_condition(status, ("Failed", true), reason, message, &stamp);
    add_probe_times(status, &stamp);
    pass.warn(job, reason, message, COMPONENT);
}

fn add_probe_times(status: &mut Value, stamp: &str) {
    for condition in json::list_mut(status, "/conditions") {
        json::set_default(condition, "/lastProbeTime", stamp);
    }
}
