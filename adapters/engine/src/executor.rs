//! Carries requests of users out.
//!
//! Each runs in a task of its own, so a client that hangs up changes nothing; each conflict loads and decides
//! again, a bounded number of times; and each success catches the read models up before it is answered.

mod answer;
mod instance;
mod operation;
mod subscription;

use crate::supervised::spawn;
use crate::target::Targets;
use crate::unit::{Session, UnitError, last_position};
use async_trait::async_trait;
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{Tenant, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOccCommand};
use cairn_domain::ports::{
    Accepted, Appended, Blobs, Callbacks, Caller, Clock, CommandError, Commands, EventLog, Ids,
    KeyedAnswer, Moment, Packages, PortError, PortResult, ReadModels, Replay, Request, Row, Unit,
};
use cairn_domain::problem::Problem;
use cairn_domain::root::Pure;
use cairn_domain::vnf_instance::{self, VnfInstance};
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, info, warn};

/// How often a command is decided again after a conflict.
const CONFLICT_BUDGET: u32 = 12;

/// What the executor drives.
#[derive(Clone)]
pub struct Ports {
    /// The log.
    pub log: Arc<dyn EventLog>,
    /// The read models, to be caught up.
    pub reads: Arc<dyn ReadModels>,
    /// Onboarded packages.
    pub packages: Arc<dyn Packages>,
    /// Names digests of requests.
    pub blobs: Arc<dyn Blobs>,
    /// Tests callbacks before subscribing.
    pub callbacks: Arc<dyn Callbacks>,
    /// Checks `vimConnectionInfo`.
    pub targets: Arc<Targets>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn Ids>,
}

/// The way into the rules.
#[derive(Clone)]
pub struct Executor {
    ports: Arc<Ports>,
}

impl Executor {
    /// An executor on these ports.
    #[must_use]
    pub fn new(ports: Ports) -> Self {
        Self {
            ports: Arc::new(ports),
        }
    }

    async fn carry_out(
        &self,
        caller: &Caller,
        request: &Request,
    ) -> Result<Accepted, CommandError> {
        if let Some(repeated) = self.repeated(caller, request).await? {
            return Ok(repeated);
        }
        let mut conflicts = 0;
        loop {
            match self.once(caller, request).await {
                Err(CommandError::Port(PortError::Conflict(who)))
                    if conflicts < CONFLICT_BUDGET =>
                {
                    conflicts += 1;
                    info!(conflicts, %who, "decided on an old version, deciding again");
                    self.jitter(conflicts).await;
                }
                Ok(accepted) => return Ok(accepted),
                // A repeat that overtook the answer to the first is no request of its own: what it met is what
                // the first has done.
                Err(failed) => {
                    return match self.repeated(caller, request).await? {
                        Some(repeated) => Ok(repeated),
                        None => Err(failed),
                    };
                }
            }
        }
    }

    async fn once(&self, caller: &Caller, request: &Request) -> Result<Accepted, CommandError> {
        match request {
            Request::CreateInstance { body } => self.create_instance(caller, request, body).await,
            Request::DeleteInstance { id, if_match } => {
                self.delete_instance(caller, request, id, *if_match).await
            }
            Request::StartOperation {
                id,
                operation,
                body,
                if_match,
            } => {
                self.start_operation(caller, request, id, *operation, body, *if_match)
                    .await
            }
            Request::Retry(id) => {
                let (at, by, tenant) = self.signature(caller);
                self.steer(
                    caller,
                    request,
                    id,
                    VnfLcmOpOccCommand::Retry { at, by, tenant },
                )
                .await
            }
            Request::Rollback(id) => {
                let (at, by, tenant) = self.signature(caller);
                self.steer(
                    caller,
                    request,
                    id,
                    VnfLcmOpOccCommand::Rollback { at, by, tenant },
                )
                .await
            }
            Request::Fail(id) => {
                let (at, by, tenant) = self.signature(caller);
                self.steer(
                    caller,
                    request,
                    id,
                    VnfLcmOpOccCommand::Fail { at, by, tenant },
                )
                .await
            }
            Request::Cancel(id, mode) => {
                let (at, by, tenant) = self.signature(caller);
                let cancel = VnfLcmOpOccCommand::Cancel {
                    at,
                    by,
                    tenant,
                    mode: *mode,
                };
                self.steer(caller, request, id, cancel).await
            }
            Request::Subscribe { body } => self.subscribe(caller, request, body).await,
            Request::Unsubscribe(id) => self.unsubscribe(caller, request, id).await,
        }
    }

    fn signature(&self, caller: &Caller) -> (cairn_domain::time::Timestamp, String, Tenant) {
        (
            self.ports.clock.now(),
            caller.by.clone(),
            caller.tenant.clone(),
        )
    }

    async fn steer(
        &self,
        caller: &Caller,
        request: &Request,
        id: &VnfLcmOpOccId,
        command: VnfLcmOpOccCommand,
    ) -> Result<Accepted, CommandError> {
        let mut session = Session::load(&*self.ports.log, id).await.map_err(refused)?;
        if session.op().is_some_and(|op| op.tenant != caller.tenant) {
            return Err(CommandError::NotFound(
                lcm_op_occ::Rejection::NotFound.to_string(),
            ));
        }
        session.decide(command).map_err(refused)?;
        let accepted = Accepted::Done;
        let extra = self.keyed(caller, request, &accepted);
        self.write(session.into_unit(extra), accepted).await
    }

