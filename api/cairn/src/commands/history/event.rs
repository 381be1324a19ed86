//! Events as they come in the JSON of `/cairn/v1`, read back into the events of the domain: so the compiler asks
//! for words for each new one.

use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent;
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::VnfInstanceEvent;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// One event of a history.
#[derive(Clone, Debug)]
pub struct Event {
    /// When it was recorded.
    pub at: Timestamp,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// To the instance.
    Instance(Box<VnfInstanceEvent>),
    /// To an operation, by id.
    Operation(String, Box<VnfLcmOpOccEvent>),
    /// Something that this version has no words for: its name.
    Other(String),
}

impl Event {
    /// Reads one event. What is unreadable keeps its name, as a newer server may know events that we do not.
    pub fn read(event: &Value) -> Self {
        let name = event["type"].as_str().unwrap_or("?").to_owned();
        let at = super::account::recorded_at(event).unwrap_or(Timestamp::from_millis(0));
        let what = match event["vnfLcmOpOccId"].as_str() {
            Some(op) => stored(&name, at, &event["data"])
                .map(|event| What::Operation(op.to_owned(), Box::new(event))),
            None => stored(&name, at, &event["data"]).map(|event| What::Instance(Box::new(event))),
        };
        Self {
            at,
            what: what.unwrap_or(What::Other(name)),
        }
    }
}

/// The event as it was stored: its time is the envelope's.
fn stored<E: DeserializeOwned>(name: &str, at: Timestamp, data: &Value) -> Option<E> {
    let mut fields = data.clone();
    fields
        .as_object_mut()?
        .insert("at".to_owned(), serde_json::to_value(at).ok()?);
    serde_json::from_value(json!({ name: fields })).ok()
}
