//! Bringing read models up to the log.
//!
//! Events are read before the transaction begins: reading them inside it would need a second connection while
//! one is held, and so could wait for itself. The checkpoints are locked and compared with what was assumed; if
//! another replica was faster, it has done the work, and the round begins anew.

use crate::Projections;
use crate::error::port;
use crate::model::{self, Target};
use cairn_db::{Row, Tx, args};
use cairn_domain::history::Envelope;
use cairn_domain::ports::{PortError, PortResult};

/// Events in one transaction.
const BATCH: u32 = 500;

/// Rounds that others may spoil, one after the other, before it is an error.
const SPOILED: u32 = 100;

/// How a round went.
enum Round {
    /// The checkpoints have reached what was asked for, or the end of the log.
    Reached,
    /// They have moved.
    Moved,
    /// Another replica moved them.
    Spoiled,
}

impl Projections {
    /// Brings the live tables to a position at least.
    pub(crate) async fn reach(&self, position: u64) -> PortResult<()> {
        let targets = model::live();
        if lowest(&self.checkpoints(&targets).await?) >= position {
            return Ok(());
        }
        let _one_at_a_time = self.catching_up.lock().await;
        self.bring(&targets, position, BATCH).await
    }

    /// Brings tables to a position, in batches.
    pub(crate) async fn bring(
        &self,
        targets: &[Target],
        position: u64,
        batch: u32,
    ) -> PortResult<()> {
        let mut spoiled = 0;
        while spoiled < SPOILED {
            match self.round(targets, position, batch).await {
                Ok(Round::Reached) => return Ok(()),
                Ok(Round::Moved) => spoiled = 0,
                Ok(Round::Spoiled) | Err(PortError::Conflict(_)) => spoiled += 1,
                Err(other) => return Err(other),
            }
        }
        Err(PortError::Unavailable(
            "the read models are contended".to_owned(),
        ))
    }

    async fn round(&self, targets: &[Target], position: u64, batch: u32) -> PortResult<Round> {
        let before = self.checkpoints(targets).await?;
        let from = lowest(&before);
        if from >= position {
            return Ok(Round::Reached);
        }
        // In this order: events that are read later may lie beyond the head, and none before it are missed.
        let head = self.log.head().await?;
        let events = self.log.read_after(from, batch).await?;
        // No event: all up to the head were unreadable, and are passed over.
        let to = events.last().map_or(head, |last| last.position);
        if to <= from {
            return Ok(Round::Reached);
        }
        let mut tx = self.database.begin().await.map_err(port)?;
        if lock(&mut tx, targets).await? != before {
            tx.rollback().await.map_err(port)?;
            return Ok(Round::Spoiled);
        }
        for (target, at) in targets.iter().zip(before) {
            apply(&mut tx, target, at, to, &events).await?;
        }
        tx.commit().await.map_err(port)?;
        Ok(Round::Moved)
    }

    /// The checkpoints of tables, in the order of the tables.
    pub(crate) async fn checkpoints(&self, targets: &[Target]) -> PortResult<Vec<u64>> {
        let rows = self
            .database
            .fetch_all("SELECT name, position, shape FROM checkpoints", args![])
            .await
            .map_err(port)?;
        positions(targets, &rows)
    }
}

/// Locks the checkpoints of tables, in one order, and reads them.
pub(crate) async fn lock(tx: &mut Tx, targets: &[Target]) -> PortResult<Vec<u64>> {
    let sql = format!(
        "SELECT name, position, shape FROM checkpoints ORDER BY name{}",
        tx.dialect().for_update()
    );
    let rows = tx.fetch_all(&sql, args![]).await.map_err(port)?;
    positions(targets, &rows)
}

fn positions(targets: &[Target], rows: &[Row]) -> PortResult<Vec<u64>> {
    targets
        .iter()
        .map(|target| position_in(target, rows))
        .collect()
}

fn position_in(target: &Target, rows: &[Row]) -> PortResult<u64> {
    for row in rows {
        if row.text(0).map_err(port)? != target.table {
            continue;
        }
        if row.int(2).map_err(port)? == target.model.shape() {
            return row.count(1).map_err(port);
        }
    }
    let why = format!(
        "another cairn process is making the read model {} anew",
        target.table
    );
    Err(PortError::Unavailable(why))
}

fn lowest(positions: &[u64]) -> u64 {
    positions.iter().copied().min().unwrap_or(u64::MAX)
}

async fn apply(
    tx: &mut Tx,
    target: &Target,
    at: u64,
    to: u64,
    events: &[Envelope],
) -> PortResult<()> {
    let new: Vec<&Envelope> = events.iter().filter(|event| event.position > at).collect();
    target.model.apply(tx, &target.table, &new).await?;
    tx.execute(
        "UPDATE checkpoints SET position = $2 WHERE name = $1",
        args![target.table.as_str(), at.max(to)],
    )
    .await
    .map_err(port)?;
    Ok(())
}
