//! Notifications (SOL003 5.5.2.17 to 5.5.2.19): a pure function of the state up to an event, so that a resend a
//! day later says the same as the first try.

use crate::link::Link;
use crate::problem_details::ProblemDetails;
use crate::public_url::PublicUrl;
use crate::vnf_lcm_op_occ::{AffectedVnfcDto, changed_by_package, changed_info};
use cairn_domain::announce::NotificationStatus;
use cairn_domain::history::{Envelope, StreamId};
use cairn_domain::ids::VnfInstanceId;
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::operation::{Operation, OperationState};
use cairn_domain::subscription::filter::notification_type;
use cairn_domain::subscription::{LccnSubscription, Verbosity};
use cairn_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

pub use cairn_domain::announce::Announcement;

/// Namespace of the ids below; drawn once, fixed for ever.
const NAMESPACE: Uuid = Uuid::from_u128(0x6b1f_0c52_8d34_4a7e_9a3b_1f0e_5c2d_7a94);

/// The `id` of the notification of an event: from its stream and sequence alone, so the same for all
/// subscribers, in every replica, after every restart and resend.
#[must_use]
pub fn notification_id(stream: &StreamId, sequence: u64) -> String {
    Uuid::new_v5(&NAMESPACE, format!("{stream}/{sequence}").as_bytes()).to_string()
}

/// The same for an envelope.
#[must_use]
pub fn id_of(envelope: &Envelope) -> String {
    notification_id(&envelope.stream, envelope.sequence)
}

/// What all notifications say.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    /// [`notification_id`] of the event.
    pub id: &'a str,
    /// When the event happened.
    pub at: Timestamp,
    /// What is told.
    pub announcement: Announcement,
    /// The instance.
    pub instance: &'a VnfInstanceId,
    /// To whom.
    pub subscription: &'a LccnSubscription,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    id: &'a str,
    notification_type: &'static str,
    subscription_id: &'a str,
    time_stamp: Timestamp,
    vnf_instance_id: &'a str,
    #[serde(flatten)]
    occurrence: Option<Occurrence>,
    #[serde(rename = "_links")]
    links: Links,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Links {
    vnf_instance: Link,
    subscription: Link,
    #[serde(skip_serializing_if = "Option::is_none")]
    vnf_lcm_op_occ: Option<Link>,
}

/// What `VnfLcmOperationOccurrenceNotification` (5.5.2.17) says beyond the others.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Occurrence {
    notification_status: &'static str,
    operation_state: OperationState,
    operation: Operation,
    is_automatic_invocation: bool,
    vnf_lcm_op_occ_id: String,
    verbosity: Verbosity,
    #[serde(skip_serializing_if = "Option::is_none")]
    affected_vnfcs: Option<Vec<AffectedVnfcDto>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_info: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modifications_triggered_by_vnf_pkg_change: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ProblemDetails>,
}

/// The body of a notification. `op` is the operation folded up to the event, absent for identifiers.
///
/// # Panics
///
/// Never: its members are texts, numbers and JSON values.
#[must_use]
pub fn render(occasion: &Occasion<'_>, op: Option<&VnfLcmOpOcc>, url: &PublicUrl) -> Value {
    let subscription = occasion.subscription;
    let body = Body {
        id: occasion.id,
        notification_type: notification_type(occasion.announcement),
        subscription_id: subscription.id.as_str(),
        time_stamp: occasion.at,
        vnf_instance_id: occasion.instance.as_str(),
        occurrence: occurrence(occasion.announcement, op, subscription.verbosity),
        links: Links {
            vnf_instance: Link::to(url.vnf_instance(occasion.instance.as_str())),
            subscription: Link::to(url.subscription(subscription.id.as_str())),
            vnf_lcm_op_occ: op.map(|op| Link::to(url.vnf_lcm_op_occ(op.id.as_str()))),
        },
    };
    serde_json::to_value(body).expect("texts, numbers and JSON values are always JSON")
}

fn occurrence(
    announcement: Announcement,
    op: Option<&VnfLcmOpOcc>,
    verbosity: Verbosity,
) -> Option<Occurrence> {
    let (state, status) = match announcement {
        Announcement::OperationEntered(state, status) => (state, status),
        Announcement::IdentifierCreated | Announcement::IdentifierDeleted => return None,
    };
    let op = op?;
    let in_full = status == NotificationStatus::Result && verbosity == Verbosity::Full;
    let affected: Vec<AffectedVnfcDto> = op
        .resource_changes
        .iter()
        .map(AffectedVnfcDto::of)
        .collect();
    let failed = matches!(
        state,
        OperationState::FailedTemp | OperationState::Failed | OperationState::RolledBack
    );
    Some(Occurrence {
        notification_status: match status {
            NotificationStatus::Start => "START",
            NotificationStatus::Result => "RESULT",
        },
        operation_state: state,
        operation: op.operation(),
        is_automatic_invocation: false,
        vnf_lcm_op_occ_id: op.id.to_string(),
        verbosity,
        affected_vnfcs: Some(affected).filter(|affected| in_full && !affected.is_empty()),
        changed_info: changed_info(op).filter(|_| in_full),
        modifications_triggered_by_vnf_pkg_change: changed_by_package(op).filter(|_| in_full),
        error: op
            .error_shown()
            .filter(|_| failed)
            .map(ProblemDetails::from),
    })
}
