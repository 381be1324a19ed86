//! The loop over one operation.

use super::Runner;
use super::waits::Patience;
use crate::faults::{Fired, Place};
use crate::unit::{Session, UnitError, fenced};
use cairn_domain::ids::{VnfLcmOpOccId, VnfdId};
use cairn_domain::lcm_op_occ::next::{Next, next};
use cairn_domain::lcm_op_occ::plan::StepState;
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOcc, VnfLcmOpOccCommand as Command};
use cairn_domain::operation::{CancelMode, ErrorPoint, OperationState, Params};
use cairn_domain::ports::{Fault, Lease, PortError, Unit};
use cairn_domain::problem::Problem;
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::{VnfInstance, VnfProduct};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// How a runner's work on an operation ended.
#[derive(Debug)]
pub enum Ended {
    /// It is halted or final.
    Rests,
    /// The lease was lost, or the process is to end.
    Lost,
    /// Its record cannot be worked on.
    Unworkable(String),
}

/// How often in a row an append may meet a newer version before something is wrong.
const CONFLICT_BUDGET: u32 = 100;

/// How often a running call looks whether it is cancelled: a cancel is seen within 1 s.
const CANCEL_LOOK: Duration = Duration::from_millis(700);

/// Why the loop stops, or does not.
pub(super) enum Stop {
    /// The lease was lost, or the process is to end.
    Lost,
    /// Its record cannot be worked on.
    Unworkable(String),
}

/// One operation in the hands of a runner.
pub(super) struct Work {
    pub(super) runner: Arc<Runner>,
    pub(super) lease: Lease,
    pub(super) lost: CancellationToken,
    pub(super) patience: Patience,
    /// The rollback for which the cluster was found to be the right one, by when it began.
    pub(super) cluster_known: Option<Timestamp>,
    /// When the lease was asked for: before that it cannot have run.
    claimed: Instant,
    /// The last error point whose faults were fired, with its try.
    fired: Option<(u32, ErrorPoint)>,
    conflicts: u32,
}

/// Works on an operation until it rests. `claimed` is when its lease was asked for.
pub async fn work(
    runner: Arc<Runner>,
    lease: Lease,
    lost: CancellationToken,
    claimed: Instant,
) -> Ended {
    let mut work = Work {
        runner,
        lease,
        lost,
        patience: Patience::default(),
        cluster_known: None,
        claimed,
        fired: None,
        conflicts: 0,
    };
    loop {
        match Box::pin(work.turn()).await {
            Ok(true) => {}
            Ok(false) => return Ended::Rests,
            Err(Stop::Lost) => return Ended::Lost,
            Err(Stop::Unworkable(reason)) => return Ended::Unworkable(reason),
        }
    }
}

impl Work {
    /// One turn; `false` when there is nothing more to do.
    async fn turn(&mut self) -> Result<bool, Stop> {
        let session = self.load().await?;
        let (Some(op), Some(instance)) = (session.op().cloned(), session.instance().cloned())
        else {
            return Err(Stop::Unworkable("the operation has no state".into()));
        };
        if let Some(point) = op
            .point
            .filter(|_| moves_forward(op.state) && op.cancel.is_none())
        {
            let here = (op.attempt(), point);
            if self.fired != Some(here) {
                self.fired = Some(here);
                if self.fault_at(&op, Place::Point(point)).await? {
                    return Ok(true);
                }
            }
        }
        let doing = next(&op);
        debug!(lcm_op_occ.id = %op.id, ?doing, "next");
        match doing {
            Next::Rest => return Ok(false),
            Next::Cancel => {
                self.decide(session, Command::CarryOutCancel { at: self.now() })
                    .await?;
            }
            Next::SeekGrant => Box::pin(self.seek_grant(session)).await?,
            Next::ReachPoint(_) => {
                let mut session = session;
                match self.go_ahead(&mut session) {
                    Ok(()) => self.write(session, Unit::default()).await?,
                    Err(refused) => self.late(refused)?,
                }
            }
            Next::Plan => self.plan(&op, &instance).await?,
            Next::Run(steps) | Next::Undo(steps) => {
                Box::pin(self.run_steps(&op, &instance, &steps)).await?;
            }
            Next::Complete => Box::pin(self.complete(session, &op, &instance)).await?,
            Next::FinishRollback => {
                self.decide(session, Command::FinishRollback { at: self.now() })
                    .await?;
            }
        }
        Ok(true)
    }

