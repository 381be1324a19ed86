//! The `ContainerPlatform` port.

use crate::access::{ConfiguredCluster, Source};
use crate::apply::{self, Wanted};
use crate::client::{Cluster, Session, Settings};
use crate::errors::{CallError, Halt, Try};
use crate::verify::Expected;
use crate::{
    await_ready, credentials, delete, evict, gone, hook, inventory, scale, survey, verify, watch,
};
use async_trait::async_trait;
use cairn_domain::ids::VimId;
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, StepResult, Vnfc};
use cairn_domain::object::{Body, ObjectRef};
use cairn_domain::ports::{
    Bodies, ContainerPlatform, PortError, Scope, SurveyOutcome, SurveyRequest,
};
use cairn_domain::vim::{ClusterAccess, FoundAccess};
use cairn_domain::waits::Obstacle;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Any number of Kubernetes clusters.
pub struct KubernetesPlatform {
    settings: Settings,
    configured: HashMap<VimId, ConfiguredCluster>,
    clusters: Mutex<Vec<(ClusterAccess, Arc<Cluster>)>>,
}

impl KubernetesPlatform {
    /// A platform that reaches clusters by address only.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            configured: HashMap::new(),
            clusters: Mutex::new(Vec::new()),
        }
    }

    /// The same with a cluster that `ClusterAccess::Configured` names.
    #[must_use]
    pub fn with_configured(mut self, vim: VimId, cluster: ConfiguredCluster) -> Self {
        self.configured.insert(vim, cluster);
        self
    }

    /// The cluster of an access, kept by the content of the access; the one that was used longest ago goes first.
    fn cluster(&self, access: &ClusterAccess) -> Result<Arc<Cluster>, CallError> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = clusters.iter().position(|(known, _)| known == access) {
            let found = clusters.remove(index);
            let cluster = Arc::clone(&found.1);
            clusters.push(found);
            return Ok(cluster);
        }
        let source = match access {
            ClusterAccess::Configured(vim) => self
                .configured
                .get(vim)
                .map(|c| c.0.clone())
                .ok_or_else(|| {
                    CallError::Setup(format!("no cluster is configured for the VIM {vim}"))
                })?,
            ClusterAccess::Direct {
                endpoint,
                ca_pem,
                credential,
            } => Source::Direct {
                endpoint: endpoint.clone(),
                ca_pem: ca_pem.clone(),
                credential: credential.clone(),
            },
        };
        let cluster = Arc::new(Cluster::new(source, self.settings));
        if clusters.len() >= self.settings.clusters.max(1) {
            clusters.remove(0);
        }
        clusters.push((access.clone(), Arc::clone(&cluster)));
        Ok(cluster)
    }

    fn session(&self, scope: &Scope) -> Result<Session, CallError> {
        Ok(Session::new(
            self.cluster(&scope.access)?,
            scope.operation.as_str(),
        ))
    }

    async fn attempt(&self, scope: &Scope, action: &Action, bodies: &dyn Bodies) -> Try<Outcome> {
        let session = self.session(scope).map_err(|e| e.reading("cluster"))?;
        match action {
            Action::Apply {
                object,
                manifest,
                replicas,
                force_owned,
            } => {
                let manifest = json(bodies, manifest).await?;
                let wanted = Wanted {
                    object,
                    manifest: &manifest,
                    replicas: *replicas,
                    force_owned: *force_owned,
                };
                apply::apply(&session, scope, &wanted).await
            }
            Action::Create { object, manifest } => {
                apply::create(&session, scope, object, &json(bodies, manifest).await?).await
            }
            Action::Delete {
                object,
                uid,
                grace_s,
            } => delete::delete(&session, scope, object, uid.as_ref(), *grace_s).await,
            Action::SetReplicas {
                object,
                to,
                from: _,
            } => scale::set(&session, scope, object, *to).await,
            Action::Evict { vnfc } => evict::evict(&session, vnfc).await,
            Action::AwaitReady { objects, replaced } => {
                await_ready::look(&session, scope, objects, replaced).await
            }
            Action::AwaitGone { objects, volumes } => {
                gone::look(&session, scope, objects, *volumes).await
            }
            Action::TakeInventory { workloads } => inventory::agreed(&session, scope, workloads)
                .await
                .map(|vnfcs| Outcome::Inventory { vnfcs }),
            Action::Verify {
                equal,
                absent,
                replicas,
            } => {
                let mut recorded = Vec::with_capacity(equal.len());
                for (object, body) in equal {
                    recorded.push((object.clone(), json(bodies, body).await?));
                }
                let expected = Expected {
                    equal: recorded,
                    absent: absent.clone(),
                    replicas: replicas.clone(),
                };
                verify::look(&session, scope, &expected).await
            }
            Action::RunHook { .. }
            | Action::RemoveHookJobs { .. }
            | Action::RegisterVim { .. }
            | Action::UnregisterVim { .. }
            | Action::Unknown(_) => attempt_other(&session, scope, action, bodies).await,
        }
    }
}

