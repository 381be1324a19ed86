//! The table of waits (seed case D): which state of the cluster is waited on, and for how long.
//!
//! Total: what stands in no row is *unclassified*, waited on with a clock of its own and counted, never
//! taken for success or failure. `docs/waits.md` shows this table row by row.

use crate::clocks::Clocks;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of wait something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitClass {
    /// On its way; the clock begins anew with each progress.
    Progressing,
    /// Somebody must allow it first (quota, disruption budget, credentials).
    Blocked,
    /// The platform has a fault that may pass.
    Infrastructure,
    /// It cannot come right by waiting.
    Permanent,
    /// No row says what this is.
    Unclassified,
}

impl WaitClass {
    /// All classes.
    pub const ALL: [Self; 5] = [
        Self::Progressing,
        Self::Blocked,
        Self::Infrastructure,
        Self::Permanent,
        Self::Unclassified,
    ];

    /// The name that settings and answers use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Progressing => "progressing",
            Self::Blocked => "blocked",
            Self::Infrastructure => "infrastructure",
            Self::Permanent => "permanent",
            Self::Unclassified => "unclassified",
        }
    }

    /// The class of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }
}

impl fmt::Display for WaitClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What stands in the way, as the platform adapter saw it: the root, not its consequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    /// The object that waits, as `Kind/name`; `cluster` for a call that was not answered.
    pub object: String,
    /// What says so: `container`, `pod`, `event`, a kind of workload, or `call`.
    pub source: String,
    /// The reason in the platform's word, such as `ImagePullBackOff`.
    pub reason: String,
    /// The platform's own text.
    pub message: String,
    /// Rises with each progress (ready or updated replicas); 0 where nothing can be counted.
    #[serde(default)]
    pub progress: u32,
}

/// Where in an operation something is met; calls are judged more strictly before the first write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Between points 2 and 3: nothing was written yet.
    Checks,
    /// Later.
    Work,
}

/// One row: what it matches, and what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Must equal the obstacle's source; empty matches any.
    pub source: &'static str,
    /// Must equal the obstacle's reason; empty matches any.
    pub reason: &'static str,
    /// Must occur in the message, whatever the case; empty matches any.
    pub says: &'static str,
    /// Holds only in this phase.
    pub phase: Option<Phase>,
    /// The class.
    pub class: WaitClass,
    /// The default clock, in milliseconds; 0 ends the wait at once.
    pub clock_ms: u64,
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;

const fn row(
    source: &'static str,
    reason: &'static str,
    says: &'static str,
    class: WaitClass,
    clock_ms: u64,
) -> Row {
    Row {
        source,
        reason,
        says,
        phase: None,
        class,
        clock_ms,
    }
}

const fn only(phase: Phase, row: Row) -> Row {
    Row {
        phase: Some(phase),
        ..row
    }
}

use WaitClass::{Blocked, Infrastructure, Permanent, Progressing, Unclassified};