    async fn write(&self, unit: Unit, accepted: Accepted) -> Result<Accepted, CommandError> {
        let asked = unit.key.as_ref().map(|key| key.request_digest.clone());
        match self.ports.log.append(unit).await? {
            Appended::Repeated(answer)
                if asked.is_some_and(|digest| digest != answer.request_digest) =>
            {
                Err(other_request())
            }
            Appended::Repeated(answer) => answer::decode(&answer),
            written @ Appended::Written(_) => {
                if let Some(position) = last_position(&written) {
                    self.catch_up(position).await;
                }
                Ok(accepted)
            }
        }
    }

    /// It is written: a read model that lags is caught up by the next read, and no reason to answer an error.
    async fn catch_up(&self, position: u64) {
        if let Err(failed) = self.ports.reads.catch_up(position).await {
            warn!(position, error = %failed, "read models lag behind; the next read catches up");
        }
    }

    async fn jitter(&self, attempt: u32) {
        let fresh = self.ports.ids.fresh();
        let random = u64::from_str_radix(fresh.get(..2).unwrap_or("0"), 16).unwrap_or(0);
        let ceiling = 5u64 << attempt.min(6);
        tokio::time::sleep(Duration::from_millis(random % ceiling + 1)).await;
    }
}

#[async_trait]
impl Commands for Executor {
    async fn execute(&self, caller: Caller, request: Request) -> Result<Accepted, CommandError> {
        let this = self.clone();
        let task = spawn(
            "command",
            async move { this.carry_out(&caller, &request).await },
        );
        if let Ok(Some(result)) = task.await {
            return result;
        }
        error!("a command ended by panic");
        Err(CommandError::Port(PortError::Corrupt(
            "the command ended by panic; see the log".into(),
        )))
    }
}

#[async_trait]
impl Replay for Executor {
    async fn instance_at(
        &self,
        tenant: &Tenant,
        id: &VnfInstanceId,
        moment: Moment,
    ) -> PortResult<Option<Row<VnfInstance>>> {
        let stream = StreamId::VnfInstance(id.clone());
        let mut row: Option<Row<VnfInstance>> = None;
        for envelope in self.ports.log.load(&stream).await? {
            let late = match moment {
                Moment::At(time) => envelope.recorded_at > time,
                Moment::Position(position) => envelope.position > position,
            };
            if late {
                break;
            }
            if let EventBody::VnfInstance(event) = &envelope.body {
                let state =
                    VnfInstance::evolve(row.map(|row| Arc::unwrap_or_clone(row.state)), event);
                row = state.map(|state| Row {
                    state: Arc::new(state),
                    version: envelope.sequence,
                    position: envelope.position,
                });
            }
        }
        Ok(row.filter(|row| row.state.tenant == *tenant))
    }
}

/// Rejections and failures as the caller of a request sees them.
pub(crate) fn refused(error: UnitError) -> CommandError {
    match error {
        UnitError::Operation(rejection) => match rejection {
            lcm_op_occ::Rejection::NotFound => CommandError::NotFound(rejection.to_string()),
            lcm_op_occ::Rejection::Exists => {
                CommandError::Port(PortError::Conflict(rejection.to_string()))
            }
            lcm_op_occ::Rejection::WrongState { .. }
            | lcm_op_occ::Rejection::CancelPending
            | lcm_op_occ::Rejection::Stale { .. } => CommandError::NotNow(rejection.to_string()),
        },
        UnitError::Instance(rejection) => match rejection {
            vnf_instance::Rejection::NotFound => CommandError::NotFound(rejection.to_string()),
            vnf_instance::Rejection::Exists => {
                CommandError::Port(PortError::Conflict(rejection.to_string()))
            }
            vnf_instance::Rejection::NotNow(_) | vnf_instance::Rejection::NotTheHolder { .. } => {
                CommandError::NotNow(rejection.to_string())
            }
        },
        UnitError::Port(failed) => CommandError::Port(failed),
    }
}

fn other_request() -> CommandError {
    CommandError::Invalid(Problem::new(
        422,
        "this Idempotency-Key came before with another request; use a fresh key",
    ))
}

/// A refusal by a port that says what is wrong with the request is the answer to it.
pub(crate) fn invalid(error: PortError) -> CommandError {
    match error {
        PortError::Refused(problem) => CommandError::Invalid(problem),
        other @ (PortError::Conflict(_)
        | PortError::Fenced
        | PortError::Unavailable(_)
        | PortError::Corrupt(_)) => CommandError::Port(other),
    }
}

impl Executor {
    /// The answer given before under the same key, if there is one.
    async fn repeated(
        &self,
        caller: &Caller,
        request: &Request,
    ) -> Result<Option<Accepted>, CommandError> {
        let Some(asked) = self.keyed_answer(caller, request, &Accepted::Done) else {
            return Ok(None);
        };
        let Some(known) = self.ports.log.answered(&asked.key).await? else {
            return Ok(None);
        };
        if known.request_digest != asked.request_digest {
            return Err(other_request());
        }
        answer::decode(&known).map(Some)
    }

    fn keyed(&self, caller: &Caller, request: &Request, accepted: &Accepted) -> Unit {
        Unit {
            key: self.keyed_answer(caller, request, accepted),
            ..Unit::default()
        }
    }

    fn keyed_answer(
        &self,
        caller: &Caller,
        request: &Request,
        accepted: &Accepted,
    ) -> Option<KeyedAnswer> {
        let key = caller.idempotency_key.as_ref()?;
        // The digest is keyed: the request may hold secrets.
        let digest = self.ports.blobs.name(&request.canonical());
        Some(KeyedAnswer {
            key: format!("{}/{key}", caller.tenant),
            request_digest: digest.0,
            answer: answer::encode(accepted),
        })
    }
}
