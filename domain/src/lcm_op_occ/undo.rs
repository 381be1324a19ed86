//! How an operation is undone: the list is derived from the plan and from what may have had its effect.
//!
//! | step | undo | why it is safe to repeat |
//! |---|---|---|
//! | apply of an absent object | delete by UID, await gone | absent is done; another UID is not ours |
//! | apply onto our object | apply the recorded state | the same state twice is one state |
//! | delete | apply the recorded state | present with our label is adopted |
//! | set replicas | set the number read before | the same number twice is one number |
//! | evict | nothing | the workload has made another pod |
//! | run hook | delete its Job by its marks | absent is done |
//! | register VIM | take it off the register | only what carries this operation's mark is taken off |
//!
//! The hooks of a rollback run before and after all that. Their Jobs are named by the try that is undone: a rollback
//! that goes on does not run them again, one after a further try does.
//!
//! It is undone backwards, wave by wave; a change of the package in the order of [`package`].

mod package;

use super::event::UndoStep;
use super::plan::{Action, Outcome, Stage, Step, StepState, Undo};
use super::{StepLog, VnfLcmOpOcc};
use crate::hook::{Moment, Registration};
use crate::ids::VimId;
use crate::object::{Body, ObjectRef, Uid};
use crate::operation::Operation;

/// The undo steps that a rollback begins with. A rollback that goes on after a failed one takes what is open;
/// waits and checks are always made anew.
#[must_use]
pub fn list(op: &VnfLcmOpOcc) -> Vec<UndoStep> {
    let mut list = hooks(op, Moment::RollbackStart, 0);
    let mut wave = next_wave(&list, 0);
    list.extend(if op.operation() == Operation::ChangeVnfpkg {
        package::list(op, wave)
    } else {
        backwards(op, wave)
    });
    wave = next_wave(&list, wave);
    list.extend(settle(op, wave));
    wave = next_wave(&list, wave);
    list.extend(hooks(op, Moment::RollbackEnd, wave));
    if list.iter().any(|undo| is_hook(&undo.step.action)) {
        let namespace = op.plan.as_ref().map(|plan| plan.namespace.clone());
        list.push(check(
            next_wave(&list, wave),
            Action::RemoveHookJobs {
                namespace: namespace.unwrap_or_default(),
            },
        ));
    }
    list
}

fn backwards(op: &VnfLcmOpOcc, first_wave: u32) -> Vec<UndoStep> {
    let mut list = Vec::new();
    let mut wave = first_wave;
    for group in waves_backwards(&op.steps) {
        let before = list.len();
        list.extend(
            group
                .into_iter()
                .filter(|(index, log)| is_to_be_undone(op, *index, log))
                .filter_map(|(index, log)| undo_of(op, index, log, wave)),
        );
        if list.len() > before {
            wave += 1;
        }
    }
    list
}

fn is_hook(action: &Action) -> bool {
    matches!(action, Action::RunHook { .. })
}

/// The wave after all that is listed.
fn next_wave(list: &[UndoStep], least: u32) -> u32 {
    let after = list.iter().map(|undo| undo.step.wave + 1).max();
    after.map_or(least, |after| after.max(least))
}

fn check(wave: u32, action: Action) -> UndoStep {
    UndoStep {
        undoes: None,
        step: Step::new(wave, action, Undo::Nothing),
    }
}

/// The hooks of the rollback, where there is something to roll back.
fn hooks(op: &VnfLcmOpOcc, moment: Moment, first_wave: u32) -> Vec<UndoStep> {
    let planned = op.plan.iter().flat_map(|plan| &plan.rollback_hooks);
    planned
        .filter(|_| op.has_written())
        .filter_map(|step| match &step.action {
            Action::RunHook { at, .. } if *at == moment => Some(check(
                first_wave + step.wave,
                in_this_rollback(op, &step.action),
            )),
            _ => None,
        })
        .collect()
}

