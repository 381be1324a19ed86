//! 1,500 operations that nobody owns, 500 each in STARTING, PROCESSING and `ROLLING_BACK`, and one whose stream cannot
//! be read: how long one replica needs, from its start, until each of the 1,500 has gone on.

use crate::child::Server;
use crate::fill::Model;
use crate::report::{Good, Report};
use anyhow::{Context, bail};
use base64::Engine as _;
use cairn_db::{Database, DbOptions, args};
use cairn_domain::operation::ErrorPoint;
use cairn_domain::testing::op;
use cairn_event_store::EventStore;
use sqlx::{Connection, PgConnection};
use std::path::Path;
use std::time::{Duration, Instant};

const EACH: usize = 500;
const LIMIT_S: f64 = 10.0;
const DEADLINE: Duration = Duration::from_mins(2);

/// On both databases.
pub async fn measure() -> anyhow::Result<Vec<Report>> {
    let data = tempfile::tempdir()?;
    let url = format!("sqlite:{}", data.path().join("cairn.db").display());
    let sqlite = taken_over("take-over of 1,500, of 10 s, SQLite", data.path(), &url).await?;
    let admin = std::env::var("CAIRN_TEST_POSTGRES")
        .context("CAIRN_TEST_POSTGRES: tests/postgres/up prints it")?;
    let name = format!("cairn_bench_{}", uuid::Uuid::now_v7().simple());
    let mut server = PgConnection::connect(&admin).await?;
    sqlx::query(&format!("CREATE DATABASE {name}"))
        .execute(&mut server)
        .await?;
    let (base, _) = admin
        .rsplit_once('/')
        .context("CAIRN_TEST_POSTGRES names no database")?;
    let url = format!("{base}/{name}");
    let data = tempfile::tempdir()?;
    let postgres = taken_over("take-over of 1,500, of 10 s, PostgreSQL", data.path(), &url).await;
    sqlx::query(&format!("DROP DATABASE {name} WITH (FORCE)"))
        .execute(&mut server)
        .await?;
    Ok(vec![sqlite, postgres?])
}

async fn taken_over(name: &'static str, data: &Path, url: &str) -> anyhow::Result<Report> {
    let key = base64::engine::general_purpose::STANDARD.encode([7_u8; 32]);
    let key_file = data.join("bench.key");
    std::fs::write(&key_file, key)?;
    let key_file = key_file.display().to_string();
    let flags = ["--database", url, "--key-file", &key_file, "--simulated"];
    Server::start(data, &flags).await?.stop().await?;
    let database = Database::connect(url, DbOptions::default()).await?;
    let broken = leave_behind(&database).await?;
    let began = Instant::now();
    let server = Server::start(data, &flags).await?;
    while left(&database).await? > 0 {
        if began.elapsed() > DEADLINE {
            bail!("{} operations have not gone on", left(&database).await?);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    let reason = quarantined(&database, &broken).await?;
    server.stop().await?;
    database.close().await;
    Ok(Report {
        name,
        figures: format!("{seconds:.2} s; the broken one is set aside: {reason:.60}"),
        ratio: seconds / LIMIT_S,
        limit: 1.0,
        good: Good::AtMost,
    })
}

/// Writes what a dead replica left; the id of the broken operation.
async fn leave_behind(database: &Database) -> anyhow::Result<String> {
    let log = EventStore::without_key(database.clone());
    let stories = [
        op().instantiate().begun(),
        op().instantiate().at(ErrorPoint::PostVimControl),
        op().instantiate()
            .failed_at(ErrorPoint::PostVimControl)
            .rolling_back(),
    ];
    for story in &stories {
        Model::of(story)?.copy(&*log, EACH).await?;
    }
    let broken = Model::of(&stories[1])?.copy(&*log, 1).await?;
    let broken = broken.into_iter().next().context("no operation")?;
    for sql in [
        "UPDATE events SET payload = '{\"nonsense\": true}' WHERE aggregate_id = $1",
        "DELETE FROM states WHERE aggregate_id = $1",
        "UPDATE work SET retry_at = NULL WHERE op_id <> $1",
    ] {
        database.execute(sql, args![broken.as_str()]).await?;
    }
    // What was there before the start, to tell what came after it.
    let sql = "CREATE TABLE bench_before AS SELECT aggregate_id, max(sequence) AS version FROM events \
               WHERE aggregate_type = 'VnfLcmOpOcc' AND aggregate_id <> '$BROKEN' GROUP BY aggregate_id";
    let mut tx = database.begin().await?;
    tx.execute_script(&sql.replace("$BROKEN", &broken)).await?;
    tx.commit().await?;
    Ok(broken)
}

/// How many operations have no event more than before.
async fn left(database: &Database) -> anyhow::Result<u64> {
    let sql = "SELECT count(*) FROM bench_before b WHERE NOT EXISTS (SELECT 1 FROM events e \
               WHERE e.aggregate_type = 'VnfLcmOpOcc' AND e.aggregate_id = b.aggregate_id \
               AND e.sequence > b.version)";
    let row = database.fetch_optional(sql, args![]).await?;
    Ok(row.context("no count")?.count(0)?)
}

async fn quarantined(database: &Database, op: &str) -> anyhow::Result<String> {
    let began = Instant::now();
    let sql = "SELECT quarantined FROM work WHERE op_id = $1 AND quarantined IS NOT NULL";
    loop {
        if let Some(row) = database.fetch_optional(sql, args![op]).await? {
            return Ok(row.text(0)?);
        }
        if began.elapsed() > Duration::from_secs(10) {
            bail!("the broken operation is not set aside");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
