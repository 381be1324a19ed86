//! The database: pools and transactions.

use crate::connect::{self, Pools};
use crate::owner::OwnerLock;
use crate::{Arg, DbError, Dialect, Row, migrate, run};
use sqlx::{Executor, PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time that one statement may take; a server behind a dead network answers nothing for ever.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// How a database is opened.
#[derive(Clone, Copy, Debug)]
pub struct DbOptions {
    /// Most connections at a time.
    pub pool_size: u32,
    /// Longest wait for a free connection, and for the first one to come about.
    pub acquire_timeout: Duration,
    /// A missing SQLite file is made.
    pub create: bool,
}

impl Default for DbOptions {
    fn default() -> Self {
        Self {
            pool_size: 5,
            acquire_timeout: Duration::from_secs(10),
            create: true,
        }
    }
}

/// A database with its schema in place. Clones share its pools.
#[derive(Clone, Debug)]
pub struct Database {
    pools: Arc<Pools>,
}

impl Database {
    /// Opens a database and applies the migrations that it lacks.
    ///
    /// # Errors
    ///
    /// [`DbError`] saying what the operator must mend: URL, password, server, disk, file, schema.
    pub async fn connect(url: &str, options: DbOptions) -> Result<Self, DbError> {
        let database = Self {
            pools: Arc::new(connect::open(url, options).await?),
        };
        migrate::run(&database).await?;
        Ok(database)
    }

    /// Which database it is.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match *self.pools {
            Pools::Postgres { .. } => Dialect::Postgres,
            Pools::Sqlite { .. } => Dialect::Sqlite,
        }
    }

    /// Makes this process the owner of a SQLite file while the lock lives; PostgreSQL needs none.
    ///
    /// # Errors
    ///
    /// [`DbError::Owned`] when another process is; [`DbError::File`] when the lock file cannot be used.
    pub fn lock_owner(&self) -> Result<OwnerLock, DbError> {
        match &*self.pools {
            Pools::Postgres { .. } => Ok(OwnerLock::of_nothing()),
            Pools::Sqlite { path, .. } => OwnerLock::beside(path),
        }
    }

    /// The pool, for libraries that want one.
    #[must_use]
    pub fn postgres(&self) -> Option<&PgPool> {
        match &*self.pools {
            Pools::Postgres { pool } => Some(pool),
            Pools::Sqlite { .. } => None,
        }
    }

    /// The pool of readers, for libraries that want one. It refuses to write.
    #[must_use]
    pub fn sqlite(&self) -> Option<&SqlitePool> {
        match &*self.pools {
            Pools::Postgres { .. } => None,
            Pools::Sqlite { readers, .. } => Some(readers),
        }
    }

    /// Begins a transaction that may write. On SQLite it is the only one until it ends.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn begin(&self) -> Result<Tx, DbError> {
        let begun = Box::pin(async {
            match &*self.pools {
                Pools::Postgres { pool } => pool.begin().await.map(Open::Postgres),
                Pools::Sqlite { writer, synced, .. } => begin_immediate(writer, synced, true)
                    .await
                    .map(Open::Sqlite),
            }
        });
        in_time(self.dialect(), begun).await.map(Tx)
    }

    /// Begins a transaction for what can be done again: leases, cursors, views. On SQLite its commit does not wait
    /// for the disk, so that a power failure may take it back, with what was committed so before it and after the
    /// last commit that waited; the end of this process does not. On PostgreSQL it is like any other, for there the
    /// server may fail alone.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn begin_unsynced(&self) -> Result<Tx, DbError> {
        let Pools::Sqlite { writer, synced, .. } = &*self.pools else {
            return self.begin().await;
        };
        let begun = Box::pin(async {
            begin_immediate(writer, synced, false)
                .await
                .map(Open::Sqlite)
        });
        in_time(self.dialect(), begun).await.map(Tx)
    }

    /// Reads outside of a transaction.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn fetch_all(&self, sql: &str, args: Vec<Arg>) -> Result<Vec<Row>, DbError> {
        let fetched = Box::pin(async {
            match &*self.pools {
                Pools::Postgres { pool } => {
                    run::pg_fetch(&mut *pool.acquire().await?, sql, args).await
                }
                Pools::Sqlite { readers, .. } => {
                    run::sqlite_fetch(&mut *readers.acquire().await?, sql, args).await
                }
            }
        });
        in_time(self.dialect(), fetched).await
    }

    /// Reads at most one row outside of a transaction.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn fetch_optional(&self, sql: &str, args: Vec<Arg>) -> Result<Option<Row>, DbError> {
        let fetched = Box::pin(async {
            match &*self.pools {
                Pools::Postgres { pool } => {
                    run::pg_fetch_one(&mut *pool.acquire().await?, sql, args).await
                }
                Pools::Sqlite { readers, .. } => {
                    run::sqlite_fetch_one(&mut *readers.acquire().await?, sql, args).await
                }
            }
        });
        in_time(self.dialect(), fetched).await
    }

    /// Runs one statement in a transaction of its own and says how many rows it touched.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn execute(&self, sql: &str, args: Vec<Arg>) -> Result<u64, DbError> {
        let mut tx = self.begin().await?;
        let touched = tx.execute(sql, args).await?;
        tx.commit().await?;
        Ok(touched)
    }

    /// Runs one statement that answers rows in a transaction of its own, as [`Database::begin_unsynced`] begins it.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn execute_returning(&self, sql: &str, args: Vec<Arg>) -> Result<Vec<Row>, DbError> {
        let mut tx = self.begin_unsynced().await?;
        let rows = tx.fetch_all(sql, args).await?;
        tx.commit().await?;
        Ok(rows)
    }

    /// Closes all connections, once they are given back.
    pub async fn close(&self) {
        match &*self.pools {
            Pools::Postgres { pool } => pool.close().await,
            Pools::Sqlite {
                writer, readers, ..
            } => {
                readers.close().await;
                writer.close().await;
            }
        }
    }
}

