//! Opening the pools, with errors that say what to mend.

use crate::error::primary;
use crate::{DbError, DbOptions};
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, PgPool, SqlitePool};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long SQLite waits for a lock of another process (`history` beside `serve`).
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Pools {
    Postgres {
        pool: PgPool,
    },
    Sqlite {
        path: PathBuf,
        /// One connection: whoever wants to write waits for it here, fairly, and not for a lock of the file.
        writer: SqlitePool,
        /// The writer's commits wait for the disk; a new connection's do.
        synced: AtomicBool,
        readers: SqlitePool,
    },
}

pub(crate) async fn open(url: &str, options: DbOptions) -> Result<Pools, DbError> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return open_postgres(url, options).await;
    }
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Err(DbError::Url(format!("got {:?}", without_password(url))));
    };
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || path.starts_with(':') {
        return Err(DbError::Url("sqlite: needs the path of a file".to_owned()));
    }
    open_sqlite(Path::new(path), options).await
}

async fn open_postgres(url: &str, options: DbOptions) -> Result<Pools, DbError> {
    let target = without_password(url);
    let connect = PgConnectOptions::from_str(url)
        .map_err(|error| DbError::Url(format!("{target}: {error}")))?
        .application_name("cairn")
        // A statement or a transaction of a process that hangs must not stop the others for long.
        .options([
            ("statement_timeout", "30s"),
            ("lock_timeout", "10s"),
            ("idle_in_transaction_session_timeout", "15s"),
        ]);
    // One plain connection first: a pool would try again and again, and then know no reason.
    let first = tokio::time::timeout(options.acquire_timeout, connect.connect()).await;
    let unreachable = |why: String| DbError::Unreachable {
        target: target.clone(),
        why,
    };
    match first {
        Err(_) => return Err(unreachable("no answer in time".to_owned())),
        Ok(Err(error)) => return Err(refused(&target, error)),
        Ok(Ok(connection)) => {
            connection
                .close()
                .await
                .map_err(|error| unreachable(error.to_string()))?;
        }
    }
    let pool = PgPoolOptions::new()
        .max_connections(options.pool_size)
        .acquire_timeout(options.acquire_timeout)
        .connect_lazy_with(connect);
    Ok(Pools::Postgres { pool })
}

fn refused(target: &str, error: sqlx::Error) -> DbError {
    let target = target.to_owned();
    let code = error
        .as_database_error()
        .and_then(DatabaseError::code)
        .map(Cow::into_owned);
    match (code.as_deref(), &error) {
        (Some("3D000"), _) => DbError::Absent { target },
        (Some("28P01" | "28000"), _) => DbError::Credentials {
            target,
            why: error.to_string(),
        },
        (Some("53300" | "57P03"), _) | (None, sqlx::Error::Io(_) | sqlx::Error::Tls(_)) => {
            DbError::Unreachable {
                target,
                why: error.to_string(),
            }
        }
        _ => DbError::of(crate::Dialect::Postgres, error),
    }
}

async fn open_sqlite(path: &Path, options: DbOptions) -> Result<Pools, DbError> {
    let target = path.display().to_string();
    if !options.create && !path.exists() {
        return Err(DbError::Absent { target });
    }
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(options.create)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT);
    // A connection to a file does not break while it lies there; asking it first would cost as much as a read.
    let options_of = || SqlitePoolOptions::new().test_before_acquire(false);
    let writer = options_of()
        .max_connections(1)
        .acquire_timeout(options.acquire_timeout)
        .connect_with(connect.clone())
        .await
        .map_err(|error| unopened(target, error))?;
    let readers = options_of()
        .max_connections(options.pool_size)
        .acquire_timeout(options.acquire_timeout)
        .connect_lazy_with(connect.pragma("query_only", "1"));
    Ok(Pools::Sqlite {
        path: path.to_owned(),
        writer,
        synced: AtomicBool::new(true),
        readers,
    })
}

fn unopened(target: String, error: sqlx::Error) -> DbError {
    let said = error.as_database_error();
    let code = said
        .and_then(DatabaseError::code)
        .and_then(|code| primary(&code));
    match code {
        Some(26) => DbError::NotADatabase { target },
        Some(10 | 8 | 14) => DbError::File {
            path: target,
            why: error.to_string(),
        },
        _ => DbError::of(crate::Dialect::Sqlite, error),
    }
}

/// The URL as operators may see it: without the password, and without parameters, which may hold one too.
fn without_password(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(before, _)| before);
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((user_info, place)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    let user = user_info
        .split_once(':')
        .map_or(user_info, |(user, _)| user);
    format!("{scheme}://{user}@{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_holds_no_password() {
        for (url, shown) in [
            ("postgres://u:p@ss@h:5/d?password=x", "postgres://u@h:5/d"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://h/d", "postgres://h/d"),
            ("sqlite:a.db", "sqlite:a.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
