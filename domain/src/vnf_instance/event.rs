//! What happened to a VNF instance. Stored for ever: variants are added, never edited.

use crate::ids::{Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId, VnfdId};
use crate::lcm_op_occ::plan::{ManagedObject, Vnfc};
use crate::operation::{Levels, Operation, OperationState};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What an instance takes from its VNFD when it is created (SOL003 5.5.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VnfProduct {
    /// `vnfdId`.
    pub vnfd_id: VnfdId,
    /// The onboarded package that the VNFD came from.
    pub vnf_pkg_id: VnfPkgId,
    /// `vnfProvider`.
    pub vnf_provider: String,
    /// `vnfProductName`.
    pub vnf_product_name: String,
    /// `vnfSoftwareVersion`.
    pub vnf_software_version: String,
    /// `vnfdVersion`.
    pub vnfd_version: String,
}

/// The part of an instance that a user may change (SOL003 5.5.2.12), secrets sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VnfInfo {
    /// `vnfInstanceName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vnf_instance_name: Option<String>,
    /// `vnfInstanceDescription`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vnf_instance_description: Option<String>,
    /// `metadata`.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// `extensions`.
    #[serde(default)]
    pub extensions: Map<String, Value>,
    /// `vnfConfigurableProperties`.
    #[serde(default)]
    pub vnf_configurable_properties: Map<String, Value>,
    /// `vimConnectionInfo`, by key; the first entry counts.
    #[serde(default)]
    pub vim_connection_info: Map<String, Value>,
}

/// What an instantiated VNF consists of (SOL003 5.5.3.? `instantiatedVnfInfo`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstantiatedVnfInfo {
    /// `flavourId`.
    pub flavour_id: String,
    /// Levels by aspect, replicas by VDU.
    pub levels: Levels,
    /// The pods that existed at the last inventory, by VDU, then name.
    pub vnfcs: Vec<Vnfc>,
    /// The objects that Cairn applied.
    pub objects: Vec<ManagedObject>,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// Which manifests, in which order, when INSTANTIATE named them.
    pub def_files: Option<Vec<String>>,
    /// UID of the cluster's `kube-system` namespace.
    pub cluster_uid: String,
}

/// Events of a `VnfInstance`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum VnfInstanceEvent {
    /// The identifier was created (SOL003 5.4.2.3.1).
    VnfIdentifierCreated {
        /// When.
        at: Timestamp,
        /// Its id.
        id: VnfInstanceId,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
        /// What it is an instance of.
        product: VnfProduct,
        /// Name, description and metadata as created.
        info: VnfInfo,
    },
    /// Its changeable part was changed.
    VnfInfoModified {
        /// When.
        at: Timestamp,
        /// By which operation.
        op: VnfLcmOpOccId,
        /// The part that stays whatever becomes of a running operation.
        info: VnfInfo,
        /// What the halted or running operation lays over it.
        overlay: Map<String, Value>,
        /// The product after it, where the package was changed.
        product: Option<VnfProduct>,
    },
    /// An operation holds the instance from here.
    OperationClaimed {
        /// When.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// Of which kind.
        operation: Operation,
        /// What it lays over the changeable part (sealed).
        overlay: Map<String, Value>,
        /// The package that a `CHANGE_VNFPKG` changes to: in use from here until it is released.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vnf_pkg_id: Option<VnfPkgId>,
    },
    /// Its operation is in `FAILED_TEMP`.
    OperationHalted {
        /// When.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
    },
    /// Its operation is retried or rolled back.
    OperationResumed {
        /// When.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// It is being undone.
        rolling_back: bool,
    },
    /// The operation is final and holds the instance no more.
    OperationReleased {
        /// When.
        at: Timestamp,
        /// Which.
        op: VnfLcmOpOccId,
        /// COMPLETED, FAILED or `ROLLED_BACK`.
        outcome: OperationState,
        /// The VDUs whose replicas a SCALE or `SCALE_TO_LEVEL` that was given up may have changed. Where an older
        /// Cairn has not said which, it may be any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scale_in_doubt: Option<BTreeSet<String>>,
    },
    /// The VNF runs.
    Instantiated {
        /// When.
        at: Timestamp,
        /// What it consists of.
        info: InstantiatedVnfInfo,
    },
    /// The VNF has another size.
    Scaled {
        /// When.
        at: Timestamp,
        /// Levels after it.
        levels: Levels,
        /// Pods after it.
        vnfcs: Vec<Vnfc>,
    },
    /// The VNF was repaired.
    Healed {
        /// When.
        at: Timestamp,
        /// Pods after it.
        vnfcs: Vec<Vnfc>,
        /// Objects after it, where they were applied again.
        objects: Vec<ManagedObject>,
    },
    /// The VNF is of another version of its package.
    VnfPackageChanged {
        /// When.
        at: Timestamp,
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
    /// The VNF runs no more.
    Terminated {
        /// When.
        at: Timestamp,
    },
    /// A given-up operation left these objects in the cluster.
    LeftoversRecorded {
        /// When.
        at: Timestamp,
        /// Which; replaces what was recorded before.
        objects: Vec<ManagedObject>,
        /// Where: UID of the cluster's `kube-system` namespace.
        cluster_uid: Option<String>,
    },
    /// Objects were made again by an operation that did not complete: they have other UIDs.
    ObjectsObserved {
        /// When.
        at: Timestamp,
        /// All objects of the VNF, with the UIDs that they have now.
        objects: Vec<ManagedObject>,
    },
    /// An inventory found other pods than recorded.
    VnfcsObserved {
        /// When.
        at: Timestamp,
        /// The pods that exist.
        vnfcs: Vec<Vnfc>,
    },
    /// The identifier was deleted.
    VnfIdentifierDeleted {
        /// When.
        at: Timestamp,
        /// Who asked.
        by: String,
        /// For whom.
        tenant: Tenant,
    },
}

impl VnfInstanceEvent {
    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::VnfIdentifierCreated { at, .. }
            | Self::VnfInfoModified { at, .. }
            | Self::OperationClaimed { at, .. }
            | Self::OperationHalted { at, .. }
            | Self::OperationResumed { at, .. }
            | Self::OperationReleased { at, .. }
            | Self::Instantiated { at, .. }
            | Self::Scaled { at, .. }
            | Self::Healed { at, .. }
            | Self::VnfPackageChanged { at, .. }
            | Self::Terminated { at }
            | Self::LeftoversRecorded { at, .. }
            | Self::ObjectsObserved { at, .. }
            | Self::VnfcsObserved { at, .. }
            | Self::VnfIdentifierDeleted { at, .. } => *at,
        }
    }

    /// The event's name, as it is stored and shown.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::VnfIdentifierCreated { .. } => "VnfIdentifierCreated",
            Self::VnfInfoModified { .. } => "VnfInfoModified",
            Self::OperationClaimed { .. } => "OperationClaimed",
            Self::OperationHalted { .. } => "OperationHalted",
            Self::OperationResumed { .. } => "OperationResumed",
            Self::OperationReleased { .. } => "OperationReleased",
            Self::Instantiated { .. } => "Instantiated",
            Self::Scaled { .. } => "Scaled",
            Self::Healed { .. } => "Healed",
            Self::VnfPackageChanged { .. } => "VnfPackageChanged",
            Self::Terminated { .. } => "Terminated",
            Self::LeftoversRecorded { .. } => "LeftoversRecorded",
            Self::ObjectsObserved { .. } => "ObjectsObserved",
            Self::VnfcsObserved { .. } => "VnfcsObserved",
            Self::VnfIdentifierDeleted { .. } => "VnfIdentifierDeleted",
        }
    }
}
