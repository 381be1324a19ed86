//! What each event means for the state. Total: it never asks whether the fact was allowed.

use super::{
    Claim, ClaimPhase, InstantiatedVnfInfo, OPERATIONS_KEPT, Standing, VnfInfo, VnfInstance,
    VnfInstanceEvent, VnfProduct, effective,
};
use crate::ids::{VnfLcmOpOccId, VnfPkgId};
use crate::lcm_op_occ::plan::{ManagedObject, Vnfc};
use crate::operation::{Levels, Operation, OperationState};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

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
            scale_in_doubt: BTreeSet::new(),
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
    fn record(&mut self, event: &VnfInstanceEvent) {
        match event {
            // Handled by `evolve`: it begins a history.
            VnfInstanceEvent::VnfIdentifierCreated { .. } => {}
            VnfInstanceEvent::VnfInfoModified {
                info,
                overlay,
                product,
                ..
            } => self.patched(info, overlay, product.as_ref()),
            VnfInstanceEvent::OperationClaimed {
                op,
                operation,
                overlay,
                vnf_pkg_id,
                at: _,
            } => {
                self.claimed(op, *operation, overlay, vnf_pkg_id.as_ref());
            }
            VnfInstanceEvent::OperationHalted { .. } => self.enter(ClaimPhase::Halted),
            VnfInstanceEvent::OperationResumed { rolling_back, .. } => {
                self.enter(if *rolling_back {
                    ClaimPhase::RollingBack
                } else {
                    ClaimPhase::Moving
                });
            }
            VnfInstanceEvent::OperationReleased {
                op,
                outcome,
                scale_in_doubt,
                at: _,
            } => self.released(op, *outcome, scale_in_doubt.as_ref()),
            VnfInstanceEvent::Instantiated { info, at: _ } => {
                self.instantiated = Some(info.clone());
                self.nothing_left();
            }
            VnfInstanceEvent::Scaled { levels, vnfcs, .. } => self.scaled(levels, vnfcs),
            VnfInstanceEvent::Healed {
                vnfcs,
                objects,
                at: _,
            } => {
                self.healed(vnfcs, objects);
            }
            VnfInstanceEvent::VnfPackageChanged { .. } => self.package_changed(event),
            VnfInstanceEvent::Terminated { at: _ } => {
                self.instantiated = None;
                self.nothing_left();
                self.scale_in_doubt.clear();
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

    fn nothing_left(&mut self) {
        self.leftovers.clear();
        self.leftovers_cluster = None;
    }

    fn package_changed(&mut self, event: &VnfInstanceEvent) {
        let VnfInstanceEvent::VnfPackageChanged {
            product,
            levels,
            vnfcs,
            objects,
            def_files,
            at: _,
        } = event
        else {
            return;
        };
        self.product = product.clone();
        self.nothing_left();
        self.scaled(levels, vnfcs);
        self.with_info(|info| {
            info.objects.clone_from(objects);
            info.def_files.clone_from(def_files);
        });
    }

    fn patched(
        &mut self,
        info: &VnfInfo,
        overlay: &Map<String, Value>,
        product: Option<&VnfProduct>,
    ) {
        self.info = info.clone();
        self.patches = self.patches.saturating_add(1);
        if let Some(claim) = &mut self.claim {
            claim.overlay.clone_from(overlay);
        }
        if let Some(product) = product {
            self.product = product.clone();
        }
    }

    fn claimed(
        &mut self,
        op: &VnfLcmOpOccId,
        operation: Operation,
        overlay: &Map<String, Value>,
        vnf_pkg_id: Option<&VnfPkgId>,
    ) {
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
            vnf_pkg_id: vnf_pkg_id.cloned(),
        });
    }

    fn scaled(&mut self, levels: &Levels, vnfcs: &[Vnfc]) {
        self.scale_in_doubt.clear();
        self.with_info(|info| {
            info.levels = levels.clone();
            info.vnfcs = vnfcs.to_vec();
        });
    }

    fn healed(&mut self, vnfcs: &[Vnfc], objects: &[ManagedObject]) {
        // Only a HEAL of the whole instance applies objects, and with them the replicas of the level; what is
        // no part of the VNF it has removed.
        if !objects.is_empty() {
            self.scale_in_doubt.clear();
            self.nothing_left();
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

    fn released(
        &mut self,
        op: &VnfLcmOpOccId,
        outcome: OperationState,
        scale_in_doubt: Option<&BTreeSet<String>>,
    ) {
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
        let scaled = matches!(claim.operation, Operation::Scale | Operation::ScaleToLevel);
        if scaled && outcome == OperationState::Failed {
            let doubted = scale_in_doubt.map_or_else(|| self.vdus(), BTreeSet::clone);
            self.scale_in_doubt.extend(doubted);
        }
        self.standing = standing_after(self.standing, claim.operation, outcome);
    }

    fn vdus(&self) -> BTreeSet<String> {
        let info = self.instantiated.iter();
        info.flat_map(|info| info.levels.vdu_replicas.keys().cloned())
            .collect()
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
