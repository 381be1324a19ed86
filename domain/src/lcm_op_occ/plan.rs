//! Plans: every step with every name and undo it will use, fixed before the first effect.

use crate::hook::{Moment, ResultFrom};
use crate::ids::VimId;
use crate::object::{Body, ObjectRef, Uid};
use crate::operation::Levels;
use crate::problem::Problem;
use crate::waits::WaitClass;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the step kinds that this binary writes.
pub const STEP_VERSION: u16 = 1;

/// A pod of the VNF (SOL003 `VnfcResourceInfo`), as inventories find it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vnfc {
    /// VDU it realises.
    pub vdu_id: String,
    /// Name of the pod.
    pub id: String,
    /// UID of the pod: a healed pod of a `StatefulSet` keeps its name.
    pub uid: Uid,
    /// Namespace of the pod.
    pub namespace: String,
    /// Kind of the workload that owns it.
    pub workload_kind: String,
}

/// An object of the instance, with what is needed to recognise and to restore it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedObject {
    /// Which.
    pub object: ObjectRef,
    /// Its UID; absent where the answer to its creation was lost.
    pub uid: Option<Uid>,
    /// What we applied.
    pub manifest: Body,
}

/// What was there before a step, as the survey found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PreState {
    /// The server said with authority that it does not exist.
    Absent,
    /// It carries our instance's label.
    Ours {
        /// Its UID.
        uid: Uid,
        /// Operation that wrote it last, from its annotation.
        operation_id: Option<String>,
        /// Its state without what section 7.4 drops; kept for restoring.
        body: Body,
        /// It carries a deletion timestamp.
        deleting: bool,
        /// It is a Job or Pod that failed.
        failed: bool,
        /// Its `spec.replicas`, where it has them.
        replicas: Option<u32>,
    },
    /// It belongs to somebody else, or to nobody.
    Foreign {
        /// Its UID.
        uid: Uid,
    },
}

/// How a step can be undone; decided before it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Undo {
    /// The object is deleted: it was not there before.
    Delete,
    /// The recorded state is applied again.
    Restore {
        /// That state.
        body: Body,
    },
    /// The object is made again from its recorded state.
    Recreate {
        /// That state.
        body: Body,
    },
    /// The number of replicas read before is set again, if this operation changed it.
    Replicas {
        /// That number.
        from: u32,
    },
    /// The VIM is taken off the register again, if this operation registered it and nobody uses it.
    Unregister,
    /// Nothing needs undoing.
    Nothing,
    /// It cannot be undone.
    Impossible {
        /// Why.
        why: String,
    },
}

/// What a step does. Few kinds, in general terms of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Action {
    /// Server-side apply, after a read.
    Apply {
        /// Which object.
        object: ObjectRef,
        /// What is applied (without labels, annotations and replicas that the adapter adds).
        manifest: Body,
        /// The replicas of its level, for a workload of a VDU.
        replicas: Option<u32>,
        /// Take back fields that our manager owned.
        force_owned: bool,
    },
    /// POST of a kind that can only be created (reviews, bindings).
    Create {
        /// Which object.
        object: ObjectRef,
        /// The body.
        manifest: Body,
    },
    /// Delete with UID precondition.
    Delete {
        /// Which object.
        object: ObjectRef,
        /// The UID it must have.
        uid: Option<Uid>,
        /// Grace period in seconds; absent: the pods' own.
        grace_s: Option<u32>,
    },
    /// Sets replicas through the scale subresource.
    SetReplicas {
        /// Which workload.
        object: ObjectRef,
        /// The number read before.
        from: u32,
        /// The number to set.
        to: u32,
    },
    /// Evicts one pod by UID.
    Evict {
        /// The pod.
        vnfc: Vnfc,
    },
    /// Waits until all are ready.
    AwaitReady {
        /// Which objects.
        objects: Vec<ObjectRef>,
        /// Pods that must be gone before (they are being replaced).
        replaced: Vec<Uid>,
    },
    /// Waits until all are gone, with the pods and volumes that belong to them.
    AwaitGone {
        /// Which objects, with the UIDs that must go.
        objects: Vec<(ObjectRef, Option<Uid>)>,
        /// Volumes of stateful workloads go too.
        volumes: bool,
    },
    /// Lists the pods by VDU.
    TakeInventory {
        /// Workloads by VDU.
        workloads: Vec<(String, ObjectRef)>,
    },
    /// Compares what is there with what was recorded (rollback only).
    Verify {
        /// Objects that must equal their recorded state.
        equal: Vec<(ObjectRef, Body)>,
        /// Objects that must be absent.
        absent: Vec<ObjectRef>,
        /// Workloads that must have so many replicas.
        replicas: Vec<(ObjectRef, u32)>,
    },
    /// Runs one item of a hook as a Job and waits for its end.
    RunHook {
        /// Name of the hook.
        hook: String,
        /// When it runs.
        at: Moment,
        /// Its item, where it has items.
        item: Option<String>,
        /// The Job.
        object: ObjectRef,
        /// The Job's manifest.
        manifest: Body,
        /// How long it may take, in milliseconds; absent: the clock of the table of waits.
        clock_ms: Option<u64>,
        /// Where its result is read.
        result: ResultFrom,
        /// Its result may register a VIM.
        registers_vim: bool,
    },
    /// Registers the VIMs that the results of a hook name.
    RegisterVim {
        /// Name of the hook.
        hook: String,
        /// When the hook runs.
        at: Moment,
        /// Names of the hook's Jobs.
        jobs: Vec<String>,
    },
    /// Takes VIMs off the register that this operation registered (rollback only).
    UnregisterVim {
        /// Which.
        vims: Vec<VimId>,
    },
    /// Removes the Jobs of hooks of this instance, and waits until they are gone.
    RemoveHookJobs {
        /// Where they are.
        namespace: String,
    },
    /// A kind that another version of Cairn wrote.
    #[serde(untagged)]
    Unknown(Value),
}

