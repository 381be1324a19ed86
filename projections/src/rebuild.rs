//! Making read models anew: into new tables, which replace the old ones in one transaction.

use crate::Projections;
use crate::catch_up::lock;
use crate::error::port;
use crate::model::{self, Model, Target, make_indexes};
use cairn_db::{Tx, args};
use cairn_domain::ports::{PortError, PortResult};

/// Events in one transaction of a rebuild, in which nobody waits for them.
const BATCH: u32 = 1000;

/// How often the old tables may have moved on when the new ones are about to replace them.
const ATTEMPTS: u32 = 100;

impl Projections {
    /// Rebuilds some read models; answers the position that they have reached.
    pub(crate) async fn rebuild_these(&self, models: &[Model]) -> PortResult<u64> {
        self.rebuild_in_batches(models, BATCH).await
    }

    pub(crate) async fn rebuild_in_batches(&self, models: &[Model], batch: u32) -> PortResult<u64> {
        let new: Vec<Target> = models
            .iter()
            .map(|model| Target {
                model: *model,
                table: format!("{}_new", model.name()),
            })
            .collect();
        let mut tx = self.database.begin().await.map_err(port)?;
        tx.lock_schema().await.map_err(port)?;
        for target in &new {
            model::make(&mut tx, target.model, &target.table).await?;
        }
        tx.commit().await.map_err(port)?;
        for _ in 0..ATTEMPTS {
            let head = self.log.head().await?;
            self.bring(&new, 0, head, batch).await?;
            if self.swap(&new).await? {
                self.kept.clear();
                return Ok(head);
            }
        }
        Err(PortError::Unavailable(
            "the log grows faster than the read models are made".to_owned(),
        ))
    }

    /// Puts the new tables in the place of the old ones, unless these have moved on meanwhile: a checkpoint
    /// never goes back, or a `Location` that has answered 200 would answer 404.
    async fn swap(&self, new: &[Target]) -> PortResult<bool> {
        let mut tx = self.database.begin().await.map_err(port)?;
        tx.lock_schema().await.map_err(port)?;
        let reached = lock(&mut tx, new).await?;
        for (target, reached) in new.iter().zip(&reached) {
            if old_position(&mut tx, target.model.name()).await? > *reached {
                tx.rollback().await.map_err(port)?;
                return Ok(false);
            }
        }
        for (target, reached) in new.iter().zip(reached) {
            replace(&mut tx, target, reached).await?;
        }
        tx.commit().await.map_err(port)?;
        Ok(true)
    }
}

async fn old_position(tx: &mut Tx, name: &str) -> PortResult<u64> {
    let lock = tx.dialect().for_update();
    let row = tx
        .fetch_optional(
            &format!("SELECT position FROM checkpoints WHERE name = $1{lock}"),
            args![name],
        )
        .await
        .map_err(port)?;
    row.map_or(Ok(0), |row| row.count(0)).map_err(port)
}

async fn replace(tx: &mut Tx, target: &Target, reached: u64) -> PortResult<()> {
    let name = target.model.name();
    let new = &target.table;
    tx.execute_script(&format!(
        "DROP TABLE IF EXISTS {name}; ALTER TABLE {new} RENAME TO {name}"
    ))
    .await
    .map_err(port)?;
    make_indexes(tx, target.model).await?;
    tx.execute(
        "DELETE FROM checkpoints WHERE name = $1",
        args![new.as_str()],
    )
    .await
    .map_err(port)?;
    tx.execute(
        "INSERT INTO checkpoints (name, position, shape) VALUES ($1, $2, $3) \
         ON CONFLICT (name) DO UPDATE SET position = excluded.position, shape = excluded.shape",
        args![name, reached, target.model.shape()],
    )
    .await
    .map_err(port)?;
    Ok(())
}
