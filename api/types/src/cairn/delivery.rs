//! A delivery of a notification.

use cairn_domain::operation::OperationState;
use cairn_domain::ports::{Delivery, DeliveryState};
use cairn_domain::time::Timestamp;
use serde::Serialize;

/// One entry of `subscriptions/{id}/deliveries`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryDto {
    id: String,
    notification_id: String,
    position: u64,
    vnf_instance_id: String,
    vnf_lcm_op_occ_id: Option<String>,
    operation_state: Option<OperationState>,
    state: DeliveryState,
    tries: u32,
    last_tried_at: Option<Timestamp>,
    last_answer: Option<u16>,
    next_try_at: Option<Timestamp>,
}

impl From<Delivery> for DeliveryDto {
    fn from(delivery: Delivery) -> Self {
        let Delivery {
            id,
            subscription: _,
            position,
            notification_id,
            instance,
            op,
            operation_state,
            state,
            tries,
            created_at: _,
            last_tried_at,
            last_answer,
            next_try_at,
        } = delivery;
        Self {
            id: id.to_string(),
            notification_id,
            position,
            vnf_instance_id: instance.to_string(),
            vnf_lcm_op_occ_id: op.map(|op| op.to_string()),
            operation_state,
            state,
            tries,
            last_tried_at,
            last_answer,
            next_try_at,
        }
    }
}
