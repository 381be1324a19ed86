//! Secrets, encrypted, by reference.

use crate::error::{commit, port};
use crate::seal::Sealer;
use async_trait::async_trait;
use cairn_db::{Database, Tx, args};
use cairn_domain::ports::{PortError, PortResult, Vault};
use cairn_domain::secret::{SealedSecret, Secret, SecretRef};
use std::sync::Arc;

/// `Vault` in the database.
pub struct SqlVault {
    database: Database,
    sealer: Arc<Sealer>,
}

impl SqlVault {
    pub(crate) fn new(database: Database, sealer: Arc<Sealer>) -> Self {
        Self { database, sealer }
    }

    /// Writes secrets in a transaction of the caller's.
    pub(crate) async fn write_in(&self, tx: &mut Tx, secrets: &[SealedSecret]) -> PortResult<()> {
        write(tx, &self.sealer, secrets).await
    }
}

#[async_trait]
impl Vault for SqlVault {
    async fn put(&self, secrets: &[SealedSecret]) -> PortResult<()> {
        if secrets.is_empty() {
            return Ok(());
        }
        let mut tx = self.database.begin().await.map_err(port)?;
        write(&mut tx, &self.sealer, secrets).await?;
        tx.commit().await.map_err(commit)
    }

    async fn reveal(&self, reference: &SecretRef) -> PortResult<Secret> {
        let corrupt = |why: &str| PortError::Corrupt(format!("secret {} {why}", reference.0));
        let row = self
            .database
            .fetch_optional(
                "SELECT content FROM secrets WHERE reference = $1",
                args![reference.0.as_str()],
            )
            .await
            .map_err(port)?
            .ok_or_else(|| corrupt("is missing"))?;
        let plain = self
            .sealer
            .open(&place(reference), &row.bytes(0).map_err(port)?)?;
        String::from_utf8(plain)
            .map(Secret::new)
            .map_err(|_| corrupt("is no text"))
    }
}

/// Writes secrets. Their references are fresh, so one that is there was written by a repeat of the same call.
pub(crate) async fn write(
    tx: &mut Tx,
    sealer: &Sealer,
    secrets: &[SealedSecret],
) -> PortResult<()> {
    let now = tx.dialect().now_ms();
    for (reference, secret) in secrets {
        let content = sealer.seal(&place(reference), secret.reveal().as_bytes())?;
        tx.execute(
            &format!(
                "INSERT INTO secrets (reference, content, created_at) VALUES ($1, $2, {now}) \
                 ON CONFLICT (reference) DO NOTHING"
            ),
            args![reference.0.as_str(), content],
        )
        .await
        .map_err(port)?;
    }
    Ok(())
}

fn place(reference: &SecretRef) -> String {
    format!("secret {}", reference.0)
}
