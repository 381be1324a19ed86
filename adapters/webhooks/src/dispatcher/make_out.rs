//! From events to deliveries.

use cairn_api_types::notification::id_of;
use cairn_domain::announce::{Announcement, announce};
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{DeliveryId, SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::operation::{Operation, OperationState};
use cairn_domain::ports::{Delivery, DeliveryState, PortError, PortResult};
use cairn_domain::subscription::filter::{EnvelopeFacts, matches};
use cairn_domain::subscription::{LccnSubscription, LccnSubscriptionEvent};

use super::Dispatcher;
use super::subscribers::{PAGE, Subscribers};
use crate::render::instance_at;

impl Dispatcher {
    /// Makes out what the events after the cursor owe to whom, until none is left. Several replicas may do so at
    /// once: the queue takes each stretch of the log once.
    pub(super) async fn make_out(&self, subscribers: &mut Subscribers) -> PortResult<()> {
        let log = self.ports.log.as_ref();
        loop {
            let from = self.ports.deliveries.cursor().await?;
            subscribers.catch_up(log, from).await?;
            let page = log.read_after(from, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            let mut owed = Vec::new();
            for envelope in &page {
                subscribers.fold(envelope);
                match self.owed_for(envelope, subscribers, &mut owed).await {
                    Ok(()) => {}
                    // What cannot be read cannot be told either; it must not keep all else from being told.
                    Err(PortError::Corrupt(why)) => tracing::error!(
                        position = envelope.position, stream = %envelope.stream, %why,
                        "no notification is sent of an event whose stream cannot be read"
                    ),
                    Err(other) => return Err(other),
                }
            }
            self.ports
                .deliveries
                .enqueue(owed, from, last.position)
                .await?;
            for id in page.iter().filter_map(deleted) {
                self.ports.deliveries.drop_pending(id).await?;
            }
        }
    }

    async fn owed_for(
        &self,
        envelope: &Envelope,
        subscribers: &Subscribers,
        owed: &mut Vec<Delivery>,
    ) -> PortResult<()> {
        let Some(announcement) = announce(envelope) else {
            return Ok(());
        };
        let candidates = subscribers.owed_at(envelope.position);
        if candidates.is_empty() {
            return Ok(());
        }
        let id = instance_of(envelope)?;
        let log = self.ports.log.as_ref();
        let instance = instance_at(log, id, envelope.position)
            .await?
            .ok_or_else(|| {
                PortError::Corrupt(format!(
                    "position {} concerns instance {id}, which never was",
                    envelope.position
                ))
            })?;
        let op = op_of(envelope);
        let operation = match op {
            Some(op) => self.operation(op).await?,
            None => None,
        };
        let name = instance.info_now().vnf_instance_name;
        let facts = EnvelopeFacts {
            announcement,
            operation,
            instance: id,
            instance_name: name.as_deref(),
            product: &instance.product,
        };
        let wanted = candidates
            .into_iter()
            .filter(|one| one.tenant == instance.tenant && matches(one.filter.as_ref(), &facts));
        owed.extend(wanted.map(|one| self.delivery(envelope, one, id, announcement)));
        Ok(())
    }

    async fn operation(&self, id: &VnfLcmOpOccId) -> PortResult<Option<Operation>> {
        Ok(self
            .ports
            .log
            .op_occ(id)
            .await?
            .map(|(op, _)| op.operation()))
    }

    fn delivery(
        &self,
        envelope: &Envelope,
        subscription: &LccnSubscription,
        instance: &VnfInstanceId,
        announcement: Announcement,
    ) -> Delivery {
        let now = self.ports.clock.now();
        Delivery {
            id: DeliveryId::parse(self.ports.ids.fresh()).expect("a UUID is an identifier"),
            subscription: subscription.id.clone(),
            position: envelope.position,
            notification_id: id_of(envelope),
            instance: instance.clone(),
            op: op_of(envelope).cloned(),
            operation_state: state_of(announcement),
            state: DeliveryState::Pending,
            tries: 0,
            created_at: now,
            last_tried_at: None,
            last_answer: None,
            next_try_at: Some(now),
        }
    }
}

fn deleted(envelope: &Envelope) -> Option<&SubscriptionId> {
    match (&envelope.body, &envelope.stream) {
        (
            EventBody::LccnSubscription(LccnSubscriptionEvent::SubscriptionDeleted { .. }),
            StreamId::LccnSubscription(id),
        ) => Some(id),
        (
            EventBody::VnfInstance(_) | EventBody::VnfLcmOpOcc(_) | EventBody::LccnSubscription(_),
            _,
        ) => None,
    }
}

fn instance_of(envelope: &Envelope) -> PortResult<&VnfInstanceId> {
    match &envelope.stream {
        StreamId::VnfInstance(id) => Ok(id),
        StreamId::VnfLcmOpOcc(_) | StreamId::LccnSubscription(_) => {
            envelope.vnf_instance_id.as_ref().ok_or_else(|| {
                PortError::Corrupt(format!("position {} names no instance", envelope.position))
            })
        }
    }
}

fn op_of(envelope: &Envelope) -> Option<&VnfLcmOpOccId> {
    match &envelope.stream {
        StreamId::VnfLcmOpOcc(id) => Some(id),
        StreamId::VnfInstance(_) | StreamId::LccnSubscription(_) => None,
    }
}

fn state_of(announcement: Announcement) -> Option<OperationState> {
    match announcement {
        Announcement::OperationEntered(state, _) => Some(state),
        Announcement::IdentifierCreated | Announcement::IdentifierDeleted => None,
    }
}
