//! The program itself, as a process that can be killed.

use crate::client::{Client, Door, SOON};
use crate::until::until;
use crate::world::Ground;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

/// How long one call may take.
const CALL: Duration = Duration::from_secs(30);

/// A `cairn serve` on the ground of a test.
pub struct Served {
    /// Its client.
    pub client: Client,
    process: Child,
    log: NamedTempFile,
}

/// Where `cargo build` puts the program: beside the folder of the tests.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let folder = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target/debug/deps");
    let program = folder.join("cairn");
    assert!(
        program.exists(),
        "{} is absent: run `cargo build` first",
        program.display()
    );
    program
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

impl Served {
    /// Starts it with the ground's database and cluster, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not get ready.
    pub async fn start(ground: &Ground, flags: &[&str]) -> Self {
        let log = NamedTempFile::new().expect("a temporary file");
        let (store, port) = (ground.store(), free_port());
        let key = store.key_file.expect("a key file");
        let mut process = Command::new(program())
            .args([
                "serve",
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--database",
                &store.database,
            ])
            .args(["--public-url", crate::world::PUBLIC_URL])
            .arg("--data")
            .arg(&store.data)
            .arg("--key-file")
            .arg(key)
            .arg("--kubeconfig")
            .arg(ground.place.kubeconfig())
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .env("CAIRN_LOG", "debug")
            .stderr(log.reopen().expect("the file is there"))
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        crate::kube::with_tls();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(CALL)
            .build()
            .expect("a client");
        let base = format!("http://127.0.0.1:{port}");
        let client = Client::new(Door::Http(http.clone(), base.clone()));
        until(SOON, "the program to be ready", || async {
            let answer = http
                .get(format!("{base}/readyz"))
                .send()
                .await
                .map_err(|e| e.to_string())?;
            if answer.status().is_success() {
                Ok(())
            } else {
                Err(answer.status().to_string())
            }
        })
        .await;
        assert!(process.try_wait().expect("its state").is_none(), "it runs");
        Self {
            client,
            process,
            log,
        }
    }

    /// What it logged so far, in all the detail that it has.
    ///
    /// # Panics
    /// When its log cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.log.path()).expect("the log can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Sends a signal by name, such as `STOP`.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub async fn signal(&self, name: &str) {
        let pid = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args([format!("-{name}"), pid])
            .status()
            .await;
        assert!(sent.expect("kill runs").success());
    }

    /// Kills it as `kill -9` does.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub async fn kill(mut self) {
        self.process.kill().await.expect("it is killed");
    }

    /// Awaits its end and answers whether it ended well.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn ended(&mut self, within: Duration) -> bool {
        let ended = tokio::time::timeout(within, self.process.wait()).await;
        ended
            .expect("it ends in time")
            .expect("its state")
            .success()
    }
}
