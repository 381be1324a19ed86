//! A VNF instance (SOL003 `VnfInstance`): the consistency boundary of everything that happens to one VNF.
//!
//! At most one operation holds it at a time; beside that one only a `MODIFY_INFO` may run, and only while the
//! other is halted. What it accepts follows from its history alone (seed case C): a failed state has no target
//! and blocks nothing that repairs.
//!
//! Reading order: [`VnfInstance`], [`Provisioning`], [`VnfInstanceCommand`], [`decide`], [`evolve`].

mod accept;
mod event;
mod info;

pub use event::{InstantiatedVnfInfo, VnfInfo, VnfInstanceEvent, VnfProduct};
pub use info::{MODIFIABLE, effective};

use crate::ids::{Tenant, VnfInstanceId, VnfLcmOpOccId, VnfdId};
use crate::lcm_op_occ::plan::{ManagedObject, Vnfc};
use crate::object::ObjectRef;
use crate::operation::{Levels, Operation, OperationState};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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
    /// What given-up operations left in the cluster while it is not instantiated.
    pub leftovers: Vec<ManagedObject>,
    /// The cluster that holds the leftovers.
    pub leftovers_cluster: Option<String>,
    /// How often its changeable part was changed.
    pub patches: u32,
    /// Its latest operations, at most [`OPERATIONS_KEPT`]: whose marks on objects count as its own.
    pub operations: Vec<VnfLcmOpOccId>,
    /// The last scale operation was given up: the next change sets the replicas of its level.
    pub scale_in_doubt: bool,
    /// The identifier was deleted.
    pub deleted: bool,
}

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
    /// The objects of its plan, with the UIDs that they have now.
    pub objects: Vec<ManagedObject>,
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
        /// The objects of its plan, with the UIDs that they have now.
        objects: Vec<ManagedObject>,
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
            Operation::Scale | Operation::ScaleToLevel | Operation::Heal => (
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

    /// The VNFD it is an instance of.
    #[must_use]
    pub fn vnfd_id(&self) -> &VnfdId {
        &self.product.vnfd_id
    }
}

/// Turns a command into facts, or refuses it.
///
/// # Errors
///
/// [`Rejection`] when the instance does not exist or its recorded state forbids the command.
pub fn decide(
    state: Option<&VnfInstance>,
    command: VnfInstanceCommand,
) -> Result<Vec<VnfInstanceEvent>, Rejection> {
    match (state, command) {
        (
            None,
            VnfInstanceCommand::Create {
                at,
                id,
                by,
                tenant,
                product,
                info,
            },
        ) => Ok(vec![VnfInstanceEvent::VnfIdentifierCreated {
            at,
            id,
            by,
            tenant,
            product,
            info,
        }]),
        (Some(_), VnfInstanceCommand::Create { .. }) => Err(Rejection::Exists),
        (None, _) => Err(Rejection::NotFound),
        (Some(instance), _) if instance.deleted => Err(Rejection::NotFound),
        (Some(instance), command) => instance.decide_living(command),
    }
}

/// Records a fact. Total: it happened.
#[must_use]
pub fn evolve(state: Option<VnfInstance>, event: &VnfInstanceEvent) -> Option<VnfInstance> {
    if let VnfInstanceEvent::VnfIdentifierCreated {
        at,
        id,
        tenant,
        product,
        info,
        by: _,
    } = event
    {
        return Some(VnfInstance {
            id: id.clone(),
            tenant: tenant.clone(),
            created_at: *at,
            changed_at: *at,
            product: product.clone(),
            info: info.clone(),
            standing: Standing::Available,
            instantiated: None,
            claim: None,
            beside: None,
            leftovers: Vec::new(),
            leftovers_cluster: None,
            patches: 0,
            operations: Vec::new(),
            scale_in_doubt: false,
            deleted: false,
        });
    }
    state.map(|mut instance| {
        instance.changed_at = event.at();
        instance.record(event);
        instance
    })
}

