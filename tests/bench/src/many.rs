//! 200 concurrent instantiates on the simulated cluster, with GETs meanwhile.

use crate::child::{Server, free_port, spawn};
use crate::package;
use crate::report::{Good, Report};
use anyhow::{Context, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, PostParams};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

const INSTANCES: usize = 200;
const DEADLINE: Duration = Duration::from_mins(4);

/// Waits until an operation is COMPLETED; anything else final is an error.
pub async fn completed(server: &Server, op: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        match server.state(op).await?.as_str() {
            "COMPLETED" => return Ok(()),
            "FAILED_TEMP" | "FAILED" | "ROLLED_BACK" => bail!("operation {op} failed"),
            _ if began.elapsed() > DEADLINE => bail!("operation {op} did not end in time"),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// A client of the cluster that a kubeconfig describes.
pub async fn cluster(kubeconfig: &Path) -> anyhow::Result<kube::Client> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    Ok(kube::Client::try_from(config)?)
}

/// Makes a namespace.
pub async fn namespace(client: &kube::Client, name: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    Ok(())
}

/// A simulated cluster as a process of its own; it ends with this.
pub struct Simulated {
    /// How it is reached.
    pub kubeconfig: PathBuf,
    /// A client of it.
    pub client: kube::Client,
    _folder: TempDir,
    _process: Child,
}

/// Starts a simulated cluster.
pub async fn simulated() -> anyhow::Result<Simulated> {
    let data = tempfile::tempdir()?;
    let kubeconfig = data.path().join("kubeconfig");
    let listen = format!("127.0.0.1:{}", free_port()?);
    let file = kubeconfig.display().to_string();
    let process = spawn(&[
        "simcluster",
        "--listen",
        &listen,
        "--write-kubeconfig",
        &file,
    ])?;
    let began = Instant::now();
    while !kubeconfig.exists() {
        if began.elapsed() > Duration::from_secs(10) {
            bail!("the simulated cluster does not answer");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(Simulated {
        client: cluster(&kubeconfig).await?,
        kubeconfig,
        _folder: data,
        _process: process,
    })
}

/// All COMPLETED, and the 99th percentile of a GET meanwhile.
pub async fn measure() -> anyhow::Result<Vec<Report>> {
    let cluster = simulated().await?;
    let file = cluster.kubeconfig.display().to_string();
    for n in 0..INSTANCES {
        namespace(&cluster.client, &format!("n{n}")).await?;
    }
    let data = tempfile::tempdir()?;
    let server = Server::start(data.path(), &["--kubeconfig", &file]).await?;
    let vnfd = server.push(package::csar()?).await?;
    let (seconds, p99) = instantiate_all(&server, &vnfd).await?;
    server.stop().await?;
    let completed = u32::try_from(INSTANCES).context("too many instances")?;
    Ok(vec![Report {
        name: "GET p99 of 50 ms, 200 instantiates",
        figures: format!(
            "p99 {:.1} ms; {completed} of {completed} COMPLETED in {seconds:.1} s",
            p99.as_secs_f64() * 1000.0
        ),
        ratio: p99.as_secs_f64() / 0.05,
        limit: 1.0,
        good: Good::AtMost,
    }])
}

async fn instantiate_all(server: &Server, vnfd: &str) -> anyhow::Result<(f64, Duration)> {
    let probe = server
        .post(
            "/vnflcm/v2/vnf_instances",
            &serde_json::json!({"vnfdId": vnfd}),
        )
        .await?;
    let url = format!("{}/vnflcm/v2/vnf_instances/{probe}", server.base);
    let done = CancellationToken::new();
    let watching = watch(server.client.clone(), url, done.clone());
    let began = Instant::now();
    let working = async {
        let starts = (0..INSTANCES).map(|n| {
            let namespace = format!("n{n}");
            async move { server.instantiate(vnfd, &namespace).await }
        });
        try_join_all(starts).await?;
        while server.count("(neq,operationState,COMPLETED)").await? > 0 {
            let failed = "(in,operationState,FAILED_TEMP,FAILED,ROLLED_BACK)";
            if server.count(failed).await? > 0 {
                bail!("an operation failed");
            }
            if began.elapsed() > DEADLINE {
                bail!("some operations did not end in time");
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        done.cancel();
        anyhow::Ok(began.elapsed().as_secs_f64())
    };
    let (seconds, mut taken) = tokio::try_join!(working, watching)?;
    taken.sort_unstable();
    let p99 = taken
        .get(taken.len() * 99 / 100)
        .copied()
        .context("nothing was read meanwhile")?;
    Ok((seconds, p99))
}

async fn watch(
    client: reqwest::Client,
    url: String,
    done: CancellationToken,
) -> anyhow::Result<Vec<Duration>> {
    let mut taken = Vec::new();
    while !done.is_cancelled() {
        let began = Instant::now();
        let answer = client.get(&url).header("Version", "2.0.0").send().await?;
        answer.error_for_status()?.bytes().await?;
        taken.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(taken)
}
