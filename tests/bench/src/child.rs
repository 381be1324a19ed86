//! The program under measurement, as a process of its own.

use anyhow::{Context, bail};
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long a start may take before something is wrong.
const START: Duration = Duration::from_secs(30);

/// A running `cairn`.
pub struct Server {
    child: Child,
    /// Its address.
    pub base: String,
    /// From being started to its first 200 on `/readyz`.
    pub ready_after: Duration,
    /// For requests to it.
    pub client: reqwest::Client,
}

/// The release binary that `tests/bench/run` built.
pub fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::var("CAIRN_BENCH_BIN").context("CAIRN_BENCH_BIN: run tests/bench/run")?;
    Ok(PathBuf::from(path))
}

/// A port that was free a moment ago.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Starts `cairn` with these arguments.
pub fn spawn(arguments: &[&str]) -> anyhow::Result<Child> {
    Ok(Command::new(program()?)
        .args(arguments)
        .env("CAIRN_LOG", "error")
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()?)
}

impl Server {
    /// Starts `cairn serve` on a data folder and waits until it is ready.
    pub async fn start(data: &Path, more: &[&str]) -> anyhow::Result<Self> {
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let data = data.display().to_string();
        let mut arguments = vec!["serve", "--listen", &listen, "--data", &data];
        arguments.extend(more);
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .build()?;
        let base = format!("http://{listen}");
        let began = Instant::now();
        let child = spawn(&arguments)?;
        loop {
            let answer = client.get(format!("{base}/readyz")).send().await;
            if answer.is_ok_and(|a| a.status().is_success()) {
                break;
            }
            if began.elapsed() > START {
                bail!("not ready within {} s", START.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(Self {
            child,
            base,
            ready_after: began.elapsed(),
            client,
        })
    }

    /// Its resident memory, in bytes.
    pub fn resident(&self) -> anyhow::Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most that its resident memory has been, in bytes.
    pub fn peak(&self) -> anyhow::Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, what: &str) -> anyhow::Result<u64> {
        let pid = self.child.id().context("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find(|line| line.starts_with(what));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(kib.context("no such figure")?.parse::<u64>()? * 1024)
    }

    /// How much time of the processor it has spent: the scheduler's own account, in nanoseconds.
    pub fn spent(&self) -> anyhow::Result<Duration> {
        let pid = self.child.id().context("the server has ended")?;
        let mut spent = 0;
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let account = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            let on_processor = account.split_whitespace().next().context("no figure")?;
            spent += on_processor.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(spent))
    }

    /// POST of a SOL003 request; the last segment of `Location`.
    pub async fn post(&self, path: &str, body: &Value) -> anyhow::Result<String> {
        let answer = self
            .client
            .post(format!("{}{path}", self.base))
            .header("Version", "2.0.0")
            .json(body)
            .send()
            .await?;
        let status = answer.status();
        let location = answer.headers().get("location").cloned();
        if !status.is_success() {
            bail!("POST {path}: {status} {}", answer.text().await?);
        }
        let location = location.context("no Location")?;
        Ok(location
            .to_str()?
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned())
    }

    /// GET of anything.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.base);
        let asked = self.client.get(url).header("Version", "2.0.0");
        Ok(asked.send().await?.error_for_status()?.json().await?)
    }

    /// State of an operation.
    pub async fn state(&self, op: &str) -> anyhow::Result<String> {
        let body = self
            .get(&format!("/vnflcm/v2/vnf_lcm_op_occs/{op}"))
            .await?;
        let state = body["operationState"].as_str().unwrap_or_default();
        Ok(state.to_owned())
    }

    /// How many operations pass a filter (of the first thousand that do).
    pub async fn count(&self, filter: &str) -> anyhow::Result<usize> {
        let path = format!("/vnflcm/v2/vnf_lcm_op_occs?exclude_default&filter={filter}");
        let body = self.get(&path).await?;
        Ok(body.as_array().context("no list")?.len())
    }

    /// Onboards a package unless the server has one already; its vnfdId.
    pub async fn push_once(&self, csar: Vec<u8>) -> anyhow::Result<String> {
        let known = self.get("/vnfpkgm/v2/vnf_packages").await?;
        match known[0]["vnfdId"].as_str() {
            Some(vnfd) => Ok(vnfd.to_owned()),
            None => self.push(csar).await,
        }
    }

    /// Onboards a package; its vnfdId.
    pub async fn push(&self, csar: Vec<u8>) -> anyhow::Result<String> {
        cairn::commands::package::push_bytes(csar, &self.base).await
    }

    /// Creates and begins to instantiate; ids of instance and operation.
    pub async fn instantiate(
        &self,
        vnfd: &str,
        namespace: &str,
    ) -> anyhow::Result<(String, String)> {
        let create = serde_json::json!({"vnfdId": vnfd});
        let id = self.post("/vnflcm/v2/vnf_instances", &create).await?;
        let body = serde_json::json!({
            "flavourId": "simple",
            "additionalParams": {"namespace": namespace}
        });
        let op = self
            .post(&format!("/vnflcm/v2/vnf_instances/{id}/instantiate"), &body)
            .await?;
        Ok((id, op))
    }

    /// Ends it.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}