#[derive(Debug)]
enum Open {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

/// A transaction. Dropped, it is rolled back.
#[derive(Debug)]
pub struct Tx(Open);

impl Tx {
    /// Which database it is.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self.0 {
            Open::Postgres(_) => Dialect::Postgres,
            Open::Sqlite(_) => Dialect::Sqlite,
        }
    }

    /// Runs a statement and says how many rows it touched.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn execute(&mut self, sql: &str, args: Vec<Arg>) -> Result<u64, DbError> {
        let dialect = self.dialect();
        let executed = Box::pin(async {
            match &mut self.0 {
                Open::Postgres(tx) => run::pg_execute(tx, sql, args).await,
                Open::Sqlite(tx) => run::sqlite_execute(tx, sql, args).await,
            }
        });
        in_time(dialect, executed).await
    }

    /// Runs a statement that answers rows.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn fetch_all(&mut self, sql: &str, args: Vec<Arg>) -> Result<Vec<Row>, DbError> {
        let dialect = self.dialect();
        let fetched = Box::pin(async {
            match &mut self.0 {
                Open::Postgres(tx) => run::pg_fetch(tx, sql, args).await,
                Open::Sqlite(tx) => run::sqlite_fetch(tx, sql, args).await,
            }
        });
        in_time(dialect, fetched).await
    }

    /// Runs a statement that answers at most one row.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn fetch_optional(
        &mut self,
        sql: &str,
        args: Vec<Arg>,
    ) -> Result<Option<Row>, DbError> {
        Ok(self.fetch_all(sql, args).await?.into_iter().next())
    }

    /// Runs a script of several statements without arguments.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn execute_script(&mut self, sql: &str) -> Result<(), DbError> {
        let dialect = self.dialect();
        let done: run::Running<'_, ()> = Box::pin(async {
            match &mut self.0 {
                Open::Postgres(tx) => (**tx).execute(sql).await.map(drop),
                Open::Sqlite(tx) => (**tx).execute(sql).await.map(drop),
            }
        });
        // No limit of time: a script may fill a whole table anew.
        done.await.map_err(|error| DbError::of(dialect, error))
    }

    /// Lets no other process make or swap tables until this transaction ends.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn lock_schema(&mut self) -> Result<(), DbError> {
        match self.dialect() {
            // The number is arbitrary, and the same in every Cairn.
            Dialect::Postgres => self
                .execute("SELECT pg_advisory_xact_lock(713209145)", Vec::new())
                .await
                .map(drop),
            Dialect::Sqlite => Ok(()),
        }
    }

    /// Keeps what was written. After an error it may be kept or not: read and look.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn commit(self) -> Result<(), DbError> {
        let dialect = self.dialect();
        let committed = Box::pin(async {
            match self.0 {
                Open::Postgres(tx) => tx.commit().await,
                Open::Sqlite(tx) => tx.commit().await,
            }
        });
        in_time(dialect, committed).await
    }

    /// Takes back what was written.
    ///
    /// # Errors
    ///
    /// [`DbError`].
    pub async fn rollback(self) -> Result<(), DbError> {
        let dialect = self.dialect();
        let undone = Box::pin(async {
            match self.0 {
                Open::Postgres(tx) => tx.rollback().await,
                Open::Sqlite(tx) => tx.rollback().await,
            }
        });
        in_time(dialect, undone).await
    }
}

/// SQLite ends a transaction by itself when the disk is full or broken, and sqlx then believes for ever that the
/// connection is in one. As there is one writer only, nothing could be written any more; so it is replaced.
async fn begin_immediate(
    writer: &SqlitePool,
    synced: &AtomicBool,
    sync: bool,
) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    let begin = async || {
        let mut connection = writer.acquire().await?;
        // There is one writer, and whoever holds it is alone here.
        if synced.load(Ordering::Acquire) != sync {
            let mode = if sync { "FULL" } else { "NORMAL" };
            // Not known to be in force until it was answered.
            synced.store(false, Ordering::Release);
            let pragma = format!("PRAGMA synchronous = {mode}");
            connection.execute(pragma.as_str()).await?;
            synced.store(sync, Ordering::Release);
        }
        Transaction::begin(connection, Some("BEGIN IMMEDIATE".into())).await
    };
    match begin().await {
        Err(sqlx::Error::InvalidSavePointStatement) => {
            writer.acquire().await?.close().await?;
            begin().await
        }
        other => other,
    }
}

async fn in_time<T>(dialect: Dialect, call: run::Running<'_, T>) -> Result<T, DbError> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(answer) => answer.map_err(|error| DbError::of(dialect, error)),
        Err(_) => Err(DbError::TimedOut(format!(
            "no answer within {} s",
            CALL_LIMIT.as_secs()
        ))),
    }
}
