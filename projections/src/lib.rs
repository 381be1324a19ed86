//! What queries read: tables that are folded from the log, one file each, and can be dropped at any time.
//!
//! A read model never acts, reads no clock and asks no other read model; all it knows it has from envelopes, so
//! that rebuilding gives the same rows byte for byte. Its checkpoint moves in the transaction that changes its
//! rows. Start reading at [`Projections`], then `catch_up.rs`.

mod catch_up;
mod error;
mod fold;
mod kept;
mod model;
mod reads;
mod rebuild;
mod subscriptions;
#[cfg(test)]
mod tests;
mod timeline;
mod vnf_instances;
mod vnf_lcm_op_occs;

use cairn_db::{Database, args};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{EventLog, PortError, PortResult};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use kept::Kept;
use model::Model;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long the background loop waits for news at most, in milliseconds.
const LOOK_AGAIN_MS: u64 = 1000;

/// What is appended within this time is applied together. Who must not wait for it catches up himself.
const BREATH: Duration = Duration::from_millis(50);

/// The read models of a database; the `ReadModels` port.
pub struct Projections {
    database: Database,
    log: Arc<dyn EventLog>,
    /// One catch-up at a time in this process; those of other replicas are kept apart by row locks.
    catching_up: Mutex<()>,
    /// Unreadable rows have caused a rebuild already; a second one would not help.
    mended: AtomicBool,
    /// Where this process has brought all live tables at least.
    reached: AtomicU64,
    kept: Lately,
}

/// What was read lately.
#[derive(Default)]
struct Lately {
    vnf_instances: Kept<VnfInstance>,
    vnf_lcm_op_occs: Kept<VnfLcmOpOcc>,
    subscriptions: Kept<LccnSubscription>,
}

impl Lately {
    fn clear(&self) {
        self.vnf_instances.clear();
        self.vnf_lcm_op_occs.clear();
        self.subscriptions.clear();
    }
}

impl Projections {
    /// Opens the read models: makes tables that are missing, and makes those anew that have another shape.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    pub async fn open(database: Database, log: Arc<dyn EventLog>) -> PortResult<Self> {
        let outdated = make_missing(&database).await?;
        let opened = Self {
            database,
            log,
            catching_up: Mutex::new(()),
            mended: AtomicBool::new(false),
            reached: AtomicU64::new(0),
            kept: Lately::default(),
        };
        if !outdated.is_empty() {
            tracing::info!("read models of another shape are made anew");
            opened.rebuild_these(&outdated).await?;
        }
        Ok(opened)
    }

    /// Makes all read models anew from the log, in new tables that replace the old ones in one transaction.
    /// Answers the position that they have reached.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    pub async fn rebuild(&self) -> PortResult<u64> {
        self.rebuild_these(&model::all()).await
    }

    /// Follows the log, for ever; run it as a supervised task. Errors are logged, and it goes on.
    pub async fn run(&self) {
        loop {
            if let Err(why) = self.follow().await {
                tracing::warn!(%why, "the read models could not catch up; trying again");
            }
            self.log.changed(LOOK_AGAIN_MS).await;
            tokio::time::sleep(BREATH).await;
        }
    }

    async fn follow(&self) -> PortResult<()> {
        let head = self.log.head().await?;
        self.reach(head).await
    }
}

/// Makes tables that are missing; answers the models whose table has another shape.
async fn make_missing(database: &Database) -> PortResult<Vec<Model>> {
    let mut outdated = Vec::new();
    let mut tx = database.begin().await.map_err(error::port)?;
    tx.lock_schema().await.map_err(error::port)?;
    for model in model::all() {
        let shape = tx
            .fetch_optional(
                "SELECT shape FROM checkpoints WHERE name = $1",
                args![model.name()],
            )
            .await
            .map_err(error::port)?
            .map(|row| row.int(0))
            .transpose()
            .map_err(error::port)?;
        match shape {
            Some(shape) if shape == model.shape() => {}
            Some(_) => outdated.push(model),
            None => model::make(&mut tx, model, model.name()).await?,
        }
    }
    tx.commit().await.map_err(error::port)?;
    Ok(outdated)
}

/// A row that cannot be read.
fn corrupt(what: &str, why: impl std::fmt::Display) -> PortError {
    PortError::Corrupt(format!("{what} cannot be read: {why}"))
}
