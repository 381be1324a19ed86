//! What each event means for the state. Total: it never asks whether the fact was allowed.

use super::event::{Reopened, UndoStep, VnfLcmOpOccEvent as Event};
use super::plan::{Action, Outcome, Plan, Stage, Step, StepState, Undo};
use super::{StepLog, Try, UndoLog, VnfLcmOpOcc, job_of};
use crate::object::{ObjectRef, Uid};
use crate::operation::{Operation, OperationState, Params};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::waits::WaitClass;

/// Records a fact.
#[must_use]
pub fn evolve(state: Option<VnfLcmOpOcc>, event: &Event) -> Option<VnfLcmOpOcc> {
    match event {
        Event::OperationStarted { .. } => Some(started(event)?),
        _ => state.map(|mut op| {
            op.record(event);
            op
        }),
    }
}

fn started(event: &Event) -> Option<VnfLcmOpOcc> {
    let Event::OperationStarted {
        at,
        id,
        vnf_instance_id,
        by,
        tenant,
        request,
        params,
        additional,
        inventory,
    } = event
    else {
        return None;
    };
    let state = match params {
        Params::ModifyInfo { .. } => OperationState::Processing,
        Params::Instantiate { .. }
        | Params::Scale { .. }
        | Params::ScaleToLevel { .. }
        | Params::Heal { .. }
        | Params::ChangeVnfpkg { .. }
        | Params::Terminate { .. } => OperationState::Starting,
    };
    Some(VnfLcmOpOcc {
        id: id.clone(),
        vnf_instance_id: vnf_instance_id.clone(),
        tenant: tenant.clone(),
        by: by.clone(),
        request: request.clone(),
        params: params.clone(),
        additional: additional.clone(),
        state,
        start_time: *at,
        state_entered: *at,
        grant_requested: false,
        grant_id: None,
        point: None,
        tries: vec![Try {
            attempt: 1,
            started_at: *at,
            ended_at: None,
            cause: None,
        }],
        inventory_before: inventory.clone(),
        plan: None,
        steps: Vec::new(),
        plan_checked: false,
        undo: Vec::new(),
        waits: Vec::new(),
        wait_clocks: std::collections::BTreeMap::new(),
        wait_pauses: std::collections::BTreeMap::new(),
        waits_told: std::collections::BTreeMap::new(),
        in_doubt: std::collections::BTreeSet::new(),
        undo_in_doubt: std::collections::BTreeSet::new(),
        rollback_jobs: Vec::new(),
        cancel: None,
        error: None,
        first_cause: None,
        resource_changes: Vec::new(),
        changed_info: None,
        residue: Vec::new(),
        advice: None,
    })
}

