//! Operation occurrences as they are now; they stay when their instance is deleted.

use crate::Projections;
use crate::fold::{self, Shown};
use crate::kept::Kept;
use cairn_db::Tx;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{InvalidId, Tenant, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use cairn_domain::ports::PortResult;

pub(crate) const NAME: &str = "vnf_lcm_op_occs";
pub(crate) const SHAPE: i64 = 3;

impl Shown for VnfLcmOpOcc {
    fn event(envelope: &Envelope) -> Option<&VnfLcmOpOccEvent> {
        match &envelope.body {
            EventBody::VnfLcmOpOcc(event) => Some(event),
            EventBody::VnfInstance(_) | EventBody::LccnSubscription(_) => None,
        }
    }

    fn stream(id: &str) -> Result<StreamId, InvalidId> {
        VnfLcmOpOccId::parse(id).map(StreamId::VnfLcmOpOcc)
    }

    fn kept(projections: &Projections) -> &Kept<Self> {
        &projections.kept.vnf_lcm_op_occs
    }

    fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    fn is_deleted(&self) -> bool {
        false
    }
}

pub(crate) async fn apply(tx: &mut Tx, table: &str, events: &[&Envelope]) -> PortResult<()> {
    fold::apply::<VnfLcmOpOcc>(tx, table, events).await
}
