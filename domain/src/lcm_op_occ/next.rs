//! What an operation needs next. Pure: two replicas that read the same journal agree.

use super::VnfLcmOpOcc;
use super::plan::{Stage, StepState};
use crate::operation::{ErrorPoint, Operation, OperationState};

/// What the runner does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask for the grant.
    SeekGrant,
    /// Record that an error point is passed.
    ReachPoint(ErrorPoint),
    /// Check the cluster and make the plan, or look over the one there is.
    Plan,
    /// Do these steps together.
    Run(Vec<usize>),
    /// Do these undo steps together.
    Undo(Vec<usize>),
    /// Record that all is done.
    Complete,
    /// Record that all is undone.
    FinishRollback,
    /// Carry out the pending cancellation.
    Cancel,
    /// Nothing: halted or ended.
    Rest,
}

/// The next thing to do.
#[must_use]
pub fn next(op: &VnfLcmOpOcc) -> Next {
    if op.state.is_transitional() && op.cancel.is_some() {
        return Next::Cancel;
    }
    match op.state {
        OperationState::Starting => Next::SeekGrant,
        OperationState::Processing => next_forward(op),
        OperationState::RollingBack => next_undo(op),
        OperationState::FailedTemp
        | OperationState::Completed
        | OperationState::Failed
        | OperationState::RolledBack => Next::Rest,
    }
}

pub(super) fn next_forward(op: &VnfLcmOpOcc) -> Next {
    let Some(point) = op.point else {
        return Next::ReachPoint(ErrorPoint::NotifyProcessing);
    };
    match point {
        ErrorPoint::Initial => Next::ReachPoint(ErrorPoint::NotifyProcessing),
        ErrorPoint::NotifyProcessing => Next::ReachPoint(ErrorPoint::VnfConfigStart),
        ErrorPoint::VnfConfigStart
            if op.plan_checked || op.operation() == Operation::ModifyInfo =>
        {
            open_wave(op, Stage::Start)
                .map_or(Next::ReachPoint(ErrorPoint::PreVimControl), Next::Run)
        }
        ErrorPoint::VnfConfigStart => Next::Plan,
        ErrorPoint::PreVimControl => open_wave(op, Stage::Write)
            .map_or(Next::ReachPoint(ErrorPoint::PostVimControl), Next::Run),
        ErrorPoint::PostVimControl => open_wave(op, Stage::Settle)
            .map_or(Next::ReachPoint(ErrorPoint::InternalProcessing), Next::Run),
        ErrorPoint::InternalProcessing => {
            open_wave(op, Stage::End).map_or(Next::ReachPoint(ErrorPoint::VnfConfigEnd), Next::Run)
        }
        ErrorPoint::VnfConfigEnd => Next::ReachPoint(ErrorPoint::NotifyCompleted),
        ErrorPoint::NotifyCompleted => Next::Complete,
    }
}

fn open_wave(op: &VnfLcmOpOcc, stage: Stage) -> Option<Vec<usize>> {
    let open = op.steps.iter().enumerate().filter(|(_, log)| {
        log.step.stage() == stage && !matches!(log.state, StepState::Done { .. })
    });
    first_wave(open.map(|(index, log)| (index, log.step.wave)))
}

pub(super) fn next_undo(op: &VnfLcmOpOcc) -> Next {
    let open = op
        .undo
        .iter()
        .enumerate()
        .filter(|(_, log)| !matches!(log.state, StepState::Done { .. }));
    first_wave(open.map(|(index, log)| (index, log.undo.step.wave)))
        .map_or(Next::FinishRollback, Next::Undo)
}

fn first_wave(open: impl Iterator<Item = (usize, u32)>) -> Option<Vec<usize>> {
    let open: Vec<(usize, u32)> = open.collect();
    let wave = open.iter().map(|(_, wave)| *wave).min()?;
    Some(
        open.into_iter()
            .filter(|(_, w)| *w == wave)
            .map(|(index, _)| index)
            .collect(),
    )
}
