//! A platform on a cluster with a namespace of its own.

use cairn_domain::ids::{VimId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, StepResult};
use cairn_domain::object::{Body, ObjectRef, Uid};
use cairn_domain::ports::{
    Bodies, ContainerPlatform as _, PortError, Scope, Survey, SurveyItem, SurveyOutcome,
    SurveyRequest,
};
use cairn_domain::secret::Secret;
use cairn_domain::vim::ClusterAccess;
use cairn_domain::waits::Obstacle;
use cairn_kubernetes::{ConfiguredCluster, KubernetesPlatform, Settings};
use cairn_simcluster::{SimCluster, SimOptions};
use kube::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long a case waits for anything.
const PATIENCE: Duration = Duration::from_secs(90);

pub const TOKEN: &str = "let-me-in";

/// What a case works with.
pub struct Bench {
    pub platform: KubernetesPlatform,
    pub scope: Scope,
    pub namespace: String,
    client: Client,
    token: Option<String>,
    simulated: Option<SimCluster>,
}

/// Bodies that are in the steps themselves.
pub struct Inline;

#[async_trait::async_trait]
impl Bodies for Inline {
    async fn json(&self, body: &Body) -> Result<Value, PortError> {
        match body {
            Body::Inline(value) => Ok(value.clone()),
            Body::Blob(_) => Err(PortError::Unavailable("these cases keep no blobs".into())),
        }
    }
}

fn scope(case: &str, namespace: &str) -> Scope {
    Scope {
        access: ClusterAccess::Configured(VimId::parse("here").unwrap()),
        instance: VnfInstanceId::parse(format!("vnf-{case}")).unwrap(),
        operation: VnfLcmOpOccId::parse("op-1").unwrap(),
        known_operations: vec![VnfLcmOpOccId::parse("op-1").unwrap()],
        recorded_uids: Vec::new(),
        package_digest: "d1".into(),
        namespace: namespace.to_owned(),
        take_over: false,
        since: cairn_domain::time::Timestamp::from_millis(0),
        look_only: false,
    }
}

/// Short enough for a label and a namespace, and different for each case and process.
fn short(case: &str) -> String {
    let hash = case.bytes().fold(5381_u32, |hash, byte| {
        hash.wrapping_mul(33) ^ u32::from(byte)
    });
    format!("{hash:08x}-{}", std::process::id())
}

pub async fn simulated(case: &str) -> Bench {
    let cluster = simulated_cluster();
    let configured = ConfiguredCluster::in_process(cluster.router(), Some(Secret::new(TOKEN)));
    behind(case, cluster, configured).await
}

/// A platform that reaches a simulated cluster in its own way.
pub async fn behind(case: &str, cluster: SimCluster, configured: ConfiguredCluster) -> Bench {
    let client = Client::new(cluster.router(), "default");
    make(case, configured, client, Some(TOKEN.into()), Some(cluster)).await
}

pub fn simulated_cluster() -> SimCluster {
    SimCluster::new(SimOptions {
        bearer_token: Some(TOKEN.into()),
        ..SimOptions::default()
    })
}

/// The kubeconfig of the real cluster; none where the cases are to be left out.
pub fn kubeconfig() -> Option<PathBuf> {
    match std::env::var("CAIRN_TEST_KUBECONFIG") {
        Ok(path) => Some(path.into()),
        Err(_) if std::env::var("CAIRN_WITHOUT_CLUSTER").as_deref() == Ok("1") => None,
        Err(unset) => panic!(
            "{unset}: set CAIRN_TEST_KUBECONFIG, or CAIRN_WITHOUT_CLUSTER=1 to leave the real cluster out"
        ),
    }
}

pub async fn real(case: &str) -> Option<Bench> {
    let path = kubeconfig()?;
    let client = real_client(&path).await;
    Some(
        make(
            case,
            ConfiguredCluster::kubeconfig(path),
            client,
            None,
            None,
        )
        .await,
    )
}

async fn real_client(path: &PathBuf) -> Client {
    let config = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options)
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

async fn make(
    case: &str,
    configured: ConfiguredCluster,
    client: Client,
    token: Option<String>,
    simulated: Option<SimCluster>,
) -> Bench {
    let case = short(case);
    let namespace = format!("it-{case}");
    let platform = KubernetesPlatform::new(Settings::default())
        .with_configured(VimId::parse("here").unwrap(), configured);
    let scope = scope(&case, &namespace);
    let bench = Bench {
        platform,
        scope,
        namespace,
        client,
        token,
        simulated,
    };
    let made =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bench.namespace}});
    bench.post("/api/v1/namespaces", made).await;
    if bench.simulated.is_some() {
        // The real one brings it, see CONTRIBUTING.md.
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "manual"}, "provisioner": "simcluster.cairn.dev/provisioner",
            "volumeBindingMode": "WaitForFirstConsumer"});
        bench
            .post("/apis/storage.k8s.io/v1/storageclasses", class)
            .await;
    }
    bench
}

impl Bench {
    /// The simulated cluster, for cases that are on no other.
    pub fn cluster(&self) -> &SimCluster {
        self.simulated
            .as_ref()
            .expect("the case is on the simulated cluster")
    }