impl VnfInstance {
    fn decide_living(
        &self,
        command: VnfInstanceCommand,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        match command {
            VnfInstanceCommand::Create { .. } => Err(Rejection::Exists),
            VnfInstanceCommand::Claim {
                at,
                op,
                operation,
                overlay,
                changes_vnfd,
            } => {
                self.may_begin(operation, changes_vnfd)?;
                Ok(vec![VnfInstanceEvent::OperationClaimed {
                    at,
                    op,
                    operation,
                    overlay,
                }])
            }
            VnfInstanceCommand::Halt { at, op } => {
                self.must_hold(&op)?;
                Ok(vec![VnfInstanceEvent::OperationHalted { at, op }])
            }
            VnfInstanceCommand::Resume {
                at,
                op,
                rolling_back,
            } => {
                self.must_hold(&op)?;
                self.must_be_alone()?;
                Ok(vec![VnfInstanceEvent::OperationResumed {
                    at,
                    op,
                    rolling_back,
                }])
            }
            VnfInstanceCommand::Complete { at, op, effect } => self.complete(at, op, effect),
            VnfInstanceCommand::GiveUp { at, op, remains } => self.give_up(at, op, remains),
            VnfInstanceCommand::TakeBack {
                at,
                op,
                vnfcs,
                objects,
            } => self.take_back(at, op, vnfcs, &objects),
            VnfInstanceCommand::ObserveVnfcs { at, vnfcs } => Ok(self.observe(at, vnfcs)),
            VnfInstanceCommand::Delete { at, by, tenant } => {
                self.may_be_deleted()?;
                Ok(vec![VnfInstanceEvent::VnfIdentifierDeleted {
                    at,
                    by,
                    tenant,
                }])
            }
        }
    }

    fn must_hold(&self, op: &VnfLcmOpOccId) -> Result<(), Rejection> {
        let holds = self.claim.as_ref().is_some_and(|claim| claim.op == *op);
        if holds || self.beside.as_ref() == Some(op) {
            return Ok(());
        }
        Err(Rejection::NotTheHolder { op: op.clone() })
    }

    fn must_be_alone(&self) -> Result<(), Rejection> {
        match &self.beside {
            None => Ok(()),
            Some(op) => Err(Rejection::NotNow(format!(
                "MODIFY_INFO operation {op} is changing the VNF instance; try again when it has ended"
            ))),
        }
    }

    fn complete(
        &self,
        at: Timestamp,
        op: VnfLcmOpOccId,
        effect: Effect,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        self.must_hold(&op)?;
        let mut events = match effect {
            Effect::Instantiated(info) => vec![VnfInstanceEvent::Instantiated { at, info }],
            Effect::Scaled { levels, vnfcs } => {
                vec![VnfInstanceEvent::Scaled { at, levels, vnfcs }]
            }
            Effect::Healed { vnfcs, objects } => {
                vec![VnfInstanceEvent::Healed { at, vnfcs, objects }]
            }
            Effect::InfoModified { changes, product } => {
                let (info, overlay) = self.modified(&changes);
                vec![VnfInstanceEvent::VnfInfoModified {
                    at,
                    op: op.clone(),
                    info,
                    overlay,
                    product,
                }]
            }
            Effect::Terminated => vec![VnfInstanceEvent::Terminated { at }],
        };
        events.push(VnfInstanceEvent::OperationReleased {
            at,
            op,
            outcome: OperationState::Completed,
        });
        Ok(events)
    }

    fn give_up(
        &self,
        at: Timestamp,
        op: VnfLcmOpOccId,
        remains: Remains,
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        self.must_hold(&op)?;
        self.must_be_alone()?;
        let mut events = if self.instantiated.is_some() {
            self.renamed(at, &remains.objects)
        } else {
            vec![self.left_behind(at, remains)]
        };
        events.push(VnfInstanceEvent::OperationReleased {
            at,
            op,
            outcome: OperationState::Failed,
        });
        Ok(events)
    }

