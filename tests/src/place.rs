//! A cluster with a namespace of one test's own: simulated, or real.

use crate::kube::Kube;
use cairn_simcluster::{SimCluster, SimOptions, SimTls};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Environment variable: the kubeconfig of a cluster made by `tests/cluster/up`.
pub const KUBECONFIG: &str = "CAIRN_TEST_KUBECONFIG";
/// Environment variable: what needs the real cluster is left out on purpose.
pub const WITHOUT_CLUSTER: &str = "CAIRN_WITHOUT_CLUSTER";

/// A cluster with a namespace that nothing else uses.
pub struct Place {
    /// Plain access to its API.
    pub kube: Kube,
    /// The namespace.
    pub namespace: String,
    /// Ends every cluster-scoped name of the test.
    pub suffix: String,
    /// A file that leads to it.
    pub kubeconfig: PathBuf,
    /// The simulated cluster, where it is one.
    pub sim: Option<SimCluster>,
    _folder: Option<TempDir>,
    cluster_scoped: Mutex<Vec<String>>,
}

fn fresh() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "names of tests are not made by the product"
    )]
    let id = uuid::Uuid::new_v4().simple().to_string();
    id[..8].to_owned()
}

impl Place {
    /// A simulated cluster of its own, behind TLS on a port, in this process.
    pub async fn simulated() -> Self {
        Self::simulated_with(SimOptions::default()).await
    }

    /// A simulated cluster that behaves so; the token is set here.
    pub async fn simulated_with(options: SimOptions) -> Self {
        crate::kube::with_tls();
        let token = fresh();
        let cluster = SimCluster::new(SimOptions {
            bearer_token: Some(token.clone()),
            ..options
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let tls = SimTls::generate(IpAddr::from(Ipv4Addr::LOCALHOST)).expect("a certificate");
        let folder = TempDir::new().expect("a temporary folder");
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, cluster.kubeconfig(address, &tls)).expect("a kubeconfig");
        let kube = Kube::new(&format!("https://{address}"), tls.ca_pem(), Some(token));
        // The class of the real cluster's volumes.
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer"});
        cluster.create("test", class).expect("a storage class");
        let serving = cluster.clone();
        background(async move {
            serving
                .serve(listener, &tls)
                .await
                .expect("the cluster serves");
        });
        Self::make(kube, kubeconfig, Some(cluster), Some(folder)).await
    }

    /// A simulated cluster of its own that begins with what this one holds now. It has no port: it is reached through
    /// [`Place::sim`], and `kube` of it answers nothing.
    #[must_use]
    pub fn fork(&self) -> Self {
        let kube = self.kube.at("https://a-fork-has-no-port.invalid");
        Self {
            kube,
            namespace: self.namespace.clone(),
            suffix: self.suffix.clone(),
            kubeconfig: self.kubeconfig.clone(),
            sim: Some(self.sim().fork()),
            _folder: None,
            cluster_scoped: Mutex::default(),
        }
    }

    /// The real cluster; `None` only where [`WITHOUT_CLUSTER`] says so.
    ///
    /// # Panics
    /// When neither variable is set: a test must not pass without having run.
    pub async fn real() -> Option<Self> {
        let Some(path) = std::env::var_os(KUBECONFIG) else {
            assert!(
                std::env::var_os(WITHOUT_CLUSTER).is_some(),
                "set {KUBECONFIG} to the kubeconfig that tests/cluster/up wrote, or {WITHOUT_CLUSTER}=1"
            );
            eprintln!("left out, as {WITHOUT_CLUSTER} says: this needs the real cluster");
            return None;
        };
        let kubeconfig = PathBuf::from(path);
        let kube = Kube::of_kubeconfig(&kubeconfig);
        Some(Self::make(kube, kubeconfig, None, None).await)
    }

    async fn make(
        kube: Kube,
        kubeconfig: PathBuf,
        sim: Option<SimCluster>,
        folder: Option<TempDir>,
    ) -> Self {
        let suffix = fresh();
        let namespace = format!("t-{suffix}");
        let cluster_scoped = Mutex::new(Vec::new());
        let place = Self {
            kube,
            namespace,
            suffix,
            kubeconfig,
            sim,
            _folder: folder,
            cluster_scoped,
        };
        let body =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}});
        let made = place.kube.post("/api/v1/namespaces", &body).await;
        assert_eq!(made.status, 201, "{:#}", made.body);
        // Pods are refused before it exists.
        let account = place.path("v1", "serviceaccounts", "default");
        place
            .kube
            .until(
                &account,
                Duration::from_secs(30),
                "the default account",
                |_| true,
            )
            .await;
        place
    }

    /// Whether it is the simulated one.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.sim.is_some()
    }

    /// The simulated cluster.
    #[must_use]
    pub fn sim(&self) -> &SimCluster {
        self.sim
            .as_ref()
            .expect("this test runs on the simulated cluster")
    }

    /// The kubeconfig's path.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Path of a namespaced kind, by `v1` or `apps/v1`.
    #[must_use]
    pub fn list(&self, api_version: &str, plural: &str) -> String {
        list_path(api_version, plural, Some(&self.namespace))
    }

    /// Path of a namespaced object.
    #[must_use]
    pub fn path(&self, api_version: &str, plural: &str, name: &str) -> String {
        format!("{}/{name}", self.list(api_version, plural))
    }

    /// Remembers an object outside the namespace, to be removed at the end.
    pub fn remove_at_end(&self, path: impl Into<String>) {
        self.cluster_scoped
            .lock()
            .expect("no panic while it was held")
            .push(path.into());
    }

    /// An object, if it exists.
    pub async fn read(&self, path: &str) -> Option<Value> {
        let answer = self.kube.get(path).await;
        match answer.status {
            200 => Some(answer.body),
            404 => None,
            status => panic!("GET {path}: {status} {:#}", answer.body),
        }
    }
}

/// Path of a kind, cluster-scoped without a namespace.
#[must_use]
pub fn list_path(api_version: &str, plural: &str, namespace: Option<&str>) -> String {
    let root = if api_version.contains('/') {
        "apis"
    } else {
        "api"
    };
    match namespace {
        Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{api_version}/{plural}"),
    }
}

/// A task of the harness itself; its panic shows in the test's output.
#[expect(
    clippy::disallowed_methods,
    reason = "the harness has no engine to supervise its tasks"
)]
pub fn background<F>(work: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(work)
}

impl Drop for Place {
    /// A real cluster outlives the test, so what the test made there is removed, without waiting for it to end.
    fn drop(&mut self) {
        if self.sim.is_some() {
            return;
        }
        let kube = self.kube.clone();
        let mut paths = self
            .cluster_scoped
            .lock()
            .map(|l| l.clone())
            .unwrap_or_default();
        paths.push(format!("/api/v1/namespaces/{}", self.namespace));
        let removing = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                // A client belongs to the runtime that it was made in.
                let kube = Kube::new(&kube.server, &kube.ca_pem, kube.token.clone());
                for path in paths {
                    let removed = kube.delete(&path, &json!({"gracePeriodSeconds": 0})).await;
                    if !matches!(removed.status, 200 | 202 | 404) {
                        eprintln!("DELETE {path}: {} {}", removed.status, removed.message());
                    }
                }
            });
        });
        if removing.join().is_err() {
            eprintln!("namespace {} was not removed", self.namespace);
        }
    }
}
