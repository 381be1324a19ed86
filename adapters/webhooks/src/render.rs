//! Bodies of notifications, from the streams folded up to their event.

use async_trait::async_trait;
use cairn_api_types::PublicUrl;
use cairn_api_types::notification::{Announcement, Occasion, render};
use cairn_domain::announce::announce;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOcc};
use cairn_domain::ports::{Delivery, EventLog, PortError, PortResult, Renderer};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::{self, VnfInstance};
use serde_json::Value;
use std::sync::Arc;

/// Renders what a delivery tells, the same however late it is asked.
pub struct SolRenderer {
    log: Arc<dyn EventLog>,
    url: PublicUrl,
}

impl SolRenderer {
    /// Reads streams from this log; links begin with this address.
    #[must_use]
    pub fn new(log: Arc<dyn EventLog>, url: PublicUrl) -> Self {
        Self { log, url }
    }

    async fn op_up_to(
        &self,
        id: &VnfLcmOpOccId,
        position: u64,
    ) -> PortResult<(Envelope, Option<VnfLcmOpOcc>)> {
        let stream = StreamId::VnfLcmOpOcc(id.clone());
        let mut history = self.log.load(&stream).await?;
        history.retain(|envelope| envelope.position <= position);
        let op = history
            .iter()
            .fold(None, |op, envelope| match &envelope.body {
                EventBody::VnfLcmOpOcc(event) => lcm_op_occ::evolve(op, event),
                EventBody::VnfInstance(_) | EventBody::LccnSubscription(_) => op,
            });
        Ok((last_at(history, position, &stream)?, op))
    }

    async fn instance_event(&self, id: &VnfInstanceId, position: u64) -> PortResult<Envelope> {
        let stream = StreamId::VnfInstance(id.clone());
        let mut history = self.log.load(&stream).await?;
        history.retain(|envelope| envelope.position <= position);
        last_at(history, position, &stream)
    }
}

/// The event of a delivery: the last one of the history that was kept.
fn last_at(mut history: Vec<Envelope>, position: u64, stream: &StreamId) -> PortResult<Envelope> {
    history
        .pop()
        .filter(|envelope| envelope.position == position)
        .ok_or_else(|| {
            PortError::Corrupt(format!(
                "a delivery names position {position}, which is not in {stream}"
            ))
        })
}

/// The instance as it was at a position.
pub(crate) async fn instance_at(
    log: &dyn EventLog,
    id: &VnfInstanceId,
    position: u64,
) -> PortResult<Option<VnfInstance>> {
    let history = log.load(&StreamId::VnfInstance(id.clone())).await?;
    let until_then = history
        .iter()
        .filter(|envelope| envelope.position <= position);
    Ok(
        until_then.fold(None, |instance, envelope| match &envelope.body {
            EventBody::VnfInstance(event) => vnf_instance::evolve(instance, event),
            EventBody::VnfLcmOpOcc(_) | EventBody::LccnSubscription(_) => instance,
        }),
    )
}

#[async_trait]
impl Renderer for SolRenderer {
    async fn render(
        &self,
        delivery: &Delivery,
        subscription: &LccnSubscription,
    ) -> PortResult<Value> {
        let (envelope, op) = match &delivery.op {
            Some(id) => self.op_up_to(id, delivery.position).await?,
            None => (
                self.instance_event(&delivery.instance, delivery.position)
                    .await?,
                None,
            ),
        };
        let announcement: Announcement = announce(&envelope).ok_or_else(|| {
            PortError::Corrupt(format!(
                "the event at position {} tells nothing",
                delivery.position
            ))
        })?;
        let occasion = Occasion {
            id: &delivery.notification_id,
            at: envelope.body.at(),
            announcement,
            instance: &delivery.instance,
            subscription,
        };
        Ok(render(&occasion, op.as_ref(), &self.url))
    }
}
