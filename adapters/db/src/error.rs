//! What goes wrong with a database, by what the caller or the operator does about it.

use crate::Dialect;
use std::borrow::Cow;

/// An error of the database. Its text is for operators and holds no password.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The URL is of no known form.
    #[error("the database must be given as sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME: {0}")]
    Url(String),
    /// There is no such database.
    #[error("the database {target} does not exist; create it first")]
    Absent {
        /// Which.
        target: String,
    },
    /// The user or the password is wrong.
    #[error("the database {target} refuses the user or the password: {why}")]
    Credentials {
        /// Which.
        target: String,
        /// The server's words.
        why: String,
    },
    /// Nobody answers there.
    #[error("the database {target} cannot be reached: {why}")]
    Unreachable {
        /// Which.
        target: String,
        /// What was heard instead.
        why: String,
    },
    /// The file is something else.
    #[error("{target} is not a SQLite database; it was left as it is")]
    NotADatabase {
        /// Which.
        target: String,
    },
    /// The disk of the database is full. Nothing was written.
    #[error("the disk of the database is full; nothing was written: {0}")]
    DiskFull(String),
    /// A newer Cairn has been at work here.
    #[error(
        "the database has schema {found}, this Cairn knows schemas up to {known}: \
         start the newer Cairn again, the older one would damage what it does not know"
    )]
    NewerSchema {
        /// The schema that the database has.
        found: i64,
        /// The newest one that this binary knows.
        known: i64,
    },
    /// Another process owns the SQLite file.
    #[error(
        "another cairn process is at work on {target} (it holds the lock on {lock}); \
         a SQLite database has one owner, use PostgreSQL for several replicas"
    )]
    Owned {
        /// The database.
        target: String,
        /// The locked file.
        lock: String,
    },
    /// A file beside the database cannot be used.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// The system's words.
        why: String,
    },
    /// A unique or check constraint was violated.
    #[error("constraint violated: {why}")]
    Constraint {
        /// Its name; SQLite names none.
        name: Option<String>,
        /// The database's words.
        why: String,
    },
    /// Others were in the way (deadlock, serialization, lock time-out): the transaction may be tried again.
    #[error("the database was contended: {0}")]
    Contended(String),
    /// No answer in time, or no free connection.
    #[error("the database did not answer in time: {0}")]
    TimedOut(String),
    /// A column holds what it cannot hold.
    #[error("column {column} of an answer is not {wanted}")]
    Column {
        /// Its place, from 0.
        column: usize,
        /// What was expected.
        wanted: &'static str,
    },
    /// Anything else; the connection may be gone.
    #[error("the database failed: {0}")]
    Failed(#[source] sqlx::Error),
}

impl DbError {
    /// Sorts an error of a statement or a commit.
    pub(crate) fn of(dialect: Dialect, error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(said) => {
                let code = said.code().map(Cow::into_owned).unwrap_or_default();
                let why = said.message().to_owned();
                let name = said.constraint().map(str::to_owned);
                let sorted = match dialect {
                    Dialect::Postgres => of_postgres(&code, name, why),
                    Dialect::Sqlite => of_sqlite(&code, why),
                };
                sorted.unwrap_or(Self::Failed(error))
            }
            sqlx::Error::PoolTimedOut => Self::TimedOut("no connection became free".to_owned()),
            _ => Self::Failed(error),
        }
    }
}

/// SQLSTATE codes, <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_postgres(code: &str, name: Option<String>, why: String) -> Option<DbError> {
    match code {
        "23505" | "23514" => Some(DbError::Constraint { name, why }),
        "40001" | "40P01" | "55P03" => Some(DbError::Contended(why)),
        "53100" => Some(DbError::DiskFull(why)),
        "57014" => Some(DbError::TimedOut(why)),
        _ => None,
    }
}

/// Result codes, <https://www.sqlite.org/rescode.html>; the extended ones hold the primary in their low byte.
fn of_sqlite(code: &str, why: String) -> Option<DbError> {
    match primary(code)? {
        5 | 6 => Some(DbError::Contended(why)),
        13 => Some(DbError::DiskFull(why)),
        19 => Some(DbError::Constraint { name: None, why }),
        _ => None,
    }
}

pub(crate) fn primary(code: &str) -> Option<i32> {
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_by_what_the_caller_does() {
        let pg = |code| of_postgres(code, Some("events_pkey".to_owned()), String::new());
        assert!(matches!(
            pg("23505"),
            Some(DbError::Constraint { name: Some(_), .. })
        ));
        assert!(matches!(pg("40P01"), Some(DbError::Contended(_))));
        assert!(matches!(pg("53100"), Some(DbError::DiskFull(_))));
        assert!(pg("42601").is_none());
        assert!(matches!(
            of_sqlite("2067", String::new()),
            Some(DbError::Constraint { .. })
        ));
        assert!(matches!(
            of_sqlite("517", String::new()),
            Some(DbError::Contended(_))
        ));
        assert!(matches!(
            of_sqlite("13", String::new()),
            Some(DbError::DiskFull(_))
        ));
        assert!(of_sqlite("11", String::new()).is_none());
    }
}
