//! Readiness of what runs pods.

use super::{Readiness, is_observed, waiting};
use crate::errors::quota_numbers;
use crate::json::{self, count};
use serde_json::Value;

fn desired(object: &Value) -> u32 {
    match object.pointer("/spec/replicas") {
        Some(Value::Number(_)) => count(object, "/spec/replicas"),
        Some(_) | None => 1,
    }
}

/// All replicas of the newest template run, are available, and no older one is left.
pub(super) fn deployment(object: &Value) -> Readiness {
    let wanted = desired(object);
    let updated = count(object, "/status/updatedReplicas");
    let available = count(object, "/status/availableReplicas");
    let ready = count(object, "/status/readyReplicas");
    let all = count(object, "/status/replicas");
    let progress = updated + ready;
    if !is_observed(object) {
        return waiting(
            "RollingOut",
            "the controller has not seen the newest template yet",
            0,
        );
    }
    if updated == wanted && all == wanted && available == wanted && ready >= wanted {
        return Readiness::Ready;
    }
    if let Some(refused) = replica_failure(object, progress) {
        return refused;
    }
    let told = format!("{updated} of {wanted} updated, {available} available, {all} in all");
    let late = json::condition(object, "Progressing")
        .filter(|c| c["status"] == "False" && c["reason"] == "ProgressDeadlineExceeded");
    match late {
        Some(late) => waiting(
            "ProgressDeadlineExceeded",
            format!("{}; {told}", json::text(late, "/message")),
            progress,
        ),
        None => waiting("RollingOut", told, progress),
    }
}

pub(super) fn replica_set(object: &Value) -> Readiness {
    let wanted = desired(object);
    let ready = count(object, "/status/readyReplicas");
    let available = count(object, "/status/availableReplicas");
    let all = count(object, "/status/replicas");
    if !is_observed(object) {
        return waiting(
            "RollingOut",
            "the controller has not seen the newest number yet",
            0,
        );
    }
    if ready == wanted && all == wanted && available == wanted {
        return Readiness::Ready;
    }
    replica_failure(object, ready).unwrap_or_else(|| {
        waiting(
            "RollingOut",
            format!("{ready} of {wanted} ready, {all} in all"),
            ready,
        )
    })
}

/// That pods are refused, as the controller says it.
fn replica_failure(object: &Value, progress: u32) -> Option<Readiness> {
    let failure = json::condition(object, "ReplicaFailure").filter(|c| c["status"] == "True")?;
    let message = json::text(failure, "/message");
    Some(match quota_numbers(message) {
        Some(numbers) => waiting("QuotaExceeded", numbers, progress),
        None => waiting("FailedCreate", message, progress),
    })
}

/// All replicas are ready and of the newest revision, as far as the update strategy moves them.
pub(super) fn stateful_set(object: &Value) -> Readiness {
    let wanted = desired(object);
    let ready = count(object, "/status/readyReplicas");
    let updated = count(object, "/status/updatedReplicas");
    let all = count(object, "/status/replicas");
    let progress = ready + updated;
    if !is_observed(object) {
        return waiting(
            "RollingOut",
            "the controller has not seen the newest template yet",
            0,
        );
    }
    let partition = count(object, "/spec/updateStrategy/rollingUpdate/partition");
    let moved = match json::text(object, "/spec/updateStrategy/type") {
        "OnDelete" => true,
        _ if partition > 0 => updated >= wanted.saturating_sub(partition),
        _ => {
            updated >= wanted
                && json::text(object, "/status/currentRevision")
                    == json::text(object, "/status/updateRevision")
        }
    };
    if wanted == 0 && all == 0 || moved && ready == wanted && all == wanted {
        return Readiness::Ready;
    }
    waiting(
        "RollingOut",
        format!("{ready} of {wanted} ready, {updated} updated, {all} in all"),
        progress,
    )
}

/// Each node that should run it runs the newest template.
pub(super) fn daemon_set(object: &Value) -> Readiness {
    let wanted = count(object, "/status/desiredNumberScheduled");
    let updated = count(object, "/status/updatedNumberScheduled");
    let available = count(object, "/status/numberAvailable");
    let ready = count(object, "/status/numberReady");
    if !is_observed(object) {
        return waiting(
            "RollingOut",
            "the controller has not seen the newest template yet",
            0,
        );
    }
    let moved = json::text(object, "/spec/updateStrategy/type") == "OnDelete" || updated == wanted;
    if moved && available == wanted && ready == wanted {
        return Readiness::Ready;
    }
    let told = format!("{updated} of {wanted} updated, {available} available");
    waiting("RollingOut", told, updated + ready)
}

/// Only its conditions count: single pods may fail while tries are left.
pub(super) fn job(object: &Value) -> Readiness {
    let succeeded = count(object, "/status/succeeded");
    if json::holds(object, "Complete") || json::truth(object, "/spec/suspend") {
        return Readiness::Ready;
    }
    if let Some(failed) = json::condition(object, "Failed").filter(|c| c["status"] == "True") {
        let told = format!(
            "{}: {}",
            json::text(failed, "/reason"),
            json::text(failed, "/message")
        );
        return waiting("Failed", told, succeeded);
    }
    let active = count(object, "/status/active");
    let failed = count(object, "/status/failed");
    waiting(
        "RollingOut",
        format!("{active} active, {succeeded} succeeded, {failed} failed"),
        succeeded,
    )
}

/// Ready by its condition; a pod that ran to its end is done.
pub(super) fn pod(object: &Value) -> Readiness {
    match json::text(object, "/status/phase") {
        "Succeeded" => Readiness::Ready,
        "Failed" => {
            let told = [
                json::text(object, "/status/reason"),
                json::text(object, "/status/message"),
            ];
            waiting("Failed", told.join(" ").trim(), 0)
        }
        _ if json::holds(object, "Ready") => Readiness::Ready,
        "Running" => waiting("NotReady", "it runs and is not ready", 1),
        _ => waiting("Pending", "it does not run yet", 0),
    }
}
