//! VNF instances as they are now. Rows of deleted ones stay, so that their history keeps its tenant.

use crate::Projections;
use crate::fold::{self, Shown};
use crate::kept::Kept;
use cairn_db::Tx;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{InvalidId, Tenant, VnfInstanceId, VnfPkgId};
use cairn_domain::ports::PortResult;
use cairn_domain::vnf_instance::{ClaimPhase, VnfInstance, VnfInstanceEvent};

pub(crate) const NAME: &str = "vnf_instances";
pub(crate) const SHAPE: i64 = 3;

impl Shown for VnfInstance {
    fn event(envelope: &Envelope) -> Option<&VnfInstanceEvent> {
        match &envelope.body {
            EventBody::VnfInstance(event) => Some(event),
            EventBody::VnfLcmOpOcc(_) | EventBody::LccnSubscription(_) => None,
        }
    }

    fn stream(id: &str) -> Result<StreamId, InvalidId> {
        VnfInstanceId::parse(id).map(StreamId::VnfInstance)
    }

    fn kept(projections: &Projections) -> &Kept<Self> {
        &projections.kept.vnf_instances
    }

    fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    fn is_deleted(&self) -> bool {
        self.deleted
    }

    fn halted(&self) -> Option<&str> {
        let claim = self.claim.as_ref()?;
        (claim.phase == ClaimPhase::Halted).then(|| claim.op.as_str())
    }

    fn packages_needed(&self) -> Option<String> {
        let ids: Vec<&str> = self.packages().map(VnfPkgId::as_str).collect();
        Some(ids.join("\n"))
    }
}

pub(crate) async fn apply(tx: &mut Tx, table: &str, events: &[&Envelope]) -> PortResult<()> {
    fold::apply::<VnfInstance>(tx, table, events).await
}
