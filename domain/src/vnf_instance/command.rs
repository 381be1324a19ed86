//! What can be asked of an instance, and why it is refused.

use super::{InstantiatedVnfInfo, VnfInfo, VnfProduct};
use crate::ids::{Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId};
use crate::lcm_op_occ::plan::{ManagedObject, Vnfc};
use crate::object::ObjectRef;
use crate::operation::{Levels, Operation};
use crate::time::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What completing an operation means for its instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// INSTANTIATE.
    Instantiated(InstantiatedVnfInfo),
    /// SCALE and `SCALE_TO_LEVEL`.
    Scaled {
        /// Levels after it.
        levels: Levels,
        /// Pods after it.
        vnfcs: Vec<Vnfc>,
    },
    /// HEAL.
    Healed {
        /// Pods after it.
        vnfcs: Vec<Vnfc>,
        /// Objects after it; empty: as before.
        objects: Vec<ManagedObject>,
    },
    /// `CHANGE_VNFPKG`.
    PackageChanged {
        /// What it is an instance of after it.
        product: VnfProduct,
        /// Levels after it.
        levels: Levels,
        /// Pods after it.
        vnfcs: Vec<Vnfc>,
        /// Objects after it.
        objects: Vec<ManagedObject>,
        /// Which manifests, in which order, when the request named them.
        def_files: Option<Vec<String>>,
    },
    /// `MODIFY_INFO`.
    InfoModified {
        /// The merge patch.
        changes: Map<String, Value>,
        /// The product, where `vnfdId` was changed.
        product: Option<VnfProduct>,
    },
    /// TERMINATE.
    Terminated,
}

/// What a given-up operation did to the objects of its VNF.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remains {
    /// What may be left of it in the cluster.
    pub leftovers: Vec<ManagedObject>,
    /// What it knows to be absent.
    pub gone: Vec<ObjectRef>,
    /// The objects of its plan, with the UIDs that they have now; without those that it has not made anew yet.
    pub objects: Vec<ManagedObject>,
    /// Pods after it, as whoever follows its resource changes has them; absent where it has told of none.
    pub vnfcs: Option<Vec<Vnfc>>,
    /// It has removed the Jobs of all hooks of the instance, those that earlier operations left too.
    pub hook_jobs_removed: bool,
    /// Of a SCALE or `SCALE_TO_LEVEL`, the VDUs whose replicas it has set or may have set.
    pub scaled: Option<BTreeSet<String>>,
    /// In which cluster; absent without a plan.
    pub cluster_uid: Option<String>,
}

/// Commands of an instance. All but `Create`, `Delete` and `ObserveVnfcs` come from [`crate::follow`].
#[derive(Clone, Debug, PartialEq)]
pub enum VnfInstanceCommand {
    /// Create the identifier.
    Create {
        /// Now.
        at: Timestamp,
        /// A fresh id.
        id: VnfInstanceId,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// From the package.
        product: VnfProduct,
        /// Name, description, metadata.
        info: VnfInfo,
    },
    /// An operation begins.
    Claim {
        /// Now.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// Of which kind.
        operation: Operation,
        /// What it lays over the changeable part.
        overlay: Map<String, Value>,
        /// Whether a `MODIFY_INFO` would change `vnfdId`.
        changes_vnfd: bool,
        /// The package that a `CHANGE_VNFPKG` changes to.
        vnf_pkg_id: Option<VnfPkgId>,
    },
    /// The operation entered `FAILED_TEMP`.
    Halt {
        /// Now.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
    },
    /// The operation is retried or rolled back.
    Resume {
        /// Now.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// Rolled back.
        rolling_back: bool,
    },
    /// The operation entered COMPLETED.
    Complete {
        /// Now.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// What it means.
        effect: Effect,
        /// It has removed the Jobs of all hooks of the instance, those that earlier operations left too.
        hook_jobs_removed: bool,
    },
    /// The operation entered FAILED.
    GiveUp {
        /// Now.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// What it did to the objects of the VNF.
        remains: Remains,
    },
    /// The operation entered `ROLLED_BACK`.
    TakeBack {
        /// Now.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// Pods after the rollback, where it touched any.
        vnfcs: Option<Vec<Vnfc>>,
        /// The objects of its plan, with the UIDs that they have now; without those that it has not made anew yet.
        objects: Vec<ManagedObject>,
        /// It has removed the Jobs of all hooks of the instance, those that earlier operations left too.
        hook_jobs_removed: bool,
    },
    /// An inventory found these pods.
    ObserveVnfcs {
        /// Now.
        at: Timestamp,
        /// The pods.
        vnfcs: Vec<Vnfc>,
    },
    /// Delete the identifier.
    Delete {
        /// Now.
        at: Timestamp,
        /// Who asks.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
}

/// Why a command was refused. A refusal is an answer, not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such instance.
    #[error("there is no such VNF instance")]
    NotFound,
    /// The id is taken.
    #[error("the VNF instance exists already")]
    Exists,
    /// Not in its present state; the text says what to do instead.
    #[error("{0}")]
    NotNow(String),
    /// The operation does not hold the instance (any more).
    #[error("operation {op} does not hold the VNF instance")]
    NotTheHolder {
        /// Which operation asked.
        op: VnfLcmOpOccId,
    },
}