fn in_this_rollback(op: &VnfLcmOpOcc, action: &Action) -> Action {
    let mut action = action.clone();
    if let Action::RunHook { object, .. } = &mut action {
        object.name = format!("{}-{}", object.name, op.attempt());
    }
    action
}

/// The VIMs that a step registered or may have registered: as its outcome says, or, where that was never heard, as
/// the results that it works by say.
fn vims_of(op: &VnfLcmOpOcc, log: &StepLog) -> Vec<VimId> {
    if let StepState::Done {
        outcome: Outcome::VimsRegistered { registered, .. },
    } = &log.state
    {
        return registered.clone();
    }
    let Action::RegisterVim { jobs, .. } = &log.step.action else {
        return Vec::new();
    };
    op.hook_results(jobs)
        .into_iter()
        .filter_map(|(_, result)| Registration::of(result).ok().flatten())
        .map(|registration| registration.vim_id)
        .collect()
}

/// What cannot be undone, as residue `Kind/name: why`.
#[must_use]
pub fn impossible(op: &VnfLcmOpOcc) -> Vec<String> {
    op.steps
        .iter()
        .filter(|log| log.in_effect)
        .filter_map(|log| match &log.step.undo {
            Undo::Impossible { why } => Some(format!("{}: {why}", log.step.action.subject())),
            Undo::Delete
            | Undo::Restore { .. }
            | Undo::Recreate { .. }
            | Undo::Replicas { .. }
            | Undo::Unregister
            | Undo::Nothing => None,
        })
        .collect()
}

fn waves_backwards(steps: &[StepLog]) -> Vec<Vec<(usize, &StepLog)>> {
    let place = |log: &StepLog| (log.step.stage(), log.step.wave);
    let mut waves: Vec<(Stage, u32)> = steps.iter().map(place).collect();
    waves.sort_unstable();
    waves.dedup();
    waves
        .into_iter()
        .rev()
        .map(|wave| {
            steps
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, log)| place(log) == wave)
                .collect()
        })
        .collect()
}

/// What may be in effect. Was all applied and the cluster is still not as before, then somebody changed it since:
/// all is applied again. The same state twice is one state, and what is gone is gone.
fn is_to_be_undone(op: &VnfLcmOpOcc, index: usize, log: &StepLog) -> bool {
    log.in_effect || log.touched && has_differed(op) && !op.was_refused(index)
}

fn undo_of(op: &VnfLcmOpOcc, index: usize, log: &StepLog, wave: u32) -> Option<UndoStep> {
    let object = || log.step.action.object().cloned();
    let action = match &log.step.undo {
        Undo::Delete => Action::Delete {
            object: object()?,
            // None where its answer was lost: then the owner marks decide.
            uid: op.uid_of(log.step.action.object()?),
            grace_s: None,
        },
        Undo::Restore { body } | Undo::Recreate { body } => Action::Apply {
            object: object()?,
            manifest: body.clone(),
            replicas: None,
            force_owned: true,
        },
        Undo::Replicas { from } => Action::SetReplicas {
            object: object()?,
            from: changed_to(log),
            to: *from,
        },
        Undo::Unregister => Action::UnregisterVim {
            vims: Some(vims_of(op, log)).filter(|vims| !vims.is_empty())?,
        },
        Undo::Nothing | Undo::Impossible { .. } => return None,
    };
    Some(UndoStep {
        undoes: Some(index),
        step: Step::new(wave, action, Undo::Nothing),
    })
}

/// Whether the rollback before found a difference at its end.
fn has_differed(op: &VnfLcmOpOcc) -> bool {
    op.undo.iter().any(|log| {
        matches!(log.undo.step.action, Action::Verify { .. })
            && matches!(log.state, StepState::Failed { .. })
    })
}

fn changed_to(log: &StepLog) -> u32 {
    match &log.step.action {
        Action::SetReplicas { to, .. } => *to,
        Action::Apply { .. }
        | Action::Create { .. }
        | Action::Delete { .. }
        | Action::Evict { .. }
        | Action::AwaitReady { .. }
        | Action::AwaitGone { .. }
        | Action::TakeInventory { .. }
        | Action::Verify { .. }
        | Action::RunHook { .. }
        | Action::RegisterVim { .. }
        | Action::UnregisterVim { .. }
        | Action::RemoveHookJobs { .. }
        | Action::Unknown(_) => 0,
    }
}

