//! Operations that need an owner, and the leases of those who own them, by the database's clock.

use crate::error::port;
use async_trait::async_trait;
use cairn_db::{Database, Dialect, Row, Tx, args};
use cairn_domain::ids::{NodeId, VnfLcmOpOccId};
use cairn_domain::ports::{Fence, Lease, Owner, PortError, PortResult, WorkChange, WorkQueue};
use cairn_domain::time::Timestamp;
use std::collections::BTreeSet;

/// How long a lease lasts.
const LEASE_MS: i64 = 10_000;
/// How long a process that was seen no more is remembered.
const FORGET_NODES_MS: i64 = 24 * 60 * 60 * 1000;

/// `WorkQueue` on PostgreSQL or SQLite.
pub struct SqlWorkQueue {
    database: Database,
}

impl SqlWorkQueue {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Frees all leases of other processes at once. On SQLite the owner of the database calls it when it
    /// starts: whoever held them is dead. On PostgreSQL others may live, and it does nothing. Answers how many
    /// leases were freed.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    pub async fn take_over_all(&self, node: &NodeId) -> PortResult<u64> {
        if self.database.dialect() == Dialect::Postgres {
            return Ok(0);
        }
        let mut tx = self.database.begin_unsynced().await.map_err(port)?;
        let freed = tx
            .execute(
                "UPDATE work SET owner = NULL, expires_at = NULL WHERE owner <> $1",
                args![node.as_str()],
            )
            .await
            .map_err(port)?;
        tx.execute("UPDATE deliveries SET leased_until = NULL", args![])
            .await
            .map_err(port)?;
        tx.commit().await.map_err(port)?;
        Ok(freed)
    }

    fn now(&self) -> &'static str {
        self.database.dialect().now_ms()
    }

    /// Whether an operation may be claimed: asked first, so that a process that has nothing to claim writes nothing.
    async fn anything_claimable(&self) -> PortResult<bool> {
        let sql = format!(
            "SELECT op_id FROM work WHERE {} LIMIT 1",
            claimable(self.now())
        );
        Ok(self
            .database
            .fetch_optional(&sql, args![])
            .await
            .map_err(port)?
            .is_some())
    }

    /// Other processes learn that this one lives. SQLite has one owner, and nobody to learn it.
    async fn seen(&self, tx: &mut Tx, node: &NodeId) -> PortResult<()> {
        if self.database.dialect() == Dialect::Sqlite {
            return Ok(());
        }
        let now = self.now();
        tx.execute(
            &format!(
                "INSERT INTO nodes (node, seen_at) VALUES ($1, {now}) \
                 ON CONFLICT (node) DO UPDATE SET seen_at = excluded.seen_at"
            ),
            args![node.as_str()],
        )
        .await
        .map_err(port)?;
        tx.execute(
            &format!(
                "DELETE FROM nodes WHERE node IN (SELECT node FROM nodes \
                 WHERE seen_at < {now} - $1 FOR UPDATE SKIP LOCKED)"
            ),
            args![FORGET_NODES_MS],
        )
        .await
        .map_err(port)?;
        Ok(())
    }
}

fn claimable(now: &str) -> String {
    format!(
        "needed = 1 AND (owner IS NULL OR expires_at <= {now}) \
         AND (retry_at IS NULL OR retry_at <= {now})"
    )
}

#[async_trait]
impl WorkQueue for SqlWorkQueue {
    async fn claim(&self, node: &NodeId, room: usize) -> PortResult<Vec<Lease>> {
        if !self.anything_claimable().await? {
            return Ok(Vec::new());
        }
        let (now, claimable) = (self.now(), claimable(self.now()));
        let lock = self.database.dialect().for_update_skip_locked();
        let mut tx = self.database.begin_unsynced().await.map_err(port)?;
        let rows = tx
            .fetch_all(
                &format!(
                    "WITH free AS (SELECT op_id AS free_id FROM work WHERE {claimable} \
                     ORDER BY op_id LIMIT $2{lock}) \
                     UPDATE work SET owner = $1, fence = fence + 1, expires_at = {now} + {LEASE_MS}, \
                     quarantined = NULL, retry_at = NULL \
                     FROM free WHERE op_id = free_id RETURNING op_id, fence"
                ),
                args![node.as_str(), room],
            )
            .await
            .map_err(port)?;
        tx.commit().await.map_err(port)?;
        rows.iter().map(lease).collect()
    }

