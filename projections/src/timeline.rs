//! Everything that happened to an instance and its operations, by position: the audit replay.

use crate::corrupt;
use crate::error::port;
use cairn_db::{Arg, Database, Row, Tx, args};
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{Tenant, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::ports::{PortError, PortResult};
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::VnfInstanceEvent;

pub(crate) const NAME: &str = "timeline";
pub(crate) const SHAPE: i64 = 1;

pub(crate) fn columns(integer: &str) -> String {
    format!(
        "vnf_instance_id TEXT NOT NULL, position {integer} NOT NULL, recorded_at {integer} NOT NULL, \
         aggregate_type TEXT NOT NULL, aggregate_id TEXT NOT NULL, sequence {integer} NOT NULL, \
         tenant TEXT, body TEXT NOT NULL, PRIMARY KEY (vnf_instance_id, position)"
    )
}

/// Rows in one INSERT.
const ROWS_AT_ONCE: usize = 50;

/// One row for each event that concerns an instance.
pub(crate) async fn apply(tx: &mut Tx, table: &str, events: &[&Envelope]) -> PortResult<()> {
    let mut rows = Vec::new();
    for envelope in events {
        rows.extend(row(envelope)?);
    }
    for some in rows.chunks(ROWS_AT_ONCE) {
        let values: Vec<String> = (0..some.len())
            .map(|row| {
                let places: Vec<String> = (1..=8).map(|n| format!("${}", row * 8 + n)).collect();
                format!("({})", places.join(", "))
            })
            .collect();
        let sql = format!(
            "INSERT INTO {table} (vnf_instance_id, position, recorded_at, aggregate_type, \
             aggregate_id, sequence, tenant, body) VALUES {}",
            values.join(", ")
        );
        tx.execute(&sql, some.concat()).await.map_err(port)?;
    }
    Ok(())
}

fn row(envelope: &Envelope) -> PortResult<Option<Vec<Arg>>> {
    let Some(instance) = &envelope.vnf_instance_id else {
        return Ok(None);
    };
    let body = match &envelope.body {
        EventBody::VnfInstance(event) => serde_json::to_string(event),
        EventBody::VnfLcmOpOcc(event) => serde_json::to_string(event),
        EventBody::LccnSubscription(_) => return Ok(None),
    }
    .map_err(|why| corrupt(NAME, why))?;
    Ok(Some(args![
        instance.as_str(),
        envelope.position,
        envelope.recorded_at.as_millis(),
        envelope.stream.aggregate_type(),
        envelope.stream.aggregate_id(),
        envelope.sequence,
        owner(&envelope.body).map(Tenant::as_str),
        body,
    ]))
}

/// Whose the instance is: its first event says so, and no other event decides it.
fn owner(body: &EventBody) -> Option<&Tenant> {
    match body {
        EventBody::VnfInstance(VnfInstanceEvent::VnfIdentifierCreated { tenant, .. }) => {
            Some(tenant)
        }
        EventBody::VnfInstance(_) | EventBody::VnfLcmOpOcc(_) | EventBody::LccnSubscription(_) => {
            None
        }
    }
}

/// The history of an instance; empty when it never was, or belongs to another tenant.
pub(crate) async fn of_instance(
    database: &Database,
    tenant: &Tenant,
    id: &VnfInstanceId,
) -> PortResult<Vec<Envelope>> {
    let rows = database
        .fetch_all(
            &format!(
                "SELECT position, recorded_at, aggregate_type, aggregate_id, sequence, body \
                 FROM {NAME} WHERE vnf_instance_id = $1 AND EXISTS (SELECT 1 FROM {NAME} \
                 WHERE vnf_instance_id = $1 AND tenant = $2) ORDER BY position"
            ),
            args![id.as_str(), tenant.as_str()],
        )
        .await
        .map_err(port)?;
    rows.iter().map(|row| envelope(row, id)).collect()
}

fn envelope(row: &Row, instance: &VnfInstanceId) -> PortResult<Envelope> {
    let id = row.text(3).map_err(port)?;
    let body = row.text(5).map_err(port)?;
    let unreadable = |why: String| corrupt(NAME, why);
    let (stream, body) = match row.text(2).map_err(port)?.as_str() {
        "VnfInstance" => (
            VnfInstanceId::parse(id).map(StreamId::VnfInstance),
            serde_json::from_str(&body).map(EventBody::VnfInstance),
        ),
        "VnfLcmOpOcc" => (
            VnfLcmOpOccId::parse(id).map(StreamId::VnfLcmOpOcc),
            serde_json::from_str(&body).map(EventBody::VnfLcmOpOcc),
        ),
        other => {
            return Err(PortError::Corrupt(format!(
                "{NAME} holds an event of {other}"
            )));
        }
    };
    Ok(Envelope {
        position: row.count(0).map_err(port)?,
        recorded_at: Timestamp::from_millis(row.int(1).map_err(port)?),
        stream: stream.map_err(|why| unreadable(why.to_string()))?,
        sequence: row.count(4).map_err(port)?,
        vnf_instance_id: Some(instance.clone()),
        body: body.map_err(|why| unreadable(why.to_string()))?,
    })
}
