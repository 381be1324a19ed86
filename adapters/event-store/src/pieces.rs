//! Long bodies in encrypted pieces, as rows of at most 256 KiB.

use crate::error::port;
use crate::seal::Sealer;
use cairn_db::{Row, Tx, args};
use cairn_domain::ports::{PortError, PortResult};
use cairn_domain::problem::Problem;

/// Largest row: what encryption adds (28 bytes) is in it.
const PIECE: usize = 256 * 1024 - 28;

/// Largest body that is taken.
pub(crate) const LARGEST: usize = 512 * 1024 * 1024;

/// Where pieces lie.
#[derive(Clone, Copy)]
pub(crate) enum Pieces {
    Blob,
    Package,
}

impl Pieces {
    fn place(self, owner: &str, index: usize, count: usize) -> String {
        match self {
            Self::Blob => format!("blob {owner} {index}/{count}"),
            Self::Package => format!("package {owner} {index}/{count}"),
        }
    }

    /// Writes all pieces of a body. Returns their number.
    pub(crate) async fn write(
        self,
        tx: &mut Tx,
        sealer: &Sealer,
        owner: &str,
        bytes: &[u8],
    ) -> PortResult<()> {
        let count = count(bytes);
        for (index, piece) in pieces(bytes).enumerate() {
            let content = sealer.seal(&self.place(owner, index, count), piece)?;
            let (sql, args) = match self {
                Self::Blob => (
                    "INSERT INTO blob_chunks (digest, chunk, content) VALUES ($1, $2, $3)",
                    args![owner, index, content],
                ),
                Self::Package => (
                    "INSERT INTO package_chunks (package_id, chunk, content, chunks) \
                     VALUES ($1, $2, $3, $4)",
                    args![owner, index, content, count],
                ),
            };
            tx.execute(sql, args).await.map_err(port)?;
        }
        Ok(())
    }

    /// Puts pieces together: rows of (number of pieces, content) in order.
    pub(crate) fn join(self, sealer: &Sealer, owner: &str, rows: &[Row]) -> PortResult<Vec<u8>> {
        let mut bytes = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let count = usize::try_from(row.count(0).map_err(port)?).unwrap_or(usize::MAX);
            if count != rows.len() {
                return Err(PortError::Corrupt(format!("{owner} lacks pieces")));
            }
            let content = row.bytes(1).map_err(port)?;
            bytes.extend(sealer.open(&self.place(owner, index, count), &content)?);
        }
        Ok(bytes)
    }
}

/// Number of pieces; an empty body is one empty piece, so that it differs from a missing one.
pub(crate) fn count(bytes: &[u8]) -> usize {
    bytes.len().div_ceil(PIECE).max(1)
}

fn pieces(bytes: &[u8]) -> Box<dyn Iterator<Item = &[u8]> + Send + '_> {
    if bytes.is_empty() {
        Box::new(std::iter::once(bytes))
    } else {
        Box::new(bytes.chunks(PIECE))
    }
}

/// Refuses what is larger than [`LARGEST`].
pub(crate) fn check_size(bytes: &[u8]) -> PortResult<()> {
    if bytes.len() <= LARGEST {
        return Ok(());
    }
    let detail = format!(
        "{} bytes are more than the {LARGEST} that are kept",
        bytes.len()
    );
    Err(PortError::Refused(Problem::new(413, detail)))
}
