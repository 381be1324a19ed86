//! Events between rows and [`Envelope`]s.

use crate::upcast::{UPCASTERS, upcast};
use cairn_db::{DbError, Row};
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{InvalidId, SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::ports::PortError;
use cairn_domain::time::Timestamp;
use serde_json::Value;

/// The columns that [`decode`] reads, in order.
pub(crate) const COLUMNS: &str = "aggregate_type, aggregate_id, sequence, event_type, event_version, \
     CAST(payload AS TEXT), position, recorded_at, vnf_instance_id";

/// Why a row is no event. The text goes to the log and to operators.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Row(#[from] DbError),
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error("unknown aggregate type {0:?}")]
    Aggregate(String),
    #[error("event {event_type:?} of version {version:?} is not known to this Cairn")]
    Version { event_type: String, version: String },
    #[error("event {event_type:?} cannot be read: {source}")]
    Payload {
        event_type: String,
        source: serde_json::Error,
    },
}

impl Unreadable {
    /// Whether a newer Cairn wrote it: then it is whole, and only this process cannot read it.
    pub(crate) fn is_newer(&self) -> bool {
        match self {
            Self::Aggregate(_) | Self::Version { .. } => true,
            // serde says in words only that the outermost name is none of the enum's.
            Self::Payload { event_type, source } => source
                .to_string()
                .starts_with(&format!("unknown variant `{event_type}`")),
            Self::Row(_) | Self::Id(_) => false,
        }
    }
}

/// An event's payload as it is stored.
pub(crate) fn payload(body: &EventBody) -> Result<String, PortError> {
    let written = match body {
        EventBody::VnfInstance(event) => serde_json::to_string(event),
        EventBody::VnfLcmOpOcc(event) => serde_json::to_string(event),
        EventBody::LccnSubscription(event) => serde_json::to_string(event),
    };
    written
        .map_err(|error| PortError::Corrupt(format!("{} cannot be written: {error}", body.name())))
}

/// The position of a row that may be unreadable otherwise.
pub(crate) fn position(row: &Row) -> Result<u64, DbError> {
    row.count(6)
}

/// Reads a row.
pub(crate) fn decode(row: &Row) -> Result<Envelope, Unreadable> {
    let stream = stream(&row.text(0)?, row.text(1)?)?;
    let event_type = row.text(3)?;
    let body = body(&stream, &event_type, &row.text(4)?, &row.text(5)?)?;
    Ok(Envelope {
        position: row.count(6)?,
        recorded_at: Timestamp::from_millis(row.int(7)?),
        sequence: row.count(2)?,
        vnf_instance_id: row.opt_text(8)?.map(VnfInstanceId::parse).transpose()?,
        stream,
        body,
    })
}

/// The stream of an aggregate's type and id.
pub(crate) fn stream(aggregate_type: &str, id: String) -> Result<StreamId, Unreadable> {
    match aggregate_type {
        "VnfInstance" => Ok(StreamId::VnfInstance(VnfInstanceId::parse(id)?)),
        "VnfLcmOpOcc" => Ok(StreamId::VnfLcmOpOcc(VnfLcmOpOccId::parse(id)?)),
        "LccnSubscription" => Ok(StreamId::LccnSubscription(SubscriptionId::parse(id)?)),
        other => Err(Unreadable::Aggregate(other.to_owned())),
    }
}

fn body(
    stream: &StreamId,
    event_type: &str,
    version: &str,
    payload: &str,
) -> Result<EventBody, Unreadable> {
    let unreadable = |source| Unreadable::Payload {
        event_type: event_type.to_owned(),
        source,
    };
    let written: Value = serde_json::from_str(payload).map_err(unreadable)?;
    let present =
        upcast(UPCASTERS, event_type, version, written).ok_or_else(|| Unreadable::Version {
            event_type: event_type.to_owned(),
            version: version.to_owned(),
        })?;
    match stream {
        StreamId::VnfInstance(_) => serde_json::from_value(present).map(EventBody::VnfInstance),
        StreamId::VnfLcmOpOcc(_) => serde_json::from_value(present).map(EventBody::VnfLcmOpOcc),
        StreamId::LccnSubscription(_) => {
            serde_json::from_value(present).map(EventBody::LccnSubscription)
        }
    }
    .map_err(unreadable)
}
