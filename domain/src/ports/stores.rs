//! Deliveries of notifications, callbacks, and faults.

use super::PortResult;
use crate::ids::{DeliveryId, SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use crate::operation::OperationState;
use crate::subscription::{CallbackAuth, LccnSubscription};
use crate::time::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryState {
    /// Not accepted yet.
    Pending,
    /// Answered with 204.
    Delivered,
    /// Not accepted within its time.
    GivenUp,
}

/// A notification owed to a subscription. Unique per (subscription, position).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its own id.
    pub id: DeliveryId,
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The event that is told.
    pub position: u64,
    /// Id of the notification, derived from the event alone.
    pub notification_id: String,
    /// The instance: order is kept per subscription and instance.
    pub instance: VnfInstanceId,
    /// The operation, for its notifications.
    pub op: Option<VnfLcmOpOccId>,
    /// The state that is told.
    pub operation_state: Option<OperationState>,
    /// How far it is.
    pub state: DeliveryState,
    /// How often it was sent.
    pub tries: u32,
    /// When it became owed.
    pub created_at: Timestamp,
    /// When it was sent last.
    pub last_tried_at: Option<Timestamp>,
    /// Status of the last answer; 0 where none came.
    pub last_answer: Option<u16>,
    /// When it is sent next.
    pub next_try_at: Option<Timestamp>,
}

/// The queue of deliveries, with a cursor of its own into the log.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Up to which position deliveries were made out.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn cursor(&self) -> PortResult<u64>;

    /// Adds deliveries (those that exist are left as they are) and moves the cursor from `from` to `to`, in one
    /// transaction; nothing happens when another replica moved it before.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn enqueue(&self, deliveries: Vec<Delivery>, from: u64, to: u64) -> PortResult<()>;

    /// Claims due deliveries for `lease_ms`: the first pending one of each (subscription, instance) whose time
    /// has come by the queue's own clock, or that was made or tried in what is the future by it: a clock that was set
    /// back holds up none. No other process gets them meanwhile.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn due(&self, limit: u32, lease_ms: u64) -> PortResult<Vec<Delivery>>;

    /// Records what came of a try. Of one that is not pending any more nothing changes. The try and the next one are
    /// put down by the queue's own clock, with the pause that the delivery names between them: those of several
    /// processes differ, and a pause that one makes must hold for all.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn record(&self, delivery: &Delivery) -> PortResult<()>;

    /// The deliveries of a subscription, by position. Those that were accepted or given up are forgotten after 30 days.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn of_subscription(&self, id: &SubscriptionId) -> PortResult<Vec<Delivery>>;

    /// Makes a delivery pending and due again; `false` when there is none.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn resend(&self, subscription: &SubscriptionId, id: &DeliveryId) -> PortResult<bool>;

    /// Drops all deliveries of a deleted subscription that are still pending.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn drop_pending(&self, id: &SubscriptionId) -> PortResult<()>;
}

/// What a callback answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackAnswer {
    /// 204.
    Accepted,
    /// Another status.
    Status {
        /// Which.
        status: u16,
        /// `Retry-After` in milliseconds, where it was sent.
        retry_after_ms: Option<u64>,
    },
    /// No answer.
    NoAnswer {
        /// Why.
        why: String,
    },
}

/// The other end of a subscription.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// GET on the callback before subscribing (5 s, no redirects, address rules).
    ///
    /// # Errors
    ///
    /// `Refused` 422 saying what was wrong.
    async fn test(
        &self,
        uri: &str,
        auth: &CallbackAuth,
        password: Option<&crate::secret::Secret>,
    ) -> PortResult<()>;

    /// POST of a notification.
    async fn send(&self, subscription: &LccnSubscription, body: &Value) -> CallbackAnswer;
}

/// Renders a notification from the stream folded up to its event (implemented where the SOL shapes are known).
#[async_trait]
pub trait Renderer: Send + Sync {
    /// The body of a delivery.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn render(
        &self,
        delivery: &Delivery,
        subscription: &LccnSubscription,
    ) -> PortResult<Value>;
}

/// Where a fault fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum FaultPoint {
    /// In a state; only STARTING, which equals error point 0.
    State {
        /// Which.
        state: OperationState,
    },
    /// After an error point was recorded, in each try that reaches it.
    ErrorPoint {
        /// Which.
        #[serde(rename = "errorPoint")]
        error_point: crate::operation::ErrorPoint,
    },
    /// At a step of the plan.
    Step {
        /// Its index.
        step: usize,
        /// Before or after its effect.
        edge: Edge,
    },
    /// At a step of the first rollback's undo list.
    UndoStep {
        /// Its index.
        #[serde(rename = "undoStep")]
        undo_step: usize,
        /// Before or after its effect.
        edge: Edge,
    },
}

/// Which side of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// The intent is recorded, the effect not made.
    Before,
    /// The effect is made, its result not recorded.
    After,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultAction {
    /// Ends the try there as a failure.
    Fail,
    /// Keeps it there until it is cancelled or the fault is taken away.
    Hold,
    /// Ends the process, as `kill -9` would.
    Crash,
}

/// A fault that an operator of a test asked for (DESIGN 10.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Only operations of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<crate::operation::Operation>,
    /// Only operations of this instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vnf_instance_id: Option<VnfInstanceId>,
    /// Where.
    pub at: FaultPoint,
    /// What.
    pub action: FaultAction,
    /// How often it still fires.
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// The faults of this process; they live in its memory only.
#[async_trait]
pub trait Faults: Send + Sync {
    /// All of them, with what is left of `times`.
    fn list(&self) -> Vec<Fault>;

    /// Replaces them.
    ///
    /// # Errors
    ///
    /// `Refused` 409 while other replicas live, 422 for what cannot fire; `Unavailable`.
    async fn replace(&self, faults: Vec<Fault>) -> PortResult<()>;
}

/// What `/metrics` shows, as Prometheus text.
pub trait Metrics: Send + Sync {
    /// The text (exposition format 0.0.4).
    fn text(&self) -> String;

    /// Counts a wait whose reason stands in no row of the table.
    fn unclassified_wait(&self, source: &str, reason: &str);

    /// Counts an answer of the HTTP server.
    fn answered(&self, status: u16);
}
