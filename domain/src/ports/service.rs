//! What `api/http` asks for, implemented by the engine's executor.

use super::PortResult;
use crate::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::operation::CancelMode;
use crate::ports::{PortError, Row};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::vnf_instance::VnfInstance;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// Who asks, for whom, and how repeats are recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who; `anonymous` until authentication exists.
    pub by: String,
    /// For whom.
    pub tenant: Tenant,
    /// `Idempotency-Key` of the request.
    pub idempotency_key: Option<String>,
}

/// A request, its body parsed as JSON, nothing of it sealed or checked against the VNFD yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// POST `vnf_instances`.
    CreateInstance {
        /// `CreateVnfRequest`.
        body: Map<String, Value>,
    },
    /// DELETE `vnf_instances/{id}`.
    DeleteInstance {
        /// Which.
        id: VnfInstanceId,
        /// `If-Match`: the version that it must have.
        if_match: Option<u64>,
    },
    /// POST of a task resource, or PATCH.
    StartOperation {
        /// Which instance.
        id: VnfInstanceId,
        /// Which operation.
        operation: crate::operation::Operation,
        /// Its request body; for PATCH the merge patch.
        body: Map<String, Value>,
        /// `If-Match`: the version that it must have.
        if_match: Option<u64>,
    },
    /// POST `retry`.
    Retry(VnfLcmOpOccId),
    /// POST `rollback`.
    Rollback(VnfLcmOpOccId),
    /// POST `fail`.
    Fail(VnfLcmOpOccId),
    /// POST `cancel`.
    Cancel(VnfLcmOpOccId, CancelMode),
    /// POST `subscriptions`.
    Subscribe {
        /// `LccnSubscriptionRequest`.
        body: Map<String, Value>,
    },
    /// DELETE `subscriptions/{id}`.
    Unsubscribe(SubscriptionId),
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// An instance was created.
    Instance(VnfInstanceId),
    /// An operation was begun.
    Operation(VnfLcmOpOccId),
    /// A subscription was created.
    Subscription(SubscriptionId),
    /// The same subscription exists already (303).
    SameSubscription(SubscriptionId),
    /// It is so now.
    Done,
}

/// Why a request was not accepted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such resource (404).
    #[error("{0}")]
    NotFound(String),
    /// Not in its present state (409).
    #[error("{0}")]
    NotNow(String),
    /// The `If-Match` version is not the present one (412).
    #[error("the resource has changed: its version is {is}")]
    Changed {
        /// The present version.
        is: u64,
    },
    /// Well-formed but wrong against VNFD or schema (422), or another status that the problem names.
    #[error("{}", .0.detail)]
    Invalid(Problem),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The way into the rules: loads, decides, follows, appends, retries on conflict, catches projections up.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Carries a request out. A client that hangs up changes nothing about it.
    ///
    /// # Errors
    ///
    /// [`CommandError`].
    async fn execute(&self, caller: Caller, request: Request) -> Result<Accepted, CommandError>;
}

/// Which moment of an instance is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Up to and including this time.
    At(Timestamp),
    /// Up to and including this position.
    Position(u64),
}

/// Folds an instance up to a moment.
#[async_trait]
pub trait Replay: Send + Sync {
    /// The instance as it was; `None` before its creation.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn instance_at(
        &self,
        tenant: &Tenant,
        id: &VnfInstanceId,
        moment: Moment,
    ) -> PortResult<Option<Row<VnfInstance>>>;
}
