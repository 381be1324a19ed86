//! One unit of work over an operation and its instance: decide, follow, and what is written with it.

use cairn_domain::follow::follow;
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOcc, VnfLcmOpOccCommand, VnfLcmOpOccEvent};
use cairn_domain::ports::{
    Append, Appended, EventLog, Fence, PortError, Reliance, StateAfter, Unit, WorkChange,
};
use cairn_domain::vnf_instance::{self, VnfInstance, VnfInstanceEvent, VnfProduct};

/// Why a unit was not written.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// The operation refuses.
    #[error(transparent)]
    Operation(#[from] lcm_op_occ::Rejection),
    /// The instance refuses.
    #[error(transparent)]
    Instance(#[from] vnf_instance::Rejection),
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// An operation and its instance as they were loaded, and what is decided on them.
pub struct Session {
    op_id: VnfLcmOpOccId,
    op: Option<VnfLcmOpOcc>,
    op_version: u64,
    op_events: Vec<VnfLcmOpOccEvent>,
    instance_id: VnfInstanceId,
    instance: Option<VnfInstance>,
    instance_version: u64,
    instance_events: Vec<VnfInstanceEvent>,
    product: Option<VnfProduct>,
}

impl Session {
    /// For an operation that is about to begin on a loaded instance.
    pub fn begin(op_id: VnfLcmOpOccId, instance: VnfInstance, instance_version: u64) -> Self {
        Self {
            op_id,
            op: None,
            op_version: 0,
            op_events: Vec::new(),
            instance_id: instance.id.clone(),
            instance: Some(instance),
            instance_version,
            instance_events: Vec::new(),
            product: None,
        }
    }

    /// Loads an operation and its instance.
    pub async fn load(log: &dyn EventLog, op_id: &VnfLcmOpOccId) -> Result<Self, UnitError> {
        let (op, op_version) = log
            .op_occ(op_id)
            .await?
            .ok_or(lcm_op_occ::Rejection::NotFound)?;
        let instance_id = op.vnf_instance_id.clone();
        let (instance, instance_version) = log.instance(&instance_id).await?.ok_or_else(|| {
            PortError::Corrupt(format!("operation {op_id} has no instance {instance_id}"))
        })?;
        Ok(Self {
            op_id: op_id.clone(),
            op: Some(op),
            op_version,
            op_events: Vec::new(),
            instance_id,
            instance: Some(instance),
            instance_version,
            instance_events: Vec::new(),
            product: None,
        })
    }

    /// The product that a `MODIFY_INFO` of `vnfdId` leads to.
    pub fn with_product(mut self, product: Option<VnfProduct>) -> Self {
        self.product = product;
        self
    }

    /// The operation as decided so far.
    pub fn op(&self) -> Option<&VnfLcmOpOcc> {
        self.op.as_ref()
    }

    /// The instance as decided so far.
    pub fn instance(&self) -> Option<&VnfInstance> {
        self.instance.as_ref()
    }

    /// Decides a command and follows its events to the instance. If either refuses, nothing is decided.
    pub fn decide(&mut self, command: VnfLcmOpOccCommand) -> Result<(), UnitError> {
        let events = lcm_op_occ::decide(self.op.as_ref(), command)?;
        for event in events {
            self.record(event)?;
        }
        Ok(())
    }

    /// Records an event of the operation that was decided elsewhere, and follows it.
    pub fn record(&mut self, event: VnfLcmOpOccEvent) -> Result<(), UnitError> {
        self.op = lcm_op_occ::evolve(self.op.take(), &event);
        if let Some(op) = &self.op
            && let Some(command) = follow(op, &event, self.product.as_ref())
        {
            for event in vnf_instance::decide(self.instance.as_ref(), command)? {
                self.instance = vnf_instance::evolve(self.instance.take(), &event);
                self.instance_events.push(event);
            }
        }
        self.op_events.push(event);
        Ok(())
    }

    /// Whether anything was decided.
    pub fn is_empty(&self) -> bool {
        self.op_events.is_empty()
    }

    /// The unit that writes what was decided. `extra` carries key, fence, secrets and blobs.
    pub fn into_unit(self, extra: Unit) -> Unit {
        let mut unit = extra;
        unit.relies_on.extend(
            self.product
                .map(|product| Reliance::Package(product.vnf_pkg_id)),
        );
        if let (Some(op), false) = (self.op, self.op_events.is_empty()) {
            unit.work.push(if op.state.is_transitional() {
                WorkChange::Needed(self.op_id.clone())
            } else {
                WorkChange::Done(self.op_id.clone())
            });
            unit.appends.push(Append {
                stream: StreamId::VnfLcmOpOcc(self.op_id),
                expected_version: self.op_version,
                vnf_instance_id: Some(self.instance_id.clone()),
                events: self
                    .op_events
                    .into_iter()
                    .map(EventBody::VnfLcmOpOcc)
                    .collect(),
                state: StateAfter::VnfLcmOpOcc(Box::new(op)),
            });
        }
        if let (Some(instance), false) = (self.instance, self.instance_events.is_empty()) {
            unit.appends.push(Append {
                stream: StreamId::VnfInstance(self.instance_id.clone()),
                expected_version: self.instance_version,
                vnf_instance_id: Some(self.instance_id),
                events: self
                    .instance_events
                    .into_iter()
                    .map(EventBody::VnfInstance)
                    .collect(),
                state: StateAfter::VnfInstance(Box::new(instance)),
            });
        }
        unit
    }
}

/// A unit fenced by a lease.
pub fn fenced(op: &VnfLcmOpOccId, number: u64) -> Unit {
    Unit {
        fence: Some(Fence {
            op: op.clone(),
            number,
        }),
        ..Unit::default()
    }
}

/// The last position that was written.
pub fn last_position(appended: &Appended) -> Option<u64> {
    match appended {
        Appended::Written(envelopes) => envelopes.last().map(|e| e.position),
        Appended::Repeated(_) => None,
    }
}
