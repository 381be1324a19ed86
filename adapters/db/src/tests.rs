//! Opening, errors and rows on both databases.

use crate::testing::{POSTGRES, TestDatabase, databases};
use crate::{Arg, Database, DbError, DbOptions, Dialect, args};
use std::time::Duration;
use tokio::task::JoinSet;

async fn refused(url: &str, options: DbOptions) -> DbError {
    Database::connect(url, options)
        .await
        .expect_err("it must be refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_as_they_were_bound() {
    for test in databases().await {
        let database = test.open().await;
        let blob = match database.dialect() {
            Dialect::Postgres => "BYTEA",
            Dialect::Sqlite => "BLOB",
        };
        let mut tx = database.begin().await.unwrap();
        tx.execute_script(&format!(
            "CREATE TABLE t (a TEXT, b BIGINT, c {blob}); SELECT 1"
        ))
        .await
        .unwrap();
        let insert = "INSERT INTO t (a, b, c) VALUES ($1, $2, $3)";
        let empty: Vec<u8> = Vec::new();
        for values in [
            args!["Größe 'x'", i64::MIN, vec![0_u8, 255]],
            args![None::<&str>, None::<i64>, empty],
        ] {
            assert_eq!(tx.execute(insert, values).await.unwrap(), 1);
        }
        tx.commit().await.unwrap();
        let rows = database.fetch_all(
            "SELECT a, b, c, count(*) OVER () FROM t ORDER BY a IS NULL",
            args![],
        );
        let rows = rows.await.unwrap();
        assert_eq!(rows[0].text(0).unwrap(), "Größe 'x'");
        assert_eq!(rows[0].int(1).unwrap(), i64::MIN);
        assert_eq!(rows[0].bytes(2).unwrap(), [0, 255]);
        assert_eq!(rows[0].count(3).unwrap(), 2);
        assert_eq!(
            (rows[1].opt_text(0).unwrap(), rows[1].opt_int(1).unwrap()),
            (None, None)
        );
        assert!(rows[1].bytes(2).unwrap().is_empty());
        for wrong in [
            rows[0].int(0).map(drop),
            rows[0].text(9).map(drop),
            rows[1].int(1).map(drop),
        ] {
            assert!(matches!(wrong, Err(DbError::Column { .. })));
        }
        assert!(
            matches!(rows[0].count(1), Err(DbError::Column { .. })),
            "negative"
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_transaction_leaves_nothing() {
    for test in databases().await {
        let database = test.open().await;
        let mut tx = database.begin().await.unwrap();
        tx.execute("UPDATE log_position SET position = 7", args![])
            .await
            .unwrap();
        drop(tx);
        let row = database
            .fetch_optional("SELECT position FROM log_position", args![])
            .await;
        assert_eq!(row.unwrap().unwrap().int(0).unwrap(), 0);
        database
            .execute("UPDATE log_position SET position = 8", args![])
            .await
            .unwrap();
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_that_of_the_database_in_milliseconds() {
    for test in databases().await {
        let database = test.open().await;
        let sql = format!("SELECT {}", database.dialect().now_ms());
        let row = database
            .fetch_optional(&sql, args![])
            .await
            .unwrap()
            .unwrap();
        let now = row.int(0).unwrap();
        assert!(
            (1_700_000_000_000..4_000_000_000_000).contains(&now),
            "{now}"
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_migrate_at_once_and_once_only() {
    for test in databases().await {
        let mut starts = JoinSet::new();
        for _ in 0..4 {
            let url = test.url().to_owned();
            starts
                .spawn(async move { Database::connect(&url, DbOptions::default()).await.unwrap() });
        }
        let opened = starts.join_all().await;
        let rows = opened[0]
            .fetch_all("SELECT version FROM schema_migrations", args![])
            .await;
        assert_eq!(rows.unwrap().len(), 1);
        drop(opened);
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused_and_left_alone() {
    for test in databases().await {
        let database = test.open().await;
        let newer = "INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'x', 0)";
        database.execute(newer, args![]).await.unwrap();
        let error = refused(test.url(), DbOptions::default()).await;
        assert!(
            matches!(error, DbError::NewerSchema { found: 99, .. }),
            "{error}"
        );
        test.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_sqlite_file_is_said_at_once() {
    let test = TestDatabase::sqlite();
    let folder = test.folder().unwrap();
    let missing = refused(
        test.url(),
        DbOptions {
            create: false,
            ..DbOptions::default()
        },
    )
    .await;
    assert!(matches!(missing, DbError::Absent { .. }), "{missing}");

    let notes = folder.join("notes.txt");
    std::fs::write(
        &notes,
        "this is no database, and long enough to be looked at".repeat(20),
    )
    .unwrap();
    let other = refused(&format!("sqlite:{}", notes.display()), DbOptions::default()).await;
    assert!(matches!(other, DbError::NotADatabase { .. }), "{other}");
    assert!(
        std::fs::read_to_string(&notes)
            .unwrap()
            .starts_with("this is no database")
    );

    let nowhere = format!("sqlite:{}/no/such/folder/cairn.db", folder.display());
    let nowhere = refused(&nowhere, DbOptions::default()).await;
    assert!(matches!(nowhere, DbError::File { .. }), "{nowhere}");
    for url in [
        "mysql://u:secret@h/d",
        "sqlite:",
        "sqlite::memory:",
        "cairn.db",
    ] {
        let error = refused(url, DbOptions::default()).await;
        assert!(matches!(error, DbError::Url(_)), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_nothing_is_written() {
    let test = TestDatabase::sqlite();
    let database = test.open().await;
    let mut tx = database.begin().await.unwrap();
    let pages = tx
        .fetch_optional("PRAGMA page_count", args![])
        .await
        .unwrap()
        .unwrap();
    let limit = format!("PRAGMA max_page_count = {}", pages.int(0).unwrap() + 4);
    tx.fetch_all(&limit, args![]).await.unwrap();
    tx.commit().await.unwrap();
    let insert = "INSERT INTO blob_chunks (digest, chunk, content) VALUES ('d', 0, $1)";
    let full = database.execute(insert, args![vec![1_u8; 100_000]]).await;
    assert!(matches!(full, Err(DbError::DiskFull(_))), "{full:?}");
    let rows = database
        .fetch_all("SELECT digest FROM blob_chunks", args![])
        .await
        .unwrap();
    assert_eq!(rows, []);
    database
        .execute(insert, args![vec![1_u8; 10]])
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sqlite_file_has_one_owner_also_under_another_name() {
    let test = TestDatabase::sqlite();
    let database = test.open().await;
    let lock = database.lock_owner().unwrap();
    let folder = test.folder().unwrap();
    let link = folder.join("link.db");
    std::os::unix::fs::symlink(folder.join("cairn.db"), &link).unwrap();
    for url in [test.url().to_owned(), format!("sqlite:{}", link.display())] {
        let other = Database::connect(&url, DbOptions::default()).await.unwrap();
        let error = other.lock_owner().expect_err("it has an owner");
        assert!(matches!(error, DbError::Owned { .. }), "{error}");
        assert!(
            other.fetch_all("SELECT 1", args![]).await.is_ok(),
            "reading needs no lock"
        );
    }
    drop(lock);
    test.open().await.lock_owner().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_sqlite_file_do_not_write() {
    let test = TestDatabase::sqlite();
    let database = test.open().await;
    let written = database
        .fetch_all("DELETE FROM log_position RETURNING id", args![])
        .await;
    assert!(written.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_server_is_said_at_once_and_without_the_password() {
    let Some(test) = TestDatabase::postgres().await else {
        return;
    };
    let admin = std::env::var(POSTGRES).unwrap();
    let (server, _) = admin.rsplit_once('/').unwrap();
    let absent = refused(&format!("{server}/no_such_database"), DbOptions::default()).await;
    assert!(matches!(absent, DbError::Absent { .. }), "{absent}");
    assert!(absent.to_string().contains("no_such_database"));

    let (_, place) = test.url().rsplit_once('@').unwrap();
    let wrong = refused(
        &format!("postgres://cairn:hunter2@{place}"),
        DbOptions::default(),
    )
    .await;
    assert!(matches!(wrong, DbError::Credentials { .. }), "{wrong}");
    assert!(!wrong.to_string().contains("hunter2"), "{wrong}");

    let quick = DbOptions {
        acquire_timeout: Duration::from_secs(2),
        ..DbOptions::default()
    };
    let nobody = refused("postgres://cairn:hunter2@127.0.0.1:1/cairn", quick).await;
    assert!(matches!(nobody, DbError::Unreachable { .. }), "{nobody}");
    assert!(!nobody.to_string().contains("hunter2"), "{nobody}");

    let database = test.open().await;
    database.lock_owner().unwrap();
    database.lock_owner().unwrap();
    let twice = database
        .execute(
            "INSERT INTO log_position (id, position) VALUES (1, 1)",
            args![],
        )
        .await;
    let named = Some("log_position_pkey".to_owned());
    assert!(matches!(twice, Err(DbError::Constraint { name, .. }) if name == named));
    test.remove().await;
}

#[test]
fn counts_that_cannot_be_stored_become_the_largest_that_can() {
    assert_eq!(Arg::from(u64::MAX), Arg::Int(Some(i64::MAX)));
    assert_eq!(Arg::from(7_usize), Arg::Int(Some(7)));
}

/// `history` opens a database whose writer is busy.
#[tokio::test(flavor = "multi_thread")]
async fn opening_waits_for_no_writer() {
    for test in databases().await {
        let database = test.open().await;
        let mut busy = database.begin().await.unwrap();
        busy.execute("UPDATE log_position SET position = 1", args![])
            .await
            .unwrap();
        let opened = tokio::time::timeout(Duration::from_secs(3), test.open())
            .await
            .unwrap();
        let rows = opened
            .fetch_all("SELECT position FROM log_position", args![])
            .await
            .unwrap();
        assert_eq!(rows[0].int(0).unwrap(), 0);
        busy.rollback().await.unwrap();
        test.remove().await;
    }
}