/// What is about no object of the VNF.
async fn attempt_other(
    session: &Session,
    scope: &Scope,
    action: &Action,
    bodies: &dyn Bodies,
) -> Try<Outcome> {
    match action {
        Action::RunHook {
            hook,
            item,
            object,
            manifest,
            result,
            registers_vim,
            ..
        } => {
            let manifest = json(bodies, manifest).await?;
            let wish = hook::Wish {
                hook,
                item: item.as_deref(),
                object,
                manifest: &manifest,
                result,
                registers_vim: *registers_vim,
            };
            hook::run(session, scope, &wish).await
        }
        Action::RemoveHookJobs { namespace } => hook::remove(session, scope, namespace).await,
        other => Err(Halt::call(
            "cluster",
            "Invalid",
            format!(
                "this version of Cairn does not do steps of kind {} on a cluster",
                match other {
                    Action::Unknown(step) => step["kind"].to_string(),
                    known => known.kind().to_owned(),
                }
            ),
        )),
    }
}

async fn json(bodies: &dyn Bodies, body: &Body) -> Try<Value> {
    bodies.json(body).await.map_err(|e| {
        Halt::call(
            "cluster",
            "Package",
            format!("a recorded body cannot be read: {e}"),
        )
    })
}

#[async_trait]
impl ContainerPlatform for KubernetesPlatform {
    async fn survey(&self, scope: &Scope, request: &SurveyRequest) -> SurveyOutcome {
        match self.session(scope) {
            Ok(session) => survey::survey(&session, scope, request).await,
            Err(error) => SurveyOutcome::Blocked(error.reading("cluster").obstacles()),
        }
    }

    async fn perform(&self, scope: &Scope, action: &Action, bodies: &dyn Bodies) -> StepResult {
        self.attempt(scope, action, bodies)
            .await
            .map_or_else(Halt::result, StepResult::Done)
    }

    async fn changed(&self, scope: &Scope, action: &Action, at_most_ms: u64) {
        let at_most = Duration::from_millis(at_most_ms);
        match self.session(scope) {
            Ok(session) => watch::changed(&session, scope, action, at_most).await,
            Err(_) => tokio::time::sleep(at_most).await,
        }
    }

    async fn access_in(&self, scope: &Scope, secret: &str) -> Result<FoundAccess, Vec<Obstacle>> {
        let session = self
            .session(scope)
            .map_err(|e| e.reading("cluster").obstacles())?;
        credentials::access_in(&session, scope, secret)
            .await
            .map_err(Halt::obstacles)
    }

    async fn inventory(
        &self,
        scope: &Scope,
        workloads: &[(String, ObjectRef)],
    ) -> Result<Vec<Vnfc>, PortError> {
        let session = self.session(scope).map_err(CallError::port)?;
        inventory::take(&session, scope, workloads)
            .await
            .map_err(CallError::port)
    }
}