    pub(super) fn now(&self) -> cairn_domain::time::Timestamp {
        self.runner.ports.clock.now()
    }

    pub(super) fn op_id(&self) -> &VnfLcmOpOccId {
        &self.lease.op
    }

    pub(super) async fn load(&self) -> Result<Session, Stop> {
        let mut pause = Backoff::new();
        loop {
            self.must_go_on()?;
            match Session::load(&*self.runner.ports.log, self.op_id()).await {
                Ok(session) => return Ok(session),
                Err(UnitError::Port(PortError::Unavailable(why))) => {
                    warn!(lcm_op_occ.id = %self.op_id(), %why, "the log cannot be read now");
                    self.rest(pause.next()).await?;
                }
                Err(failed) => return Err(Stop::Unworkable(failed.to_string())),
            }
        }
    }

    /// Decides what needs nothing from outside and can be written together with what was decided before: the points
    /// that are passed, and the intents of the next wave. Where faults are enabled one point at a time, as each is a
    /// place where one may strike.
    pub(super) fn go_ahead(&self, session: &mut Session) -> Result<(), UnitError> {
        let at = self.now();
        let one_by_one = self.runner.ports.faults.is_some();
        if one_by_one && !session.is_empty() {
            return Ok(());
        }
        while let Some(op) = session.op() {
            match next(op) {
                Next::ReachPoint(point) => session.decide(Command::ReachPoint { at, point })?,
                Next::Run(steps) | Next::Undo(steps) if !one_by_one && !begun(op, &steps) => {
                    return session.decide(Command::Begin { at, steps });
                }
                _ => return Ok(()),
            }
            if one_by_one {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Decides and writes one command.
    pub(super) async fn decide(&mut self, session: Session, command: Command) -> Result<(), Stop> {
        Box::pin(self.decide_with(session, command, Unit::default())).await
    }

    /// The same; `extra` is written with it.
    async fn decide_with(
        &mut self,
        mut session: Session,
        command: Command,
        extra: Unit,
    ) -> Result<(), Stop> {
        match session.decide(command) {
            Ok(()) => self.write(session, extra).await,
            Err(refused) => self.late(refused),
        }
    }

    /// A refusal of a runner's command means that the operation went on meanwhile: look again.
    pub(super) fn late(&mut self, refused: UnitError) -> Result<(), Stop> {
        match refused {
            UnitError::Operation(lcm_op_occ::Rejection::Stale { is }) => {
                debug!(lcm_op_occ.id = %self.op_id(), state = %is, "too late, looking again");
                self.count_conflict()
            }
            other => Err(Stop::Unworkable(other.to_string())),
        }
    }

    /// Writes what was decided, fenced by the lease.
    pub(super) async fn write(&mut self, session: Session, extra: Unit) -> Result<(), Stop> {
        if session.is_empty() {
            return Ok(());
        }
        let unit = session.into_unit(Unit {
            fence: fenced(self.op_id(), self.lease.fence).fence,
            ..extra
        });
        self.must_go_on()?;
        match self.runner.ports.log.append(unit).await {
            Ok(_) => {
                self.conflicts = 0;
                Ok(())
            }
            Err(PortError::Conflict(_)) => self.count_conflict(),
            Err(PortError::Fenced) => Err(Stop::Lost),
            Err(PortError::Unavailable(why)) => {
                // Written or not: the next turn loads and looks.
                warn!(lcm_op_occ.id = %self.op_id(), %why, "the log cannot be written now");
                self.rest(Duration::from_millis(250)).await
            }
            Err(failed @ (PortError::Refused(_) | PortError::Corrupt(_))) => {
                Err(Stop::Unworkable(failed.to_string()))
            }
        }
    }

    fn count_conflict(&mut self) -> Result<(), Stop> {
        self.conflicts += 1;
        if self.conflicts > CONFLICT_BUDGET {
            return Err(Stop::Unworkable(
                "its stream changed too often while it was worked on".into(),
            ));
        }
        Ok(())
    }

    /// Ends the present try.
    pub(super) async fn end_try(
        &mut self,
        step: Option<(usize, cairn_domain::waits::WaitClass)>,
        problem: Problem,
    ) -> Result<(), Stop> {
        let session = self.load().await?;
        self.decide(
            session,
            Command::EndTry {
                at: self.now(),
                step,
                problem,
            },
        )
        .await
    }

    /// A process that slept past its lease (stopped, swapped out) must notice before it writes to a cluster:
    /// the fence guards the journal alone.
    pub(super) fn must_go_on(&self) -> Result<(), Stop> {
        let held_since = self.runner.renewed().max(self.claimed);
        if self.lost.is_cancelled() || held_since.elapsed() > super::LEASE_TRUSTED {
            return Err(Stop::Lost);
        }
        Ok(())
    }

    /// Waits, unless the lease is lost meanwhile.
    pub(super) async fn rest(&self, time: Duration) -> Result<(), Stop> {
        tokio::select! {
            () = self.lost.cancelled() => Err(Stop::Lost),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    /// Resolves when a cancel is pending (FORCEFUL only, or any), or the operation moved on without us.
    pub(super) async fn cancelled(&self, any: bool) {
        loop {
            if let Ok(Some((op, _))) = self.runner.ports.log.op_occ(self.op_id()).await {
                let asked = match op.cancel {
                    Some(CancelMode::Forceful) => true,
                    Some(CancelMode::Graceful) => any,
                    None => false,
                };
                if asked || !op.state.is_transitional() {
                    return;
                }
            }
            // A log that cannot be read now is read again: nothing is decided on it here. A timer, not the log's
            // signal: with many operations under way each would read its journal at every append of any other.
            tokio::time::sleep(CANCEL_LOOK).await;
        }
    }

    /// Fires the faults of a place. `true`: something was written or waited for, look again.
    pub(super) async fn fault_at(&mut self, op: &VnfLcmOpOcc, place: Place) -> Result<bool, Stop> {
        let Some(board) = self.runner.ports.faults.clone() else {
            return Ok(false);
        };
        match board.fire(op, place) {
            Fired::Nothing => Ok(false),
            Fired::Fail(problem) => {
                self.end_try(None, problem).await?;
                Ok(true)
            }
            Fired::Hold(fault) => {
                self.hold(&fault).await?;
                // Whatever came while it was held, a cancel above all, takes hold first.
                Ok(true)
            }
        }
    }

    /// Stays, appending nothing, until the fault is taken away or a cancel is pending.
    pub(super) async fn hold(&self, fault: &Fault) -> Result<(), Stop> {
        let Some(board) = self.runner.ports.faults.clone() else {
            return Ok(());
        };
        while board.holds(fault) {
            tokio::select! {
                () = self.lost.cancelled() => return Err(Stop::Lost),
                () = self.cancelled(true) => return Ok(()),
                () = board.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
        Ok(())
    }

    /// Completes; where a PATCH begins to name a VIM or a package that is gone since it was accepted, its try ends.
    async fn complete(
        &mut self,
        session: Session,
        op: &VnfLcmOpOcc,
        instance: &VnfInstance,
    ) -> Result<(), Stop> {
        let product = match self.product(op).await? {
            Ok(product) => product,
            Err(problem) => return self.end_try(None, problem).await,
        };
        let mut relies_on = Vec::new();
        if let Params::ModifyInfo { changes } = &op.params {
            let after = instance.info_after(changes);
            let named = &after.vim_connection_info;
            if let Err(problem) = self.check_vims(named).await? {
                return self.end_try(None, problem).await;
            }
            let targets = &self.runner.ports.targets;
            relies_on = targets.begins_to_rely_on(&instance.info_now(), &after);
        }
        let extra = Unit {
            relies_on,
            ..Unit::default()
        };
        let complete = Command::Complete { at: self.now() };
        self.decide_with(session.with_product(product), complete, extra)
            .await
    }

    async fn check_vims(&self, named: &Map<String, Value>) -> Result<Result<(), Problem>, Stop> {
        let targets = &self.runner.ports.targets;
        self.read(|| async {
            match targets.check(Some(named)).await {
                Err(PortError::Refused(problem)) => Ok(Err(problem)),
                checked => checked.map(Ok),
            }
        })
        .await
    }

    /// The product that a `MODIFY_INFO` of `vnfdId` leads to. Its package was there when the request came; gone
    /// since, the operation ends with that problem.
    async fn product(&self, op: &VnfLcmOpOcc) -> Result<Result<Option<VnfProduct>, Problem>, Stop> {
        let Params::ModifyInfo { changes } = &op.params else {
            return Ok(Ok(None));
        };
        let Some(named) = changes.get("vnfdId").and_then(serde_json::Value::as_str) else {
            return Ok(Ok(None));
        };
        let id = VnfdId::parse(named).map_err(|e| Stop::Unworkable(e.to_string()))?;
        let record = self
            .read(|| self.runner.ports.packages.by_vnfd(&id))
            .await?;
        let product = record.and_then(|record| {
            let vnfd = record.vnfd?;
            Some(VnfProduct {
                vnfd_id: id.clone(),
                vnf_pkg_id: record.id,
                vnf_provider: vnfd.provider,
                vnf_product_name: vnfd.product_name,
                vnf_software_version: vnfd.software_version,
                vnfd_version: vnfd.descriptor_version,
            })
        });
        Ok(product.map(Some).ok_or_else(|| {
            let detail = format!("vnfdId: no onboarded package has the VNFD {id} any more");
            Problem::new(422, detail)
        }))
    }

    /// The clocks that hold for an operation: its own, then those set at start.
    pub(super) fn clocks(&self, op: &VnfLcmOpOcc) -> cairn_domain::clocks::Clocks {
        op.additional.clocks.or(&self.runner.settings.clocks)
    }

    /// How the cluster of an instance is reached, or the refusal as a problem.
    pub(super) async fn access(
        &self,
        instance: &VnfInstance,
    ) -> Result<Result<cairn_domain::vim::ClusterAccess, Problem>, Stop> {
        let mut pause = Backoff::new();
        loop {
            match self.runner.ports.targets.access(&instance.info_now()).await {
                Ok(access) => return Ok(Ok(access)),
                Err(PortError::Refused(problem)) => return Ok(Err(problem)),
                Err(PortError::Unavailable(why)) => {
                    warn!(%why, "credentials cannot be read now");
                    self.rest(pause.next()).await?;
                }
                Err(
                    failed @ (PortError::Corrupt(_) | PortError::Conflict(_) | PortError::Fenced),
                ) => {
                    return Err(Stop::Unworkable(failed.to_string()));
                }
            }
        }
    }
}

/// Whether the intents of all these steps are recorded.
fn begun(op: &VnfLcmOpOcc, steps: &[usize]) -> bool {
    steps
        .iter()
        .all(|step| matches!(super::steps::state_of(op, *step), StepState::Started))
}

/// Points are passed on the way forward; a rollback keeps the last one and passes none.
fn moves_forward(state: OperationState) -> bool {
    matches!(state, OperationState::Starting | OperationState::Processing)
}

/// Pauses between tries against our own database: 100 ms, doubling up to 2 s.
pub(super) struct Backoff(u64);

impl Backoff {
    pub(super) fn new() -> Self {
        Self(100)
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = Duration::from_millis(self.0);
        self.0 = (self.0 * 2).min(2000);
        pause
    }
}