/// When a step has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Between points 2 and 3, once the plan is fixed.
    Start,
    /// Between points 3 and 4.
    Write,
    /// Between points 4 and 5.
    Settle,
    /// Between points 5 and 6.
    End,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Version of its kind.
    pub version: u16,
    /// Steps of one wave run together; waves run in order.
    pub wave: u32,
    /// What it does.
    pub action: Action,
    /// How it is undone.
    pub undo: Undo,
    /// Why it is to be done, where that is not plain: the field that cannot be changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What stays of the object that it removes, or that its undo removes, as `Kind/name: why`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residue: Vec<String>,
    /// A look that writes after it depend on: it has its turn among them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gates: bool,
}

impl Step {
    /// A step as this binary writes it.
    #[must_use]
    pub fn new(wave: u32, action: Action, undo: Undo) -> Self {
        Self {
            version: STEP_VERSION,
            wave,
            action,
            undo,
            because: None,
            residue: Vec::new(),
            gates: false,
        }
    }

    /// When it has its turn.
    #[must_use]
    pub fn stage(&self) -> Stage {
        if self.gates {
            Stage::Write
        } else {
            self.action.stage()
        }
    }
}

/// What an operation will do, all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// UID of the cluster's `kube-system` namespace: which cluster this is.
    pub cluster_uid: String,
    /// Namespace of objects that name none.
    pub namespace: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Workloads by VDU, as inventories read them.
    pub workloads: Vec<(String, ObjectRef)>,
    /// Levels after completion.
    pub levels: Option<Levels>,
    /// Objects of the instance after completion.
    pub objects: Vec<ManagedObject>,
    /// Objects that were the instance's before, and are no more after completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ManagedObject>,
    /// Workloads by VDU before, where they are others: as the inventory of a rollback reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads_before: Vec<(String, ObjectRef)>,
    /// What stays behind or is left out on purpose, as `Kind/name: why` or `hook NAME: why`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// How often the instance had been patched when it was made.
    #[serde(default)]
    pub patches: u32,
    /// The pods that existed when it was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<Vnfc>,
    /// The hooks of a rollback.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollback_hooks: Vec<Step>,
    /// What an earlier operation that was given up had left: nobody promised that it gets ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<ObjectRef>,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// The object is as it was applied.
    Applied {
        /// Its UID.
        uid: Uid,
        /// It was not there before.
        created: bool,
        /// Fields taken back from other managers, as `manager: path`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        overridden: Vec<String>,
    },
    /// A create-only object was sent.
    Created,
    /// The object is marked for deletion, or was absent.
    Deleted {
        /// It was not there any more.
        was_absent: bool,
    },
    /// The number of replicas is set.
    ReplicasSet {
        /// Read before.
        from: u32,
        /// Read after.
        to: u32,
    },
    /// The pod was evicted, or was gone.
    Evicted {
        /// It was not there any more.
        was_absent: bool,
    },
    /// It stays on purpose.
    Kept {
        /// Why.
        why: String,
    },
    /// All are ready.
    Ready,
    /// All are gone.
    Gone {
        /// What stays behind on purpose, as `Kind/name: why`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        residue: Vec<String>,
    },
    /// The pods that exist.
    Inventory {
        /// By VDU, then name.
        vnfcs: Vec<Vnfc>,
    },
    /// What is there equals what was recorded.
    Verified,
    /// The hook's Job succeeded.
    HookSucceeded {
        /// UID of the Job.
        uid: Uid,
        /// Its result, where it has one that is no secret.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    /// The VIMs are registered.
    VimsRegistered {
        /// Those that this operation registered.
        registered: Vec<VimId>,
        /// Those that were there already and are used.
        used: Vec<VimId>,
    },
    /// The VIMs that this operation registered are off the register.
    VimsUnregistered {
        /// Those that somebody uses by now and that stay, as `VIM name: why`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        residue: Vec<String>,
    },
}

