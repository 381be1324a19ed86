//! Subscriptions as they are now.

use crate::Projections;
use crate::fold::{self, Shown};
use crate::kept::Kept;
use cairn_db::Tx;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{InvalidId, SubscriptionId, Tenant};
use cairn_domain::ports::PortResult;
use cairn_domain::subscription::{LccnSubscription, LccnSubscriptionEvent};

pub(crate) const NAME: &str = "subscriptions";
pub(crate) const SHAPE: i64 = 2;

impl Shown for LccnSubscription {
    fn event(envelope: &Envelope) -> Option<&LccnSubscriptionEvent> {
        match &envelope.body {
            EventBody::LccnSubscription(event) => Some(event),
            EventBody::VnfInstance(_) | EventBody::VnfLcmOpOcc(_) => None,
        }
    }

    fn stream(id: &str) -> Result<StreamId, InvalidId> {
        SubscriptionId::parse(id).map(StreamId::LccnSubscription)
    }

    fn kept(projections: &Projections) -> &Kept<Self> {
        &projections.kept.subscriptions
    }

    fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    fn is_deleted(&self) -> bool {
        self.deleted
    }
}

pub(crate) async fn apply(tx: &mut Tx, table: &str, events: &[&Envelope]) -> PortResult<()> {
    fold::apply::<LccnSubscription>(tx, table, events).await
}
