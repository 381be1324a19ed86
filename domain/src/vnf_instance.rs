//! A VNF instance (SOL003 `VnfInstance`): the consistency boundary of everything that happens to one VNF.
//!
//! At most one operation holds it at a time; beside that one only a `MODIFY_INFO` may run, and only while the
//! other is halted. What it accepts follows from its history alone (seed case C): a failed state has no target
//! and blocks nothing that repairs.
//!
//! Reading order: [`VnfInstance`], [`Provisioning`], [`VnfInstanceCommand`], [`decide`], [`evolve`].

mod accept;
mod command;
mod decide;
mod event;
mod fold;
mod info;

pub use command::{Effect, Rejection, Remains, VnfInstanceCommand};
pub use decide::decide;
pub use event::{InstantiatedVnfInfo, VnfInfo, VnfInstanceEvent, VnfProduct};
pub use fold::evolve;
pub use info::{MODIFIABLE, effective, registered};

use crate::ids::{Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId, VnfdId};
use crate::lcm_op_occ::plan::{ManagedObject, Vnfc};
use crate::operation::Operation;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// How many of its operations an instance remembers.
pub const OPERATIONS_KEPT: usize = 100;

/// Where an instance stands while no operation holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Not instantiated, nothing failed.
    Available,
    /// Instantiated, nothing failed.
    Active,
    /// An INSTANTIATE was given up.
    DeployFail,
    /// A change was given up.
    UpdateFail,
    /// A TERMINATE was given up.
    DeleteFail,
}

/// What users are shown (DESIGN: the DEPLOYFAIL rule); derived, never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provisioning {
    /// Not instantiated.
    Available,
    /// Being instantiated, or an instantiate is being undone.
    Deploying,
    /// An instantiate halted or was given up.
    DeployFail,
    /// Instantiated.
    Active,
    /// Being changed, or a change is being undone.
    Updating,
    /// A change halted or was given up.
    UpdateFail,
    /// Being terminated, or a terminate is being undone.
    Deleting,
    /// A terminate halted or was given up.
    DeleteFail,
}

impl Provisioning {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Available,
        Self::Deploying,
        Self::DeployFail,
        Self::Active,
        Self::Updating,
        Self::UpdateFail,
        Self::Deleting,
        Self::DeleteFail,
    ];

    /// The word that users read.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "AVAILABLE",
            Self::Deploying => "DEPLOYING",
            Self::DeployFail => "DEPLOYFAIL",
            Self::Active => "ACTIVE",
            Self::Updating => "UPDATING",
            Self::UpdateFail => "UPDATEFAIL",
            Self::Deleting => "DELETING",
            Self::DeleteFail => "DELETEFAIL",
        }
    }
}

impl fmt::Display for Provisioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Standing> for Provisioning {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Available => Self::Available,
            Standing::Active => Self::Active,
            Standing::DeployFail => Self::DeployFail,
            Standing::UpdateFail => Self::UpdateFail,
            Standing::DeleteFail => Self::DeleteFail,
        }
    }
}

/// How the operation that holds the instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimPhase {
    /// STARTING or PROCESSING.
    Moving,
    /// `FAILED_TEMP`.
    Halted,
    /// `ROLLING_BACK`.
    RollingBack,
}

/// The operation that holds the instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Which.
    pub op: VnfLcmOpOccId,
    /// Of which kind.
    pub operation: Operation,
    /// How it stands.
    pub phase: ClaimPhase,
    /// What it lays over the changeable part; kept when it completes or is given up, dropped when undone.
    pub overlay: Map<String, Value>,
    /// The package that it changes to.
    pub vnf_pkg_id: Option<VnfPkgId>,
}

