//! The unit of work: everything that is written together, or nothing.
//!
//! The order is what keeps it free of deadlocks and quick: everything that may wait for another transaction
//! comes first, each kind in one order of its own (key, lease, what is relied on, work rows, secrets, bodies, state rows); then the
//! counter row, which is held until commit, and after it only inserts that wait for nobody. So positions are
//! gapless and in the order of commit, and the counter is held for two statements.

use crate::codec::payload;
use crate::error::{commit, port};
use crate::event_log::EventStore;
use crate::signal::CHANNEL;
use crate::upcast::CURRENT;
use crate::{blobs, states, vault, work};
use cairn_db::{Arg, Dialect, Row, Tx, args};
use cairn_domain::history::{Envelope, StreamId};
use cairn_domain::ports::{
    Append, Appended, KeyedAnswer, PortError, PortResult, Reliance, StateAfter, Unit,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How long answers to an `Idempotency-Key` are kept, and how many.
const KEEP_KEYS_MS: i64 = 7 * 24 * 60 * 60 * 1000;
const KEEP_KEYS: i64 = 100_000;

/// Events in one INSERT: their arguments stay far below the limits of both databases.
const EVENTS_AT_ONCE: usize = 50;
/// Streams in one statement, likewise.
const STREAMS_AT_ONCE: usize = 50;

/// Writes one unit in a transaction of its own.
pub(crate) async fn append(store: &EventStore, unit: Unit) -> PortResult<Appended> {
    let mut tx = store.database().begin().await.map_err(port)?;
    let appended = write(&mut tx, store, unit).await?;
    match &appended {
        Appended::Written(_) => tx.commit().await.map_err(commit)?,
        Appended::Repeated(_) => tx.rollback().await.map_err(port)?,
    }
    Ok(appended)
}

/// Writes one unit in a transaction. After an error, and where its key was answered before, what it may have written
/// is the caller's to take back.
pub(crate) async fn write(tx: &mut Tx, store: &EventStore, unit: Unit) -> PortResult<Appended> {
    if let Some(key) = &unit.key
        && let Some(answered) = keep_answer(tx, store, key).await?
    {
        return Ok(Appended::Repeated(answered));
    }
    if let Some(fence) = &unit.fence {
        work::check_fence(tx, fence, &unit.work).await?;
    }
    check_reliances(tx, &unit.relies_on).await?;
    work::change(tx, &unit.work).await?;
    if !unit.secrets.is_empty() {
        vault::write(tx, store.sealer()?, &unit.secrets).await?;
    }
    // By name, so that two units that hold the same bodies wait for each other in one direction only.
    let bodies: BTreeMap<_, _> = unit
        .blobs
        .iter()
        .map(|(name, bytes)| (name, bytes))
        .collect();
    for (name, bytes) in bodies {
        blobs::write(tx, store.sealer()?, name, bytes).await?;
    }
    write_states(tx, &unit.appends).await?;
    check_versions(tx, &unit.appends).await?;
    let written = write_events(tx, unit.appends).await?;
    Ok(Appended::Written(written))
}

/// Keeps the answer under its key, or says what was answered under it before.
async fn keep_answer(
    tx: &mut Tx,
    store: &EventStore,
    key: &KeyedAnswer,
) -> PortResult<Option<KeyedAnswer>> {
    let now = tx.dialect().now_ms();
    let kept = tx
        .execute(
            &format!(
                "INSERT INTO keyed_answers (key, request_digest, answer, created_at) \
                 VALUES ($1, $2, $3, {now}) ON CONFLICT (key) DO NOTHING"
            ),
            args![
                key.key.as_str(),
                key.request_digest.as_str(),
                key.answer.as_str()
            ],
        )
        .await
        .map_err(port)?;
    if kept == 1 {
        if store.prunes_keys() {
            prune_keys(tx).await?;
        }
        return Ok(None);
    }
    let row = tx
        .fetch_optional(ANSWERED, args![key.key.as_str()])
        .await
        .map_err(port)?
        .ok_or_else(|| PortError::Conflict("the key was pruned meanwhile".to_owned()))?;
    answer(&key.key, &row).map(Some)
}

/// Locks what the events will refer to, so that who deletes it waits and then finds them.
async fn check_reliances(tx: &mut Tx, relies_on: &[Reliance]) -> PortResult<()> {
    let lock = tx.dialect().for_share();
    for reliance in BTreeSet::from_iter(relies_on) {
        let (sql, id) = match reliance {
            Reliance::Package(id) => ("SELECT id FROM packages WHERE id = $1", id.as_str()),
            Reliance::Vim(id) => ("SELECT vim_id FROM vims WHERE vim_id = $1", id.as_str()),
        };
        let there = tx
            .fetch_optional(&format!("{sql}{lock}"), args![id])
            .await
            .map_err(port)?;
        if there.is_none() {
            return Err(PortError::Conflict(format!("{reliance:?} is gone")));
        }
    }
    Ok(())
}

/// What was answered under a key.
pub(crate) const ANSWERED: &str = "SELECT request_digest, answer FROM keyed_answers WHERE key = $1";

/// Reads a row of [`ANSWERED`].
pub(crate) fn answer(key: &str, row: &Row) -> PortResult<KeyedAnswer> {
    Ok(KeyedAnswer {
        key: key.to_owned(),
        request_digest: row.text(0).map_err(port)?,
        answer: row.text(1).map_err(port)?,
    })
}

async fn prune_keys(tx: &mut Tx) -> PortResult<()> {
    let now = tx.dialect().now_ms();
    let lock = tx.dialect().for_update_skip_locked();
    tx.execute(
        &format!(
            "DELETE FROM keyed_answers WHERE key IN (SELECT key FROM keyed_answers \
             WHERE created_at < {now} - $1 OR created_at < COALESCE((SELECT created_at \
             FROM keyed_answers ORDER BY created_at DESC LIMIT 1 OFFSET $2), 0){lock})"
        ),
        args![KEEP_KEYS_MS, KEEP_KEYS],
    )
    .await
    .map_err(port)?;
    Ok(())
}

/// Writes the states, and so locks their rows: of two units on one stream the second waits here, and then finds
/// the stream's version changed.
async fn write_states(tx: &mut Tx, appends: &[Append]) -> PortResult<()> {
    let newest: BTreeMap<&StreamId, (u64, &StateAfter)> = appends
        .iter()
        .map(|append| {
            let version = append.expected_version + length(append);
            (&append.stream, (version, &append.state))
        })
        .collect();
    let newest: Vec<_> = newest.into_iter().collect();
    for some in newest.chunks(STREAMS_AT_ONCE) {
        states::write(tx, some).await?;
    }
    Ok(())
}

/// Compares each stream with the version that was decided on. Should somebody be faster all the same, the primary
/// key of `events` refuses.
async fn check_versions(tx: &mut Tx, appends: &[Append]) -> PortResult<()> {
    let streams: BTreeSet<&StreamId> = appends.iter().map(|append| &append.stream).collect();
    let streams: Vec<&StreamId> = streams.into_iter().collect();
    let mut versions: BTreeMap<&StreamId, u64> = BTreeMap::new();
    for some in streams.chunks(STREAMS_AT_ONCE) {
        versions.extend(some.iter().copied().zip(versions_of(tx, some).await?));
    }
    for append in appends {
        let version = versions.entry(&append.stream).or_default();
        if *version != append.expected_version {
            return Err(PortError::Conflict(format!(
                "{} is at {version}, not at {}",
                append.stream, append.expected_version
            )));
        }
        *version += length(append);
    }
    Ok(())
}

/// The versions of some streams, each found at the end of the primary key.
async fn versions_of(tx: &mut Tx, streams: &[&StreamId]) -> PortResult<Vec<u64>> {
    let newest: Vec<String> = (0..streams.len())
        .map(|n| {
            format!(
                "COALESCE((SELECT max(sequence) FROM events \
                 WHERE aggregate_type = ${} AND aggregate_id = ${}), 0)",
                n * 2 + 1,
                n * 2 + 2
            )
        })
        .collect();
    let args = streams
        .iter()
        .flat_map(|stream| args![stream.aggregate_type(), stream.aggregate_id()])
        .collect();
    let row = tx
        .fetch_optional(&format!("SELECT {}", newest.join(", ")), args)
        .await
        .map_err(port)?
        .ok_or_else(|| PortError::Corrupt("a SELECT without FROM answered nothing".to_owned()))?;
    (0..streams.len())
        .map(|n| row.count(n).map_err(port))
        .collect()
}

fn length(append: &Append) -> u64 {
    u64::try_from(append.events.len()).unwrap_or(u64::MAX)
}

/// Takes the counter and writes the events.
async fn write_events(tx: &mut Tx, appends: Vec<Append>) -> PortResult<Vec<Envelope>> {
    let total: u64 = appends.iter().map(length).sum();
    if total == 0 {
        return Ok(Vec::new());
    }
    let counter = tx
        .fetch_optional(
            "UPDATE log_position SET position = position + $1 WHERE id = 1 RETURNING position",
            args![total],
        )
        .await
        .map_err(port)?
        .ok_or_else(|| PortError::Corrupt("the log has no position".to_owned()))?;
    let last = counter.count(0).map_err(port)?;
    let mut written: Vec<Envelope> = appends.into_iter().flat_map(envelopes).collect();
    for (position, envelope) in (last - total + 1..).zip(&mut written) {
        envelope.position = position;
    }
    for some in written.chunks(EVENTS_AT_ONCE) {
        insert(tx, some).await?;
    }
    if tx.dialect() == Dialect::Postgres {
        tx.execute("SELECT pg_notify($1, $2)", args![CHANNEL, last.to_string()])
            .await
            .map_err(port)?;
    }
    Ok(written)
}

/// The events of an append, without their positions yet.
fn envelopes(append: Append) -> impl Iterator<Item = Envelope> {
    let Append {
        stream,
        expected_version,
        vnf_instance_id,
        events,
        state: _,
    } = append;
    (expected_version + 1..)
        .zip(events)
        .map(move |(sequence, body)| Envelope {
            position: 0,
            recorded_at: body.at(),
            stream: stream.clone(),
            sequence,
            vnf_instance_id: vnf_instance_id.clone(),
            body,
        })
}

async fn insert(tx: &mut Tx, events: &[Envelope]) -> PortResult<()> {
    let mut sql = "INSERT INTO events (aggregate_type, aggregate_id, sequence, event_type, \
         event_version, payload, metadata, position, recorded_at, vnf_instance_id) VALUES "
        .to_owned();
    let mut args: Vec<Arg> = Vec::with_capacity(events.len() * 9);
    for (index, event) in events.iter().enumerate() {
        let n = |column: usize| format!("${}", index * 9 + column);
        let json = tx.dialect().json(&n(6));
        let metadata = tx.dialect().json("'{}'");
        let comma = if index == 0 { "" } else { ", " };
        write!(
            sql,
            "{comma}({}, {}, {}, {}, {}, {json}, {metadata}, {}, {}, {})",
            n(1),
            n(2),
            n(3),
            n(4),
            n(5),
            n(7),
            n(8),
            n(9)
        )
        .expect("writing to a String cannot fail");
        args.extend(args![
            event.stream.aggregate_type(),
            event.stream.aggregate_id(),
            event.sequence,
            event.body.name(),
            CURRENT,
            payload(&event.body)?,
            event.position,
            event.recorded_at.as_millis(),
            event
                .vnf_instance_id
                .as_ref()
                .map(cairn_domain::ids::VnfInstanceId::as_str),
        ]);
    }
    tx.execute(&sql, args).await.map_err(port)?;
    Ok(())
}