impl VnfLcmOpOcc {
    fn record(&mut self, event: &Event) {
        match event {
            // `OperationStarted` begins a history; a rejected grant is told by what follows it.
            Event::OperationStarted { .. }
            | Event::GrantRejected { .. }
            | Event::ReplicasRestored { .. }
            | Event::RollbackVerified { .. } => {}
            Event::GrantRequested { .. } => self.grant_requested = true,
            Event::Granted { grant_id, .. } => self.grant_id = Some(grant_id.clone()),
            Event::ProcessingStarted { at } => self.enter(OperationState::Processing, *at),
            Event::PlanFixed { plan, .. } => self.plan_is(plan, &[]),
            Event::PlanRevised { plan, carried, .. } => self.plan_is(plan, carried),
            Event::PlanRechecked { reopened, .. } => self.rechecked(reopened),
            Event::ErrorPointReached { point, .. } => self.point = Some(*point),
            Event::StepStarted { step, .. } => self.began(*step),
            Event::StepSucceeded { step, outcome, .. } => self.succeeded(*step, outcome),
            Event::StepFailed {
                step,
                problem,
                class,
                ..
            } => {
                let state = failed(problem, *class);
                self.with_step(*step, |log| log.state = state);
            }
            Event::WaitStarted { at, wait } | Event::WaitChanged { at, wait } => {
                self.wait_told(*at, wait);
            }
            Event::OutcomeUnknown { step, .. } => self.doubted(*step),
            Event::WaitEnded { at, object } => self.wait_ended(*at, object),
            Event::OperationFailedTemporarily { at, problem } => {
                self.ended_with(*at, problem, OperationState::FailedTemp);
            }
            Event::RetryStarted { at, .. } => self.retried(*at),
            Event::RollbackStarted { at, undo, .. } => self.rolls_back(*at, undo),
            Event::StepUndoStarted { undo, .. } => self.undo_begun(*undo),
            Event::StepUndone { undo, outcome, .. } => self.undone(*undo, outcome),
            Event::StepUndoFailed {
                undo,
                problem,
                class,
                ..
            } => self.with_undo(*undo, failed(problem, *class)),
            Event::OperationRolledBack {
                at,
                problem,
                residue,
                inventory,
            } => {
                self.ended_with(*at, problem, OperationState::RolledBack);
                self.residue.clone_from(residue);
                self.resource_changes = inventory
                    .as_deref()
                    .map_or_else(Vec::new, |after| self.changes_to(after));
            }
            Event::CancelRequested { mode, .. } => self.cancel = Some(*mode),
            Event::OperationCancelled { .. } => self.cancel = None,
            Event::OperationFailed { at, .. } => self.enter(OperationState::Failed, *at),
            Event::OperationCompleted {
                at,
                resource_changes,
                changed_info,
                residue,
            } => {
                self.close_try(*at, None);
                self.resource_changes.clone_from(resource_changes);
                self.changed_info.clone_from(changed_info);
                self.residue.clone_from(residue);
                self.enter(OperationState::Completed, *at);
            }
            Event::RetryAdvised { reason, .. } => self.advice = Some(reason.clone()),
        }
    }

    fn rechecked(&mut self, reopened: &[Reopened]) {
        self.plan_checked = true;
        for again in reopened {
            self.in_doubt.insert(again.step);
            self.with_step(again.step, |log| log.state = StepState::Open);
        }
    }

    fn began(&mut self, step: usize) {
        self.with_step(step, |log| {
            log.state = StepState::Started;
            log.in_effect = true;
            log.touched = true;
        });
    }

    fn doubted(&mut self, step: usize) {
        if self.state == OperationState::RollingBack {
            self.undo_in_doubt.insert(step);
        } else {
            self.in_doubt.insert(step);
        }
    }

    fn rolls_back(&mut self, at: Timestamp, undo: &[UndoStep]) {
        let before = std::mem::take(&mut self.undo);
        // A hook that is done is done, also when its Job was removed before that rollback broke.
        let state = |now: &UndoStep| {
            let hook = before.iter().find(|log| {
                matches!(log.undo.step.action, Action::RunHook { .. })
                    && matches!(log.state, StepState::Done { .. })
                    && log.undo.step.action.object() == now.step.action.object()
            });
            hook.map_or(StepState::Open, |log| log.state.clone())
        };
        self.undo = undo
            .iter()
            .map(|undo| UndoLog {
                undo: undo.clone(),
                state: state(undo),
            })
            .collect();
        self.undo_in_doubt.clear();
        self.enter(OperationState::RollingBack, at);
    }

    fn enter(&mut self, state: OperationState, at: Timestamp) {
        self.state = state;
        self.state_entered = at;
        self.waits.clear();
        self.wait_clocks.clear();
        self.wait_pauses.clear();
        self.waits_told.clear();
        self.cancel = None;
        self.advice = None;
    }

