//! What the world hears of an event (SOL003 5.3.9, DESIGN 8): one notification per state entered, none else.

use crate::history::{Envelope, EventBody};
use crate::lcm_op_occ::VnfLcmOpOccEvent as Op;
use crate::operation::{OperationState, Params};
use crate::vnf_instance::VnfInstanceEvent as Instance;

/// SOL003 5.5.4.? `notificationStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationStatus {
    /// A transitional state was entered.
    Start,
    /// A state in which something came out was entered.
    Result,
}

/// What is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// `VnfIdentifierCreationNotification`.
    IdentifierCreated,
    /// `VnfIdentifierDeletionNotification`.
    IdentifierDeleted,
    /// `VnfLcmOperationOccurrenceNotification`.
    OperationEntered(OperationState, NotificationStatus),
}

/// The announcement of an event, if it has one. A new event makes this match fail to compile.
#[must_use]
pub fn announce(envelope: &Envelope) -> Option<Announcement> {
    match &envelope.body {
        EventBody::VnfInstance(event) => announce_instance(event),
        EventBody::VnfLcmOpOcc(event) => {
            let state = entered(event)?;
            let status = if state.is_transitional() {
                NotificationStatus::Start
            } else {
                NotificationStatus::Result
            };
            Some(Announcement::OperationEntered(state, status))
        }
        EventBody::LccnSubscription(_) => None,
    }
}

fn announce_instance(event: &Instance) -> Option<Announcement> {
    match event {
        Instance::VnfIdentifierCreated { .. } => Some(Announcement::IdentifierCreated),
        Instance::VnfIdentifierDeleted { .. } => Some(Announcement::IdentifierDeleted),
        Instance::VnfInfoModified { .. }
        | Instance::OperationClaimed { .. }
        | Instance::OperationHalted { .. }
        | Instance::OperationResumed { .. }
        | Instance::OperationReleased { .. }
        | Instance::Instantiated { .. }
        | Instance::Scaled { .. }
        | Instance::Healed { .. }
        | Instance::VnfPackageChanged { .. }
        | Instance::Terminated { .. }
        | Instance::LeftoversRecorded { .. }
        | Instance::ObjectsObserved { .. }
        | Instance::VnfcsObserved { .. } => None,
    }
}

/// The operation state that an event enters; each is entered by exactly one event.
#[must_use]
pub fn entered(event: &Op) -> Option<OperationState> {
    match event {
        Op::OperationStarted {
            params: Params::ModifyInfo { .. },
            ..
        }
        | Op::ProcessingStarted { .. }
        | Op::RetryStarted { .. } => Some(OperationState::Processing),
        Op::OperationStarted { .. } => Some(OperationState::Starting),
        Op::OperationFailedTemporarily { .. } => Some(OperationState::FailedTemp),
        Op::RollbackStarted { .. } => Some(OperationState::RollingBack),
        Op::OperationRolledBack { .. } => Some(OperationState::RolledBack),
        Op::OperationFailed { .. } => Some(OperationState::Failed),
        Op::OperationCompleted { .. } => Some(OperationState::Completed),
        Op::GrantRequested { .. }
        | Op::Granted { .. }
        | Op::GrantRejected { .. }
        | Op::PlanFixed { .. }
        | Op::PlanRevised { .. }
        | Op::PlanRechecked { .. }
        | Op::ErrorPointReached { .. }
        | Op::StepStarted { .. }
        | Op::StepSucceeded { .. }
        | Op::StepFailed { .. }
        | Op::OutcomeUnknown { .. }
        | Op::WaitStarted { .. }
        | Op::WaitChanged { .. }
        | Op::WaitEnded { .. }
        | Op::StepUndoStarted { .. }
        | Op::StepUndone { .. }
        | Op::StepUndoFailed { .. }
        | Op::ReplicasRestored { .. }
        | Op::RollbackVerified { .. }
        | Op::CancelRequested { .. }
        | Op::OperationCancelled { .. }
        | Op::RetryAdvised { .. } => None,
    }
}
