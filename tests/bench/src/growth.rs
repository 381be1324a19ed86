//! What one operation costs with 10 and with 100,000 instances in the database: time on the clock, and time of the
//! processor, in which whatever looks at all instances in the background shows too.

use crate::child::Server;
use crate::fill::Model;
use crate::many::completed;
use crate::package;
use crate::read::median;
use crate::report::{Good, Report};
use cairn_db::{Database, DbOptions};
use cairn_domain::ports::{EventLog, ReadModels};
use cairn_domain::testing::{instance, op};
use cairn_event_store::EventStore;
use cairn_projections::Projections;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const FEW: usize = 10;
const MANY: usize = 100_000;
/// Every so many instances one has run an operation.
const WORKED: usize = 20;
const OPERATIONS: usize = 40;
const ROUNDS: usize = 3;

/// Both, in turns.
pub async fn measure() -> anyhow::Result<Vec<Report>> {
    let (few, many) = (filled(FEW).await?, filled(MANY).await?);
    let mut figures = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for _ in 0..ROUNDS {
        for (data, (clock, processor)) in [&few, &many].into_iter().zip(&mut figures) {
            let (seconds, spent) = run(data.path()).await?;
            clock.push(seconds);
            processor.push(spent);
        }
    }
    let [few, many] = figures.map(|(clock, processor)| (median(clock), median(processor)));
    let report = |name: &'static str, few: f64, many: f64| Report {
        name,
        figures: format!("{:.1} ms against {:.1} ms", many * 1000.0, few * 1000.0),
        ratio: many / few,
        limit: 1.2,
        good: Good::AtMost,
    };
    Ok(vec![
        report("one operation, 100,000 instances", few.0, many.0),
        report("the same, time of the processor", few.1, many.1),
    ])
}

/// Seconds of one operation by the clock, and of the processor.
async fn run(data: &Path) -> anyhow::Result<(f64, f64)> {
    let server = Server::start(data, &["--simulated"]).await?;
    let vnfd = server.push_once(package::csar()?).await?;
    // Its first turns are over, and the package is in memory.
    one(&server, &vnfd).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (spent, mut taken) = (server.spent()?, Vec::new());
    for _ in 0..OPERATIONS {
        taken.push(one(&server, &vnfd).await?);
    }
    let spent = server.spent()?.saturating_sub(spent).as_secs_f64();
    server.stop().await?;
    let operations = f64::from(u32::try_from(OPERATIONS)?);
    Ok((median(taken), spent / operations))
}

/// Creates, instantiates and terminates.
async fn one(server: &Server, vnfd: &str) -> anyhow::Result<f64> {
    let began = Instant::now();
    let (id, op) = server.instantiate(vnfd, "default").await?;
    completed(server, &op).await?;
    let seconds = began.elapsed().as_secs_f64();
    let body = serde_json::json!({"terminationType": "FORCEFUL"});
    let path = format!("/vnflcm/v2/vnf_instances/{id}/terminate");
    let op = server.post(&path, &body).await?;
    completed(server, &op).await?;
    Ok(seconds)
}

async fn filled(instances: usize) -> anyhow::Result<TempDir> {
    let data = tempfile::tempdir()?;
    // The first start makes database and key.
    Server::start(data.path(), &[]).await?.stop().await?;
    let url = format!("sqlite:{}", data.path().join("cairn.db").display());
    let database = Database::connect(&url, DbOptions::default()).await?;
    let log = EventStore::without_key(database.clone());
    let worked = instances / WORKED;
    let idle = Model::idle(&instance())?;
    idle.copy(&*log, instances - worked).await?;
    let done = Model::of(&op().instantiate().completed())?;
    done.copy(&*log, worked).await?;
    let head = log.head().await?;
    let projections = Projections::open(database.clone(), log).await?;
    projections.catch_up(head).await?;
    database.close().await;
    Ok(data)
}