    /// What is in the cluster now: what the operation left, and of what was left before whatever it did not
    /// see go. An operation that failed before it had a plan has seen nothing.
    fn left_behind(&self, at: Timestamp, remains: Remains) -> VnfInstanceEvent {
        let Remains {
            leftovers,
            gone,
            objects: _,
            cluster_uid,
        } = remains;
        let stands = |old: &&ManagedObject| {
            !gone.iter().any(|object| object.is(&old.object))
                && !leftovers.iter().any(|new| new.object.is(&old.object))
        };
        let mut objects: Vec<ManagedObject> =
            self.leftovers.iter().filter(stands).cloned().collect();
        objects.extend(leftovers);
        let cluster_uid = if objects.is_empty() {
            None
        } else {
            cluster_uid.or_else(|| self.leftovers_cluster.clone())
        };
        VnfInstanceEvent::LeftoversRecorded {
            at,
            objects,
            cluster_uid,
        }
    }

    fn take_back(
        &self,
        at: Timestamp,
        op: VnfLcmOpOccId,
        vnfcs: Option<Vec<Vnfc>>,
        objects: &[ManagedObject],
    ) -> Result<Vec<VnfInstanceEvent>, Rejection> {
        self.must_hold(&op)?;
        let mut events = vnfcs.map_or_else(Vec::new, |vnfcs| self.observe(at, vnfcs));
        events.extend(self.renamed(at, objects));
        events.push(VnfInstanceEvent::OperationReleased {
            at,
            op,
            outcome: OperationState::RolledBack,
        });
        Ok(events)
    }

    /// Objects that were made again have other UIDs than recorded: without them nothing could be done with
    /// them later, for what has another UID is not ours.
    fn renamed(&self, at: Timestamp, objects: &[ManagedObject]) -> Vec<VnfInstanceEvent> {
        let known = match &self.instantiated {
            Some(info) => &info.objects,
            None => &self.leftovers,
        };
        let uid_now = |old: &ManagedObject| {
            let found = objects.iter().find(|new| new.object.is(&old.object));
            found.map_or_else(|| old.uid.clone(), |new| new.uid.clone())
        };
        let now: Vec<ManagedObject> = known
            .iter()
            .map(|old| ManagedObject {
                uid: uid_now(old),
                ..old.clone()
            })
            .collect();
        if now == *known {
            return Vec::new();
        }
        if self.instantiated.is_some() {
            return vec![VnfInstanceEvent::ObjectsObserved { at, objects: now }];
        }
        let cluster_uid = self.leftovers_cluster.clone();
        vec![VnfInstanceEvent::LeftoversRecorded {
            at,
            objects: now,
            cluster_uid,
        }]
    }

    fn observe(&self, at: Timestamp, vnfcs: Vec<Vnfc>) -> Vec<VnfInstanceEvent> {
        if self.instantiated.is_none() || self.vnfcs() == vnfcs {
            return Vec::new();
        }
        vec![VnfInstanceEvent::VnfcsObserved { at, vnfcs }]
    }

