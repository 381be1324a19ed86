//! What can be asked of an operation, and why it is refused.

use super::event::Reopened;
use super::plan::{Outcome, Plan, Vnfc};
use crate::ids::{GrantId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::operation::{AdditionalParams, CancelMode, ErrorPoint, OperationState, Params};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::waits::{Classified, Obstacle, WaitClass};
use serde_json::{Map, Value};

/// Commands of a `VnfLcmOpOcc`. `Start`, `Retry`, `Rollback`, `Fail` and `Cancel` come from users, all others
/// from the runner: a repeat of one of those changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum VnfLcmOpOccCommand {
    /// An accepted request begins.
    Start {
        /// Now.
        at: Timestamp,
        /// A fresh id.
        id: VnfLcmOpOccId,
        /// The instance.
        vnf_instance_id: VnfInstanceId,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// The body, sealed.
        request: Map<String, Value>,
        /// The same, resolved.
        params: Params,
        /// `additionalParams`, resolved.
        additional: AdditionalParams,
        /// The instance's pods.
        inventory: Vec<Vnfc>,
    },
    /// SOL003 5.4.14 (retry).
    Retry {
        /// Now.
        at: Timestamp,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
    /// SOL003 5.4.15 (rollback).
    Rollback {
        /// Now.
        at: Timestamp,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
    /// SOL003 5.4.16 (fail).
    Fail {
        /// Now.
        at: Timestamp,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
    /// SOL003 5.4.17 (cancel).
    Cancel {
        /// Now.
        at: Timestamp,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// How.
        mode: CancelMode,
    },
    /// The grant is being asked for.
    RequestGrant {
        /// Now.
        at: Timestamp,
    },
    /// The grant was given; PROCESSING begins.
    Grant {
        /// Now.
        at: Timestamp,
        /// Its id.
        grant_id: GrantId,
    },
    /// The grant was refused.
    RejectGrant {
        /// Now.
        at: Timestamp,
        /// Why.
        problem: Problem,
    },
    /// The plan was made, for the first time or anew.
    FixPlan {
        /// Now.
        at: Timestamp,
        /// All of it.
        plan: Plan,
    },
    /// The done steps were looked over at a retry.
    RecheckPlan {
        /// Now.
        at: Timestamp,
        /// Steps to do again.
        reopened: Vec<Reopened>,
    },
    /// The next error point is passed.
    ReachPoint {
        /// Now.
        at: Timestamp,
        /// Which.
        point: ErrorPoint,
    },
    /// The intent of steps, or of undo steps while rolling back.
    Begin {
        /// Now.
        at: Timestamp,
        /// Indices.
        steps: Vec<usize>,
    },
    /// A step, or undo step, is done.
    Finish {
        /// Now.
        at: Timestamp,
        /// Index.
        step: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// The answer to a step's call was lost.
    LoseAnswer {
        /// Now.
        at: Timestamp,
        /// Index.
        step: usize,
        /// What was heard instead.
        why: String,
    },
    /// These are in the way now; none: nothing is.
    Obstruct {
        /// Now.
        at: Timestamp,
        /// Each with its class and clock.
        obstacles: Vec<(Obstacle, Classified)>,
    },
    /// The present try ends without success; with the step that ended it, if one did.
    EndTry {
        /// Now.
        at: Timestamp,
        /// The step, or undo step, and the class of its cause.
        step: Option<(usize, WaitClass)>,
        /// Why.
        problem: Problem,
    },
    /// The pending cancellation takes hold.
    CarryOutCancel {
        /// Now.
        at: Timestamp,
    },
    /// All is done.
    Complete {
        /// Now.
        at: Timestamp,
    },
    /// All is undone.
    FinishRollback {
        /// Now.
        at: Timestamp,
    },
    /// What a halted operation waited for has come.
    Advise {
        /// Now.
        at: Timestamp,
        /// What came.
        reason: String,
    },
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such operation.
    #[error("there is no such VNF LCM operation occurrence")]
    NotFound,
    /// The id is taken.
    #[error("the VNF LCM operation occurrence exists already")]
    Exists,
    /// The operation is in the wrong state for what a user asks.
    #[error("{task} is not possible in {is}; {instead}")]
    WrongState {
        /// What was asked.
        task: &'static str,
        /// The state it is in.
        is: OperationState,
        /// What is possible.
        instead: &'static str,
    },
    /// A cancel is pending already.
    #[error("a cancellation is pending already")]
    CancelPending,
    /// The runner is late: the operation went on without it.
    #[error("the operation is in {is}, this belongs to an earlier moment")]
    Stale {
        /// The state it is in.
        is: OperationState,
    },
}
