//! The living subscriptions, folded from the log: a projection in memory that asks nobody.

use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::SubscriptionId;
use cairn_domain::ports::{EventLog, PortResult};
use cairn_domain::subscription::{self, LccnSubscription, LccnSubscriptionEvent};
use std::collections::BTreeMap;

/// Events read at one time.
pub(super) const PAGE: u32 = 500;

/// A living subscription and from where on it is owed events.
struct Subscriber {
    since: u64,
    subscription: LccnSubscription,
}

/// All living subscriptions up to a position.
#[derive(Default)]
pub(super) struct Subscribers {
    position: u64,
    living: BTreeMap<SubscriptionId, Subscriber>,
}

impl Subscribers {
    /// Folds what the log says of subscriptions up to a position, where that was not done yet: at the start, and after
    /// another replica has made out a stretch. The rest of the log is not read: it is ever longer.
    pub(super) async fn catch_up(&mut self, log: &dyn EventLog, position: u64) -> PortResult<()> {
        if self.position >= position {
            return Ok(());
        }
        for envelope in log.of_subscriptions(position).await? {
            self.fold(&envelope);
        }
        self.position = position;
        Ok(())
    }

    /// Takes one event in; a second time it changes nothing.
    pub(super) fn fold(&mut self, envelope: &Envelope) {
        if envelope.position <= self.position {
            return;
        }
        self.position = envelope.position;
        let (EventBody::LccnSubscription(event), StreamId::LccnSubscription(id)) =
            (&envelope.body, &envelope.stream)
        else {
            return;
        };
        match event {
            LccnSubscriptionEvent::SubscriptionCreated { .. } => {
                if let Some(subscription) = subscription::evolve(None, event) {
                    let subscriber = Subscriber {
                        since: envelope.position,
                        subscription,
                    };
                    self.living.insert(id.clone(), subscriber);
                }
            }
            LccnSubscriptionEvent::SubscriptionDeleted { .. } => {
                self.living.remove(id);
            }
        }
    }

    /// Those that are owed what stands at a position: created before it.
    pub(super) fn owed_at(&self, position: u64) -> Vec<&LccnSubscription> {
        let before = self
            .living
            .values()
            .filter(|subscriber| subscriber.since < position);
        before.map(|subscriber| &subscriber.subscription).collect()
    }
}
