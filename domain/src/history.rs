//! Events as the log keeps them: with position, time and stream.

use crate::ids::{SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use crate::lcm_op_occ::VnfLcmOpOccEvent;
use crate::subscription::LccnSubscriptionEvent;
use crate::time::Timestamp;
use crate::vnf_instance::VnfInstanceEvent;
use std::fmt;

/// Which stream: an aggregate's type and id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamId {
    /// An instance's.
    VnfInstance(VnfInstanceId),
    /// An operation's.
    VnfLcmOpOcc(VnfLcmOpOccId),
    /// A subscription's.
    LccnSubscription(SubscriptionId),
}

impl StreamId {
    /// The aggregate's type, as it is stored and shown.
    #[must_use]
    pub fn aggregate_type(&self) -> &'static str {
        match self {
            Self::VnfInstance(_) => "VnfInstance",
            Self::VnfLcmOpOcc(_) => "VnfLcmOpOcc",
            Self::LccnSubscription(_) => "LccnSubscription",
        }
    }

    /// The aggregate's id.
    #[must_use]
    pub fn aggregate_id(&self) -> &str {
        match self {
            Self::VnfInstance(id) => id.as_str(),
            Self::VnfLcmOpOcc(id) => id.as_str(),
            Self::LccnSubscription(id) => id.as_str(),
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.aggregate_type(), self.aggregate_id())
    }
}

/// An event of any aggregate.
#[derive(Clone, Debug, PartialEq)]
pub enum EventBody {
    /// Of an instance.
    VnfInstance(VnfInstanceEvent),
    /// Of an operation.
    VnfLcmOpOcc(VnfLcmOpOccEvent),
    /// Of a subscription.
    LccnSubscription(LccnSubscriptionEvent),
}

impl EventBody {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::VnfInstance(event) => event.name(),
            Self::VnfLcmOpOcc(event) => event.name(),
            Self::LccnSubscription(event) => event.name(),
        }
    }

    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::VnfInstance(event) => event.at(),
            Self::VnfLcmOpOcc(event) => event.at(),
            Self::LccnSubscription(event) => event.at(),
        }
    }
}

/// An event with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Place in the log, from 1, gapless, in order of commit.
    pub position: u64,
    /// When it was recorded; equal to the event's own time.
    pub recorded_at: Timestamp,
    /// Its stream.
    pub stream: StreamId,
    /// Place in its stream, from 1.
    pub sequence: u64,
    /// The instance that it concerns; absent for subscriptions.
    pub vnf_instance_id: Option<VnfInstanceId>,
    /// The event.
    pub body: EventBody,
}