    fn record(&mut self, event: &VnfInstanceEvent) {
        match event {
            // Handled by `evolve`: it begins a history.
            VnfInstanceEvent::VnfIdentifierCreated { .. } => {}
            VnfInstanceEvent::VnfInfoModified {
                info,
                overlay,
                product,
                at: _,
                op: _,
            } => {
                self.info = info.clone();
                self.patches = self.patches.saturating_add(1);
                if let Some(claim) = &mut self.claim {
                    claim.overlay = overlay.clone();
                }
                if let Some(product) = product {
                    self.product = product.clone();
                }
            }
            VnfInstanceEvent::OperationClaimed {
                op,
                operation,
                overlay,
                at: _,
            } => {
                self.claimed(op, *operation, overlay);
            }
            VnfInstanceEvent::OperationHalted { .. } => self.enter(ClaimPhase::Halted),
            VnfInstanceEvent::OperationResumed {
                rolling_back: true, ..
            } => {
                self.enter(ClaimPhase::RollingBack);
            }
            VnfInstanceEvent::OperationResumed {
                rolling_back: false,
                ..
            } => {
                self.enter(ClaimPhase::Moving);
            }
            VnfInstanceEvent::OperationReleased { op, outcome, at: _ } => {
                self.released(op, *outcome);
            }
            VnfInstanceEvent::Instantiated { info, at: _ } => {
                self.instantiated = Some(info.clone());
                self.leftovers.clear();
                self.leftovers_cluster = None;
            }
            VnfInstanceEvent::Scaled {
                levels,
                vnfcs,
                at: _,
            } => {
                self.scale_in_doubt = false;
                self.with_info(|info| {
                    info.levels = levels.clone();
                    info.vnfcs.clone_from(vnfcs);
                });
            }
            VnfInstanceEvent::Healed {
                vnfcs,
                objects,
                at: _,
            } => {
                self.healed(vnfcs, objects);
            }
            VnfInstanceEvent::Terminated { at: _ } => {
                self.instantiated = None;
                self.leftovers.clear();
                self.leftovers_cluster = None;
                self.scale_in_doubt = false;
            }
            VnfInstanceEvent::LeftoversRecorded {
                objects,
                cluster_uid,
                at: _,
            } => {
                self.leftovers.clone_from(objects);
                self.leftovers_cluster.clone_from(cluster_uid);
            }
            VnfInstanceEvent::ObjectsObserved { objects, at: _ } => {
                self.with_info(|info| info.objects.clone_from(objects));
            }
            VnfInstanceEvent::VnfcsObserved { vnfcs, at: _ } => {
                self.with_info(|info| info.vnfcs.clone_from(vnfcs));
            }
            VnfInstanceEvent::VnfIdentifierDeleted { .. } => self.deleted = true,
        }
    }

    fn claimed(&mut self, op: &VnfLcmOpOccId, operation: Operation, overlay: &Map<String, Value>) {
        self.operations.push(op.clone());
        if self.operations.len() > OPERATIONS_KEPT {
            self.operations.remove(0);
        }
        if self.claim.is_some() {
            self.beside = Some(op.clone());
            return;
        }
        self.claim = Some(Claim {
            op: op.clone(),
            operation,
            phase: ClaimPhase::Moving,
            overlay: overlay.clone(),
        });
    }

    fn healed(&mut self, vnfcs: &[Vnfc], objects: &[ManagedObject]) {
        // Only a HEAL of the whole instance applies objects, and with them the replicas of the level.
        if !objects.is_empty() {
            self.scale_in_doubt = false;
        }
        self.with_info(|info| {
            info.vnfcs = vnfcs.to_vec();
            if !objects.is_empty() {
                info.objects = objects.to_vec();
            }
        });
    }

    fn enter(&mut self, phase: ClaimPhase) {
        if let Some(claim) = &mut self.claim {
            claim.phase = phase;
        }
    }

    fn with_info(&mut self, change: impl FnOnce(&mut InstantiatedVnfInfo)) {
        if let Some(info) = &mut self.instantiated {
            change(info);
        }
    }

    fn released(&mut self, op: &VnfLcmOpOccId, outcome: OperationState) {
        if self.beside.as_ref() == Some(op) {
            self.beside = None;
            return;
        }
        let Some(claim) = self.claim.take() else {
            return;
        };
        if outcome != OperationState::RolledBack {
            self.info = effective(&self.info, &claim.overlay);
        }
        if outcome == OperationState::Failed {
            self.scale_in_doubt |=
                matches!(claim.operation, Operation::Scale | Operation::ScaleToLevel);
        }
        self.standing = standing_after(self.standing, claim.operation, outcome);
    }
}

fn standing_after(before: Standing, operation: Operation, outcome: OperationState) -> Standing {
    if operation == Operation::ModifyInfo || outcome == OperationState::RolledBack {
        return before;
    }
    match (operation, outcome == OperationState::Failed) {
        (Operation::Terminate, false) => Standing::Available,
        (_, false) => Standing::Active,
        (Operation::Instantiate, true) => Standing::DeployFail,
        (Operation::Terminate, true) => Standing::DeleteFail,
        (_, true) => Standing::UpdateFail,
    }
}

#[cfg(test)]
mod tests;
