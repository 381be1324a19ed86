//! `VnfLcmOpOcc` (SOL003 5.5.2.13).

use crate::link::Link;
use crate::problem_details::ProblemDetails;
use crate::public_url::PublicUrl;
use crate::shown;
use crate::vnf_instance::ResourceHandle;
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::lcm_op_occ::event::{AffectedVnfc, ChangeType};
use cairn_domain::operation::{CancelMode, Operation, OperationState};
use cairn_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

/// SOL003 5.5.2.13.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VnfLcmOpOccDto {
    id: String,
    operation_state: OperationState,
    state_entered_time: Timestamp,
    start_time: Timestamp,
    vnf_instance_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_id: Option<String>,
    operation: Operation,
    is_automatic_invocation: bool,
    operation_params: Map<String, Value>,
    is_cancel_pending: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_mode: Option<CancelMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ProblemDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_changes: Option<ResourceChanges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_info: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modifications_triggered_by_vnf_pkg_change: Option<Map<String, Value>>,
    #[serde(rename = "_links")]
    links: Links,
}

/// `resourceChanges` of 5.5.2.13.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceChanges {
    affected_vnfcs: Vec<AffectedVnfcDto>,
}

/// SOL003 5.5.3.13.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AffectedVnfcDto {
    id: String,
    vdu_id: String,
    change_type: ChangeType,
    compute_resource: ResourceHandle,
}

impl AffectedVnfcDto {
    pub(crate) fn of(affected: &AffectedVnfc) -> Self {
        let AffectedVnfc { change_type, vnfc } = affected;
        Self {
            id: vnfc.id.clone(),
            vdu_id: vnfc.vdu_id.clone(),
            change_type: *change_type,
            compute_resource: ResourceHandle::of(vnfc),
        }
    }
}

/// `self`, the instance, and exactly the tasks that the state allows (SOL003 5.6.2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Links {
    #[serde(rename = "self")]
    myself: Link,
    vnf_instance: Link,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollback: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail: Option<Link>,
}

impl Links {
    fn of(op: &VnfLcmOpOcc, url: &PublicUrl) -> Self {
        let myself = url.vnf_lcm_op_occ(op.id.as_str());
        let task =
            |possible: bool, name: &str| possible.then(|| Link::to(format!("{myself}/{name}")));
        let halted = op.state == OperationState::FailedTemp;
        Self {
            vnf_instance: Link::to(url.vnf_instance(op.vnf_instance_id.as_str())),
            cancel: task(op.state.is_transitional(), "cancel"),
            retry: task(halted, "retry"),
            rollback: task(halted, "rollback"),
            fail: task(halted, "fail"),
            myself: Link::to(myself),
        }
    }
}

impl VnfLcmOpOccDto {
    /// The occurrence as SOL003 shows it.
    #[must_use]
    pub fn of(op: &VnfLcmOpOcc, url: &PublicUrl) -> Self {
        let affected: Vec<AffectedVnfcDto> = op
            .resource_changes
            .iter()
            .map(AffectedVnfcDto::of)
            .collect();
        Self {
            id: op.id.to_string(),
            operation_state: op.state,
            state_entered_time: op.state_entered,
            start_time: op.start_time,
            vnf_instance_id: op.vnf_instance_id.to_string(),
            grant_id: op.grant_id.as_ref().map(ToString::to_string),
            operation: op.operation(),
            is_automatic_invocation: false,
            operation_params: shown::members(&op.request),
            is_cancel_pending: op.cancel.is_some(),
            cancel_mode: op.cancel,
            error: op.error_shown().map(ProblemDetails::from),
            resource_changes: (!affected.is_empty()).then_some(ResourceChanges {
                affected_vnfcs: affected,
            }),
            changed_info: changed_info(op),
            modifications_triggered_by_vnf_pkg_change: changed_by_package(op),
            links: Links::of(op, url),
        }
    }
}

/// `changedInfo`, absent where nothing can be told; of a change of the package the other one says it.
pub(crate) fn changed_info(op: &VnfLcmOpOcc) -> Option<Map<String, Value>> {
    changed(op).filter(|_| op.operation() != Operation::ChangeVnfpkg)
}

/// `modificationsTriggeredByVnfPkgChange`: at most one of the two is present (5.5.2.13). Its type has no
/// `vimConnectionInfo`.
pub(crate) fn changed_by_package(op: &VnfLcmOpOcc) -> Option<Map<String, Value>> {
    let mut changed = changed(op).filter(|_| op.operation() == Operation::ChangeVnfpkg)?;
    changed.remove("vimConnectionInfo");
    Some(changed)
}

fn changed(op: &VnfLcmOpOcc) -> Option<Map<String, Value>> {
    op.changed_info
        .as_ref()
        .map(shown::changed_info)
        .filter(|changed| !changed.is_empty())
}
