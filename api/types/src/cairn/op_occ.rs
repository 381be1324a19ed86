//! An operation with its journal: how far it is, what it tried, planned, waits for, undid and left behind.

use crate::problem_details::ProblemDetails;
use crate::public_url::PublicUrl;
use crate::vnf_lcm_op_occ::VnfLcmOpOccDto;
use cairn_domain::lcm_op_occ::event::{UndoStep, Wait};
use cairn_domain::lcm_op_occ::plan::{StepState, Undo};
use cairn_domain::lcm_op_occ::{StepLog, Try, UndoLog, VnfLcmOpOcc};
use cairn_domain::operation::ErrorPoint;
use cairn_domain::ports::Owner;
use cairn_domain::time::Timestamp;
use serde::Serialize;

/// The SOL003 occurrence and its journal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CairnVnfLcmOpOcc {
    #[serde(flatten)]
    op: VnfLcmOpOccDto,
    point: Option<ErrorPoint>,
    tries: Vec<TryDto>,
    plan: Vec<StepDto>,
    waits: Vec<Wait>,
    undo: Vec<UndoStepDto>,
    residue: Vec<String>,
    advice: Option<String>,
    owner: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TryDto {
    #[serde(rename = "try")]
    attempt: u32,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    cause: Option<ProblemDetails>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct StepDto {
    index: usize,
    kind: &'static str,
    object: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    undo: UndoDto,
}

/// How a step can be undone, without the recorded state that is kept for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct UndoDto {
    how: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct UndoStepDto {
    index: usize,
    undoes: Option<usize>,
    kind: &'static str,
    object: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemDetails>,
}

impl CairnVnfLcmOpOcc {
    /// The occurrence as our own API shows it; `owner` while a lease on it is held.
    #[must_use]
    pub fn of(op: &VnfLcmOpOcc, owner: Option<&Owner>, url: &PublicUrl) -> Self {
        Self {
            op: VnfLcmOpOccDto::of(op, url),
            point: op.point,
            tries: op.tries.iter().map(try_of).collect(),
            plan: op.steps.iter().enumerate().map(step_of).collect(),
            waits: op.waits.clone(),
            undo: op.undo.iter().enumerate().map(undo_step_of).collect(),
            residue: op.residue.clone(),
            advice: op.advice.clone(),
            // The lease's end moves with every heartbeat; the name does not.
            owner: owner.map(|owner| owner.node.to_string()),
        }
    }
}

fn try_of(one: &Try) -> TryDto {
    let Try {
        attempt,
        started_at,
        ended_at,
        cause,
    } = one;
    TryDto {
        attempt: *attempt,
        started_at: *started_at,
        ended_at: *ended_at,
        cause: cause.clone().map(ProblemDetails::from),
    }
}

fn step_of((index, log): (usize, &StepLog)) -> StepDto {
    let StepLog {
        step,
        state,
        in_effect: _,
        touched: _,
        leaving: _,
    } = log;
    let (state, problem) = state_of(state);
    StepDto {
        index,
        kind: step.action.kind(),
        object: step.action.subject(),
        state,
        problem,
        because: step.because.clone(),
        undo: undo_of(&step.undo),
    }
}

fn undo_step_of((index, log): (usize, &UndoLog)) -> UndoStepDto {
    let UndoLog {
        undo: UndoStep { undoes, step },
        state,
    } = log;
    let (state, problem) = state_of(state);
    UndoStepDto {
        index,
        undoes: *undoes,
        kind: step.action.kind(),
        object: step.action.subject(),
        state,
        problem,
    }
}

fn state_of(state: &StepState) -> (&'static str, Option<ProblemDetails>) {
    match state {
        StepState::Open => ("open", None),
        StepState::Started => ("started", None),
        StepState::Done { outcome: _ } => ("done", None),
        StepState::Failed { problem, class: _ } => ("failed", Some(problem.clone().into())),
    }
}

fn undo_of(undo: &Undo) -> UndoDto {
    let plain = |how| UndoDto {
        how,
        from: None,
        why: None,
    };
    match undo {
        Undo::Delete => plain("delete"),
        Undo::Restore { body: _ } => plain("restore"),
        Undo::Recreate { body: _ } => plain("recreate"),
        Undo::Replicas { from } => UndoDto {
            from: Some(*from),
            ..plain("replicas")
        },
        Undo::Unregister => plain("unregister"),
        Undo::Nothing => plain("nothing"),
        Undo::Impossible { why } => UndoDto {
            why: Some(why.clone()),
            ..plain("impossible")
        },
    }
}
