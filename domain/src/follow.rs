//! What an operation's event means for its instance. Both are appended in one unit of work: if the instance
//! refuses, all is refused.

use crate::ids::VnfLcmOpOccId;
use crate::lcm_op_occ::plan::Vnfc;
use crate::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent as Event};
use crate::operation::Params;
use crate::time::Timestamp;
use crate::vnf_instance::{Effect, InstantiatedVnfInfo, Remains, VnfInstanceCommand, VnfProduct};

/// The instance's command that follows from an event, if any. `op` is the operation after the event;
/// `product` is the package that a `MODIFY_INFO` of `vnfdId` resolved to.
#[must_use]
pub fn follow(
    op: &VnfLcmOpOcc,
    event: &Event,
    product: Option<&VnfProduct>,
) -> Option<VnfInstanceCommand> {
    let id = op.id.clone();
    match event {
        Event::OperationStarted { at, params, .. } => Some(claim(*at, id, params)),
        Event::OperationFailedTemporarily { at, .. } => {
            Some(VnfInstanceCommand::Halt { at: *at, op: id })
        }
        Event::RetryStarted { at, .. } => Some(VnfInstanceCommand::Resume {
            at: *at,
            op: id,
            rolling_back: false,
        }),
        Event::RollbackStarted { at, .. } => Some(VnfInstanceCommand::Resume {
            at: *at,
            op: id,
            rolling_back: true,
        }),
        Event::OperationFailed { at, .. } => Some(VnfInstanceCommand::GiveUp {
            at: *at,
            op: id,
            remains: Remains {
                leftovers: op.leftovers(),
                gone: op.gone(),
                objects: op.observed_objects(),
                vnfcs: op.vnfcs_told(),
                hook_jobs_removed: op.has_removed_hook_jobs(),
                scaled: op.scaled(),
                cluster_uid: op.plan.as_ref().map(|plan| plan.cluster_uid.clone()),
            },
        }),
        Event::OperationRolledBack { at, inventory, .. } => Some(VnfInstanceCommand::TakeBack {
            at: *at,
            op: id,
            vnfcs: inventory.clone(),
            objects: op.observed_objects(),
            hook_jobs_removed: op.has_removed_hook_jobs(),
        }),
        Event::OperationCompleted { at, .. } => Some(VnfInstanceCommand::Complete {
            at: *at,
            op: id,
            effect: effect(op, product),
            hook_jobs_removed: op.has_removed_hook_jobs(),
        }),
        Event::GrantRequested { .. }
        | Event::Granted { .. }
        | Event::GrantRejected { .. }
        | Event::ProcessingStarted { .. }
        | Event::PlanFixed { .. }
        | Event::PlanRevised { .. }
        | Event::PlanRechecked { .. }
        | Event::ErrorPointReached { .. }
        | Event::StepStarted { .. }
        | Event::StepSucceeded { .. }
        | Event::StepFailed { .. }
        | Event::OutcomeUnknown { .. }
        | Event::WaitStarted { .. }
        | Event::WaitChanged { .. }
        | Event::WaitEnded { .. }
        | Event::StepUndoStarted { .. }
        | Event::StepUndone { .. }
        | Event::StepUndoFailed { .. }
        | Event::ReplicasRestored { .. }
        | Event::RollbackVerified { .. }
        | Event::CancelRequested { .. }
        | Event::OperationCancelled { .. }
        | Event::RetryAdvised { .. } => None,
    }
}

fn claim(at: Timestamp, op: VnfLcmOpOccId, params: &Params) -> VnfInstanceCommand {
    let overlay = match params {
        Params::Instantiate { info, .. } | Params::ChangeVnfpkg { info, .. } => info.clone(),
        Params::Scale { .. }
        | Params::ScaleToLevel { .. }
        | Params::Heal { .. }
        | Params::ModifyInfo { .. }
        | Params::Terminate { .. } => serde_json::Map::new(),
    };
    let changes_vnfd =
        matches!(params, Params::ModifyInfo { changes } if changes.contains_key("vnfdId"));
    let vnf_pkg_id = match params {
        Params::ChangeVnfpkg { product, .. } => Some(product.vnf_pkg_id.clone()),
        Params::Instantiate { .. }
        | Params::Scale { .. }
        | Params::ScaleToLevel { .. }
        | Params::Heal { .. }
        | Params::ModifyInfo { .. }
        | Params::Terminate { .. } => None,
    };
    VnfInstanceCommand::Claim {
        at,
        op,
        operation: params.operation(),
        overlay,
        changes_vnfd,
        vnf_pkg_id,
    }
}

fn effect(op: &VnfLcmOpOcc, product: Option<&VnfProduct>) -> Effect {
    let vnfcs = op.inventory().map_or_else(Vec::new, <[Vnfc]>::to_vec);
    match &op.params {
        Params::Instantiate {
            flavour_id, levels, ..
        } => Effect::Instantiated(InstantiatedVnfInfo {
            flavour_id: flavour_id.clone(),
            levels: levels.clone(),
            vnfcs,
            objects: op.objects(),
            namespace: op
                .plan
                .as_ref()
                .map_or_else(String::new, |plan| plan.namespace.clone()),
            def_files: op.additional.def_files.clone(),
            cluster_uid: op
                .plan
                .as_ref()
                .map_or_else(String::new, |plan| plan.cluster_uid.clone()),
        }),
        Params::Scale { levels, .. } | Params::ScaleToLevel { levels } => Effect::Scaled {
            levels: levels.clone(),
            vnfcs,
        },
        Params::Heal { vnfcs: chosen, .. } => Effect::Healed {
            vnfcs,
            objects: if chosen.is_empty() {
                op.objects()
            } else {
                Vec::new()
            },
        },
        Params::ChangeVnfpkg {
            product, levels, ..
        } => Effect::PackageChanged {
            product: product.clone(),
            levels: levels.clone(),
            vnfcs,
            objects: op.objects(),
            def_files: op.additional.def_files.clone(),
        },
        Params::ModifyInfo { changes } => Effect::InfoModified {
            changes: changes.clone(),
            product: product.cloned(),
        },
        Params::Terminate { .. } => Effect::Terminated,
    }
}
