//! Faults that a test asks for: they live in the memory of one process, so a crash never loops.

use async_trait::async_trait;
use cairn_domain::ids::NodeId;
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::operation::{ErrorPoint, OperationState};
use cairn_domain::ports::{
    Edge, Fault, FaultAction, FaultPoint, Faults, PortError, PortResult, WorkQueue,
};
use cairn_domain::problem::Problem;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// How many faults may be set at once.
const LIMIT: usize = 100;

/// The faults of this process.
pub struct FaultBoard {
    faults: Mutex<Vec<Fault>>,
    changed: Notify,
    node: NodeId,
    work: Arc<dyn WorkQueue>,
    crash: Box<dyn Fn() + Send + Sync>,
}

/// A place that an operation has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An error point was recorded.
    Point(ErrorPoint),
    /// At a step.
    Step(usize, Edge),
    /// At an undo step.
    UndoStep(usize, Edge),
}

/// What a fault asks for at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// Nothing: go on.
    Nothing,
    /// End the try here.
    Fail(Problem),
    /// Stay here until the fault is taken away ([`FaultBoard::holds`] says no more).
    Hold(Fault),
}

impl FaultBoard {
    /// An empty board. `crash` ends the process; in tests it may do less.
    #[must_use]
    pub fn new(node: NodeId, work: Arc<dyn WorkQueue>, crash: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            faults: Mutex::new(Vec::new()),
            changed: Notify::new(),
            node,
            work,
            crash,
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Fault>> {
        // A list of faults is whole after every change, also when its changer panicked.
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens at a place. A crash does not return where it ends the process.
    pub fn fire(&self, op: &VnfLcmOpOcc, place: Place) -> Fired {
        let fault = {
            let mut faults = self.locked();
            let Some(hit) = faults
                .iter_mut()
                .find(|f| f.times > 0 && matches_op(f, op) && is_at(f, place))
            else {
                return Fired::Nothing;
            };
            hit.times -= 1;
            hit.clone()
        };
        match fault.action {
            FaultAction::Fail => Fired::Fail(Problem::new(
                500,
                format!("fault injected at {}", describe(place)),
            )),
            FaultAction::Hold => Fired::Hold(fault),
            FaultAction::Crash => {
                (self.crash)();
                Fired::Nothing
            }
        }
    }

    /// Whether a hold still stands: its fault is listed, whatever is left of its count.
    pub fn holds(&self, held: &Fault) -> bool {
        self.locked().iter().any(|f| {
            f.at == held.at
                && f.action == held.action
                && f.operation == held.operation
                && f.vnf_instance_id == held.vnf_instance_id
        })
    }

    /// Resolves when the list is replaced.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

fn matches_op(fault: &Fault, op: &VnfLcmOpOcc) -> bool {
    fault
        .operation
        .is_none_or(|operation| operation == op.operation())
        && fault
            .vnf_instance_id
            .as_ref()
            .is_none_or(|id| *id == op.vnf_instance_id)
}

fn is_at(fault: &Fault, place: Place) -> bool {
    match (&fault.at, place) {
        (FaultPoint::State { state }, Place::Point(point)) => {
            *state == OperationState::Starting && point == ErrorPoint::Initial
        }
        (FaultPoint::ErrorPoint { error_point }, Place::Point(point)) => *error_point == point,
        (FaultPoint::Step { step, edge }, Place::Step(at, side)) => *step == at && *edge == side,
        (FaultPoint::UndoStep { undo_step, edge }, Place::UndoStep(at, side)) => {
            *undo_step == at && *edge == side
        }
        (
            FaultPoint::State { .. }
            | FaultPoint::ErrorPoint { .. }
            | FaultPoint::Step { .. }
            | FaultPoint::UndoStep { .. },
            Place::Point(_) | Place::Step(..) | Place::UndoStep(..),
        ) => false,
    }
}

fn describe(place: Place) -> String {
    let side = |edge: Edge| match edge {
        Edge::Before => "before",
        Edge::After => "after",
    };
    match place {
        Place::Point(point) => format!("error point {}", point.number()),
        Place::Step(step, edge) => format!("step {step}, {} its effect", side(edge)),
        Place::UndoStep(step, edge) => format!("undo step {step}, {} its effect", side(edge)),
    }
}

#[async_trait]
impl Faults for FaultBoard {
    fn list(&self) -> Vec<Fault> {
        self.locked().clone()
    }

    async fn replace(&self, faults: Vec<Fault>) -> PortResult<()> {
        let others = self.work.other_nodes(&self.node).await?;
        if others > 0 {
            return Err(refused(
                409,
                format!("{others} other replicas live; faults need a single one"),
            ));
        }
        if faults.len() > LIMIT {
            return Err(refused(422, format!("at most {LIMIT} faults can be set")));
        }
        let impossible = faults.iter().find(
            |f| matches!(f.at, FaultPoint::State { state } if state != OperationState::Starting),
        );
        if impossible.is_some() {
            return Err(refused(
                422,
                "at.state: only STARTING; use errorPoint for later places".into(),
            ));
        }
        *self.locked() = faults;
        self.changed.notify_waiters();
        Ok(())
    }
}

fn refused(status: u16, detail: String) -> PortError {
    PortError::Refused(Problem::new(status, detail))
}