    /// Ends a case: its namespace goes.
    pub async fn done(self) {
        self.call(
            "DELETE",
            &format!("/api/v1/namespaces/{}", self.namespace),
            None,
        )
        .await
        .unwrap();
    }

    /// Calls the cluster directly, as somebody else would.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, kube::Error> {
        let (method, media) = match method {
            "PATCH" => ("PATCH", "application/merge-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            other => (other, "application/json"),
        };
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let bytes = body.map_or_else(Vec::new, |body| serde_json::to_vec(&body).unwrap());
        self.client.request(request.body(bytes).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.call("GET", path, None).await.unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, Some(body)).await.unwrap()
    }

    /// Merges a patch as `kubectl edit` would.
    pub async fn patch(&self, path: &str, body: Value) -> Value {
        self.call(
            "PATCH",
            &format!("{path}?fieldManager=kubectl-edit"),
            Some(body),
        )
        .await
        .unwrap()
    }

    pub async fn exists(&self, path: &str) -> bool {
        match self.call("GET", path, None).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Path of something in the case's namespace.
    /// All of them where the name is empty.
    pub fn path(&self, resource: &str, name: &str) -> String {
        let root = match resource {
            "deployments" | "statefulsets" | "replicasets" => "/apis/apps/v1",
            "jobs" => "/apis/batch/v1",
            _ => "/api/v1",
        };
        format!("{root}/namespaces/{}/{resource}/{name}", self.namespace)
            .trim_end_matches('/')
            .to_owned()
    }

    pub async fn perform(&self, action: &Action) -> StepResult {
        self.platform.perform(&self.scope, action, &Inline).await
    }

    /// Performs an action that must be done at once.
    pub async fn must(&self, action: &Action) -> Outcome {
        match self.perform(action).await {
            StepResult::Done(outcome) => outcome,
            other => panic!("{action:?} came to {other:?}"),
        }
    }

    /// Performs an action that must not be done, and tells what is in the way.
    pub async fn refused(&self, action: &Action) -> Vec<Obstacle> {
        match self.perform(action).await {
            StepResult::NotDone(obstacles) => obstacles,
            other => panic!("{action:?} came to {other:?}"),
        }
    }

    /// Performs an action until it is done, waiting for changes in between.
    pub async fn until_done(&self, action: &Action) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let result = self.perform(action).await;
            if let StepResult::Done(outcome) = result {
                return outcome;
            }
            assert!(Instant::now() < deadline, "{action:?} still is {result:?}");
            self.platform.changed(&self.scope, action, 2000).await;
        }
    }

    /// Performs an action until something in the way is as described.
    pub async fn until_told(&self, action: &Action, told: impl Fn(&Obstacle) -> bool) -> Obstacle {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let result = self.perform(action).await;
            if let StepResult::NotDone(obstacles) = &result
                && let Some(found) = obstacles.iter().find(|o| told(o))
            {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "{action:?} still is {result:?}");
            self.platform.changed(&self.scope, action, 1000).await;
        }
    }

    pub async fn survey(&self, request: &SurveyRequest) -> Survey {
        match self.platform.survey(&self.scope, request).await {
            SurveyOutcome::Clear(survey) => survey,
            SurveyOutcome::Blocked(obstacles) => panic!("{obstacles:?}"),
        }
    }

    pub async fn blocked(&self, request: &SurveyRequest) -> Vec<Obstacle> {
        match self.platform.survey(&self.scope, request).await {
            SurveyOutcome::Blocked(obstacles) => obstacles,
            SurveyOutcome::Clear(survey) => panic!("{survey:?}"),
        }
    }

    /// The object that a manifest describes, in the case's namespace.
    pub fn object(&self, manifest: &Value) -> ObjectRef {
        ObjectRef {
            api_version: manifest["apiVersion"].as_str().unwrap().into(),
            kind: manifest["kind"].as_str().unwrap().into(),
            namespace: Some(self.namespace.clone()),
            name: manifest["metadata"]["name"].as_str().unwrap().into(),
        }
    }

    pub fn apply(&self, manifest: &Value) -> Action {
        Action::Apply {
            object: self.object(manifest),
            manifest: Body::Inline(manifest.clone()),
            replicas: None,
            force_owned: false,
        }
    }

    pub fn ready(&self, manifests: &[&Value]) -> Action {
        let objects = manifests
            .iter()
            .map(|manifest| self.object(manifest))
            .collect();
        Action::AwaitReady {
            objects,
            replaced: Vec::new(),
        }
    }

    /// Makes an object and waits until it is ready.
    pub async fn up(&self, manifest: &Value) -> Uid {
        let outcome = self.must(&self.apply(manifest)).await;
        self.until_done(&self.ready(&[manifest])).await;
        uid_of(&outcome)
    }
}

pub fn uid_of(outcome: &Outcome) -> Uid {
    match outcome {
        Outcome::Applied { uid, .. } => uid.clone(),
        other => panic!("{other:?} has no UID"),
    }
}

pub fn item(manifest: &Value) -> SurveyItem {
    SurveyItem {
        manifest: manifest.clone(),
        replicas: None,
        recorded_uid: None,
        hook: None,
    }
}

pub fn items(manifests: &[&Value]) -> SurveyRequest {
    SurveyRequest {
        items: manifests.iter().map(|m| item(m)).collect(),
        ..SurveyRequest::default()
    }
}