/// What was touched at any time, by how it is undone.
#[derive(Default)]
struct Touched {
    deleted: Vec<(ObjectRef, Option<Uid>)>,
    restored: Vec<(ObjectRef, Body)>,
    replicas: Vec<(ObjectRef, u32)>,
    evicted: bool,
}

fn touched(op: &VnfLcmOpOcc) -> Touched {
    let mut all = Touched::default();
    for (index, log) in op.steps.iter().enumerate().filter(|(_, log)| log.touched) {
        all.evicted |= matches!(log.step.action, Action::Evict { .. });
        let Some(object) = log.step.action.object().cloned() else {
            continue;
        };
        match &log.step.undo {
            // A refused apply made nothing: what stands there under its name belongs to somebody else.
            Undo::Delete if op.was_refused(index) => {}
            Undo::Delete => {
                let uid = op.uid_of(&object);
                all.deleted.push((object, uid));
            }
            Undo::Restore { body } | Undo::Recreate { body } => {
                all.restored.push((object, body.clone()));
            }
            Undo::Replicas { from } => all.replicas.push((object, *from)),
            Undo::Unregister | Undo::Nothing | Undo::Impossible { .. } => {}
        }
    }
    // What was replaced is deleted, then made again as it was: in the end it is there.
    let Touched {
        deleted, restored, ..
    } = &mut all;
    deleted.retain(|(object, _)| !restored.iter().any(|(one, _)| one.is(object)));
    all
}

fn settle(op: &VnfLcmOpOcc, first_wave: u32) -> Vec<UndoStep> {
    let touched = touched(op);
    let mut actions = Vec::new();
    if !touched.deleted.is_empty() {
        actions.push(Action::AwaitGone {
            objects: touched.deleted.clone(),
            // Only what the operation itself made is deleted, and the volumes that it made with it.
            volumes: matches!(
                op.operation(),
                Operation::Instantiate | Operation::ChangeVnfpkg
            ),
        });
    }
    let ready: Vec<ObjectRef> = touched
        .restored
        .iter()
        .map(|(object, _)| object)
        .chain(touched.replicas.iter().map(|(object, _)| object))
        .filter(|object| was_ready(op, object))
        .cloned()
        .collect();
    let pods_touched =
        op.operation() != Operation::Instantiate && (touched.evicted || !ready.is_empty());
    if !ready.is_empty() {
        actions.push(Action::AwaitReady {
            objects: ready,
            replaced: Vec::new(),
        });
    }
    if pods_touched && let Some(inventory) = planned_inventory(op) {
        actions.push(inventory);
    }
    if !(touched.deleted.is_empty() && touched.restored.is_empty() && touched.replicas.is_empty()) {
        actions.push(Action::Verify {
            equal: touched.restored,
            absent: touched
                .deleted
                .into_iter()
                .map(|(object, _)| object)
                .collect(),
            replicas: touched.replicas,
        });
    }
    (first_wave..)
        .zip(actions)
        .map(|(wave, action)| check(wave, action))
        .collect()
}

/// What belonged to the instantiated VNF is to be ready again. What an operation that was given up had left may never
/// have been: it is compared only.
fn was_ready(op: &VnfLcmOpOcc, object: &ObjectRef) -> bool {
    let left = op.plan.iter().flat_map(|plan| &plan.leftovers);
    op.operation() != Operation::Instantiate && !left.into_iter().any(|left| left.is(object))
}

fn planned_inventory(op: &VnfLcmOpOcc) -> Option<Action> {
    let plan = op.plan.as_ref()?;
    let workloads = if op.operation() == Operation::ChangeVnfpkg {
        &plan.workloads_before
    } else {
        &plan.workloads
    };
    Some(Action::TakeInventory {
        workloads: workloads.clone(),
    })
}
