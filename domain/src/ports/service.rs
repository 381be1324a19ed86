//! What `api/http` asks for, implemented by the engine's executor.

use super::PortResult;
use crate::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::operation::CancelMode;
use crate::ports::{PortError, Row};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::vnf_instance::VnfInstance;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::fmt;

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

/// A request, its body parsed as JSON, nothing of it sealed or checked against the VNFD yet: so `Debug` shows no body.
#[derive(Clone, PartialEq)]
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

impl Request {
    /// Its name, what it concerns, and its body.
    fn parts(&self) -> (&'static str, Value, Option<&Map<String, Value>>) {
        match self {
            Self::CreateInstance { body } => ("CreateInstance", Value::Null, Some(body)),
            Self::DeleteInstance { id, if_match } => {
                ("DeleteInstance", json!([id.as_str(), if_match]), None)
            }
            Self::StartOperation {
                id,
                operation,
                body,
                if_match,
            } => (
                "StartOperation",
                json!([id.as_str(), operation.as_str(), if_match]),
                Some(body),
            ),
            Self::Retry(id) => ("Retry", json!([id.as_str()]), None),
            Self::Rollback(id) => ("Rollback", json!([id.as_str()]), None),
            Self::Fail(id) => ("Fail", json!([id.as_str()]), None),
            Self::Cancel(id, mode) => ("Cancel", json!([id.as_str(), mode]), None),
            Self::Subscribe { body } => ("Subscribe", Value::Null, Some(body)),
            Self::Unsubscribe(id) => ("Unsubscribe", json!([id.as_str()]), None),
        }
    }

    /// The same bytes for the same request, in whatever order its members came, in this Cairn and in a later one.
    /// They hold its secrets: keep nothing of them but a keyed digest.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let (name, concerns, body) = self.parts();
        let body = body.cloned().map_or(Value::Null, Value::Object);
        let mut whole = json!([name, concerns, body]);
        whole.sort_all_objects();
        whole.to_string().into_bytes()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, concerns, body) = self.parts();
        let members: Vec<&String> = body.into_iter().flat_map(Map::keys).collect();
        f.debug_struct(name)
            .field("concerns", &concerns)
            .field("members", &members)
            .finish()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn start(body: &str) -> Request {
        Request::StartOperation {
            id: VnfInstanceId::parse("i1").expect("an id"),
            operation: crate::operation::Operation::Instantiate,
            body: serde_json::from_str(body).expect("a map"),
            if_match: None,
        }
    }

    #[test]
    fn a_request_shows_its_members_but_nothing_that_they_hold() {
        let asked = start(r#"{"additionalParams": {"password": "hush"}, "flavourId": "hush"}"#);
        let shown = format!("{asked:?}");
        assert!(shown.contains("additionalParams") && shown.contains("i1"));
        assert!(!shown.contains("hush"), "{shown}");
    }

    #[test]
    fn the_order_of_members_is_no_difference_and_any_value_is() {
        let one = start(r#"{"a": {"x": 1, "y": [1, 2]}, "b": 2}"#);
        let same = start(r#"{"b": 2, "a": {"y": [1, 2], "x": 1}}"#);
        assert_eq!(one.canonical(), same.canonical());
        for other in [
            start(r#"{"a": {"x": 1, "y": [2, 1]}, "b": 2}"#),
            start(r#"{"a": {"x": 1, "y": [1, 2]}, "b": "2"}"#),
            Request::Retry(VnfLcmOpOccId::parse("i1").expect("an id")),
            Request::Fail(VnfLcmOpOccId::parse("i1").expect("an id")),
        ] {
            assert_ne!(one.canonical(), other.canonical());
        }
    }
}