/// The table. The first row that matches holds.
pub const TABLE: &[Row] = &[
    // Calls to the cluster.
    row("call", "QuotaExceeded", "", Blocked, 30 * SECOND),
    row("call", "DisruptionBudget", "", Blocked, MINUTE),
    row("call", "TooManyRequests", "", Infrastructure, 5 * MINUTE),
    only(
        Phase::Checks,
        row("call", "Unreachable", "", Infrastructure, MINUTE),
    ),
    row("call", "Unreachable", "", Infrastructure, 5 * MINUTE),
    row("call", "AnswerOutstanding", "", Progressing, 10 * MINUTE),
    only(
        Phase::Checks,
        row("call", "ServerError", "", Infrastructure, MINUTE),
    ),
    row("call", "ServerError", "", Infrastructure, 5 * MINUTE),
    row("call", "WebhookUnavailable", "", Infrastructure, 5 * MINUTE),
    only(Phase::Checks, row("call", "Unauthorized", "", Permanent, 0)),
    row("call", "Unauthorized", "", Blocked, 30 * SECOND),
    only(Phase::Checks, row("call", "Forbidden", "", Permanent, 0)),
    row("call", "Forbidden", "", Blocked, 30 * SECOND),
    row("call", "NamespaceTerminating", "", Progressing, 10 * MINUTE),
    row("call", "BeingDeleted", "", Progressing, 10 * MINUTE),
    row("call", "BeingReplaced", "", Progressing, 10 * MINUTE),
    row("call", "NotYetServed", "", Progressing, 10 * MINUTE),
    row("call", "VersionConflict", "", Progressing, MINUTE),
    row("call", "FieldConflict", "", Permanent, 0),
    row("call", "NotOurs", "", Permanent, 0),
    row("call", "AdmissionRefused", "", Permanent, 0),
    row("call", "Invalid", "", Permanent, 0),
    row("call", "UnknownKind", "", Permanent, 0),
    row("call", "Missing", "", Permanent, 0),
    row("call", "OtherCluster", "", Permanent, 0),
    row("call", "Autoscaled", "", Permanent, 0),
    row("call", "Package", "", Permanent, 0),
    // Containers.
    row("container", "ErrImagePull", "not found", Blocked, MINUTE),
    row("container", "ErrImagePull", "denied", Blocked, MINUTE),
    row("container", "ErrImagePull", "unauthorized", Blocked, MINUTE),
    row("container", "ErrImagePull", "", Infrastructure, 5 * MINUTE),
    row(
        "container",
        "ImagePullBackOff",
        "not found",
        Blocked,
        MINUTE,
    ),
    row("container", "ImagePullBackOff", "denied", Blocked, MINUTE),
    row(
        "container",
        "ImagePullBackOff",
        "unauthorized",
        Blocked,
        MINUTE,
    ),
    row(
        "container",
        "ImagePullBackOff",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row(
        "container",
        "RegistryUnavailable",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row(
        "container",
        "ImageInspectError",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row("container", "InvalidImageName", "", Permanent, 0),
    row("container", "ErrImageNeverPull", "", Permanent, 0),
    row(
        "container",
        "CrashLoopBackOff",
        "",
        Infrastructure,
        10 * MINUTE,
    ),
    row("container", "Error", "", Infrastructure, 10 * MINUTE),
    row("container", "Completed", "", Infrastructure, 10 * MINUTE),
    row("container", "OOMKilled", "", Infrastructure, 10 * MINUTE),
    row(
        "container",
        "ContainerStatusUnknown",
        "",
        Infrastructure,
        10 * MINUTE,
    ),
    row(
        "container",
        "PostStartHookError",
        "",
        Infrastructure,
        10 * MINUTE,
    ),
    row("container", "StartError", "", Infrastructure, 10 * MINUTE),
    row(
        "container",
        "ContainerCannotRun",
        "",
        Infrastructure,
        10 * MINUTE,
    ),
    row(
        "container",
        "SignatureValidationFailed",
        "",
        Blocked,
        MINUTE,
    ),
    row(
        "container",
        "RunContainerError",
        "",
        Infrastructure,
        10 * MINUTE,
    ),
    row(
        "container",
        "CreateContainerError",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row(
        "container",
        "CreateContainerConfigError",
        "",
        Blocked,
        MINUTE,
    ),
    row(
        "container",
        "ContainerCreating",
        "",
        Progressing,
        10 * MINUTE,
    ),
    row("container", "PodInitializing", "", Progressing, 10 * MINUTE),
    row("container", "NotReady", "", Progressing, 10 * MINUTE),
    // Pods.
    row(
        "pod",
        "Unschedulable",
        "insufficient",
        Infrastructure,
        10 * MINUTE,
    ),
    row(
        "pod",
        "Unschedulable",
        "didn't match pod's node affinity",
        Infrastructure,
        5 * MINUTE,
    ),
    row("pod", "Unschedulable", "", Infrastructure, 10 * MINUTE),
    row("pod", "SchedulerError", "", Infrastructure, 5 * MINUTE),
    row("pod", "SchedulingGated", "", Blocked, MINUTE),
    row("pod", "Pending", "", Progressing, 10 * MINUTE),
    row("pod", "Terminating", "", Progressing, 10 * MINUTE),
    row("pod", "Evicted", "", Infrastructure, 5 * MINUTE),
    row("pod", "NodeLost", "", Infrastructure, 5 * MINUTE),
    row("pod", "NodeNotReady", "", Infrastructure, 5 * MINUTE),
    row("pod", "NotReady", "", Progressing, 10 * MINUTE),
    row("pod", "NodeShutdown", "", Infrastructure, 5 * MINUTE),
    row("pod", "Terminated", "", Infrastructure, 5 * MINUTE),
    row("pod", "Failed", "", Permanent, 0),
    // Events of the pod or its controller.
    row(
        "event",
        "FailedCreate",
        "exceeded quota",
        Blocked,
        30 * SECOND,
    ),
    row(
        "event",
        "FailedCreate",
        "being terminated",
        Progressing,
        10 * MINUTE,
    ),
    row(
        "event",
        "FailedCreate",
        "no endpoints available",
        Infrastructure,
        5 * MINUTE,
    ),
    row(
        "event",
        "FailedCreate",
        "failed calling webhook",
        Infrastructure,
        5 * MINUTE,
    ),
    row("event", "FailedCreate", "denied the request", Permanent, 0),
    row("event", "FailedCreate", "denied request", Permanent, 0),
    row(
        "event",
        "FailedCreate",
        "violates podsecurity",
        Permanent,
        0,
    ),
    row(
        "event",
        "FailedCreate",
        "is forbidden",
        Blocked,
        30 * SECOND,
    ),
    row("event", "FailedMount", "", Infrastructure, 5 * MINUTE),
    row(
        "event",
        "FailedAttachVolume",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row(
        "event",
        "FailedCreatePodSandBox",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row("event", "FailedMapVolume", "", Infrastructure, 5 * MINUTE),
    row("event", "NetworkNotReady", "", Infrastructure, 5 * MINUTE),
    row(
        "event",
        "ProvisioningFailed",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    // Workloads and other objects.
    row("Job", "Failed", "", Permanent, 0),
    // Hooks; a clock that the hook declares goes before this one.
    row("Job", "HookRunning", "", Progressing, 10 * MINUTE),
    row("Job", "HookResult", "", Permanent, 0),
    row("Secret", "ResultMissing", "", Progressing, MINUTE),
    row("VIM", "Conflict", "", Permanent, 0),
    row("VIM", "Refused", "", Permanent, 0),
    row("VIM", "Unavailable", "", Infrastructure, 5 * MINUTE),
    row("Secret", "NoAccess", "", Permanent, 0),
    row("", "QuotaExceeded", "", Blocked, 30 * SECOND),
    row("", "ProgressDeadlineExceeded", "", Infrastructure, MINUTE),
    row("", "RollingOut", "", Progressing, 10 * MINUTE),
    row("", "Creating", "", Progressing, 10 * MINUTE),
    row("", "Deleting", "", Progressing, 10 * MINUTE),
    row("", "Finalizers", "", Blocked, MINUTE),
    row(
        "",
        "NamespaceContentRemaining",
        "",
        Progressing,
        10 * MINUTE,
    ),
    row("", "NamespaceFinalizersRemaining", "", Blocked, MINUTE),
    row(
        "",
        "NamespaceDeletionDiscoveryFailure",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row(
        "",
        "NamespaceDeletionContentFailure",
        "",
        Infrastructure,
        5 * MINUTE,
    ),
    row("", "Unbound", "", Infrastructure, 5 * MINUTE),
    row("", "Lost", "", Permanent, 0),
    row("", "VolumeFailed", "", Infrastructure, 5 * MINUTE),
    row("", "NoEndpoints", "", Progressing, 10 * MINUTE),
    row("", "NoAddress", "", Infrastructure, 5 * MINUTE),
    row("call", "Differs", "", Progressing, MINUTE),
    row("", "ReplicasDiffer", "", Progressing, 10 * MINUTE),
];

/// What holds where no row matches.
pub const OTHERWISE: Row = row("", "", "", Unclassified, 5 * MINUTE);

/// Class and clock of an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The class.
    pub class: WaitClass,
    /// How long it is waited on, in milliseconds.
    pub clock_ms: u64,
}

/// Looks an obstacle up. Total.
#[must_use]
pub fn classify(obstacle: &Obstacle, phase: Phase, clocks: &Clocks) -> Classified {
    let row = TABLE
        .iter()
        .find(|row| row.matches(obstacle, phase))
        .unwrap_or(&OTHERWISE);
    Classified {
        class: row.class,
        clock_ms: clocks.of(row.class).unwrap_or(row.clock_ms),
    }
}

impl Row {
    fn matches(&self, obstacle: &Obstacle, phase: Phase) -> bool {
        (self.source.is_empty() || self.source == obstacle.source)
            && (self.reason.is_empty() || self.reason == obstacle.reason)
            && self.phase.is_none_or(|only| only == phase)
            && (self.says.is_empty() || obstacle.message.to_lowercase().contains(self.says))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(row: &Row) -> Obstacle {
        Obstacle {
            object: "Pod/x".into(),
            source: if row.source.is_empty() {
                "Service".into()
            } else {
                row.source.into()
            },
            reason: row.reason.into(),
            message: format!("it says {} here", row.says.to_uppercase()),
            progress: 0,
        }
    }

    #[test]
    fn every_row_is_reached_by_what_it_describes() {
        for row in TABLE {
            let phase = row.phase.unwrap_or(Phase::Work);
            let found = classify(&obstacle(row), phase, &Clocks::default());
            assert_eq!(
                (found.class, found.clock_ms),
                (row.class, row.clock_ms),
                "{row:?}"
            );
        }
    }

    #[test]
    fn only_permanent_rows_end_at_once() {
        for row in TABLE {
            assert_eq!(row.clock_ms == 0, row.class == Permanent, "{row:?}");
        }
    }

    #[test]
    fn what_stands_in_no_row_is_waited_on_as_unclassified() {
        let unknown = obstacle(&row("container", "SomethingNew", "", Unclassified, 0));
        let found = classify(&unknown, Phase::Work, &Clocks::default());
        assert_eq!(
            found,
            Classified {
                class: Unclassified,
                clock_ms: 5 * MINUTE
            }
        );
    }

    #[test]
    fn wrong_credentials_are_permanent_in_the_checks_and_a_wait_later() {
        for reason in ["Unauthorized", "Forbidden"] {
            let met = obstacle(&row("call", reason, "", Blocked, 0));
            assert_eq!(
                classify(&met, Phase::Checks, &Clocks::default()).class,
                Permanent
            );
            assert_eq!(
                classify(&met, Phase::Work, &Clocks::default()).class,
                Blocked
            );
        }
    }
}
