//! Keeps an eye on halted operations: when what one waited for has come, its record says that a retry would
//! succeed now. It never leaves `FAILED_TEMP` by itself, and never writes to a cluster.

use crate::runner::{Runner, recorded_uids};
use crate::unit::{Session, UnitError};
use cairn_domain::ids::{Tenant, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::plan::{Action, StepResult, StepState};
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccCommand};
use cairn_domain::operation::OperationState;
use cairn_domain::ports::{PortError, ReadModels, Scope, Unit};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// How often halted operations are looked at.
const PERIOD: Duration = Duration::from_secs(5);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(20);
/// How many are looked at in one round; the others have their turn in the next.
const ROUND: usize = 50;

/// Looks at halted operations until `stop`.
pub async fn observe(
    runner: Arc<Runner>,
    reads: Arc<dyn ReadModels>,
    tenant: Tenant,
    stop: CancellationToken,
) {
    let mut first = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        let halted = match reads.halted(&tenant).await {
            Ok(halted) => halted,
            Err(failed) => {
                warn!(error = %failed, "halted operations cannot be listed now");
                continue;
            }
        };
        first = if first >= halted.len() { 0 } else { first };
        for op in halted.iter().skip(first).take(ROUND) {
            tokio::select! {
                () = stop.cancelled() => return,
                () = look(&runner, op) => {}
            }
        }
        first += ROUND;
    }
}

async fn look(runner: &Runner, id: &VnfLcmOpOccId) {
    let op = match runner.ports.log.op_occ(id).await {
        Ok(Some((op, _))) if is_to_be_looked_at(&op) => op,
        Ok(_) => return,
        Err(failed) => {
            debug!(lcm_op_occ.id = %id, error = %failed, "cannot look now");
            return;
        }
    };
    let Some(action) = waited_for(&op) else {
        return;
    };
    let scope = match scope(runner, &op).await {
        Ok(Some(scope)) => scope,
        Ok(None) => return,
        Err(failed) => {
            debug!(lcm_op_occ.id = %op.id, error = %failed, "cannot look now");
            return;
        }
    };
    let looked = runner
        .ports
        .platform
        .perform(&scope, action, &runner.bodies);
    let Ok(StepResult::Done(_)) = tokio::time::timeout(LOOK, looked).await else {
        return;
    };
    let reason = format!("{} is ready now; a retry would succeed", action.subject());
    if let Err(failed) = advise(runner, &op, reason).await {
        debug!(lcm_op_occ.id = %op.id, error = %failed, "the operation moved on meanwhile");
    }
}

fn is_to_be_looked_at(op: &VnfLcmOpOcc) -> bool {
    op.state == OperationState::FailedTemp && op.advice.is_none()
}

/// The wait that ended the try: only waits are looked at, for they write nothing.
fn waited_for(op: &VnfLcmOpOcc) -> Option<&Action> {
    let failed = op
        .steps
        .iter()
        .find(|log| matches!(log.state, StepState::Failed { .. }))?;
    let action = &failed.step.action;
    matches!(action, Action::AwaitReady { .. }).then_some(action)
}

async fn scope(runner: &Runner, op: &VnfLcmOpOcc) -> Result<Option<Scope>, PortError> {
    let Some((instance, _)) = runner.ports.log.instance(&op.vnf_instance_id).await? else {
        return Ok(None);
    };
    let access = runner.ports.targets.access(&instance.info_now()).await?;
    Ok(Some(Scope {
        access,
        instance: instance.id.clone(),
        operation: op.id.clone(),
        known_operations: instance.operations.clone(),
        recorded_uids: recorded_uids(&instance, op),
        package_digest: String::new(),
        namespace: op
            .plan
            .as_ref()
            .map_or_else(String::new, |plan| plan.namespace.clone()),
        take_over: false,
        since: op.state_entered,
        look_only: true,
    }))
}

async fn advise(runner: &Runner, op: &VnfLcmOpOcc, reason: String) -> Result<(), UnitError> {
    let mut session = Session::load(&*runner.ports.log, &op.id).await?;
    session.decide(VnfLcmOpOccCommand::Advise {
        at: runner.ports.clock.now(),
        reason,
    })?;
    if session.is_empty() {
        return Ok(());
    }
    runner
        .ports
        .log
        .append(session.into_unit(Unit::default()))
        .await?;
    Ok(())
}
