//! What happened to a lifecycle operation. Stored for ever: variants are added, never edited.

use super::plan::{Outcome, Plan, Step, Vnfc};
use crate::ids::{GrantId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::object::ObjectRef;
use crate::operation::{AdditionalParams, CancelMode, ErrorPoint, Params};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::waits::WaitClass;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is known of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The object that waits, as `Kind/name`.
    pub object: String,
    /// Class of its reason.
    pub class: WaitClass,
    /// The platform's reason.
    pub reason: String,
    /// The platform's own text.
    pub message: String,
    /// When a wait of this class began for the object in this try.
    pub since: Timestamp,
    /// When it ends the try.
    pub until: Timestamp,
}

/// How a pod changed (SOL003 5.5.3.13 `AffectedVnfc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChangeType {
    /// It is gone.
    Removed,
    /// It is new.
    Added,
    /// It was changed in place.
    Modified,
}

/// A pod that an operation added or removed, told apart by UID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AffectedVnfc {
    /// How.
    pub change_type: ChangeType,
    /// Which.
    pub vnfc: Vnfc,
}

/// A step that a retry found undone again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reopened {
    /// Index of the step.
    pub step: usize,
    /// What was observed.
    pub why: String,
}

/// One step of an undo list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoStep {
    /// The forward step that it undoes; absent for waits and checks.
    pub undoes: Option<usize>,
    /// What it does.
    #[serde(flatten)]
    pub step: Step,
}

