//! Everything that the story plays on: cluster, inbox, server, and what is asked of them.

use super::inbox::Inbox;
use super::narrator::Narrator;
use super::server::Server;
use crate::commands::client::{Answer, Client};
use crate::commands::simcluster::write_secret;
use crate::edge::RandomIds;
use anyhow::{Context, bail};
use cairn_domain::ports::Ids;
use cairn_engine::supervised::spawn;
use cairn_simcluster::{SimCluster, SimOptions, SimTls};
use reqwest::Method;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Longest time that anything in the story may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Label of an instance's objects.
const INSTANCE_LABEL: &str = "cairn.dev/vnf-instance-id";
/// Kinds that are looked through for an instance's objects: those of the packages and what follows from them.
const KINDS: [(&str, &str); 6] = [
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "Pod"),
];

/// The scene.
pub struct World {
    /// Tells.
    pub narrator: Narrator,
    /// The cluster, held by this process.
    pub cluster: SimCluster,
    /// Address of the cluster's API server.
    pub endpoint: String,
    /// The cluster's authority, PEM.
    pub ca: String,
    /// The token that the cluster demands.
    pub token: String,
    /// Receives notifications.
    pub inbox: Inbox,
    /// The server, a child process.
    pub server: Server,
    /// Asks the server.
    pub client: Client,
    /// Holds everything that is written.
    pub folder: TempDir,
    stop: CancellationToken,
}

impl World {
    /// Starts cluster, inbox and server.
    ///
    /// # Errors
    ///
    /// No folder, no free port, a server that does not start.
    pub async fn start(listen: Option<SocketAddr>, narrator: Narrator) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("cairn-demo-").tempdir()?;
        let stop = CancellationToken::new();
        let token = RandomIds.fresh();
        let options = SimOptions {
            bearer_token: Some(token.clone()),
            ..SimOptions::default()
        };
        let cluster = SimCluster::new(options);
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("a free port")?;
        let api_server = listener.local_addr()?;
        let tls = SimTls::generate(api_server.ip())?;
        write_secret(
            &folder.path().join("kubeconfig"),
            &cluster.kubeconfig(api_server, &tls),
        )?;
        let (serving, ca) = (cluster.clone(), tls.ca_pem().to_owned());
        spawn(
            "simcluster",
            async move { serving.serve(listener, &tls).await },
        );
        let inbox = Inbox::open(narrator.clone(), stop.clone()).await?;
        let address = free_address(listen).await?;
        let server = Server::start(folder.path(), address).await?;
        let client = Client::of(&server.url())?;
        let endpoint = format!("https://{api_server}");
        Ok(Self {
            narrator,
            cluster,
            endpoint,
            ca,
            token,
            inbox,
            server,
            client,
            folder,
            stop,
        })
    }

    /// Ends the server and everything else; the folder goes with it.
    ///
    /// # Errors
    ///
    /// When the server cannot be ended or the folder cannot be removed.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.server.kill().await?;
        self.stop.cancel();
        self.cluster.stop();
        self.folder.close().context("the demo's folder")
    }

    /// GET; the body.
    ///
    /// # Errors
    ///
    /// No answer, or not 2xx.
    pub async fn get(&self, path: &[&str]) -> anyhow::Result<Value> {
        Ok(self.client.get(path, None).await?.success()?.body)
    }

    /// POST, PUT or PATCH of a body.
    ///
    /// # Errors
    ///
    /// No answer, or not 2xx.
    pub async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
    ) -> anyhow::Result<Answer> {
        self.client.json(method, path, body).await?.success()
    }

    /// A request on an instance; the operation that it begins.
    ///
    /// # Errors
    ///
    /// No answer, or not 2xx.
    pub async fn begin(&self, instance: &str, task: &str, body: &Value) -> anyhow::Result<String> {
        let path = ["vnflcm", "v2", "vnf_instances", instance, task];
        self.send(Method::POST, &path, body).await?.made()
    }

    /// Retry, rollback or fail of an operation.
    ///
    /// # Errors
    ///
    /// No answer, or not 2xx.
    pub async fn handle(&self, op: &str, task: &str) -> anyhow::Result<u16> {
        let path = ["vnflcm", "v2", "vnf_lcm_op_occs", op, task];
        Ok(self
            .client
            .bare(Method::POST, &path)
            .await?
            .success()?
            .status)
    }

    /// An instance.
    ///
    /// # Errors
    ///
    /// No answer, or not 2xx.
    pub async fn instance(&self, id: &str) -> anyhow::Result<Value> {
        self.get(&["vnflcm", "v2", "vnf_instances", id]).await
    }

    /// Waits until an operation has left the transitional states; it must have come to `wanted`.
    ///
    /// # Errors
    ///
    /// When it comes to another state, or to none in time.
    pub async fn settled(&self, op: &str, wanted: &str) -> anyhow::Result<Value> {
        let path = ["vnflcm", "v2", "vnf_lcm_op_occs", op];
        let found = self
            .until(&format!("{op} in {wanted}"), async || {
                let op = self.get(&path).await?;
                let state = op["operationState"].as_str().unwrap_or_default();
                let moving = matches!(state, "STARTING" | "PROCESSING" | "ROLLING_BACK");
                Ok((!moving).then_some(op))
            })
            .await?;
        if found["operationState"] != wanted {
            bail!(
                "expected {wanted}, read {}: {}",
                found["operationState"],
                found["error"]["detail"]
            );
        }
        Ok(found)
    }

    /// Looks until there is something to see.
    ///
    /// # Errors
    ///
    /// What looking met, or that nothing came in time.
    pub async fn until<T>(
        &self,
        what: &str,
        look: impl AsyncFn() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(seen) = look().await? {
                return Ok(seen);
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("not within {} s: {what}", PATIENCE.as_secs())
    }

    /// The events of an operation of an instance, as the audit replay gives them.
    ///
    /// # Errors
    ///
    /// No answer, or not 2xx.
    pub async fn events(&self, instance: &str, op: &str) -> anyhow::Result<Vec<Value>> {
        let history = self
            .get(&["cairn", "v1", "vnf_instances", instance, "history"])
            .await?;
        let events = history["events"].as_array().cloned().unwrap_or_default();
        Ok(events
            .into_iter()
            .filter(|event| event["vnfLcmOpOccId"] == op)
            .collect())
    }

    /// The objects of an instance in the cluster, as `Kind/name`.
    pub fn objects(&self, instance: &str) -> Vec<String> {
        let of_kind = |(api_version, kind): &(&str, &str)| {
            let all = self.cluster.list(api_version, kind, "default");
            let ours = all
                .into_iter()
                .filter(|object| object["metadata"]["labels"][INSTANCE_LABEL] == instance);
            ours.map(|object| {
                format!(
                    "{kind}/{}",
                    object["metadata"]["name"].as_str().unwrap_or("?")
                )
            })
            .collect::<Vec<_>>()
        };
        KINDS.iter().flat_map(of_kind).collect()
    }

    /// `spec.replicas` of a Deployment in the cluster.
    pub fn replicas(&self, deployment: &str) -> Option<u64> {
        let object = self
            .cluster
            .get("apps/v1", "Deployment", "default", deployment)?;
        object["spec"]["replicas"].as_u64()
    }
}

/// The address that was asked for, or any; tried here, as the child could only tell it in its log.
async fn free_address(listen: Option<SocketAddr>) -> anyhow::Result<SocketAddr> {
    let wanted = listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("--listen {wanted}: is another server running there?"))?;
    Ok(listener.local_addr()?)
}
