//! The one owner of a SQLite file.

use crate::DbError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Held while a process owns its database; the lock ends with it, also when the process is killed.
#[derive(Debug)]
pub struct OwnerLock {
    /// None for PostgreSQL, which has no owner.
    _file: Option<File>,
}

impl OwnerLock {
    /// The lock of a database that needs none.
    pub(crate) fn of_nothing() -> Self {
        Self { _file: None }
    }

    /// Locks the file beside a database. The file stays when the lock ends: removing it would let two
    /// processes lock two files of one name.
    pub(crate) fn beside(database: &Path) -> Result<Self, DbError> {
        let path = lock_path(database);
        let wrong = |why: String| DbError::File {
            path: path.display().to_string(),
            why,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| wrong(error.to_string()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(DbError::Owned {
                target: database.display().to_string(),
                lock: path.display().to_string(),
            }),
            Err(TryLockError::Error(error)) => Err(wrong(error.to_string())),
        }
    }
}

/// Two names of one file (links) must give one lock.
fn lock_path(database: &Path) -> PathBuf {
    let real = database
        .canonicalize()
        .unwrap_or_else(|_| database.to_owned());
    let mut name = real.into_os_string();
    name.push(".lock");
    PathBuf::from(name)
}
