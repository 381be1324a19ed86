//! The cluster, in general terms.

use super::PortError;
use crate::hook::{Moment, ResultFrom};
use crate::ids::{VnfInstanceId, VnfLcmOpOccId};
use crate::lcm_op_occ::plan::{Action, PreState, StepResult, Vnfc};
use crate::object::{Body, Digest, ObjectRef, Uid};
use crate::time::Timestamp;
use crate::vim::{ClusterAccess, FoundAccess};
use crate::waits::Obstacle;
use async_trait::async_trait;
use serde_json::Value;

/// For whom and where something is done.
#[derive(Clone, Debug)]
pub struct Scope {
    /// How the cluster is reached.
    pub access: ClusterAccess,
    /// The instance: owner label `cairn.dev/vnf-instance-id` and field manager `cairn-<id>`.
    pub instance: VnfInstanceId,
    /// The operation: annotation `cairn.dev/operation-id`.
    pub operation: VnfLcmOpOccId,
    /// Operations of this instance whose intents are recorded; what carries another id is not ours.
    pub known_operations: Vec<VnfLcmOpOccId>,
    /// UIDs recorded for objects of this instance: with our label they are ours, whoever wrote them last.
    pub recorded_uids: Vec<Uid>,
    /// Digest of the package: annotation `cairn.dev/package-digest`.
    pub package_digest: String,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// The user lets a retry take fields from other managers.
    pub take_over: bool,
    /// When the present try or rollback began: a Job of a hook that failed before that is made again, one that fails
    /// afterwards ends the try.
    pub since: Timestamp,
    /// A halted operation is looked at: waits help nothing along, and nothing is written.
    pub look_only: bool,
}

/// A manifest that is to be looked at before the first write.
#[derive(Clone, Debug, PartialEq)]
pub struct SurveyItem {
    /// As the package holds it.
    pub manifest: Value,
    /// The replicas of its level, for a workload of a VDU.
    pub replicas: Option<u32>,
    /// The UID recorded for it, where one is.
    pub recorded_uid: Option<Uid>,
    /// It is the Job of a hook, no object of the VNF.
    pub hook: Option<HookJob>,
}

/// What is to be known of the Job of a hook before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookJob {
    /// When it runs: what the other items make may not be there then.
    pub moment: Moment,
    /// Where its result is read.
    pub result: ResultFrom,
    /// Its result names a Secret that is read, for a VIM is registered.
    pub registers_vim: bool,
}

/// What is to be looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurveyRequest {
    /// UID of the `kube-system` namespace of the cluster that it must be, where that is known: on another one
    /// nothing is looked at.
    pub cluster_uid: Option<String>,
    /// Manifests that are to be applied (kinds, namespace, references, permissions, dry-run are checked).
    pub items: Vec<SurveyItem>,
    /// Objects that are only read (to be deleted, scaled, healed).
    pub reads: Vec<(ObjectRef, Option<Uid>)>,
    /// Workloads whose pods are listed, by VDU.
    pub workloads: Vec<(String, ObjectRef)>,
    /// Workloads whose replicas will be set: an autoscaler that targets one is reported.
    pub scaled: Vec<ObjectRef>,
    /// Pods of the workloads will be evicted: the right to it is asked for.
    pub evicts: bool,
    /// The VNF is terminated, and its hooks with it: their Jobs are removed, and where the namespace is gone or going
    /// they are left out.
    pub ends_hooks: bool,
    /// The dry-run is left out (nothing will be applied).
    pub skip_dry_run: bool,
}

/// How a kind is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindFacts {
    /// It can only be created (reviews, bindings): no undo.
    pub create_only: bool,
    /// It has a scale subresource.
    pub scalable: bool,
}

/// What a survey found of one object. Bodies are raw JSON here; the engine keeps secret and large ones as blobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed {
    /// Which, with its namespace resolved.
    pub object: ObjectRef,
    /// How its kind is served.
    pub kind: KindFacts,
    /// What is there. `PreState::Ours::body` is `Body::Inline` here, without what section 7.4 drops.
    pub pre: PreState,
    /// The plan must replace it instead of changing it (an immutable field differs): why.
    pub needs_recreate: Option<String>,
    /// The dry-run said that applying it changes nothing.
    pub unchanged: bool,
}

/// What a survey found.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// UID of the `kube-system` namespace.
    pub cluster_uid: String,
    /// In the order of `SurveyRequest::items`; hooks that are left out have none.
    pub items: Vec<Surveyed>,
    /// In the order of `SurveyRequest::reads`.
    pub reads: Vec<Surveyed>,
    /// The pods that exist and are not being deleted.
    pub vnfcs: Vec<Vnfc>,
    /// Why the hooks of a VNF that is terminated cannot run, where they cannot.
    pub hooks_left_out: Option<String>,
}

/// A survey that found something in the way.
#[derive(Clone, Debug, PartialEq)]
pub enum SurveyOutcome {
    /// Nothing is in the way.
    Clear(Survey),
    /// These are; the table of waits says what that means (phase `Checks`).
    Blocked(Vec<Obstacle>),
}

/// Bodies that steps name by digest, handed to the platform by the engine.
#[async_trait]
pub trait Bodies: Send + Sync {
    /// The JSON of a body.
    ///
    /// # Errors
    ///
    /// As `Blobs::get`.
    async fn json(&self, body: &Body) -> Result<Value, PortError>;
}

/// A cluster of containers. Every call may be repeated: it reads before it writes and finds done what is done.
/// A lost answer is `Unknown`; only an authoritative answer makes something absent or refused.
#[async_trait]
pub trait ContainerPlatform: Send + Sync {
    /// Looks at everything before the first write; writes nothing.
    async fn survey(&self, scope: &Scope, request: &SurveyRequest) -> SurveyOutcome;

    /// Makes what a step says true, or looks whether it is: one bounded try, no waiting inside.
    async fn perform(&self, scope: &Scope, action: &Action, bodies: &dyn Bodies) -> StepResult;

    /// Resolves when something about the objects of an action may have changed, at the latest after
    /// `at_most_ms` (watches, with a periodic re-read as safety net).
    async fn changed(&self, scope: &Scope, action: &Action, at_most_ms: u64);

    /// The access to a cluster that a Secret holds: a kubeconfig under `value` (as Cluster API writes it) or
    /// `kubeconfig`, a token under `bearer_token` or `token`, or `client_certificate` and `client_key` (`tls.crt`
    /// and `tls.key`); with `ssl_ca_cert` or `ca.crt`.
    ///
    /// # Errors
    ///
    /// What is in the way: the Secret is not there, cannot be read, or holds no access.
    async fn access_in(&self, scope: &Scope, secret: &str) -> Result<FoundAccess, Vec<Obstacle>>;

    /// The pods of workloads that exist now; for drift and for looking whether a retry would succeed.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the cluster did not answer, `Refused` when it said no.
    async fn inventory(
        &self,
        scope: &Scope,
        workloads: &[(String, ObjectRef)],
    ) -> Result<Vec<Vnfc>, PortError>;
}

/// Marker: digest of a manifest as it is annotated.
pub type PackageDigest = Digest;
