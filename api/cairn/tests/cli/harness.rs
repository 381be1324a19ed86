//! Processes of the program, and what is asked of them.

use cairn::commands::client::{Answer, Client};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Nothing here may take longer; a machine under load is slow, not broken.
const DEADLINE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(20);

/// The program, with nothing of the environment that it reads settings from.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CAIRN_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end.
#[track_caller]
pub fn cairn(args: &[&str]) -> Output {
    program().args(args).output().unwrap()
}

/// Runs a command that must succeed; what it printed.
#[track_caller]
pub fn succeeds(args: &[&str]) -> String {
    let output = cairn(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must end with exit code 1; what it said.
#[track_caller]
pub fn fails(args: &[&str]) -> String {
    failed(args, &cairn(args))
}

/// The words of a command that ended with exit code 1.
#[track_caller]
pub fn failed(args: &[&str], output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    assert!(
        said.starts_with("cairn: ") || said.contains("\ncairn: "),
        "{args:?}: {said}"
    );
    said
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Looks until there is something to see.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(LOOK);
    }
    panic!("not within {} s: {what}", DEADLINE.as_secs())
}

/// An address that nobody listens on.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// A process that is killed when the test is over.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it, its output going to a file in `folder`.
    pub fn start(mut command: Command, folder: &Path) -> Self {
        let log = folder.join(format!("{}.log", free_address().port()));
        let file = File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Self {
            child: command.spawn().unwrap(),
            log,
        }
    }

    /// What it has printed so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        until("its end", || self.child.try_wait().unwrap())
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_over() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// A ready server.
pub struct Server {
    /// Its process.
    pub process: Process,
    /// Its base address.
    pub url: String,
    runtime: Runtime,
    client: Client,
}

impl Server {
    /// Starts `serve` with these flags on a free port, and its data in `folder/data`.
    #[track_caller]
    pub fn start(folder: &Path, flags: &[&str]) -> Self {
        let address = free_address();
        let mut command = program();
        let data = folder.join("data");
        command
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--listen", &address.to_string()])
            .args(flags);
        Self::ready(Process::start(command, folder), address)
    }

    /// Waits until a process that listens there is ready.
    #[track_caller]
    pub fn ready(mut process: Process, address: SocketAddr) -> Self {
        cairn::speak_tls();
        let url = format!("http://{address}");
        let runtime = Runtime::new().unwrap();
        let client = Client::of(&url).unwrap();
        until("the server is ready", || {
            assert!(!process.is_over(), "{}", process.said());
            let answer = runtime.block_on(client.get(&["readyz"], None));
            answer
                .is_ok_and(|answer| answer.status == 200)
                .then_some(())
        });
        Self {
            process,
            url,
            runtime,
            client,
        }
    }

    /// GET.
    pub fn get(&self, path: &str) -> Answer {
        let path: Vec<&str> = path.split('/').collect();
        self.runtime.block_on(self.client.get(&path, None)).unwrap()
    }

    /// A request with a body.
    pub fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let path: Vec<&str> = path.split('/').collect();
        self.runtime
            .block_on(self.client.json(method, &path, body))
            .unwrap()
    }

    /// DELETE.
    pub fn delete(&self, path: &str) -> Answer {
        let path: Vec<&str> = path.split('/').collect();
        self.runtime
            .block_on(self.client.bare(Method::DELETE, &path))
            .unwrap()
    }

    /// Status of a GET without any header of ours.
    pub fn bare_status(&self, path: &str) -> u16 {
        let url = format!("{}/{path}", self.url);
        let get = async {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            client.get(url).send().await.unwrap().status().as_u16()
        };
        self.runtime.block_on(get)
    }

    /// Whether nobody listens any more.
    pub fn is_gone(&self) -> bool {
        self.runtime
            .block_on(self.client.get(&["healthz"], None))
            .is_err()
    }

    /// Onboards an example, creates an instance of it and instantiates it; the instance's id.
    #[track_caller]
    pub fn instantiated(&self, folder: &Path) -> String {
        let csar = example(folder, "signalling");
        let vnfd_id = succeeds(&["package", "push", &csar, "--server", &self.url]);
        let body = json!({"vnfdId": vnfd_id.trim(), "vnfInstanceName": "one"});
        let created = self
            .send(Method::POST, "vnflcm/v2/vnf_instances", &body)
            .success()
            .unwrap();
        let id = created.body["id"].as_str().unwrap().to_owned();
        let path = format!("vnflcm/v2/vnf_instances/{id}/instantiate");
        let body = json!({"flavourId": "standard"});
        let op = self
            .send(Method::POST, &path, &body)
            .success()
            .unwrap()
            .made()
            .unwrap();
        self.settled(&op, "COMPLETED");
        id
    }

    /// Waits until an operation is in a state.
    #[track_caller]
    pub fn settled(&self, op: &str, wanted: &str) -> Value {
        let path = format!("vnflcm/v2/vnf_lcm_op_occs/{op}");
        until(&format!("{op} in {wanted}"), || {
            let op = self.get(&path).success().unwrap().body;
            assert!(
                op["operationState"] == wanted || op["error"].is_null(),
                "{}",
                op["error"]
            );
            (op["operationState"] == wanted).then_some(op)
        })
    }
}

/// Builds an example package; the CSAR.
#[track_caller]
pub fn example(folder: &Path, name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    let csar = folder.join(format!("{name}.csar")).display().to_string();
    succeeds(&[
        "package",
        "build",
        &dir.display().to_string(),
        "--output",
        &csar,
    ]);
    csar
}