    async fn heartbeat(&self, node: &NodeId, leases: &[Lease]) -> PortResult<Vec<Lease>> {
        let now = self.now();
        let held = self
            .on_own(node, leases, &format!("expires_at = {now} + {LEASE_MS}"))
            .await?;
        Ok(leases
            .iter()
            .filter(|lease| held.contains(&key(lease)))
            .cloned()
            .collect())
    }

    async fn release(&self, node: &NodeId, leases: &[Lease]) -> PortResult<()> {
        self.on_own(node, leases, "owner = NULL, expires_at = NULL")
            .await?;
        Ok(())
    }

    async fn quarantine(&self, lease: &Lease, reason: &str, retry_after_ms: u64) -> PortResult<()> {
        tracing::error!(
            lcm_op_occ.id = %lease.op, reason, retry_after_ms,
            "an operation cannot be worked on and is set aside"
        );
        let now = self.now();
        self.database
            .execute(
                &format!(
                    "UPDATE work SET owner = NULL, expires_at = NULL, quarantined = $3, \
                     retry_at = {now} + $4 WHERE op_id = $1 AND fence = $2"
                ),
                args![lease.op.as_str(), lease.fence, reason, retry_after_ms],
            )
            .await
            .map_err(port)?;
        Ok(())
    }

    async fn owner(&self, op: &VnfLcmOpOccId) -> PortResult<Option<Owner>> {
        let now = self.now();
        let row = self
            .database
            .fetch_optional(
                &format!(
                    "SELECT owner, expires_at FROM work \
                     WHERE op_id = $1 AND owner IS NOT NULL AND expires_at > {now}"
                ),
                args![op.as_str()],
            )
            .await
            .map_err(port)?;
        row.map(|row| {
            let node = NodeId::parse(row.text(0).map_err(port)?)
                .map_err(|error| PortError::Corrupt(error.to_string()))?;
            Ok(Owner {
                node,
                expires_at: Timestamp::from_millis(row.int(1).map_err(port)?),
            })
        })
        .transpose()
    }

    async fn other_nodes(&self, node: &NodeId) -> PortResult<u32> {
        let now = self.now();
        let row = self
            .database
            .fetch_optional(
                &format!(
                    "SELECT count(*) FROM (\
                     SELECT owner AS name FROM work WHERE expires_at > {now} AND owner <> $1 \
                     UNION SELECT node AS name FROM nodes \
                     WHERE seen_at > {now} - {LEASE_MS} AND node <> $1) AS others"
                ),
                args![node.as_str()],
            )
            .await
            .map_err(port)?;
        let others = row.map_or(Ok(0), |row| row.count(0)).map_err(port)?;
        Ok(u32::try_from(others).unwrap_or(u32::MAX))
    }
}