    fn plan_is(&mut self, plan: &Plan, carried: &[Option<usize>]) {
        let old = std::mem::take(&mut self.steps);
        let doubted = std::mem::take(&mut self.in_doubt);
        let in_doubt = |before: &Option<usize>| before.is_some_and(|i| doubted.contains(&i));
        self.in_doubt = carried
            .iter()
            .enumerate()
            .filter(|(_, b)| in_doubt(b))
            .map(|(i, _)| i)
            .collect();
        self.steps = plan
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| {
                let before = carried
                    .get(index)
                    .copied()
                    .flatten()
                    .and_then(|i| old.get(i));
                before.map_or_else(
                    || StepLog {
                        step: step.clone(),
                        state: StepState::Open,
                        in_effect: false,
                        touched: false,
                        leaving: false,
                    },
                    |before| carry(before, step),
                )
            })
            .collect();
        self.plan = Some(Plan {
            steps: Vec::new(),
            ..plan.clone()
        });
        self.plan_checked = true;
    }

    fn succeeded(&mut self, step: usize, outcome: &Outcome) {
        let state = StepState::Done {
            outcome: outcome.clone(),
        };
        self.in_doubt.remove(&step);
        self.with_step(step, |log| {
            log.state = state;
            log.in_effect = true;
            log.touched = true;
        });
        let removed = |log: &StepLog| matches!(log.step.action, Action::RemoveHookJobs { .. });
        if self.steps.get(step).is_some_and(removed) {
            self.rollback_jobs.clear();
        }
        match outcome {
            Outcome::Inventory { vnfcs } => self.resource_changes = self.changes_to(vnfcs),
            Outcome::Applied { uid, .. } => {
                let object = self
                    .steps
                    .get(step)
                    .and_then(|log| log.step.action.object())
                    .cloned();
                self.learn(object, Some(uid));
            }
            Outcome::Created
            | Outcome::Deleted { .. }
            | Outcome::ReplicasSet { .. }
            | Outcome::Evicted { .. }
            | Outcome::Kept { .. }
            | Outcome::Ready
            | Outcome::Gone { .. }
            | Outcome::Verified
            | Outcome::HookSucceeded { .. }
            | Outcome::VimsRegistered { .. }
            | Outcome::VimsUnregistered { .. } => {}
        }
    }

    /// From its undo's intent on nobody knows whether a step is still done: a retry runs it again. What is made
    /// again has another UID than before.
    fn undo_begun(&mut self, undo: usize) {
        self.with_undo(undo, StepState::Started);
        let Some(UndoLog { undo: begun, .. }) = self.undo.get(undo) else {
            return;
        };
        let job = job_of(&begun.step.action);
        let new = job.filter(|job| !self.rollback_jobs.iter().any(|o| o.object.is(&job.object)));
        self.rollback_jobs.extend(new);
        let Some(step) = begun.undoes else { return };
        let object = begun.step.action.object().cloned();
        self.with_step(step, |log| log.state = StepState::Open);
        self.in_doubt.insert(step);
        if self
            .steps
            .get(step)
            .is_some_and(|log| matches!(log.step.undo, Undo::Recreate { .. }))
        {
            self.learn(object, None);
            self.rebind(step, None);
        }
    }

    fn undone(&mut self, undo: usize, outcome: &Outcome) {
        self.with_undo(
            undo,
            StepState::Done {
                outcome: outcome.clone(),
            },
        );
        self.undo_in_doubt.remove(&undo);
        let Some(UndoLog { undo: done, .. }) = self.undo.get(undo) else {
            return;
        };
        if matches!(done.step.action, Action::RemoveHookJobs { .. }) {
            self.rollback_jobs.clear();
        }
        let done = done.clone();
        if matches!(outcome, Outcome::Gone { .. } | Outcome::Verified) {
            self.steps.iter_mut().for_each(|log| log.leaving = false);
        }
        if let Outcome::Inventory { vnfcs } = outcome {
            self.resource_changes = self.changes_to(vnfcs);
        }
        let Some(step) = done.undoes else { return };
        let object = done.step.action.object().cloned();
        self.in_doubt.remove(&step);
        self.with_step(step, |log| {
            log.state = StepState::Open;
            log.in_effect = false;
            log.leaving = matches!(outcome, Outcome::Deleted { was_absent: false });
        });
        match outcome {
            Outcome::Applied { uid, .. } => {
                self.learn(object, Some(uid));
                self.rebind(step, Some(uid));
            }
            Outcome::Deleted { .. } => self.learn(object, None),
            Outcome::Created
            | Outcome::ReplicasSet { .. }
            | Outcome::Evicted { .. }
            | Outcome::Kept { .. }
            | Outcome::Ready
            | Outcome::Gone { .. }
            | Outcome::Inventory { .. }
            | Outcome::Verified
            | Outcome::HookSucceeded { .. }
            | Outcome::VimsRegistered { .. }
            | Outcome::VimsUnregistered { .. } => {}
        }
    }

    /// An object has this UID from now on, or one that is not known: everything that is still to be done with
    /// it goes by that.
    fn learn(&mut self, object: Option<ObjectRef>, uid: Option<&Uid>) {
        let Some(object) = object else { return };
        let planned = self
            .plan
            .iter_mut()
            .flat_map(|plan| plan.objects.iter_mut().chain(&mut plan.removed));
        for managed in planned.filter(|managed| managed.object.is(&object)) {
            managed.uid = uid.cloned();
        }
        let removed = self
            .plan
            .as_ref()
            .is_some_and(|plan| plan.removed.iter().any(|known| known.object.is(&object)));
        if self.operation() != Operation::Terminate && !removed {
            return;
        }
        for log in &mut self.steps {
            match &mut log.step.action {
                Action::Delete {
                    object: deleted,
                    uid: known,
                    ..
                } if deleted.is(&object) => {
                    *known = uid.cloned();
                }
                Action::AwaitGone { objects, .. } => {
                    for (_, known) in objects.iter_mut().filter(|(one, _)| one.is(&object)) {
                        *known = uid.cloned();
                    }
                }
                _ => {}
            }
        }
    }

    /// What a deletion is to remove was made again: it has this UID now, or one that is not known.
    fn rebind(&mut self, step: usize, uid: Option<&Uid>) {
        self.with_step(step, |log| {
            if let Action::Delete { uid: known, .. } = &mut log.step.action {
                *known = uid.cloned();
            }
        });
    }

    fn ended_with(&mut self, at: Timestamp, problem: &Problem, state: OperationState) {
        self.close_try(at, Some(problem));
        if self.state != OperationState::RollingBack || state == OperationState::FailedTemp {
            self.error = Some(problem.clone());
        }
        if self.first_cause.is_none() {
            self.first_cause = Some(problem.clone());
        }
        self.enter(state, at);
    }

    /// Ends the present try, if it has not ended before: a rollback is no try.
    fn close_try(&mut self, at: Timestamp, cause: Option<&Problem>) {
        if let Some(last) = self.tries.last_mut().filter(|last| last.ended_at.is_none()) {
            last.ended_at = Some(at);
            last.cause = cause.cloned();
        }
    }

    fn retried(&mut self, at: Timestamp) {
        let attempt = self.attempt() + 1;
        self.tries.push(Try {
            attempt,
            started_at: at,
            ended_at: None,
            cause: None,
        });
        self.point = None;
        self.plan_checked = false;
        self.undo.clear();
        for log in &mut self.steps {
            // Whether things are ready, gone and counted is looked at anew in each try. A hook that is done is done.
            if log.step.action.stage() == Stage::Settle
                || matches!(log.step.action, Action::RemoveHookJobs { .. })
            {
                log.state = StepState::Open;
            }
        }
        self.enter(OperationState::Processing, at);
    }

    fn with_step(&mut self, step: usize, change: impl FnOnce(&mut StepLog)) {
        if let Some(log) = self.steps.get_mut(step) {
            change(log);
        }
    }

    fn with_undo(&mut self, undo: usize, state: StepState) {
        if let Some(log) = self.undo.get_mut(undo) {
            log.state = state;
        }
    }
}

fn failed(problem: &Problem, class: WaitClass) -> StepState {
    StepState::Failed {
        problem: problem.clone(),
        class,
    }
}

/// A step of a revised plan takes over how far its predecessor was; its undo stays the one planned first,
/// for that one knows what was there before the operation. What was to be removed stays the one thing named
/// first: by now another may have its name.
fn carry(before: &StepLog, step: &Step) -> StepLog {
    if !before.touched {
        return StepLog {
            step: step.clone(),
            ..before.clone()
        };
    }
    let action = match (&before.step.action, &step.action) {
        (Action::SetReplicas { from, .. }, Action::SetReplicas { object, to, .. }) => {
            Action::SetReplicas {
                object: object.clone(),
                from: *from,
                to: *to,
            }
        }
        (known @ (Action::Delete { .. } | Action::Evict { .. } | Action::RunHook { .. }), _) => {
            known.clone()
        }
        _ => step.action.clone(),
    };
    StepLog {
        step: Step {
            undo: before.step.undo.clone(),
            residue: before.step.residue.clone(),
            action,
            ..step.clone()
        },
        ..before.clone()
    }
}
