//! The log: reading streams, reading on from a position, and the one way to append.

use crate::codec::{self, COLUMNS, decode};
use crate::error::port;
use crate::group::Group;
use crate::seal::Sealer;
use crate::signal::{Signal, listen};
use crate::{group, states, unit};
use async_trait::async_trait;
use cairn_db::{Database, Dialect, Row, args};
use cairn_domain::history::{Envelope, StreamId};
use cairn_domain::ids::{SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{Appended, EventLog, KeyedAnswer, PortError, PortResult, Unit};
use cairn_domain::root::Pure as _;
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// `EventLog` on PostgreSQL or SQLite.
pub struct EventStore {
    database: Database,
    sealer: Option<Arc<Sealer>>,
    signal: Signal,
    group: Group,
    unreadable: AtomicU64,
    newer: OnceLock<String>,
    keys_kept: AtomicU64,
}

impl EventStore {
    pub(crate) fn new(database: Database, sealer: Option<Arc<Sealer>>) -> Self {
        Self {
            database,
            sealer,
            signal: Signal::default(),
            group: Group::default(),
            unreadable: AtomicU64::new(0),
            newer: OnceLock::new(),
            keys_kept: AtomicU64::new(0),
        }
    }

    /// The log without a key: for history and rebuild. It refuses units with secrets or bodies.
    #[must_use]
    pub fn without_key(database: Database) -> Arc<Self> {
        Arc::new(Self::new(database, None))
    }

    /// Passes on what other replicas append, to those who wait in [`EventLog::changed`]. Never ends; run it as
    /// a supervised task. On SQLite nothing ever comes.
    pub async fn listen(&self) {
        listen(&self.database, self).await;
    }

    /// How many unreadable events [`EventLog::read_after`] has passed over.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn signal(&self) -> &Signal {
        &self.signal
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    pub(crate) fn sealer(&self) -> PortResult<&Sealer> {
        self.sealer
            .as_deref()
            .ok_or_else(|| PortError::Unavailable("this needs the key file".to_owned()))
    }

    /// Counts a kept Idempotency-Key; true once in a thousand, when old ones are to be pruned.
    pub(crate) fn prunes_keys(&self) -> bool {
        self.keys_kept
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(1000)
    }

    async fn page(&self, position: u64, limit: u32) -> PortResult<Vec<Row>> {
        self.database
            .fetch_all(
                &format!(
                    "SELECT {COLUMNS} FROM events WHERE position > $1 ORDER BY position LIMIT $2"
                ),
                args![position, limit],
            )
            .await
            .map_err(port)
    }

    /// The events of a page that can be read, up to the first that a newer Cairn wrote, and what that is. Others
    /// that cannot be read are counted and told of.
    fn readable(&self, rows: &[Row]) -> (Vec<Envelope>, Option<String>) {
        let mut events = Vec::with_capacity(rows.len());
        for row in rows {
            match decode(row) {
                Ok(envelope) => events.push(envelope),
                Err(why) => {
                    let position = codec::position(row).unwrap_or(0);
                    if why.is_newer() {
                        return (events, Some(format!("position {position}: {why}")));
                    }
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(position, %why, "an event cannot be read and is passed over");
                }
            }
        }
        (events, None)
    }

    /// Remembers, and says once, that a newer Cairn is at work.
    fn outdated(&self, what: String) -> PortError {
        let why = self.newer.get_or_init(|| {
            tracing::error!(
                what,
                "a newer Cairn wrote to this log; this process stops before that event, update it"
            );
            what
        });
        too_old(why)
    }
}

fn too_old(why: &str) -> PortError {
    PortError::Unavailable(format!(
        "this Cairn is older than what was written to its log ({why}); update it"
    ))
}

#[async_trait]
impl EventLog for EventStore {
    async fn load(&self, stream: &StreamId) -> PortResult<Vec<Envelope>> {
        states::load(&self.database, stream, 0).await
    }

    async fn load_after(&self, stream: &StreamId, sequence: u64) -> PortResult<Vec<Envelope>> {
        states::load(&self.database, stream, sequence).await
    }

    async fn op_occ(&self, id: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>> {
        states::state(&self.database, &StreamId::VnfLcmOpOcc(id.clone())).await
    }

    async fn instance(&self, id: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>> {
        states::state(&self.database, &StreamId::VnfInstance(id.clone())).await
    }

    async fn subscription(
        &self,
        id: &SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>> {
        states::state(&self.database, &StreamId::LccnSubscription(id.clone())).await
    }

    async fn append(&self, unit: Unit) -> PortResult<Appended> {
        let appended = match self.database.dialect() {
            Dialect::Postgres => unit::append(self, unit).await?,
            Dialect::Sqlite => group::append(self, unit).await?,
        };
        self.signal.raise();
        Ok(appended)
    }

    async fn answered(&self, key: &str) -> PortResult<Option<KeyedAnswer>> {
        let row = self
            .database
            .fetch_optional(unit::ANSWERED, args![key])
            .await
            .map_err(port)?;
        row.map(|row| unit::answer(key, &row)).transpose()
    }

    /// An event that cannot be read is passed over, counted and logged: it stops its own stream, not the
    /// readers of the log. The answer is empty only when nothing readable follows the position.
    ///
    /// One that a newer Cairn wrote is not passed over: what is folded without it, or not told to subscribers, would
    /// be missing for ever.
    async fn read_after(&self, position: u64, limit: u32) -> PortResult<Vec<Envelope>> {
        let mut after = position;
        loop {
            let rows = self.page(after, limit).await?;
            let Some(last) = rows.last() else {
                return Ok(Vec::new());
            };
            after = codec::position(last).map_err(port)?;
            let (events, newer) = self.readable(&rows);
            match newer {
                _ if !events.is_empty() => return Ok(events),
                Some(newer) => return Err(self.outdated(newer)),
                None => {}
            }
        }
    }

    /// By the primary key, which begins with the type: their streams are few and short.
    async fn of_subscriptions(&self, up_to: u64) -> PortResult<Vec<Envelope>> {
        let rows = self
            .database
            .fetch_all(
                &format!(
                    "SELECT {COLUMNS} FROM events WHERE aggregate_type = $1 AND position <= $2"
                ),
                args![LccnSubscription::TYPE, up_to],
            )
            .await
            .map_err(port)?;
        let (mut events, newer) = self.readable(&rows);
        if let Some(newer) = newer {
            return Err(self.outdated(newer));
        }
        events.sort_by_key(|event| event.position);
        Ok(events)
    }

    async fn of_instance(&self, id: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        let rows = self
            .database
            .fetch_all(
                &format!(
                    "SELECT {COLUMNS} FROM events WHERE vnf_instance_id = $1 ORDER BY position"
                ),
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        rows.iter()
            .map(|row| decode(row).map_err(|why| PortError::Corrupt(format!("{id}: {why}"))))
            .collect()
    }

    fn health(&self) -> PortResult<()> {
        match self.newer.get() {
            Some(why) => Err(too_old(why)),
            None => Ok(()),
        }
    }

    async fn head(&self) -> PortResult<u64> {
        let row = self
            .database
            .fetch_optional("SELECT position FROM log_position", Vec::new())
            .await
            .map_err(port)?
            .ok_or_else(|| PortError::Corrupt("the log has no position".to_owned()))?;
        row.count(0).map_err(port)
    }

    async fn changed(&self, at_most_ms: u64) {
        self.signal.wait(Duration::from_millis(at_most_ms)).await;
    }
}
