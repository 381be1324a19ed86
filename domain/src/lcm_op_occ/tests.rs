//! The rules of operations.

mod affected;
mod cancelling;
mod claims;
mod hooks;
mod legality;
mod points;
mod properties;
mod retrying;
mod revising;
mod undoing;
mod undoing_packages;
mod waits;

use super::VnfLcmOpOccEvent;
use super::plan::{Action, StepState};
use super::{VnfLcmOpOcc, VnfLcmOpOccCommand as Command};
use crate::operation::{CancelMode, ErrorPoint, OperationState};
use crate::testing::{World, caller, instantiate_params, op};
use crate::time::Timestamp;

/// Some later moment.
fn later() -> Timestamp {
    Timestamp::parse("2026-02-01T00:00:00Z").unwrap()
}

/// What a user may ask of an operation, by name.
fn calls() -> Vec<(&'static str, Command)> {
    let at = later();
    let (by, tenant) = caller();
    let cancel = |mode| Command::Cancel {
        at,
        by: by.clone(),
        tenant: tenant.clone(),
        mode,
    };
    vec![
        (
            "retry",
            Command::Retry {
                at,
                by: by.clone(),
                tenant: tenant.clone(),
            },
        ),
        (
            "rollback",
            Command::Rollback {
                at,
                by: by.clone(),
                tenant: tenant.clone(),
            },
        ),
        (
            "fail",
            Command::Fail {
                at,
                by: by.clone(),
                tenant: tenant.clone(),
            },
        ),
        ("cancel GRACEFUL", cancel(CancelMode::Graceful)),
        ("cancel FORCEFUL", cancel(CancelMode::Forceful)),
    ]
}

fn names(events: &[VnfLcmOpOccEvent]) -> Vec<&'static str> {
    events.iter().map(VnfLcmOpOccEvent::name).collect()
}

/// `kind subject` of the undo steps, in order.
fn undo_names(op: &VnfLcmOpOcc) -> Vec<String> {
    op.undo
        .iter()
        .map(|log| {
            format!(
                "{} {}",
                log.undo.step.action.kind(),
                log.undo.step.action.subject()
            )
        })
        .collect()
}

fn done_steps(op: &VnfLcmOpOcc) -> usize {
    op.steps
        .iter()
        .filter(|log| matches!(log.state, StepState::Done { .. }))
        .count()
}

fn touched_steps(op: &VnfLcmOpOcc) -> usize {
    op.steps.iter().filter(|log| log.touched).count()
}
