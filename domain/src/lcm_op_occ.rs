//! One occurrence of a VNF lifecycle management operation (SOL003 `VnfLcmOpOcc`): its journal.
//!
//! The step log is the state: recovery is folding the stream and asking [`next::next`] again. Nothing here
//! depends on a status kept elsewhere, so a retry is legal whenever the operation itself is in `FAILED_TEMP`.
//!
//! Reading order: [`VnfLcmOpOcc`], [`event::VnfLcmOpOccEvent`], [`command::VnfLcmOpOccCommand`],
//! [`decide::decide`], [`fold::evolve`], [`next::next`], [`undo`].

pub mod command;
pub mod decide;
pub mod event;
pub mod fold;
pub mod next;
pub mod plan;
mod residue;
pub mod undo;
mod waiting;

pub use command::{Rejection, VnfLcmOpOccCommand};
pub use decide::decide;
pub use event::VnfLcmOpOccEvent;
pub use fold::evolve;

use crate::ids::{GrantId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::object::{ObjectRef, Uid};
use crate::operation::{
    AdditionalParams, CancelMode, ErrorPoint, Operation, OperationState, Params,
};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::waits::WaitClass;
use event::{AffectedVnfc, ChangeType, UndoStep, Wait};
use plan::{Action, ManagedObject, Outcome, Plan, Step, StepState, Undo, Vnfc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

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
    /// A rollback has asked for the deletion of what it made, and has not seen it gone.
    #[serde(default)]
    pub leaving: bool,
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
    /// The pods that the instance's record named before it: what the NFVO knows.
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
    /// Since when each (object, class) has been waited on in this try, less its pauses.
    pub wait_clocks: BTreeMap<String, Timestamp>,
    /// Since when a clock of `wait_clocks` stands still.
    pub wait_pauses: BTreeMap<String, Timestamp>,
    /// Waits already told in this try by object, so that flapping adds nothing.
    pub waits_told: BTreeMap<String, u32>,
    /// Steps of which an answer was lost, or which were found undone, since they were last known to be done:
    /// their effect may be there, whatever their state says.
    pub in_doubt: BTreeSet<usize>,
    /// Undo steps of which an answer was lost.
    pub undo_in_doubt: BTreeSet<usize>,
    /// Jobs of the hooks of its rollbacks that were begun and not removed since: each rollback has another list.
    pub rollback_jobs: Vec<ManagedObject>,
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

    /// The objects of the instance once this operation is done, with the UIDs as they are known now.
    #[must_use]
    pub fn objects(&self) -> Vec<ManagedObject> {
        self.plan
            .as_ref()
            .map_or_else(Vec::new, |plan| plan.objects.clone())
    }

    /// The same, and those that it removes.
    #[must_use]
    pub fn known_objects(&self) -> Vec<ManagedObject> {
        let mut known = self.objects();
        known.extend(self.plan.iter().flat_map(|plan| plan.removed.clone()));
        known
    }

    /// The same, as its instance's record takes them over. What is planned to be made anew has no UID yet; until a
    /// step has touched it, it is the one on record.
    #[must_use]
    pub fn observed_objects(&self) -> Vec<ManagedObject> {
        let mut observed = self.known_objects();
        observed.retain(|managed| managed.uid.is_some() || self.has_touched(&managed.object));
        observed
    }

    fn has_touched(&self, object: &ObjectRef) -> bool {
        let mut touched = self.steps.iter().filter(|log| log.touched);
        touched.any(|log| log.step.action.object().is_some_and(|one| one.is(object)))
    }

    /// What this operation may have left in the cluster: objects it applied or may have applied, or, of a
    /// TERMINATE, objects that it has not seen gone; and the Jobs of its hooks.
    #[must_use]
    pub fn leftovers(&self) -> Vec<ManagedObject> {
        let mut left = if self.operation() != Operation::Terminate {
            self.applied()
        } else if self.all_gone() {
            Vec::new()
        } else {
            let mut left = self.objects();
            left.retain(|managed| !self.is_seen_absent(&managed.object));
            left
        };
        left.extend(self.hook_jobs());
        left
    }

    fn applied(&self) -> Vec<ManagedObject> {
        self.steps
            .iter()
            .enumerate()
            .filter(|(index, log)| log.leaving || log.in_effect && !self.was_refused(*index))
            .filter_map(|(_, log)| match &log.step.action {
                Action::Apply {
                    object, manifest, ..
                } => Some(ManagedObject {
                    object: object.clone(),
                    uid: self.uid_of(object),
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
                | Action::RunHook { .. }
                | Action::RegisterVim { .. }
                | Action::UnregisterVim { .. }
                | Action::RemoveHookJobs { .. }
                | Action::Unknown(_) => None,
            })
            .collect()
    }

    /// The Jobs of hooks that may be there: those begun and not removed since, in all tries and rollbacks.
    fn hook_jobs(&self) -> Vec<ManagedObject> {
        let begun = self
            .steps
            .iter()
            .filter(|log| log.in_effect && !self.hook_jobs_removed())
            .filter_map(|log| job_of(&log.step.action));
        begun.chain(self.rollback_jobs.iter().cloned()).collect()
    }

    fn hook_jobs_removed(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|log| removes_hook_jobs(&log.step) && is_done(&log.state))
    }

    /// Whether it has removed the Jobs of all hooks of its instance, at its end or that of its rollback.
    #[must_use]
    pub fn has_removed_hook_jobs(&self) -> bool {
        let mut undo = self.undo.iter();
        self.hook_jobs_removed()
            || undo.any(|log| removes_hook_jobs(&log.undo.step) && is_done(&log.state))
    }

    /// The results of the hooks whose Jobs these are, with their items, as far as they are known.
    #[must_use]
    pub fn hook_results(&self, jobs: &[String]) -> Vec<(Option<&str>, &Value)> {
        self.steps
            .iter()
            .filter_map(|log| match (&log.step.action, &log.state) {
                (
                    Action::RunHook { object, item, .. },
                    StepState::Done {
                        outcome:
                            Outcome::HookSucceeded {
                                result: Some(result),
                                ..
                            },
                    },
                ) if jobs.contains(&object.name) => Some((item.as_deref(), result)),
                _ => None,
            })
            .collect()
    }

    /// What this operation knows to be absent: removed by it, or made and undone, or never made.
    #[must_use]
    pub fn gone(&self) -> Vec<ObjectRef> {
        if self.operation() == Operation::Terminate {
            let all = self.all_gone();
            let mut objects = self.objects();
            objects.retain(|managed| all || self.is_seen_absent(&managed.object));
            return objects.into_iter().map(|managed| managed.object).collect();
        }
        self.steps
            .iter()
            .filter(|log| log.step.undo == Undo::Delete && !log.in_effect && !log.leaving)
            .filter_map(|log| log.step.action.object())
            .filter(|object| !self.was_found(object))
            .cloned()
            .collect()
    }

    /// Another step of the plan found it there, and it may be there still, or again: it is replaced.
    fn was_found(&self, object: &ObjectRef) -> bool {
        self.steps.iter().any(|log| {
            matches!(log.step.undo, Undo::Recreate { .. } | Undo::Restore { .. })
                && log.step.action.object().is_some_and(|one| one.is(object))
        })
    }

    /// The VDUs whose replicas a SCALE or `SCALE_TO_LEVEL` has set or may have set.
    #[must_use]
    pub fn scaled(&self) -> Option<BTreeSet<String>> {
        let scales = matches!(self.operation(), Operation::Scale | Operation::ScaleToLevel);
        let workloads = self.plan.iter().flat_map(|plan| &plan.workloads);
        let set = workloads.filter(|(_, workload)| self.has_set_replicas(workload));
        scales.then(|| set.map(|(vdu, _)| vdu.clone()).collect())
    }

    fn has_set_replicas(&self, workload: &ObjectRef) -> bool {
        self.steps.iter().enumerate().any(|(index, log)| {
            matches!(&log.step.action, Action::SetReplicas { object, .. } if object.is(workload))
                && log.in_effect
                && !self.had_no_effect(index)
        })
    }

    /// What a TERMINATE has seen absent, though not yet the pods and what else belonged to it: it was so when the plan
    /// was made, and is only waited for; or it was when its turn came.
    fn is_seen_absent(&self, object: &ObjectRef) -> bool {
        let mut waited_for = false;
        for log in &self.steps {
            match &log.step.action {
                Action::Delete { object: one, .. } if one.is(object) => {
                    let absent = StepState::Done {
                        outcome: Outcome::Deleted { was_absent: true },
                    };
                    return log.in_effect && log.state == absent;
                }
                Action::AwaitGone { objects, .. } => {
                    let mut objects = objects.iter();
                    waited_for |= objects.any(|(one, uid)| one.is(object) && uid.is_none());
                }
                _ => {}
            }
        }
        waited_for
    }

    /// All that a TERMINATE deletes is gone, and none of it was made again since.
    fn all_gone(&self) -> bool {
        let mut seen_gone = false;
        for log in &self.steps {
            match &log.step.action {
                Action::Delete { .. } if !log.in_effect || !is_done(&log.state) => return false,
                Action::AwaitGone { .. } => seen_gone = is_done(&log.state),
                _ => {}
            }
        }
        seen_gone
    }

    /// The cluster refused the step for good, and nothing speaks for an effect: there is nothing of ours.
    pub(crate) fn was_refused(&self, index: usize) -> bool {
        self.had_no_effect(index)
            && self.steps.get(index).is_some_and(|log| {
                // A hook that failed has left its Job.
                !matches!(log.step.action, Action::RunHook { .. })
                    && log
                        .step
                        .action
                        .object()
                        .is_none_or(|object| self.uid_of(object).is_none())
            })
    }

    fn had_no_effect(&self, index: usize) -> bool {
        !self.in_doubt.contains(&index)
            && self.steps.get(index).is_some_and(|log| {
                matches!(
                    &log.state,
                    StepState::Failed {
                        class: WaitClass::Permanent,
                        ..
                    }
                )
            })
    }

    /// The UID of an object of the plan, as it is known now.
    pub(crate) fn uid_of(&self, object: &ObjectRef) -> Option<Uid> {
        let planned = self
            .plan
            .iter()
            .flat_map(|plan| plan.objects.iter().chain(&plan.removed));
        planned
            .into_iter()
            .find(|managed| managed.object.is(object))?
            .uid
            .clone()
    }

    /// The difference between the recorded pods and those given, told apart by UID: whoever follows it has the
    /// record, with the pods that Kubernetes replaced meanwhile.
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

    /// The pods that whoever follows the resource changes has, where this operation has told of any.
    #[must_use]
    pub fn vnfcs_told(&self) -> Option<Vec<Vnfc>> {
        if self.resource_changes.is_empty() {
            return None;
        }
        let of = |kind: ChangeType| {
            let changes = self.resource_changes.iter();
            changes.filter(move |change| change.change_type == kind)
        };
        let removed = |vnfc: &Vnfc| of(ChangeType::Removed).any(|one| one.vnfc.uid == vnfc.uid);
        let mut vnfcs = self.inventory_before.clone();
        vnfcs.retain(|vnfc| !removed(vnfc));
        vnfcs.extend(of(ChangeType::Added).map(|change| change.vnfc.clone()));
        vnfcs.sort();
        Some(vnfcs)
    }

    /// Whether any cluster write may have been made.
    #[must_use]
    pub fn has_written(&self) -> bool {
        self.steps.iter().any(|log| log.touched)
    }
}

/// What stands in the record for the Job of a hook's step.
fn job_of(action: &Action) -> Option<ManagedObject> {
    let Action::RunHook { object, hook, .. } = action else {
        return None;
    };
    Some(ManagedObject {
        object: object.clone(),
        uid: None,
        manifest: crate::hook::marker(object, hook),
    })
}

fn removes_hook_jobs(step: &Step) -> bool {
    matches!(step.action, Action::RemoveHookJobs { .. })
}

fn is_done(state: &StepState) -> bool {
    matches!(state, StepState::Done { .. })
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
