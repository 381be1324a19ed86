//! From what was asked and what the cluster showed to a plan: every choice is made here, before the first
//! write, and none later.
//!
//! | operation | writes | then |
//! |---|---|---|
//! | INSTANTIATE | apply each manifest, in waves | await ready, inventory |
//! | SCALE, `SCALE_TO_LEVEL` | set replicas of each VDU whose number changes | await ready, inventory |
//! | HEAL of VNFCs | evict them, in one wave | await their replacement, inventory |
//! | HEAL of all | apply each recorded manifest, then evict all pods | await ready, inventory |
//! | `CHANGE_VNFPKG` | apply each manifest that changes something, then delete what only the old package has | await ready, await gone, inventory |
//! | TERMINATE | delete in reverse order | await gone |
//!
//! The hooks that the package has for an operation come before its writes and after its waits ([`crate::hook`]).

mod ask;
mod change;
mod claims;
mod hooks;
mod kept;
mod order;
mod recheck;
mod steps;

pub use ask::survey_request;
pub use order::wave_of;
pub use recheck::recheck;
pub use steps::{check_cluster, plan};

use crate::hook::Hook;
use crate::lcm_op_occ::VnfLcmOpOcc;
use crate::lcm_op_occ::plan::ManagedObject;
use crate::object::{Body, ObjectRef};
use crate::ports::{Manifest, Surveyed};
use crate::vnf_instance::VnfInstance;
use serde_json::Value;

/// What is said of a cluster that is not the VNF's, both by the UID of their `kube-system` namespace.
#[must_use]
pub fn another_cluster(found: &str, known: &str) -> String {
    format!(
        "this is another cluster: its kube-system namespace has UID {found}, the VNF's has {known}; point vimConnectionInfo to the cluster of the VNF"
    )
}

/// What a plan is made from, apart from what the cluster shows.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The operation.
    pub op: &'a VnfLcmOpOcc,
    /// Its instance.
    pub instance: &'a VnfInstance,
    /// The manifests of the package, for INSTANTIATE; of the new one, for `CHANGE_VNFPKG`.
    pub manifests: &'a [Manifest],
    /// The recorded manifests of the instance's objects, read from the blob store, in the order of
    /// [`Inputs::owned`]; for HEAL of all.
    pub recorded: &'a [Value],
    /// The hooks of the package, those of other operations too.
    pub hooks: &'a [Hook],
}

impl<'a> Inputs<'a> {
    /// The objects that the record says are in the cluster: those of the VNF, or what was left behind.
    #[must_use]
    pub fn owned(&self) -> &'a [ManagedObject] {
        self.instance
            .instantiated
            .as_ref()
            .map_or(&self.instance.leftovers, |info| &info.objects)
    }

    /// The same, with what this operation has learnt of their UIDs.
    #[must_use]
    pub fn known(&self) -> Vec<ManagedObject> {
        let learnt = self.op.known_objects();
        let uid_now = |owned: &ManagedObject| {
            let found = learnt.iter().find(|known| known.object.is(&owned.object));
            found.map_or_else(|| owned.uid.clone(), |known| known.uid.clone())
        };
        self.owned()
            .iter()
            .map(|owned| ManagedObject {
                uid: uid_now(owned),
                ..owned.clone()
            })
            .collect()
    }

    /// The same, and what a given-up change left beside them.
    #[must_use]
    pub fn all(&self) -> Vec<ManagedObject> {
        let mut all = self.known();
        let strays = self.instance.instantiated.as_ref();
        all.extend(
            strays
                .into_iter()
                .flat_map(|_| self.instance.leftovers.clone()),
        );
        all
    }

    /// The wave of an object: in the order that INSTANTIATE named the manifests in, or by its kind.
    fn wave(&self, place: u32, found: &Surveyed) -> u32 {
        match self.op.additional.def_files {
            Some(_) => place,
            None => wave_of(found.object.group(), &found.object.kind),
        }
    }

    /// Namespace of objects that name none.
    #[must_use]
    pub fn namespace(&self) -> String {
        let recorded = self
            .instance
            .instantiated
            .as_ref()
            .map(|info| info.namespace.clone());
        self.op
            .additional
            .namespace
            .clone()
            .or(recorded)
            .unwrap_or_else(|| "default".to_owned())
    }
}

/// Keeps a body inline or as a blob, whichever is right.
pub type Keep<'a> = dyn FnMut(&Value) -> Body + 'a;

/// The identity of a manifest, with the namespace it names or none.
#[must_use]
pub fn identity(manifest: &Value) -> ObjectRef {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ObjectRef {
        api_version: text(&manifest["apiVersion"]),
        kind: text(&manifest["kind"]),
        namespace: manifest["metadata"]["namespace"]
            .as_str()
            .filter(|n| !n.is_empty())
            .map(str::to_owned),
        name: text(&manifest["metadata"]["name"]),
    }
}

/// Kinds that VDUs are realised by.
#[must_use]
pub fn is_workload(kind: &str) -> bool {
    matches!(
        kind,
        "Deployment"
            | "StatefulSet"
            | "DaemonSet"
            | "ReplicaSet"
            | "ReplicationController"
            | "Job"
            | "CronJob"
            | "Pod"
    )
}

/// Workloads of a package that an autoscaler in it targets, as `Kind/name` with the autoscaler's name.
#[must_use]
pub fn autoscaled(manifests: &[Manifest]) -> Vec<(String, String)> {
    manifests
        .iter()
        .map(|m| &m.value)
        .filter(|m| m["kind"] == "HorizontalPodAutoscaler")
        .filter_map(|m| {
            let target = &m["spec"]["scaleTargetRef"];
            let workload = format!("{}/{}", target["kind"].as_str()?, target["name"].as_str()?);
            Some((workload, m["metadata"]["name"].as_str()?.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
