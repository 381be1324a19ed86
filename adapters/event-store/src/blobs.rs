//! Bodies too large or too secret for events.

use crate::error::{commit, port};
use crate::pieces::{self, Pieces};
use crate::seal::Sealer;
use async_trait::async_trait;
use cairn_db::{Database, Tx, args};
use cairn_domain::object::Digest;
use cairn_domain::ports::{Blobs, PortError, PortResult};
use std::sync::Arc;

/// `Blobs` in the database, so that all replicas share them.
pub struct SqlBlobs {
    database: Database,
    sealer: Arc<Sealer>,
}

impl SqlBlobs {
    pub(crate) fn new(database: Database, sealer: Arc<Sealer>) -> Self {
        Self { database, sealer }
    }
}

#[async_trait]
impl Blobs for SqlBlobs {
    fn name(&self, bytes: &[u8]) -> Digest {
        self.sealer.digest(bytes)
    }

    async fn put(&self, bytes: &[u8]) -> PortResult<Digest> {
        let digest = self.name(bytes);
        let mut tx = self.database.begin().await.map_err(port)?;
        write(&mut tx, &self.sealer, &digest, bytes).await?;
        tx.commit().await.map_err(commit)?;
        Ok(digest)
    }

    async fn get(&self, digest: &Digest) -> PortResult<Vec<u8>> {
        let rows = self
            .database
            .fetch_all(
                "SELECT b.chunks, c.content FROM blobs b JOIN blob_chunks c ON c.digest = b.digest \
                 WHERE b.digest = $1 ORDER BY c.chunk",
                args![digest.0.as_str()],
            )
            .await
            .map_err(port)?;
        if rows.is_empty() {
            return Err(PortError::Corrupt(format!("blob {} is missing", digest.0)));
        }
        let bytes = Pieces::Blob.join(&self.sealer, &digest.0, &rows)?;
        if self.name(&bytes) == *digest {
            return Ok(bytes);
        }
        Err(PortError::Corrupt(format!(
            "blob {} is not what its name says",
            digest.0
        )))
    }
}

/// Writes a body unless it is there. The name must be the body's.
pub(crate) async fn write(
    tx: &mut Tx,
    sealer: &Sealer,
    digest: &Digest,
    bytes: &[u8],
) -> PortResult<()> {
    pieces::check_size(bytes)?;
    if sealer.digest(bytes) != *digest {
        return Err(PortError::Corrupt(format!(
            "a body was named {} and is another",
            digest.0
        )));
    }
    let now = tx.dialect().now_ms();
    let added = tx
        .execute(
            &format!(
                "INSERT INTO blobs (digest, size, chunks, created_at) VALUES ($1, $2, $3, {now}) \
                 ON CONFLICT (digest) DO NOTHING"
            ),
            args![digest.0.as_str(), bytes.len(), pieces::count(bytes)],
        )
        .await
        .map_err(port)?;
    if added == 0 {
        return Ok(());
    }
    Pieces::Blob.write(tx, sealer, &digest.0, bytes).await
}
