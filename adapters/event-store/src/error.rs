//! Errors of opening, and how the database's errors become those of the ports.

use cairn_db::DbError;
use cairn_domain::ports::PortError;

/// Why the stores cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
    /// There is no key file where one must be.
    #[error("the key file {path} is missing: {why}")]
    KeyMissing {
        /// Where it was looked for.
        path: String,
        /// What to do.
        why: String,
    },
    /// The key file is no key.
    #[error("the key file {path} must hold 32 random bytes in base64: {why}")]
    KeyMalformed {
        /// Which.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The database was written under another key.
    #[error(
        "the key is not the one that this database was written with; \
         start with the right --key-file, what is encrypted cannot be read without it"
    )]
    WrongKey,
    /// The key file cannot be read or made.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// The system's words.
        why: String,
    },
}

/// The error of a port for one of the database.
pub(crate) fn port(error: DbError) -> PortError {
    match error {
        DbError::Contended(why) => PortError::Conflict(why),
        DbError::Constraint {
            name: Some(name),
            why,
        } if name == "events_pkey" => PortError::Conflict(why),
        DbError::Column { .. } => PortError::Corrupt(error.to_string()),
        other => PortError::Unavailable(other.to_string()),
    }
}

/// The same for a commit, of which nobody knows whether it was made.
pub(crate) fn commit(error: DbError) -> PortError {
    match port(error) {
        PortError::Corrupt(why) => PortError::Unavailable(why),
        other => other,
    }
}
