//! The one place where `cqrs-es` touches the domain: a shell over `decide` and `evolve`.

use crate::lcm_op_occ::{self, VnfLcmOpOcc};
use crate::subscription::{self, LccnSubscription};
use crate::vnf_instance::{self, VnfInstance};
use cqrs_es::event_sink::EventSink;
use cqrs_es::{Aggregate, DomainEvent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A pure aggregate: what [`Root`] needs to be one of `cqrs-es`.
pub trait Pure:
    Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Its type, as streams name it.
    const TYPE: &'static str;
    /// Its commands.
    type Command: Send + Sync + 'static;
    /// Its events.
    type Event: DomainEvent + Debug + 'static;
    /// Its refusals.
    type Rejection: std::error::Error + Send + Sync + 'static;

    /// Turns a command into facts.
    ///
    /// # Errors
    ///
    /// The aggregate's rejection.
    fn decide(
        state: Option<&Self>,
        command: Self::Command,
    ) -> Result<Vec<Self::Event>, Self::Rejection>;

    /// Records a fact.
    fn evolve(state: Option<Self>, event: &Self::Event) -> Option<Self>;
}

/// The state of an aggregate, `None` before its first event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Root<S: Pure>(pub Option<S>);

impl<S: Pure> Default for Root<S> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S: Pure> Aggregate for Root<S> {
    const TYPE: &'static str = S::TYPE;
    type Command = S::Command;
    type Event = S::Event;
    type Error = S::Rejection;
    type Services = ();

    async fn handle(
        &mut self,
        command: Self::Command,
        (): &Self::Services,
        sink: &EventSink<Self>,
    ) -> Result<(), Self::Error> {
        for event in S::decide(self.0.as_ref(), command)? {
            sink.write(event, self).await;
        }
        Ok(())
    }

    fn apply(&mut self, event: Self::Event) {
        self.0 = S::evolve(self.0.take(), &event);
    }
}

/// Folds a history. The state of an empty one is `None`.
#[must_use]
pub fn replay<'a, S: Pure>(events: impl IntoIterator<Item = &'a S::Event>) -> Option<S> {
    events.into_iter().fold(None, S::evolve)
}

macro_rules! pure {
    ($state:ty, $name:literal, $module:ident, $command:ty, $event:ty) => {
        impl Pure for $state {
            const TYPE: &'static str = $name;
            type Command = $command;
            type Event = $event;
            type Rejection = $module::Rejection;

            fn decide(
                state: Option<&Self>,
                command: Self::Command,
            ) -> Result<Vec<Self::Event>, Self::Rejection> {
                $module::decide(state, command)
            }

            fn evolve(state: Option<Self>, event: &Self::Event) -> Option<Self> {
                $module::evolve(state, event)
            }
        }

        impl DomainEvent for $event {
            fn event_type(&self) -> String {
                self.name().to_owned()
            }

            fn event_version(&self) -> String {
                "1.0".to_owned()
            }
        }
    };
}

pure!(
    VnfInstance,
    "VnfInstance",
    vnf_instance,
    vnf_instance::VnfInstanceCommand,
    vnf_instance::VnfInstanceEvent
);
pure!(
    VnfLcmOpOcc,
    "VnfLcmOpOcc",
    lcm_op_occ,
    lcm_op_occ::VnfLcmOpOccCommand,
    lcm_op_occ::VnfLcmOpOccEvent
);
pure!(
    LccnSubscription,
    "LccnSubscription",
    subscription,
    subscription::LccnSubscriptionCommand,
    subscription::LccnSubscriptionEvent
);