impl SqlWorkQueue {
    /// Changes those of the leases that the node still holds, and says which they are: by their fence, for a process
    /// may hold anew what it lost before, and whoever ends with the old lease must not give the new one back. Rows
    /// are locked in one order, so that a heartbeat and a release of one process cannot wait for each other.
    async fn on_own(
        &self,
        node: &NodeId,
        leases: &[Lease],
        change: &str,
    ) -> PortResult<BTreeSet<(String, u64)>> {
        if leases.is_empty() && self.database.dialect() == Dialect::Sqlite {
            return Ok(BTreeSet::new());
        }
        let lock = self.database.dialect().for_update();
        let mut tx = self.database.begin_unsynced().await.map_err(port)?;
        self.seen(&mut tx, node).await?;
        let mut held = BTreeSet::new();
        let mut ordered: Vec<&Lease> = leases.iter().collect();
        ordered.sort_by(|a, b| a.op.cmp(&b.op));
        for some in ordered.chunks(500) {
            let names: Vec<String> = (0..some.len())
                .map(|n| format!("(${}, ${})", n * 2 + 2, n * 2 + 3))
                .collect();
            let mut args = args![node.as_str()];
            for lease in some {
                args.extend(args![lease.op.as_str(), lease.fence]);
            }
            let sql = format!(
                "WITH own AS (SELECT op_id AS own_id FROM work WHERE owner = $1 AND needed = 1 \
                 AND (op_id, fence) IN (VALUES {}) ORDER BY op_id{lock}) \
                 UPDATE work SET {change} FROM own WHERE op_id = own_id RETURNING op_id, fence",
                names.join(", ")
            );
            for row in tx.fetch_all(&sql, args).await.map_err(port)? {
                held.insert((row.text(0).map_err(port)?, row.count(1).map_err(port)?));
            }
        }
        tx.commit().await.map_err(port)?;
        Ok(held)
    }
}

fn key(lease: &Lease) -> (String, u64) {
    (lease.op.as_str().to_owned(), lease.fence)
}

fn lease(row: &Row) -> PortResult<Lease> {
    let op = VnfLcmOpOccId::parse(row.text(0).map_err(port)?)
        .map_err(|error| PortError::Corrupt(error.to_string()))?;
    Ok(Lease {
        op,
        fence: row.count(1).map_err(port)?,
    })
}

/// Refuses a unit whose runner does not hold its operation any more. The row stays locked until commit, so that
/// nobody can claim it in between; exclusively where the unit changes it too, as two units that share a lock and
/// both want more would wait for each other.
pub(crate) async fn check_fence(
    tx: &mut Tx,
    fence: &Fence,
    changes: &[WorkChange],
) -> PortResult<()> {
    let wants_more = changes.iter().any(|change| *op_of(change) == fence.op);
    let dialect = tx.dialect();
    let lock = if wants_more {
        dialect.for_update()
    } else {
        dialect.for_share()
    };
    let now = dialect.now_ms();
    let held = tx
        .fetch_optional(
            &format!(
                "SELECT op_id FROM work WHERE op_id = $1 AND fence = $2 AND needed = 1 \
                 AND owner IS NOT NULL AND expires_at > {now}{lock}"
            ),
            args![fence.op.as_str(), fence.number],
        )
        .await
        .map_err(port)?;
    held.map(drop).ok_or(PortError::Fenced)
}

/// Changes the queue, in order of the operations' ids.
pub(crate) async fn change(tx: &mut Tx, changes: &[WorkChange]) -> PortResult<()> {
    let mut ordered: Vec<&WorkChange> = changes.iter().collect();
    ordered.sort_by(|a, b| op_of(a).cmp(op_of(b)));
    for change in ordered {
        let sql = match change {
            WorkChange::Needed(_) => {
                "INSERT INTO work (op_id, needed) VALUES ($1, 1) ON CONFLICT (op_id) DO UPDATE SET \
                 needed = 1, quarantined = NULL, retry_at = NULL"
            }
            WorkChange::Done(_) => {
                "UPDATE work SET needed = 0, owner = NULL, expires_at = NULL, quarantined = NULL, \
                 retry_at = NULL WHERE op_id = $1"
            }
        };
        tx.execute(sql, args![op_of(change).as_str()])
            .await
            .map_err(port)?;
    }
    Ok(())
}

fn op_of(change: &WorkChange) -> &VnfLcmOpOccId {
    match change {
        WorkChange::Needed(op) | WorkChange::Done(op) => op,
    }
}
