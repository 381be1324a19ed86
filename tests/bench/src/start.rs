//! Start to ready, and the memory of an idle server.

use crate::child::Server;
use crate::read::median;
use crate::report::{Good, Report};
use cairn_db::{Database, DbOptions};
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::VnfLcmOpOccId;
use cairn_domain::lcm_op_occ::{VnfLcmOpOccEvent, evolve};
use cairn_domain::ports::{Append, EventLog, ReadModels, StateAfter, Unit};
use cairn_domain::testing::op;
use cairn_event_store::EventStore;
use cairn_projections::Projections;
use std::path::Path;
use std::time::Duration;

const ROUNDS: usize = 5;
const EVENTS: u64 = 100_000;
const LIMIT_S: f64 = 0.5;
const LIMIT_BYTES: f64 = 60_000_000.0;

/// Resident memory of a server that does nothing.
pub async fn idle() -> anyhow::Result<Report> {
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &[]).await?;
    // Its background loops have had their first turns.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let bytes = server.resident()?;
    server.stop().await?;
    let resident = f64::from(u32::try_from(bytes)?);
    Ok(Report {
        name: "idle memory, of 60 MB",
        figures: format!("{:.1} MB", resident / 1_000_000.0),
        ratio: resident / LIMIT_BYTES,
        limit: 1.0,
        good: Good::AtMost,
    })
}

/// Start to ready on an empty database, and on one of 100,000 events.
pub async fn measure() -> anyhow::Result<Vec<Report>> {
    let empty = tempfile::tempdir()?;
    let full = tempfile::tempdir()?;
    // The first start makes database and key.
    Server::start(full.path(), &[]).await?.stop().await?;
    fill(full.path()).await?;
    Ok(vec![
        starts("start to ready of 0.5 s, empty", empty.path()).await?,
        starts("start to ready, 100,000 events", full.path()).await?,
    ])
}

async fn starts(name: &'static str, data: &Path) -> anyhow::Result<Report> {
    let mut taken = Vec::new();
    for _ in 0..ROUNDS {
        let server = Server::start(data, &[]).await?;
        taken.push(server.ready_after.as_secs_f64());
        server.stop().await?;
    }
    let taken = median(taken);
    Ok(Report {
        name,
        figures: format!("{:.0} ms", taken * 1000.0),
        ratio: taken / LIMIT_S,
        limit: 1.0,
        good: Good::AtMost,
    })
}

/// Whole operations until there are enough events.
async fn fill(data: &Path) -> anyhow::Result<()> {
    let url = format!("sqlite:{}", data.join("cairn.db").display());
    let database = Database::connect(&url, DbOptions::default()).await?;
    let log = EventStore::without_key(database.clone());
    let history = op().instantiate().completed().history();
    while log.head().await? < EVENTS {
        let mut unit = Unit::default();
        for _ in 0..100 {
            unit.appends.push(append(&history)?);
        }
        log.append(unit).await?;
    }
    let head = log.head().await?;
    let projections = Projections::open(database.clone(), log).await?;
    projections.catch_up(head).await?;
    database.close().await;
    Ok(())
}

fn append(history: &[VnfLcmOpOccEvent]) -> anyhow::Result<Append> {
    let id = VnfLcmOpOccId::parse(uuid::Uuid::now_v7().to_string())?;
    let renamed: Vec<VnfLcmOpOccEvent> = history
        .iter()
        .cloned()
        .map(|mut event| {
            if let VnfLcmOpOccEvent::OperationStarted { id: own, .. } = &mut event {
                own.clone_from(&id);
            }
            event
        })
        .collect();
    let state = renamed.iter().fold(None, evolve);
    let state = state.ok_or_else(|| anyhow::anyhow!("the history is empty"))?;
    Ok(Append {
        stream: StreamId::VnfLcmOpOcc(id),
        expected_version: 0,
        vnf_instance_id: Some(state.vnf_instance_id.clone()),
        events: renamed.into_iter().map(EventBody::VnfLcmOpOcc).collect(),
        state: StateAfter::VnfLcmOpOcc(Box::new(state)),
    })
}
