//! Audit replay as JSON: all events of an instance and its operations.

use crate::shown;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::VnfInstanceId;
use cairn_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

/// The answer to GET `vnf_instances/{id}/history`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryDto {
    vnf_instance_id: String,
    events: Vec<EventDto>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDto {
    position: u64,
    recorded_at: Timestamp,
    #[serde(rename = "type")]
    name: &'static str,
    aggregate_type: &'static str,
    aggregate_id: String,
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    vnf_lcm_op_occ_id: Option<String>,
    data: Map<String, Value>,
}

impl HistoryDto {
    /// The timeline of an instance, by rising position.
    #[must_use]
    pub fn of(id: &VnfInstanceId, events: &[Envelope]) -> Self {
        Self {
            vnf_instance_id: id.to_string(),
            events: events.iter().map(EventDto::of).collect(),
        }
    }
}

impl EventDto {
    /// One event, without its secrets.
    #[must_use]
    pub fn of(envelope: &Envelope) -> Self {
        let Envelope {
            position,
            recorded_at,
            stream,
            sequence,
            vnf_instance_id: _,
            body,
        } = envelope;
        Self {
            position: *position,
            recorded_at: *recorded_at,
            name: body.name(),
            aggregate_type: stream.aggregate_type(),
            aggregate_id: stream.aggregate_id().to_owned(),
            sequence: *sequence,
            vnf_lcm_op_occ_id: match stream {
                StreamId::VnfLcmOpOcc(id) => Some(id.to_string()),
                StreamId::VnfInstance(_) | StreamId::LccnSubscription(_) => None,
            },
            data: event_data(body),
        }
    }
}

/// The fields of an event as they are stored, without its time (the envelope has it) and without secrets.
#[must_use]
pub fn event_data(body: &EventBody) -> Map<String, Value> {
    let stored = match body {
        EventBody::VnfInstance(event) => serde_json::to_value(event),
        EventBody::VnfLcmOpOcc(event) => serde_json::to_value(event),
        EventBody::LccnSubscription(event) => serde_json::to_value(event),
    };
    let Ok(Value::Object(variant)) = stored else {
        return Map::new();
    };
    let fields = variant.into_iter().next().map(|(_, fields)| fields);
    let Some(Value::Object(mut fields)) = fields else {
        return Map::new();
    };
    fields.remove("at");
    // How a callback authenticates is nobody's to read, not even its user name.
    fields.remove("auth");
    shown::members(&fields)
}
