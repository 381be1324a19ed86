//! The order in which a change of the package is undone. Backwards would take away what the pods that still run
//! need, and bring the old workloads up against the new configuration.
//!
//! | first to last | why there |
//! |---|---|
//! | VIMs that a hook at the end registered are off the register, then its Jobs go | which VIMs is known by the Jobs' results until they are |
//! | what was changed or removed is as before: permissions, configuration, Services, workloads | the old pods start with what they know |
//! | workloads that only the new package has go, then what they needed | nothing of the new version is left to fail |
//! | all that was before is ready | from here on no pod of the new version runs |
//! | permissions and definitions of the new package go, then what hooks at the start have done | a pod that is ending may need its rights to let go |

use super::{UndoStep, VnfLcmOpOcc, touched, undo_of};
use crate::lcm_op_occ::StepLog;
use crate::lcm_op_occ::plan::{Action, Stage, Step, Undo};
use crate::object::ObjectRef;
use crate::planning::wave_of;

/// Kinds of this wave and below are definitions and permissions.
const PERMISSIONS: u32 = 1;
/// More than any wave of kinds.
const KINDS: u32 = 8;
/// Places that one wave of kinds takes on the way back: what replaced an object goes, the old state is applied,
/// replicas are set.
const PLACES: u32 = 3;
/// Places of what hooks have done: the VIMs that they registered, then their Jobs. In one wave the undo of the Jobs
/// could begin before that of the VIMs is done, and a rollback that halts there would know the VIMs no more.
const OF_HOOKS: u32 = 2;
/// After what the hooks at the end have done.
const FIRST: u32 = OF_HOOKS;
const REMOVALS: u32 = FIRST + KINDS * PLACES;
const READY: u32 = REMOVALS + KINDS;
const LAST: u32 = READY + 1;
/// What the hooks at the start have done.
const HOOKS: u32 = LAST + KINDS;

/// The undo steps. States that were put back before are put back again: what another did to them since is found
/// out by no memory (field case: a second rollback found all texts equal and did nothing).
pub(super) fn list(op: &VnfLcmOpOcc, first_wave: u32) -> Vec<UndoStep> {
    let mut list: Vec<UndoStep> = op
        .steps
        .iter()
        .enumerate()
        .filter(|(index, log)| is_to_be_undone(op, *index, log))
        .filter_map(|(index, log)| undo_of(op, index, log, place(op, log)))
        .collect();
    let permissions = list
        .iter()
        .any(|undo| (LAST..HOOKS).contains(&undo.step.wave));
    let restored: Vec<ObjectRef> = list
        .iter()
        .filter(|undo| matches!(undo.step.action, Action::Apply { .. }))
        .filter_map(|undo| undo.step.action.object().cloned())
        .collect();
    if permissions && !restored.is_empty() {
        let ready = Action::AwaitReady {
            objects: restored,
            replaced: Vec::new(),
        };
        list.push(UndoStep {
            undoes: None,
            step: Step::new(READY, ready, Undo::Nothing),
        });
    }
    list.sort_by_key(|undo| undo.step.wave);
    number(&mut list, first_wave);
    list
}

fn is_to_be_undone(op: &VnfLcmOpOcc, index: usize, log: &StepLog) -> bool {
    match &log.step.undo {
        Undo::Restore { .. } | Undo::Recreate { .. } => log.touched,
        // What was made again has its name now.
        Undo::Delete if !log.in_effect && replaces(op, log) => false,
        Undo::Delete
        | Undo::Unregister
        | Undo::Replicas { .. }
        | Undo::Nothing
        | Undo::Impossible { .. } => super::is_to_be_undone(op, index, log),
    }
}

fn replaces(op: &VnfLcmOpOcc, log: &StepLog) -> bool {
    let object = log.step.action.object();
    object.is_some_and(|object| is_made_again(op, object))
}

fn place(op: &VnfLcmOpOcc, log: &StepLog) -> u32 {
    let jobs = u32::from(log.step.undo != Undo::Unregister);
    let object = match (log.step.stage(), log.step.action.object()) {
        (Stage::Start, _) => return HOOKS + jobs,
        (Stage::Write, Some(object)) => object,
        (Stage::Write | Stage::Settle | Stage::End, _) => return jobs,
    };
    let kind = wave_of(object.group(), &object.kind);
    match &log.step.undo {
        Undo::Delete if is_made_again(op, object) => FIRST + kind * PLACES,
        Undo::Delete if kind <= PERMISSIONS => LAST + PERMISSIONS - kind,
        Undo::Delete => REMOVALS + KINDS - 1 - kind,
        Undo::Restore { .. } | Undo::Recreate { .. } => FIRST + kind * PLACES + 1,
        Undo::Replicas { .. } | Undo::Unregister | Undo::Nothing | Undo::Impossible { .. } => {
            FIRST + kind * PLACES + 2
        }
    }
}

/// It stood there before, as another object of the same name.
fn is_made_again(op: &VnfLcmOpOcc, object: &ObjectRef) -> bool {
    touched(op).restored.iter().any(|(one, _)| one.is(object))
}

/// Numbers the waves without gaps.
fn number(list: &mut [UndoStep], first_wave: u32) {
    let mut before = None;
    let mut wave = first_wave;
    for undo in list {
        let place = undo.step.wave;
        if before.is_some_and(|before| before != place) {
            wave += 1;
        }
        before = Some(place);
        undo.step.wave = wave;
    }
}
