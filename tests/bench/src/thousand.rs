//! 1,000 operations at one time, all of them waiting for pods that never get ready: each must end when its clock runs
//! out, and the server must stay small.

use crate::child::Server;
use crate::many::{namespace, simulated};
use crate::package;
use crate::report::{Good, Report};
use anyhow::{Context, bail};
use cairn_domain::time::Timestamp;
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const OPERATIONS: usize = 1000;
/// The clock of each wait.
const CLOCK: &str = "40s";
/// How late a clock may be told to have run out: its runner's turn comes with those of all others.
const LATE_MS: f64 = 2000.0;
const LIMIT_BYTES: f64 = 300_000_000.0;
const DEADLINE: Duration = Duration::from_mins(5);
/// Requests at one time.
const CLIENTS: usize = 16;

/// The worst lateness, and the peak of the memory.
pub async fn measure() -> anyhow::Result<Vec<Report>> {
    let cluster = simulated().await?;
    let file = cluster.kubeconfig.display().to_string();
    for n in 0..OPERATIONS {
        namespace(&cluster.client, &format!("n{n}")).await?;
    }
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &["--kubeconfig", &file]).await?;
    let vnfd = server.push(package::never_ready()?).await?;
    let began = Instant::now();
    let instances = begin(&server, &vnfd).await?;
    while server.count("(neq,operationState,FAILED_TEMP)").await? > 0 {
        if began.elapsed() > DEADLINE {
            bail!("some operations did not end in time");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    let peak = f64::from(u32::try_from(server.peak()?)?);
    let latest = latest(&server, &instances).await?;
    server.stop().await?;
    Ok(vec![
        Report {
            name: "1,000 at once: clock late, of 2 s",
            figures: format!("{latest:.0} ms; all ended after {seconds:.0} s"),
            ratio: latest / LATE_MS,
            limit: 1.0,
            good: Good::AtMost,
        },
        Report {
            name: "1,000 at once: memory, of 300 MB",
            figures: format!("{:.0} MB", peak / 1_000_000.0),
            ratio: peak / LIMIT_BYTES,
            limit: 1.0,
            good: Good::AtMost,
        },
    ])
}

async fn begin(server: &Server, vnfd: &str) -> anyhow::Result<Vec<String>> {
    let started = futures::stream::iter((0..OPERATIONS).map(|n| async move {
        let create = json!({"vnfdId": vnfd});
        let id = server.post("/vnflcm/v2/vnf_instances", &create).await?;
        let body = json!({"flavourId": "simple", "additionalParams": {
            "namespace": format!("n{n}"),
            "cairn.clocks": {"progressing": CLOCK, "blocked": CLOCK, "infrastructure": CLOCK}
        }});
        let path = format!("/vnflcm/v2/vnf_instances/{id}/instantiate");
        server.post(&path, &body).await?;
        anyhow::Ok(id)
    }))
    .buffer_unordered(CLIENTS)
    .collect::<Vec<_>>()
    .await;
    started.into_iter().collect()
}

/// How late the latest clock was told to have run out, in milliseconds.
async fn latest(server: &Server, instances: &[String]) -> anyhow::Result<f64> {
    let mut latest: f64 = 0.0;
    for id in instances {
        let path = format!("/cairn/v1/vnf_instances/{id}/history");
        let history = server.get(&path).await?;
        latest = latest.max(lateness(&history).with_context(|| id.clone())?);
    }
    Ok(latest)
}

/// Between the end that the last wait had and the event that says that the try is over.
fn lateness(history: &Value) -> anyhow::Result<f64> {
    let events = history["events"].as_array().context("no events")?;
    let mut until = None;
    for event in events {
        match event["type"].as_str().unwrap_or_default() {
            "WaitStarted" | "WaitChanged" => {
                let wait = &event["data"];
                let told = wait["wait"]["until"].as_str().or(wait["until"].as_str());
                until = told.map(millis).transpose()?.or(until);
            }
            "OperationFailedTemporarily" => {
                let at = millis(event["recordedAt"].as_str().context("no time")?)?;
                return Ok(at - until.context("it failed without a wait")?);
            }
            _ => {}
        }
    }
    bail!("it did not fail")
}

fn millis(text: &str) -> anyhow::Result<f64> {
    let time = Timestamp::parse(text)?;
    // Milliseconds since 1970 are far below what a double holds exactly.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 for 280,000 years")]
    Ok(time.as_millis() as f64)
}
