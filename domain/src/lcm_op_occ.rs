//! One occurrence of a VNF lifecycle management operation (SOL003 `VnfLcmOpOcc`): its journal.
//!
//! The step log is the state: recovery is folding the stream and asking [`next::next`] again. Nothing here
//! depends on a status kept elsewhere, so a retry is legal whenever the operation itself is in `FAILED_TEMP`.
//!
//! Reading order: [`VnfLcmOpOcc`], [`event::VnfLcmOpOccEvent`], [`command::VnfLcmOpOccCommand`],
//! [`command::decide`], [`fold::evolve`], [`next::next`], [`undo`].

pub mod command;
pub mod event;
pub mod fold;
pub mod next;
pub mod plan;
pub mod undo;
mod waiting;

pub use command::{Rejection, VnfLcmOpOccCommand, decide};
pub use event::VnfLcmOpOccEvent;
pub use fold::evolve;

use crate::ids::{GrantId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::object::Uid;
use crate::operation::{
    AdditionalParams, CancelMode, ErrorPoint, Operation, OperationState, Params,
};
use crate::problem::Problem;
use crate::time::Timestamp;
use event::{AffectedVnfc, ChangeType, UndoStep, Wait};
use plan::{Action, ManagedObject, Outcome, Plan, Step, StepState, Vnfc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One try of an operation: from its start or a retry to its halt or end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// Number, from 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended without success.
    pub cause: Option<Problem>,
}

/// A step and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLog {
    /// What is to be done.
    pub step: Step,
    /// How far it is.
    pub state: StepState,
    /// Its intent was recorded and not undone since: it may have had its effect.
    pub in_effect: bool,
    /// Its intent was recorded at any time.
    pub touched: bool,
}

/// An undo step and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoLog {
    /// What is to be done.
    pub undo: UndoStep,
    /// How far it is.
    pub state: StepState,
}

/// State of an operation: the fold of its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VnfLcmOpOcc {
    /// Its id.
    pub id: VnfLcmOpOccId,
    /// The instance it works on.
    pub vnf_instance_id: VnfInstanceId,
    /// Whose it is.
    pub tenant: Tenant,
    /// Who asked for it.
    pub by: String,
    /// The request's body, sealed.
    pub request: Map<String, Value>,
    /// The same, resolved.
    pub params: Params,
    /// `additionalParams`, resolved.
    pub additional: AdditionalParams,
    /// SOL003 `operationState`.
    pub state: OperationState,
    /// SOL003 `startTime`.
    pub start_time: Timestamp,
    /// SOL003 `stateEnteredTime`.
    pub state_entered: Timestamp,
    /// The grant was asked for.
    pub grant_requested: bool,
    /// SOL003 `grantId`.
    pub grant_id: Option<GrantId>,
    /// Last error point passed in the present try.
    pub point: Option<ErrorPoint>,
    /// All tries.
    pub tries: Vec<Try>,
    /// The pods before it.
    pub inventory_before: Vec<Vnfc>,
    /// The plan without its steps, once it is fixed.
    pub plan: Option<Plan>,
    /// The steps.
    pub steps: Vec<StepLog>,
    /// The plan was made, revised or looked over in the present try.
    pub plan_checked: bool,
    /// What the present rollback undoes; empty otherwise.
    pub undo: Vec<UndoLog>,
    /// What is waited for now.
    pub waits: Vec<Wait>,
    /// Since when each (object, class) has been waited on in this try.
    pub wait_clocks: BTreeMap<String, Timestamp>,
    /// Waits already told in this try, so that flapping adds nothing.
    pub waits_told: u32,
    /// A cancel is pending.
    pub cancel: Option<CancelMode>,
    /// Why it halted or ended, the latest; named together with the first.
    pub error: Option<Problem>,
    /// The first cause, never overwritten.
    pub first_cause: Option<Problem>,
    /// Pods added and removed so far.
    pub resource_changes: Vec<AffectedVnfc>,
    /// What a `MODIFY_INFO` changed (sealed).
    pub changed_info: Option<Map<String, Value>>,
    /// What stays behind on purpose.
    pub residue: Vec<String>,
    /// What a halted operation waited for has come.
    pub advice: Option<String>,
}