/// State of an instance: the fold of its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VnfInstance {
    /// Its id.
    pub id: VnfInstanceId,
    /// Whose it is.
    pub tenant: Tenant,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its last event happened.
    pub changed_at: Timestamp,
    /// What it is an instance of.
    pub product: VnfProduct,
    /// Its changeable part, without the overlay of a running operation.
    pub info: VnfInfo,
    /// Where it stands apart from its operations.
    pub standing: Standing,
    /// What it consists of, while INSTANTIATED.
    pub instantiated: Option<InstantiatedVnfInfo>,
    /// The operation that holds it.
    pub claim: Option<Claim>,
    /// A `MODIFY_INFO` beside a halted operation.
    pub beside: Option<VnfLcmOpOccId>,
    /// What given-up operations left in the cluster and is no part of the VNF.
    pub leftovers: Vec<ManagedObject>,
    /// The cluster that holds the leftovers.
    pub leftovers_cluster: Option<String>,
    /// How often its changeable part was changed.
    pub patches: u32,
    /// Its latest operations, at most [`OPERATIONS_KEPT`]: whose marks on objects count as its own.
    pub operations: Vec<VnfLcmOpOccId>,
    /// The VDUs whose replicas a scale operation that was given up may have changed: the next change sets those of
    /// their level.
    pub scale_in_doubt: BTreeSet<String>,
    /// The identifier was deleted.
    pub deleted: bool,
}

impl VnfInstance {
    /// What users are shown: the state, and what it is heading for while something moves.
    #[must_use]
    pub fn provisioning(&self) -> (Provisioning, Option<Provisioning>) {
        let Some(claim) = &self.claim else {
            return (self.standing.into(), None);
        };
        let (moving, failed, target) = match claim.operation {
            Operation::Instantiate => (
                Provisioning::Deploying,
                Provisioning::DeployFail,
                Provisioning::Active,
            ),
            Operation::Terminate => (
                Provisioning::Deleting,
                Provisioning::DeleteFail,
                Provisioning::Available,
            ),
            Operation::Scale
            | Operation::ScaleToLevel
            | Operation::Heal
            | Operation::ChangeVnfpkg => (
                Provisioning::Updating,
                Provisioning::UpdateFail,
                Provisioning::Active,
            ),
            Operation::ModifyInfo => (
                Provisioning::Updating,
                Provisioning::UpdateFail,
                self.standing.into(),
            ),
        };
        match claim.phase {
            ClaimPhase::Moving => (moving, Some(target)),
            ClaimPhase::RollingBack => (moving, Some(self.standing.into())),
            ClaimPhase::Halted if self.beside.is_some() => (Provisioning::Updating, Some(failed)),
            ClaimPhase::Halted => (failed, None),
        }
    }

    /// The changeable part as it counts now, with what the running operation lays over it.
    #[must_use]
    pub fn info_now(&self) -> VnfInfo {
        match &self.claim {
            Some(claim) => effective(&self.info, &claim.overlay),
            None => self.info.clone(),
        }
    }

    /// The pods that the record names.
    #[must_use]
    pub fn vnfcs(&self) -> &[Vnfc] {
        self.instantiated.as_ref().map_or(&[], |info| &info.vnfcs)
    }

    /// Whether an operation of this kind would be accepted now; `_links` list exactly these.
    #[must_use]
    pub fn accepts(&self, operation: Operation) -> bool {
        self.may_begin(operation, false).is_ok()
    }

    /// Whether an operation may begin now.
    ///
    /// # Errors
    ///
    /// [`Rejection`] saying what to do instead.
    pub fn check(&self, operation: Operation, changes_vnfd: bool) -> Result<(), Rejection> {
        self.may_begin(operation, changes_vnfd)
    }

    /// The packages that it needs: its own, and the one that it is being changed to.
    pub fn packages(&self) -> impl Iterator<Item = &VnfPkgId> {
        let next = self.claim.as_ref().and_then(|c| c.vnf_pkg_id.as_ref());
        std::iter::once(&self.product.vnf_pkg_id).chain(next)
    }

    /// The VNFD it is an instance of.
    #[must_use]
    pub fn vnfd_id(&self) -> &VnfdId {
        &self.product.vnfd_id
    }
}

#[cfg(test)]
mod tests;