/// Events of a `VnfLcmOpOcc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum VnfLcmOpOccEvent {
    /// A request was accepted; begins STARTING, for `MODIFY_INFO` PROCESSING.
    OperationStarted {
        /// When.
        at: Timestamp,
        /// Its id.
        id: VnfLcmOpOccId,
        /// The instance it works on.
        vnf_instance_id: VnfInstanceId,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// The request's body, sealed.
        request: Map<String, Value>,
        /// The same, resolved.
        params: Params,
        /// `additionalParams`, resolved.
        additional: AdditionalParams,
        /// Pods of the instance when it began.
        inventory: Vec<Vnfc>,
    },
    /// The grant was asked for.
    GrantRequested {
        /// When.
        at: Timestamp,
    },
    /// The grant was given.
    Granted {
        /// When.
        at: Timestamp,
        /// Its id.
        grant_id: GrantId,
    },
    /// The grant was refused; `OperationRolledBack` follows in the same append.
    GrantRejected {
        /// When.
        at: Timestamp,
        /// Why.
        problem: Problem,
    },
    /// Begins PROCESSING.
    ProcessingStarted {
        /// When.
        at: Timestamp,
    },
    /// The plan of the operation.
    PlanFixed {
        /// When.
        at: Timestamp,
        /// All of it.
        plan: Plan,
    },
    /// The plan made anew after a PATCH; done steps keep their place and state.
    PlanRevised {
        /// When.
        at: Timestamp,
        /// All of it.
        plan: Plan,
        /// For each new step the old one whose state it takes over.
        carried: Vec<Option<usize>>,
    },
    /// A retry looked at what was done and found this undone again.
    PlanRechecked {
        /// When.
        at: Timestamp,
        /// Steps to do again.
        reopened: Vec<Reopened>,
    },
    /// An error point was passed.
    ErrorPointReached {
        /// When.
        at: Timestamp,
        /// Which.
        point: ErrorPoint,
        /// In which try, from 1.
        #[serde(rename = "try")]
        attempt: u32,
    },
    /// The intent of a step, before its effect.
    StepStarted {
        /// When.
        at: Timestamp,
        /// Its index.
        step: usize,
    },
    /// A step is done.
    StepSucceeded {
        /// When.
        at: Timestamp,
        /// Its index.
        step: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// A step ended its try.
    StepFailed {
        /// When.
        at: Timestamp,
        /// Its index.
        step: usize,
        /// Why.
        problem: Problem,
        /// Class of the cause.
        class: WaitClass,
    },
    /// The answer to a step's call was lost; the cluster is read to learn what came of it.
    OutcomeUnknown {
        /// When.
        at: Timestamp,
        /// Its index, in the plan or, while rolling back, in the undo list.
        step: usize,
        /// What was heard instead of an answer.
        why: String,
    },
    /// Something is waited for.
    WaitStarted {
        /// When.
        at: Timestamp,
        /// What.
        wait: Wait,
    },
    /// The same object waits for another reason.
    WaitChanged {
        /// When.
        at: Timestamp,
        /// What.
        wait: Wait,
    },
    /// It is not waited for any more.
    WaitEnded {
        /// When.
        at: Timestamp,
        /// The object.
        object: String,
    },
    /// Enters `FAILED_TEMP`.
    OperationFailedTemporarily {
        /// When.
        at: Timestamp,
        /// Why.
        problem: Problem,
    },
    /// Enters PROCESSING again.
    RetryStarted {
        /// When.
        at: Timestamp,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
    /// Enters `ROLLING_BACK`.
    RollbackStarted {
        /// When.
        at: Timestamp,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// What is to be undone; on a further rollback what is still open.
        undo: Vec<UndoStep>,
    },
    /// The intent of an undo step.
    StepUndoStarted {
        /// When.
        at: Timestamp,
        /// Its index in the undo list.
        undo: usize,
    },
    /// An undo step is done.
    StepUndone {
        /// When.
        at: Timestamp,
        /// Its index in the undo list.
        undo: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// An undo step ended the rollback's try.
    StepUndoFailed {
        /// When.
        at: Timestamp,
        /// Its index in the undo list.
        undo: usize,
        /// Why.
        problem: Problem,
        /// Class of the cause.
        class: WaitClass,
    },
    /// A rollback set the replicas of a workload to the number before.
    ReplicasRestored {
        /// When.
        at: Timestamp,
        /// The workload.
        resource: ObjectRef,
        /// The number found.
        from: u32,
        /// The number set.
        to: u32,
    },
    /// The observed state equals the recorded one.
    RollbackVerified {
        /// When.
        at: Timestamp,
    },
    /// Enters `ROLLED_BACK`.
    OperationRolledBack {
        /// When.
        at: Timestamp,
        /// The cause of the operation's failure or cancellation.
        problem: Problem,
        /// Pods after the rollback, where it touched any.
        inventory: Option<Vec<Vnfc>>,
        /// What stays behind, as `Kind/name: why`.
        residue: Vec<String>,
    },
    /// A cancel was asked for.
    CancelRequested {
        /// When.
        at: Timestamp,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// How.
        mode: CancelMode,
    },
    /// The cancellation took hold; the event that enters the state follows in the same append.
    OperationCancelled {
        /// When.
        at: Timestamp,
        /// How.
        mode: CancelMode,
    },
    /// Enters FAILED.
    OperationFailed {
        /// When.
        at: Timestamp,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
    /// Enters COMPLETED.
    OperationCompleted {
        /// When.
        at: Timestamp,
        /// Pods added and removed.
        resource_changes: Vec<AffectedVnfc>,
        /// What a `MODIFY_INFO` changed (sealed).
        changed_info: Option<Map<String, Value>>,
        /// What stays behind, as `Kind/name: why`.
        residue: Vec<String>,
    },
    /// What a halted operation waited for has come.
    RetryAdvised {
        /// When.
        at: Timestamp,
        /// What came.
        reason: String,
    },
}

impl VnfLcmOpOccEvent {
    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::OperationStarted { at, .. }
            | Self::GrantRequested { at }
            | Self::Granted { at, .. }
            | Self::GrantRejected { at, .. }
            | Self::ProcessingStarted { at }
            | Self::PlanFixed { at, .. }
            | Self::PlanRevised { at, .. }
            | Self::PlanRechecked { at, .. }
            | Self::ErrorPointReached { at, .. }
            | Self::StepStarted { at, .. }
            | Self::StepSucceeded { at, .. }
            | Self::StepFailed { at, .. }
            | Self::OutcomeUnknown { at, .. }
            | Self::WaitStarted { at, .. }
            | Self::WaitChanged { at, .. }
            | Self::WaitEnded { at, .. }
            | Self::OperationFailedTemporarily { at, .. }
            | Self::RetryStarted { at, .. }
            | Self::RollbackStarted { at, .. }
            | Self::StepUndoStarted { at, .. }
            | Self::StepUndone { at, .. }
            | Self::StepUndoFailed { at, .. }
            | Self::ReplicasRestored { at, .. }
            | Self::RollbackVerified { at }
            | Self::OperationRolledBack { at, .. }
            | Self::CancelRequested { at, .. }
            | Self::OperationCancelled { at, .. }
            | Self::OperationFailed { at, .. }
            | Self::OperationCompleted { at, .. }
            | Self::RetryAdvised { at, .. } => *at,
        }
    }

    /// The event's name, as it is stored and shown.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::OperationStarted { .. } => "OperationStarted",
            Self::GrantRequested { .. } => "GrantRequested",
            Self::Granted { .. } => "Granted",
            Self::GrantRejected { .. } => "GrantRejected",
            Self::ProcessingStarted { .. } => "ProcessingStarted",
            Self::PlanFixed { .. } => "PlanFixed",
            Self::PlanRevised { .. } => "PlanRevised",
            Self::PlanRechecked { .. } => "PlanRechecked",
            Self::ErrorPointReached { .. } => "ErrorPointReached",
            Self::StepStarted { .. } => "StepStarted",
            Self::StepSucceeded { .. } => "StepSucceeded",
            Self::StepFailed { .. } => "StepFailed",
            Self::OutcomeUnknown { .. } => "OutcomeUnknown",
            Self::WaitStarted { .. } => "WaitStarted",
            Self::WaitChanged { .. } => "WaitChanged",
            Self::WaitEnded { .. } => "WaitEnded",
            Self::OperationFailedTemporarily { .. } => "OperationFailedTemporarily",
            Self::RetryStarted { .. } => "RetryStarted",
            Self::RollbackStarted { .. } => "RollbackStarted",
            Self::StepUndoStarted { .. } => "StepUndoStarted",
            Self::StepUndone { .. } => "StepUndone",
            Self::StepUndoFailed { .. } => "StepUndoFailed",
            Self::ReplicasRestored { .. } => "ReplicasRestored",
            Self::RollbackVerified { .. } => "RollbackVerified",
            Self::OperationRolledBack { .. } => "OperationRolledBack",
            Self::CancelRequested { .. } => "CancelRequested",
            Self::OperationCancelled { .. } => "OperationCancelled",
            Self::OperationFailed { .. } => "OperationFailed",
            Self::OperationCompleted { .. } => "OperationCompleted",
            Self::RetryAdvised { .. } => "RetryAdvised",
        }
    }
}
