//! The key file, and the proof that it is the database's.

use crate::StoreError;
use crate::seal::Sealer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cairn_db::{Database, Dialect, args};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The key that everything encrypted is encrypted under: 32 random bytes, base64 in its file.
pub struct KeyFile([u8; 32]);

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFile(…)")
    }
}

impl KeyFile {
    /// A key from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads a key file.
    ///
    /// # Errors
    ///
    /// [`StoreError::KeyMissing`], [`StoreError::KeyMalformed`], [`StoreError::File`].
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => StoreError::KeyMissing {
                path: shown(),
                why: "put 32 random bytes in base64 there, the same file for all replicas"
                    .to_owned(),
            },
            _ => StoreError::File {
                path: shown(),
                why: error.to_string(),
            },
        })?;
        let malformed = |why: String| StoreError::KeyMalformed { path: shown(), why };
        let bytes = STANDARD
            .decode(text.trim())
            .map_err(|error| malformed(error.to_string()))?;
        let length = bytes.len();
        let bytes = bytes
            .try_into()
            .map_err(|_| malformed(format!("it holds {length} bytes")))?;
        Ok(Self(bytes))
    }

    /// Reads the key file or, for a SQLite database that is still empty, makes one (mode 0600).
    ///
    /// # Errors
    ///
    /// As [`KeyFile::load`]; a database that is not empty, and any on PostgreSQL, demands the file.
    pub async fn load_or_create(path: &Path, database: &Database) -> Result<Self, StoreError> {
        match Self::load(path) {
            Err(StoreError::KeyMissing { .. }) if database.dialect() == Dialect::Sqlite => {
                if is_empty(database).await? {
                    return Self::create(path);
                }
                Err(StoreError::KeyMissing {
                    path: path.display().to_string(),
                    why: "the database was written with it; bring it back".to_owned(),
                })
            }
            other => other,
        }
    }

    fn create(path: &Path) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::File {
            path: path.display().to_string(),
            why,
        };
        let mut bytes = [0; 32];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| wrong("no randomness".to_owned()))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| wrong(error.to_string()))?;
        writeln!(file, "{}", STANDARD.encode(bytes))
            .and_then(|()| file.sync_all())
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self(bytes))
    }
}

async fn is_empty(database: &Database) -> Result<bool, StoreError> {
    let found = database
        .fetch_optional(
            "SELECT id FROM key_check UNION ALL SELECT id FROM log_position WHERE position > 0",
            Vec::new(),
        )
        .await?;
    Ok(found.is_none())
}

/// Compares the key with the proof in the database, or leaves a proof in a database that has none.
pub(crate) async fn prove(database: &Database, key: &KeyFile) -> Result<(), StoreError> {
    let proof = Sealer::new(key).proof();
    database
        .execute(
            "INSERT INTO key_check (id, proof) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
            args![proof.as_str()],
        )
        .await?;
    let kept = database
        .fetch_optional("SELECT proof FROM key_check", Vec::new())
        .await?;
    match kept.map(|row| row.text(0)).transpose()? {
        Some(kept) if kept == proof => Ok(()),
        Some(_) | None => Err(StoreError::WrongKey),
    }
}