/// What a port answers for a step. A lost answer is `Unknown` and can be made nothing else.
#[derive(Clone, Debug, PartialEq)]
pub enum StepResult {
    /// It is so.
    Done(Outcome),
    /// It certainly is not so yet, and this is in the way.
    NotDone(Vec<crate::waits::Obstacle>),
    /// The answer was lost: the cluster must be read again.
    Unknown {
        /// What was heard instead of an answer.
        why: String,
    },
}

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum StepState {
    /// Not begun, or to be done again.
    Open,
    /// Its intent is recorded.
    Started,
    /// Done.
    Done {
        /// What came of it.
        outcome: Outcome,
    },
    /// Its try ended without it.
    Failed {
        /// Why.
        problem: Problem,
        /// Class of the cause.
        class: WaitClass,
    },
}

impl Action {
    /// When it has its turn.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self {
            Self::Apply { .. }
            | Self::Create { .. }
            | Self::Delete { .. }
            | Self::SetReplicas { .. }
            | Self::Evict { .. }
            | Self::Unknown(_) => Stage::Write,
            Self::AwaitReady { .. }
            | Self::AwaitGone { .. }
            | Self::TakeInventory { .. }
            | Self::Verify { .. } => Stage::Settle,
            Self::RunHook { at, .. } | Self::RegisterVim { at, .. } => match at {
                Moment::Start | Moment::RollbackStart => Stage::Start,
                Moment::End | Moment::RollbackEnd => Stage::End,
            },
            Self::UnregisterVim { .. } | Self::RemoveHookJobs { .. } => Stage::End,
        }
    }

    /// Its kind as users read it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Create { .. } => "create",
            Self::Delete { .. } => "delete",
            Self::SetReplicas { .. } => "set-replicas",
            Self::Evict { .. } => "evict",
            Self::AwaitReady { .. } => "await-ready",
            Self::AwaitGone { .. } => "await-gone",
            Self::TakeInventory { .. } => "take-inventory",
            Self::Verify { .. } => "verify",
            Self::RunHook { .. } => "run-hook",
            Self::RegisterVim { .. } => "register-vim",
            Self::UnregisterVim { .. } => "unregister-vim",
            Self::RemoveHookJobs { .. } => "remove-hook-jobs",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The one object that it writes, if it writes one.
    #[must_use]
    pub fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::Apply { object, .. }
            | Self::Create { object, .. }
            | Self::Delete { object, .. }
            | Self::SetReplicas { object, .. }
            | Self::RunHook { object, .. } => Some(object),
            Self::Evict { .. }
            | Self::AwaitReady { .. }
            | Self::AwaitGone { .. }
            | Self::TakeInventory { .. }
            | Self::Verify { .. }
            | Self::RegisterVim { .. }
            | Self::UnregisterVim { .. }
            | Self::RemoveHookJobs { .. }
            | Self::Unknown(_) => None,
        }
    }

    /// What it is about, in a word for tables: the object, the pod, or how many objects.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Apply { object, .. }
            | Self::Create { object, .. }
            | Self::Delete { object, .. }
            | Self::SetReplicas { object, .. } => object.to_string(),
            Self::Evict { vnfc } => format!("Pod/{}", vnfc.id),
            Self::AwaitReady { objects, .. } => several(objects.iter()),
            Self::AwaitGone { objects, .. } => several(objects.iter().map(|(object, _)| object)),
            Self::TakeInventory { workloads } => several(workloads.iter().map(|(_, o)| o)),
            Self::Verify {
                equal,
                absent,
                replicas,
            } => several(
                equal
                    .iter()
                    .map(|(o, _)| o)
                    .chain(absent)
                    .chain(replicas.iter().map(|(o, _)| o)),
            ),
            Self::RunHook {
                hook, item, object, ..
            } => match item {
                Some(item) => format!("{object} ({hook}, {item})"),
                None => format!("{object} ({hook})"),
            },
            Self::RegisterVim { hook, .. } => format!("VIM of {hook}"),
            Self::UnregisterVim { vims } => {
                let names: Vec<&str> = vims.iter().map(VimId::as_str).collect();
                format!("VIM {}", names.join(", "))
            }
            Self::RemoveHookJobs { namespace } => format!("Jobs of hooks in {namespace}"),
            Self::Unknown(value) => value["kind"].as_str().unwrap_or("unknown").to_owned(),
        }
    }
}

fn several<'a>(objects: impl Iterator<Item = &'a ObjectRef>) -> String {
    let names: Vec<String> = objects.map(ToString::to_string).collect();
    match names.as_slice() {
        [one] => one.clone(),
        [first, .., last] if names.len() > 3 => {
            format!("{first} … {last} ({} objects)", names.len())
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_step_of_another_version_is_kept_as_it_was_written() {
        let written = json!({"kind": "register-vim", "vim": "x"});
        let action: Action = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(action, Action::Unknown(written.clone()));
        assert_eq!(serde_json::to_value(&action).unwrap(), written);
        assert_eq!(action.subject(), "register-vim");
    }

    #[test]
    fn a_known_step_reads_as_its_kind() {
        let written = json!({"kind": "evict", "vnfc": {"vduId": "V", "id": "p", "uid": "u",
            "namespace": "n", "workloadKind": "Deployment"}});
        let action: Action = serde_json::from_value(written).unwrap();
        assert_eq!(action.kind(), "evict");
        assert_eq!(action.subject(), "Pod/p");
    }
}
