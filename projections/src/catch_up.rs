//! Bringing read models up to the log.
//!
//! Events are read before the transaction begins: reading them inside it would need a second connection while
//! one is held, and so could wait for itself. The checkpoints are locked then; where another replica was faster,
//! what it has applied is left out.

use crate::Projections;
use crate::error::port;
use crate::model::{self, Target};
use cairn_db::{Arg, Row, Tx, args};
use cairn_domain::history::Envelope;
use cairn_domain::ports::{PortError, PortResult};
use std::sync::atomic::Ordering;

/// Events in one transaction.
const BATCH: u32 = 500;

/// Rounds that others may spoil, one after the other, before it is an error.
const SPOILED: u32 = 100;

/// How a round went.
enum Round {
    /// Nothing follows in the log.
    End,
    /// All checkpoints have reached this at least.
    Moved(u64),
    /// A checkpoint is not where it was taken to be.
    Spoiled,
}

impl Projections {
    /// Brings the live tables to a position at least. Checkpoints never go back, so where this process has
    /// brought them once need not be asked again.
    pub(crate) async fn reach(&self, position: u64) -> PortResult<()> {
        if self.reached.load(Ordering::Acquire) >= position {
            return Ok(());
        }
        let _one_at_a_time = self.catching_up.lock().await;
        let from = self.reached.load(Ordering::Acquire);
        if from >= position {
            return Ok(());
        }
        let reached = self.bring(&model::live(), from, position, BATCH).await?;
        self.reached.fetch_max(reached, Ordering::AcqRel);
        Ok(())
    }

    /// Brings tables, whose checkpoints have reached `from` at least, to a position, in batches. Answers where
    /// they are.
    pub(crate) async fn bring(
        &self,
        targets: &[Target],
        from: u64,
        position: u64,
        batch: u32,
    ) -> PortResult<u64> {
        let mut from = from;
        let mut spoiled = 0;
        while spoiled < SPOILED {
            if from >= position {
                return Ok(from);
            }
            match self.round(targets, from, batch).await {
                Ok(Round::End) => return Ok(from),
                Ok(Round::Moved(to)) => (from, spoiled) = (to, 0),
                Ok(Round::Spoiled) | Err(PortError::Conflict(_)) => {
                    from = lowest(&self.checkpoints(targets).await?);
                    spoiled += 1;
                }
                Err(other) => return Err(other),
            }
        }
        Err(PortError::Unavailable(
            "the read models are contended".to_owned(),
        ))
    }

    async fn round(&self, targets: &[Target], from: u64, batch: u32) -> PortResult<Round> {
        let (events, to) = self.next(from, batch).await?;
        if to <= from {
            return Ok(Round::End);
        }
        let mut tx = self.database.begin_unsynced().await.map_err(port)?;
        let locked = lock(&mut tx, targets).await?;
        if lowest(&locked) < from {
            tx.rollback().await.map_err(port)?;
            return Ok(Round::Spoiled);
        }
        for (target, at) in targets.iter().zip(&locked) {
            let new: Vec<&Envelope> = events.iter().filter(|event| event.position > *at).collect();
            target.model.apply(&mut tx, &target.table, &new).await?;
        }
        advance(&mut tx, targets, to).await?;
        tx.commit().await.map_err(port)?;
        Ok(Round::Moved(lowest(&locked).max(to)))
    }

    /// The events that follow a position, and the position that they reach.
    async fn next(&self, from: u64, batch: u32) -> PortResult<(Vec<Envelope>, u64)> {
        let events = self.log.read_after(from, batch).await?;
        if let Some(last) = events.last() {
            let to = last.position;
            return Ok((events, to));
        }
        // Nothing readable follows: what is there up to the head is unreadable, and is passed over. The head is
        // read first, or an event that comes in between would be passed over with it.
        let head = self.log.head().await?;
        let events = self.log.read_after(from, batch).await?;
        let to = events.last().map_or(head, |last| last.position);
        Ok((events, to))
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
        "SELECT name, position, shape FROM checkpoints WHERE name IN ({}) ORDER BY name{}",
        placeholders(targets),
        tx.dialect().for_update()
    );
    let rows = tx.fetch_all(&sql, names(targets)).await.map_err(port)?;
    positions(targets, &rows)
}

async fn advance(tx: &mut Tx, targets: &[Target], to: u64) -> PortResult<()> {
    let sql = format!(
        "UPDATE checkpoints SET position = ${last} WHERE name IN ({}) AND position < ${last}",
        placeholders(targets),
        last = targets.len() + 1
    );
    let mut args = names(targets);
    args.extend(args![to]);
    tx.execute(&sql, args).await.map_err(port)?;
    Ok(())
}

fn placeholders(targets: &[Target]) -> String {
    let all: Vec<String> = (1..=targets.len()).map(|n| format!("${n}")).collect();
    all.join(", ")
}

fn names(targets: &[Target]) -> Vec<Arg> {
    targets
        .iter()
        .map(|target| Arg::from(target.table.as_str()))
        .collect()
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
