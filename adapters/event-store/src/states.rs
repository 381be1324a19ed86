//! State rows: the present state of each aggregate, written together with its events.

use crate::codec::{COLUMNS, decode};
use crate::error::port;
use cairn_db::{Database, Row, Tx, args};
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::VnfInstanceId;
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use cairn_domain::ports::{PortError, PortResult, StateAfter};
use cairn_domain::root::{Pure, replay};
use cairn_domain::subscription::{LccnSubscription, LccnSubscriptionEvent};
use cairn_domain::vnf_instance::{VnfInstance, VnfInstanceEvent};

/// Version of the states' form. Raise it with each change of a state or of how events fold into it: rows of
/// other versions are ignored, and the state comes from the events.
pub(crate) const SCHEMA: i64 = 3;

/// An aggregate whose event can be told from an [`EventBody`].
pub(crate) trait Folded: Pure {
    fn event(body: &EventBody) -> Option<&Self::Event>;
}

impl Folded for VnfInstance {
    fn event(body: &EventBody) -> Option<&VnfInstanceEvent> {
        match body {
            EventBody::VnfInstance(event) => Some(event),
            EventBody::VnfLcmOpOcc(_) | EventBody::LccnSubscription(_) => None,
        }
    }
}

impl Folded for VnfLcmOpOcc {
    fn event(body: &EventBody) -> Option<&VnfLcmOpOccEvent> {
        match body {
            EventBody::VnfLcmOpOcc(event) => Some(event),
            EventBody::VnfInstance(_) | EventBody::LccnSubscription(_) => None,
        }
    }
}

impl Folded for LccnSubscription {
    fn event(body: &EventBody) -> Option<&LccnSubscriptionEvent> {
        match body {
            EventBody::LccnSubscription(event) => Some(event),
            EventBody::VnfInstance(_) | EventBody::VnfLcmOpOcc(_) => None,
        }
    }
}

fn fold<S: Folded>(history: &[Envelope]) -> Option<(S, u64)> {
    let state = replay::<S>(
        history
            .iter()
            .filter_map(|envelope| S::event(&envelope.body)),
    )?;
    history.last().map(|last| (state, last.sequence))
}

/// Loads a stream from behind a sequence number on. An event that cannot be read makes all of it `Corrupt`.
pub(crate) async fn load(
    database: &Database,
    stream: &StreamId,
    after: u64,
) -> PortResult<Vec<Envelope>> {
    let args = args![stream.aggregate_type(), stream.aggregate_id(), after];
    let rows = database
        .fetch_all(&stream_sql(), args)
        .await
        .map_err(port)?;
    decoded(stream, &rows)
}

fn stream_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM events WHERE aggregate_type = $1 AND aggregate_id = $2 \
         AND sequence > $3 ORDER BY sequence"
    )
}

fn decoded(stream: &StreamId, rows: &[Row]) -> PortResult<Vec<Envelope>> {
    rows.iter()
        .map(|row| decode(row).map_err(|why| PortError::Corrupt(format!("{stream}: {why}"))))
        .collect()
}

/// The present state and version, from the row or, where it is missing or unreadable, from the events.
pub(crate) async fn state<S: Folded>(
    database: &Database,
    stream: &StreamId,
) -> PortResult<Option<(S, u64)>> {
    let row = database
        .fetch_optional(
            "SELECT version, schema_version, state FROM states \
             WHERE aggregate_type = $1 AND aggregate_id = $2",
            args![stream.aggregate_type(), stream.aggregate_id()],
        )
        .await
        .map_err(port)?;
    if let Some(row) = row {
        let kept = readable::<S>(row.int(1).map_err(port)?, &row.text(2).map_err(port)?);
        if let Some(state) = kept {
            return Ok(Some((state, row.count(0).map_err(port)?)));
        }
    }
    Ok(fold(&load(database, stream, 0).await?))
}

fn readable<S: Folded>(schema: i64, state: &str) -> Option<S> {
    if schema != SCHEMA {
        return None;
    }
    match serde_json::from_str(state) {
        Ok(state) => Some(state),
        Err(error) => {
            tracing::warn!(%error, "a state row cannot be read; the state comes from the events");
            None
        }
    }
}

/// Writes the states of different streams after an append, with their versions.
pub(crate) async fn write(
    tx: &mut Tx,
    states: &[(&StreamId, (u64, &StateAfter))],
) -> PortResult<()> {
    let mut places = Vec::with_capacity(states.len());
    let mut args = Vec::with_capacity(states.len() * 5);
    for (row, (stream, (version, state))) in states.iter().enumerate() {
        let n: Vec<String> = (1..=5)
            .map(|column| format!("${}", row * 5 + column))
            .collect();
        places.push(format!("({})", n.join(", ")));
        args.extend(args![
            stream.aggregate_type(),
            stream.aggregate_id(),
            *version,
            SCHEMA,
            written(stream, state)?,
        ]);
    }
    let sql = format!(
        "INSERT INTO states (aggregate_type, aggregate_id, version, schema_version, state) \
         VALUES {} ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE SET \
         version = excluded.version, schema_version = excluded.schema_version, \
         state = excluded.state",
        places.join(", ")
    );
    tx.execute(&sql, args).await.map_err(port)?;
    Ok(())
}

fn written(stream: &StreamId, state: &StateAfter) -> PortResult<String> {
    match state {
        StateAfter::VnfInstance(state) => serde_json::to_string(state),
        StateAfter::VnfLcmOpOcc(state) => serde_json::to_string(state),
        StateAfter::LccnSubscription(state) => serde_json::to_string(state),
    }
    .map_err(|error| {
        PortError::Corrupt(format!("the state of {stream} cannot be written: {error}"))
    })
}

/// Rows of states that are read at one time.
const PORTION: u32 = 500;

/// The first instance that is not deleted and of which something holds, as a transaction sees them: who deletes what
/// they use asks after it has locked that. Read in portions: there may be very many. One whose stream cannot be read is
/// left out and told of.
pub(crate) async fn find_living(
    tx: &mut Tx,
    holds: impl Fn(&VnfInstance) -> bool + Send,
) -> PortResult<Option<VnfInstance>> {
    let mut after = String::new();
    loop {
        let rows = tx
            .fetch_all(
                "SELECT aggregate_id, schema_version, state FROM states \
                 WHERE aggregate_type = $1 AND aggregate_id > $2 ORDER BY aggregate_id LIMIT $3",
                args![VnfInstance::TYPE, after.as_str(), PORTION],
            )
            .await
            .map_err(port)?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        after = last.text(0).map_err(port)?;
        for row in &rows {
            let kept = readable(row.int(1).map_err(port)?, &row.text(2).map_err(port)?);
            let found = match kept {
                Some(instance) => Some(instance),
                None => replayed(tx, row.text(0).map_err(port)?).await?,
            };
            if let Some(found) = found.filter(|found| !found.deleted && holds(found)) {
                return Ok(Some(found));
            }
        }
    }
}

async fn replayed(tx: &mut Tx, id: String) -> PortResult<Option<VnfInstance>> {
    let Ok(id) = VnfInstanceId::parse(id) else {
        return Ok(None);
    };
    let stream = StreamId::VnfInstance(id);
    let args = args![stream.aggregate_type(), stream.aggregate_id(), 0_u64];
    let rows = tx.fetch_all(&stream_sql(), args).await.map_err(port)?;
    match decoded(&stream, &rows) {
        Ok(history) => Ok(fold(&history).map(|(instance, _)| instance)),
        Err(why) => {
            tracing::error!(%why, "an instance cannot be read and is left out");
            Ok(None)
        }
    }
}