impl VnfLcmOpOcc {
    /// Which operation it is.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.params.operation()
    }

    /// Number of the present try.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.tries.last().map_or(1, |t| t.attempt)
    }

    /// The error as it is shown: only in the states of SOL003 5.5.2.13 and DESIGN 4.2.
    #[must_use]
    pub fn error_shown(&self) -> Option<Problem> {
        let shown = match self.state {
            OperationState::FailedTemp | OperationState::Failed | OperationState::RolledBack => {
                true
            }
            OperationState::Processing | OperationState::RollingBack => self.first_cause.is_some(),
            OperationState::Starting | OperationState::Completed => false,
        };
        let latest = self.error.clone().filter(|_| shown)?;
        match &self.first_cause {
            Some(first) if *first != latest => Some(Problem {
                detail: crate::problem::shorten(format!(
                    "{} (first cause: {})",
                    latest.detail, first.detail
                )),
                ..latest
            }),
            Some(_) | None => Some(latest),
        }
    }

    /// The latest inventory that the operation took, if it took one.
    #[must_use]
    pub fn inventory(&self) -> Option<&[Vnfc]> {
        inventory_in(self.undo.iter().map(|u| &u.state))
            .or_else(|| inventory_in(self.steps.iter().map(|s| &s.state)))
    }

    /// The objects of the instance once this operation is done, with the UIDs learnt so far.
    #[must_use]
    pub fn objects(&self) -> Vec<ManagedObject> {
        let planned = self.plan.as_ref().map_or(&[][..], |plan| &plan.objects);
        planned
            .iter()
            .map(|o| ManagedObject {
                uid: self.uid_of(o),
                ..o.clone()
            })
            .collect()
    }

    /// What this operation may have left in the cluster: objects it applied or may have applied.
    #[must_use]
    pub fn leftovers(&self) -> Vec<ManagedObject> {
        if self.operation() == Operation::Terminate {
            return self.not_yet_gone();
        }
        self.steps
            .iter()
            .filter(|log| log.in_effect && !matches!(log.state, StepState::Failed { .. }))
            .filter_map(|log| match &log.step.action {
                Action::Apply {
                    object, manifest, ..
                } => Some(ManagedObject {
                    object: object.clone(),
                    uid: applied_uid(&log.state),
                    manifest: manifest.clone(),
                }),
                Action::Create { .. }
                | Action::Delete { .. }
                | Action::SetReplicas { .. }
                | Action::Evict { .. }
                | Action::AwaitReady { .. }
                | Action::AwaitGone { .. }
                | Action::TakeInventory { .. }
                | Action::Verify { .. }
                | Action::Unknown(_) => None,
            })
            .collect()
    }

    fn not_yet_gone(&self) -> Vec<ManagedObject> {
        let all_gone = self.steps.iter().any(|log| {
            matches!(
                &log.state,
                StepState::Done {
                    outcome: Outcome::Gone { .. }
                }
            )
        });
        if all_gone { Vec::new() } else { self.objects() }
    }

    fn uid_of(&self, managed: &ManagedObject) -> Option<Uid> {
        self.steps
            .iter()
            .rev()
            .filter(|log| {
                log.step
                    .action
                    .object()
                    .is_some_and(|o| o.is(&managed.object))
            })
            .find_map(|log| applied_uid(&log.state))
            .or_else(|| managed.uid.clone())
    }

    /// The difference between the pods before and those given, told apart by UID.
    #[must_use]
    pub fn changes_to(&self, after: &[Vnfc]) -> Vec<AffectedVnfc> {
        let absent_in = |all: &[Vnfc], one: &Vnfc| !all.iter().any(|v| v.uid == one.uid);
        let removed = self.inventory_before.iter().filter(|v| absent_in(after, v));
        let added = after
            .iter()
            .filter(|v| absent_in(&self.inventory_before, v));
        let mut changes: Vec<AffectedVnfc> = removed
            .map(|v| AffectedVnfc {
                change_type: ChangeType::Removed,
                vnfc: v.clone(),
            })
            .chain(added.map(|v| AffectedVnfc {
                change_type: ChangeType::Added,
                vnfc: v.clone(),
            }))
            .collect();
        changes.sort_by(|a, b| {
            (&a.vnfc.vdu_id, a.change_type, &a.vnfc.id).cmp(&(
                &b.vnfc.vdu_id,
                b.change_type,
                &b.vnfc.id,
            ))
        });
        changes
    }

    /// Whether any cluster write may have been made.
    #[must_use]
    pub fn has_written(&self) -> bool {
        self.steps.iter().any(|log| log.touched)
    }
}

fn applied_uid(state: &StepState) -> Option<Uid> {
    match state {
        StepState::Done {
            outcome: Outcome::Applied { uid, .. },
        } => Some(uid.clone()),
        StepState::Done { .. }
        | StepState::Open
        | StepState::Started
        | StepState::Failed { .. } => None,
    }
}

fn inventory_in<'a>(states: impl DoubleEndedIterator<Item = &'a StepState>) -> Option<&'a [Vnfc]> {
    states.rev().find_map(|state| match state {
        StepState::Done {
            outcome: Outcome::Inventory { vnfcs },
        } => Some(vnfcs.as_slice()),
        StepState::Done { .. }
        | StepState::Open
        | StepState::Started
        | StepState::Failed { .. } => None,
    })
}

#[cfg(test)]
mod tests;
