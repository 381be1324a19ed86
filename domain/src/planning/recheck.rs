//! A retry looks at what was done: observation decides, not memory (seed case A6 to A8).

use crate::lcm_op_occ::VnfLcmOpOcc;
use crate::lcm_op_occ::event::Reopened;
use crate::lcm_op_occ::plan::{Action, Outcome, PreState, StepState};
use crate::object::ObjectRef;
use crate::ports::{Survey, Surveyed};

/// The done steps that are not done any more.
#[must_use]
pub fn recheck(op: &VnfLcmOpOcc, survey: &Survey) -> Vec<Reopened> {
    op.steps
        .iter()
        .enumerate()
        .filter_map(|(step, log)| {
            let StepState::Done { outcome } = &log.state else {
                return None;
            };
            let why = undone(&log.step.action, outcome, survey)?;
            Some(Reopened { step, why })
        })
        .collect()
}

fn undone(action: &Action, outcome: &Outcome, survey: &Survey) -> Option<String> {
    match action {
        Action::Apply { object, .. } => applied_no_more(&seen(object, survey)?.pre),
        Action::Delete { object, uid, .. } => match &seen(object, survey)?.pre {
            PreState::Ours {
                uid: found,
                deleting: false,
                ..
            } if uid.as_ref() == Some(found) => Some("it is still there".to_owned()),
            PreState::Ours { .. } | PreState::Absent | PreState::Foreign { .. } => None,
        },
        Action::SetReplicas { object, to, .. } => match &seen(object, survey)?.pre {
            PreState::Ours {
                replicas: Some(found),
                ..
            } if found != to => Some(format!("its replicas are {found} again")),
            PreState::Ours { .. } | PreState::Absent | PreState::Foreign { .. } => None,
        },
        Action::Evict { vnfc } => survey
            .vnfcs
            .iter()
            .any(|found| found.uid == vnfc.uid)
            .then(|| "the pod is still there".to_owned())
            .filter(|_| matches!(outcome, Outcome::Evicted { .. })),
        Action::Create { .. }
        | Action::AwaitReady { .. }
        | Action::AwaitGone { .. }
        | Action::TakeInventory { .. }
        | Action::Verify { .. }
        // A hook that succeeded never runs again, whatever became of its Job.
        | Action::RunHook { .. }
        | Action::RegisterVim { .. }
        | Action::UnregisterVim { .. }
        | Action::RemoveHookJobs { .. }
        | Action::Unknown(_) => None,
    }
}

fn seen<'a>(object: &ObjectRef, survey: &'a Survey) -> Option<&'a Surveyed> {
    survey
        .items
        .iter()
        .chain(&survey.reads)
        .find(|found| found.object.is(object))
}

fn applied_no_more(pre: &PreState) -> Option<String> {
    match pre {
        PreState::Absent => Some("it was deleted in between".to_owned()),
        PreState::Ours { deleting: true, .. } => Some("it is being deleted".to_owned()),
        PreState::Ours { failed: true, .. } => Some("it failed".to_owned()),
        PreState::Foreign { .. } => Some("it belongs to somebody else now".to_owned()),
        PreState::Ours { .. } => None,
    }
}
