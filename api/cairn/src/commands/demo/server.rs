//! The server as a child process.

use crate::commands::client::Client;
use anyhow::{Context, bail};
use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Longest time from start to ready.
const READY: Duration = Duration::from_secs(15);
/// Longest wait for one answer of a server that starts.
const ONE_LOOK: Duration = Duration::from_secs(1);
/// Between two looks whether it is ready.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of its log that are shown when the story ends badly.
const LAST_WORDS: usize = 12;

/// A running server.
pub struct Server {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Server {
    /// Starts the server in `folder` and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it ends or is not ready in time.
    pub async fn start(folder: &Path, address: SocketAddr) -> anyhow::Result<Self> {
        let child = spawn(folder, address)?;
        let mut server = Self {
            child,
            folder: folder.to_owned(),
            address,
        };
        server.ready().await?;
        Ok(server)
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills it as `kill -9` does, and tells how it ended.
    ///
    /// # Errors
    ///
    /// When it cannot be killed.
    pub async fn kill(&mut self) -> anyhow::Result<String> {
        // A Ctrl-C in the terminal ends both processes at once.
        if self.child.try_wait()?.is_none() {
            self.child.start_kill()?;
        }
        Ok(self.child.wait().await?.to_string())
    }

    /// Starts it again on what it left.
    ///
    /// # Errors
    ///
    /// When it ends or is not ready in time.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.child = spawn(&self.folder, self.address)?;
        self.ready().await
    }

    /// The last lines of its log.
    pub fn last_words(&self) -> String {
        let log = std::fs::read_to_string(log_file(&self.folder)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(LAST_WORDS);
        format!("The server's last words:\n{}", lines[from..].join("\n"))
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let client = Client::of(&self.url())?;
        let deadline = Instant::now() + READY;
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended ({status}); {}", self.last_words());
            }
            // Whoever took the port in between may accept and say nothing.
            let asked = tokio::time::timeout(ONE_LOOK, client.get(&["readyz"], None)).await;
            match asked {
                Ok(Ok(answer)) if answer.status == 200 => return Ok(()),
                Ok(_) | Err(_) if Instant::now() < deadline => tokio::time::sleep(LOOK).await,
                Ok(Ok(answer)) => bail!("the server is not ready: {}", answer.body),
                Ok(Err(unreachable)) => return Err(unreachable.context("the server is not ready")),
                Err(_) => bail!("the server does not answer at {}", self.address),
            }
        }
    }
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

fn spawn(folder: &Path, address: SocketAddr) -> anyhow::Result<Child> {
    let file = log_file(folder);
    let log = OpenOptions::new().create(true).append(true).open(&file);
    let log = log.with_context(|| file.display().to_string())?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["serve", "--enable-faults", "--listen", &address.to_string()])
        .arg("--data")
        .arg(folder.join("data"))
        .arg("--database")
        .arg(format!("sqlite:{}", folder.join("data/cairn.db").display()))
        .arg("--kubeconfig")
        .arg(folder.join("kubeconfig"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true);
    // Settings of a real server must not leak into the demo's.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CAIRN_") && name != "CAIRN_LOG" {
            command.env_remove(name);
        }
    }
    command.spawn().context("the server cannot be started")
}
