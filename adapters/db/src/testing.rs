//! Fresh databases for tests, one per test, on both databases.

use crate::{Database, DbOptions};
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Environment variable: URL of a PostgreSQL role that may create databases.
pub const POSTGRES: &str = "CAIRN_TEST_POSTGRES";
/// Environment variable: tests on PostgreSQL are left out on purpose.
pub const WITHOUT_POSTGRES: &str = "CAIRN_WITHOUT_POSTGRES";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A database that nothing else uses, and how to open it again.
pub struct TestDatabase {
    url: String,
    /// URL for dropping it, and its name.
    dropped_by: Option<(String, String)>,
    folder: Option<TempDir>,
}

impl TestDatabase {
    /// A SQLite file in a folder of its own.
    ///
    /// # Panics
    ///
    /// When there is no room for it.
    #[must_use]
    pub fn sqlite() -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let url = format!("sqlite:{}", folder.path().join("cairn.db").display());
        Self {
            url,
            dropped_by: None,
            folder: Some(folder),
        }
    }

    /// A SQLite file that begins as a copy of this one, which nobody has open. It lies in memory where the machine
    /// offers that: whoever copies many does not test the disk.
    ///
    /// # Panics
    ///
    /// When it cannot be copied.
    #[must_use]
    pub fn copy_of(file: &std::path::Path) -> Self {
        let in_memory = std::path::Path::new("/dev/shm");
        let folder = if in_memory.is_dir() {
            TempDir::new_in(in_memory)
        } else {
            TempDir::new()
        };
        let folder = folder.expect("a temporary folder can be made");
        let copy = folder.path().join("cairn.db");
        std::fs::copy(file, &copy).expect("the file can be copied");
        Self {
            url: format!("sqlite:{}", copy.display()),
            dropped_by: None,
            folder: Some(folder),
        }
    }

    /// Copies what a SQLite database holds now into a file that is not there yet.
    ///
    /// # Panics
    ///
    /// When it cannot be copied.
    pub async fn copy_to(&self, file: &std::path::Path) {
        let mut connection = SqliteConnection::connect(&self.url)
            .await
            .expect("the database opens");
        sqlx::query("VACUUM INTO $1")
            .bind(file.display().to_string())
            .execute(&mut connection)
            .await
            .expect("the database can be copied");
        connection.close().await.expect("the connection closes");
    }

    /// A PostgreSQL database of its own; `None` only when [`WITHOUT_POSTGRES`] says so.
    ///
    /// # Panics
    ///
    /// When neither variable is set, or the server refuses: a test must not pass without having run.
    pub async fn postgres() -> Option<Self> {
        let Ok(admin) = std::env::var(POSTGRES) else {
            assert!(
                std::env::var_os(WITHOUT_POSTGRES).is_some(),
                "set {POSTGRES} to the URL of a role that may create databases, or {WITHOUT_POSTGRES}=1"
            );
            return None;
        };
        Some(Self::postgres_at(&admin).await)
    }

    /// A database of its own on the PostgreSQL of this URL, whose role may create databases.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn postgres_at(admin: &str) -> Self {
        let name = format!(
            "cairn_test_{}_{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let mut server = PgConnection::connect(admin)
            .await
            .expect("PostgreSQL answers");
        for sql in [
            format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            format!("CREATE DATABASE {name}"),
        ] {
            sqlx::raw_sql(&sql)
                .execute(&mut server)
                .await
                .expect("the role may create databases");
        }
        let (server_url, _) = admin.rsplit_once('/').expect("the URL names a database");
        Self {
            url: format!("{server_url}/{name}"),
            dropped_by: Some((admin.to_owned(), name)),
            folder: None,
        }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder of a SQLite file.
    #[must_use]
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.folder.as_ref().map(TempDir::path)
    }

    /// Opens it (again).
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    pub async fn open(&self) -> Database {
        Database::connect(&self.url, DbOptions::default())
            .await
            .expect("the database opens")
    }

    /// Removes it; a test that fails leaves it for a look.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn remove(self) {
        if let Some((admin, name)) = &self.dropped_by {
            let mut server = PgConnection::connect(admin)
                .await
                .expect("PostgreSQL answers");
            sqlx::raw_sql(&format!("DROP DATABASE {name} WITH (FORCE)"))
                .execute(&mut server)
                .await
                .expect("the database is dropped");
        }
    }
}

/// The databases that a test runs on: SQLite, and PostgreSQL unless left out on purpose.
pub async fn databases() -> Vec<TestDatabase> {
    let mut all = vec![TestDatabase::sqlite()];
    all.extend(TestDatabase::postgres().await);
    all
}
