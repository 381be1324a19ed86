//! A cluster without time or network: objects, pods, and a script of what goes wrong.

mod looks;

use crate::hook::{LABEL, Registration};
use crate::ids::VimId;
use crate::lcm_op_occ::plan::{Action, Outcome, StepResult};
use crate::object::{Body, ObjectRef, Uid};
use crate::planning::{identity, is_workload};
use crate::waits::Obstacle;
use serde_json::Value;
use std::collections::BTreeMap;

/// An object that exists.
#[derive(Clone, Debug)]
pub struct Thing {
    /// Which.
    pub object: ObjectRef,
    /// Its UID.
    pub uid: Uid,
    /// As it was applied.
    pub body: Value,
    /// It carries our label.
    pub ours: bool,
    /// Its number of replicas, where it is a workload.
    pub replicas: Option<u32>,
    /// Its pods: name and UID.
    pub pods: Vec<(String, Uid)>,
    /// It is a Job or Pod that failed.
    pub failed: bool,
    /// Whether it goes when it is deleted.
    pub stay: Stay,
}

/// Whether an object goes when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// At once.
    Free,
    /// A finalizer holds it.
    Held,
    /// A finalizer holds it, and it carries a deletion timestamp.
    Deleting,
}

#[derive(Clone, Debug)]
enum Trouble {
    Refusal(Obstacle),
    LostAnswer { effect: bool },
}

#[derive(Clone, Debug)]
struct Script {
    call: String,
    trouble: Trouble,
    times: u32,
}

/// The cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// UID of its `kube-system` namespace.
    pub uid: String,
    /// What exists.
    pub things: Vec<Thing>,
    /// Effects in order, as `kind subject`: what changed something, nothing else.
    pub effects: Vec<String>,
    /// The results of hooks, by item or, without one, by hook.
    pub results: BTreeMap<String, Value>,
    /// The VIMs that are registered.
    pub vims: Vec<VimId>,
    /// Why the hooks of a VNF that is terminated cannot run.
    pub hooks_left_out: Option<String>,
    scripts: Vec<Script>,
    serial: u64,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            uid: "cluster-1".into(),
            things: Vec::new(),
            effects: Vec::new(),
            results: BTreeMap::new(),
            vims: Vec::new(),
            hooks_left_out: None,
            scripts: Vec::new(),
            serial: 0,
        }
    }
}

impl Cluster {
    /// The next `times` calls of this kind and subject (`apply Deployment/web`) are refused.
    pub fn refuse(&mut self, call: &str, source: &str, reason: &str, times: u32) {
        let obstacle = Obstacle {
            object: call
                .split_once(' ')
                .map_or(call, |(_, subject)| subject)
                .to_owned(),
            source: source.to_owned(),
            reason: reason.to_owned(),
            message: format!("scripted {reason}"),
            progress: 0,
        };
        let trouble = Trouble::Refusal(obstacle);
        self.scripts.push(Script {
            call: call.to_owned(),
            trouble,
            times,
        });
    }

    /// The answer of the next call of this kind and subject is lost, with or without its effect.
    pub fn lose_answer(&mut self, call: &str, effect: bool) {
        let trouble = Trouble::LostAnswer { effect };
        self.scripts.push(Script {
            call: call.to_owned(),
            trouble,
            times: 1,
        });
    }

    /// Nothing is scripted any more.
    pub fn heed(&mut self) {
        self.scripts.clear();
    }

    /// Puts an object of somebody else there.
    pub fn put_foreign(&mut self, manifest: &Value) {
        self.make(&placed(manifest), manifest, None, false);
    }

    /// Takes an object away behind our back.
    pub fn take_away(&mut self, name: &str) {
        self.things.retain(|thing| thing.object.to_string() != name);
    }

    /// The Job or Pod of this `Kind/name` has failed.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[track_caller]
    pub fn fail(&mut self, name: &str) {
        self.named(name).failed = true;
    }

    /// A finalizer holds the object of this `Kind/name` from now on.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[track_caller]
    pub fn hold(&mut self, name: &str) {
        self.named(name).stay = Stay::Held;
    }

    /// No finalizer holds anything any more: what was deleted meanwhile goes.
    pub fn let_go(&mut self) {
        self.things.retain(|thing| thing.stay != Stay::Deleting);
        self.things
            .iter_mut()
            .for_each(|thing| thing.stay = Stay::Free);
    }

    #[track_caller]
    fn named(&mut self, name: &str) -> &mut Thing {
        let mut things = self.things.iter_mut();
        let found = things.find(|thing| thing.object.to_string() == name);
        found.expect("the object exists")
    }

    /// The object of this `Kind/name`.
    #[must_use]
    pub fn thing(&self, name: &str) -> Option<&Thing> {
        self.things
            .iter()
            .find(|thing| thing.object.to_string() == name)
    }

    /// The UID of the object of this `Kind/name`.
    ///
    /// # Panics
    ///
    /// If it does not exist.
    #[must_use]
    #[track_caller]
    pub fn uid_of(&self, name: &str) -> Uid {
        self.thing(name).expect("the object exists").uid.clone()
    }

    /// `Kind/name` of all that exists, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.things.iter().map(|t| t.object.to_string()).collect();
        names.sort();
        names
    }

    /// Makes a step true, or says what is in the way.
    pub fn perform(&mut self, action: &Action) -> StepResult {
        let call = format!("{} {}", action.kind(), action.subject());
        match self.trouble(&call) {
            Some(Trouble::Refusal(obstacle)) => {
                if let Action::RunHook {
                    object, manifest, ..
                } = action
                    && obstacle.reason == "Failed"
                {
                    // What failed has left its Job.
                    self.fail_job(object, inline(manifest), &call);
                }
                StepResult::NotDone(vec![obstacle])
            }
            Some(Trouble::LostAnswer { effect }) => {
                if effect {
                    self.act(action, &call);
                }
                StepResult::Unknown {
                    why: "scripted silence".into(),
                }
            }
            None => self.act(action, &call),
        }
    }

    fn trouble(&mut self, call: &str) -> Option<Trouble> {
        let script = self
            .scripts
            .iter_mut()
            .find(|s| s.times > 0 && s.call == call)?;
        script.times -= 1;
        Some(script.trouble.clone())
    }

    fn act(&mut self, action: &Action, call: &str) -> StepResult {
        let before = (self.serial, self.things.len(), self.replicas());
        let result = self.effect(action);
        let waits = matches!(result, StepResult::NotDone(_));
        if !waits && before != (self.serial, self.things.len(), self.replicas()) {
            self.effects.push(call.to_owned());
        }
        result
    }

    fn replicas(&self) -> Vec<Option<u32>> {
        self.things.iter().map(|thing| thing.replicas).collect()
    }

    fn effect(&mut self, action: &Action) -> StepResult {
        match action {
            Action::Apply {
                object,
                manifest,
                replicas,
                ..
            } => self.apply(object, inline(manifest), *replicas),
            Action::Create { .. } => StepResult::Done(Outcome::Created),
            Action::Delete { object, uid, .. } => self.delete(object, uid.as_ref()),
            Action::SetReplicas { object, to, .. } => self.set_replicas(object, *to),
            Action::Evict { vnfc } => self.evict(&vnfc.uid),
            Action::AwaitReady { objects, replaced } => self.ready(objects, replaced),
            Action::AwaitGone { objects, .. } => self.gone(objects),
            Action::TakeInventory { workloads } => StepResult::Done(Outcome::Inventory {
                vnfcs: self.inventory(workloads),
            }),
            Action::Verify {
                equal,
                absent,
                replicas,
            } => self.verify(equal, absent, replicas),
            Action::RunHook {
                hook,
                item,
                object,
                manifest,
                ..
            } => self.run_hook(item.as_ref().unwrap_or(hook), object, inline(manifest)),
            Action::RegisterVim { .. } => self.register_vims(),
            Action::UnregisterVim { vims } => {
                self.vims.retain(|known| !vims.contains(known));
                self.serial += 1;
                StepResult::Done(Outcome::VimsUnregistered {
                    residue: Vec::new(),
                })
            }
            Action::RemoveHookJobs { .. } => {
                self.things
                    .retain(|thing| thing.body["metadata"]["labels"].get(LABEL).is_none());
                StepResult::Done(Outcome::Gone {
                    residue: Vec::new(),
                })
            }
            Action::Unknown(_) => waiting("plan", "UnknownKind"),
        }
    }

    fn fail_job(&mut self, object: &ObjectRef, body: &Value, call: &str) {
        self.take_away(&object.to_string());
        self.make(object, body, None, true);
        self.fail(&object.to_string());
        self.effects.push(format!("{call} failed"));
    }

    fn run_hook(&mut self, item: &str, object: &ObjectRef, body: &Value) -> StepResult {
        let found = self.things.iter().find(|thing| thing.object.is(object));
        let uid = match found {
            Some(thing) if thing.failed => {
                self.take_away(&object.to_string());
                return waiting(&object.to_string(), "BeingReplaced");
            }
            Some(thing) => thing.uid.clone(),
            None => self.make(object, body, None, true),
        };
        StepResult::Done(Outcome::HookSucceeded {
            uid,
            result: self.results.get(item).cloned(),
        })
    }

    fn register_vims(&mut self) -> StepResult {
        let named: Vec<VimId> = self
            .results
            .values()
            .filter_map(|result| Registration::of(result).ok().flatten())
            .map(|registration| registration.vim_id)
            .collect();
        let (used, registered): (Vec<VimId>, Vec<VimId>) =
            named.into_iter().partition(|vim| self.vims.contains(vim));
        self.serial += u64::from(!registered.is_empty());
        self.vims.extend(registered.iter().cloned());
        StepResult::Done(Outcome::VimsRegistered { registered, used })
    }

    fn apply(&mut self, object: &ObjectRef, body: &Value, replicas: Option<u32>) -> StepResult {
        let Some(thing) = self.things.iter_mut().find(|thing| thing.object.is(object)) else {
            let uid = self.make(object, body, replicas, true);
            let overridden = Vec::new();
            return StepResult::Done(Outcome::Applied {
                uid,
                created: true,
                overridden,
            });
        };
        if !thing.ours {
            return waiting(&object.to_string(), "NotOurs");
        }
        if thing.stay == Stay::Deleting {
            return waiting(&object.to_string(), "BeingDeleted");
        }
        if thing.failed {
            self.take_away(&object.to_string());
            return waiting(&object.to_string(), "BeingReplaced");
        }
        if thing.refuses(body).is_some() {
            return waiting(&object.to_string(), "Invalid");
        }
        thing.body = body.clone();
        let uid = thing.uid.clone();
        StepResult::Done(Outcome::Applied {
            uid,
            created: false,
            overridden: Vec::new(),
        })
    }

    fn make(&mut self, object: &ObjectRef, body: &Value, replicas: Option<u32>, ours: bool) -> Uid {
        let uid = self.fresh("uid");
        let recorded = body["spec"]["replicas"]
            .as_u64()
            .and_then(|n| u32::try_from(n).ok());
        let number = is_workload(&object.kind).then(|| replicas.or(recorded).unwrap_or(1));
        self.things.push(Thing {
            object: object.clone(),
            uid: uid.clone(),
            body: body.clone(),
            ours,
            replicas: None,
            pods: Vec::new(),
            failed: false,
            stay: Stay::Free,
        });
        if let Some(number) = number {
            self.resize(object, number);
        }
        uid
    }

    fn fresh(&mut self, what: &str) -> Uid {
        self.serial += 1;
        Uid(format!("{what}-{}", self.serial))
    }

    fn resize(&mut self, object: &ObjectRef, to: u32) {
        let Some(at) = self.things.iter().position(|thing| thing.object.is(object)) else {
            return;
        };
        let wanted = usize::try_from(to).unwrap_or(usize::MAX);
        while self.things[at].pods.len() < wanted {
            let place = self.things[at].pods.len();
            let uid = self.fresh("pod");
            let name = self.things[at].pod_name(place, &uid);
            self.things[at].pods.push((name, uid));
        }
        self.things[at].pods.truncate(wanted);
        self.things[at].replicas = Some(to);
    }

    fn delete(&mut self, object: &ObjectRef, uid: Option<&Uid>) -> StepResult {
        let meant = |thing: &Thing| {
            thing.object.is(object) && thing.ours && uid.is_none_or(|uid| *uid == thing.uid)
        };
        let Some(at) = self.things.iter().position(meant) else {
            return StepResult::Done(Outcome::Deleted { was_absent: true });
        };
        if self.things[at].stay == Stay::Free {
            self.things.remove(at);
        } else {
            self.things[at].stay = Stay::Deleting;
        }
        StepResult::Done(Outcome::Deleted { was_absent: false })
    }

    fn set_replicas(&mut self, object: &ObjectRef, to: u32) -> StepResult {
        let found = self.things.iter().find(|thing| thing.object.is(object));
        let Some(from) = found.and_then(|thing| thing.replicas) else {
            return waiting(&object.to_string(), "Missing");
        };
        if from != to {
            self.resize(object, to);
        }
        StepResult::Done(Outcome::ReplicasSet { from, to })
    }

    fn evict(&mut self, uid: &Uid) -> StepResult {
        let place = |thing: &Thing| thing.pods.iter().position(|(_, known)| known == uid);
        let found = self
            .things
            .iter()
            .enumerate()
            .find_map(|(at, t)| Some((at, place(t)?)));
        let Some((at, place)) = found else {
            return StepResult::Done(Outcome::Evicted { was_absent: true });
        };
        let fresh = self.fresh("pod");
        let name = self.things[at].pod_name(place, &fresh);
        self.things[at].pods[place] = (name, fresh);
        StepResult::Done(Outcome::Evicted { was_absent: false })
    }

    fn ready(&self, objects: &[ObjectRef], replaced: &[Uid]) -> StepResult {
        for object in objects {
            let found = self.things.iter().find(|thing| thing.object.is(object));
            match found {
                None => return waiting(&object.to_string(), "Creating"),
                Some(thing) if thing.failed => return waiting(&object.to_string(), "Failed"),
                Some(thing) if thing.stay == Stay::Deleting => {
                    return waiting(&object.to_string(), "Deleting");
                }
                Some(_) => {}
            }
        }
        let mut pods = self.things.iter().flat_map(|thing| &thing.pods);
        match pods.find(|(_, uid)| replaced.contains(uid)) {
            Some((name, _)) => waiting(&format!("Pod/{name}"), "Terminating"),
            None => StepResult::Done(Outcome::Ready),
        }
    }

    fn gone(&self, objects: &[(ObjectRef, Option<Uid>)]) -> StepResult {
        let stands = |thing: &Thing, object: &ObjectRef, uid: &Option<Uid>| {
            thing.ours && thing.object.is(object) && uid.as_ref().is_none_or(|u| *u == thing.uid)
        };
        let left = self.things.iter().find(|thing| {
            objects
                .iter()
                .any(|(object, uid)| stands(thing, object, uid))
        });
        match left {
            Some(thing) => waiting(&thing.object.to_string(), "Deleting"),
            None => StepResult::Done(Outcome::Gone {
                residue: Vec::new(),
            }),
        }
    }
}

impl Thing {
    /// Selectors and claim templates cannot be changed.
    fn refuses(&self, manifest: &Value) -> Option<String> {
        let differs = |field: &&str| self.body["spec"][*field] != manifest["spec"][*field];
        let field = ["selector", "volumeClaimTemplates"]
            .into_iter()
            .find(differs)?;
        Some(format!("spec.{field}: immutable"))
    }

    /// As a survey records it: with the live number of replicas.
    fn recorded(&self) -> Value {
        let mut body = self.body.clone();
        if let Some(replicas) = self.replicas {
            body["spec"]["replicas"] = replicas.into();
        }
        body
    }

    /// Pods of a `StatefulSet` keep their names, those of others never do.
    fn pod_name(&self, place: usize, uid: &Uid) -> String {
        if self.object.kind == "StatefulSet" {
            format!("{}-{place}", self.object.name)
        } else {
            format!("{}-{}", self.object.name, uid.0)
        }
    }
}

fn without_replicas(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(spec) = body["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    body
}

fn waiting(object: &str, reason: &str) -> StepResult {
    let source = match reason {
        "NotOurs" | "Missing" | "BeingReplaced" | "BeingDeleted" => "call",
        "Failed" => "Job",
        _ => "object",
    };
    StepResult::NotDone(vec![Obstacle {
        object: object.to_owned(),
        source: source.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
        progress: 0,
    }])
}

fn placed(manifest: &Value) -> ObjectRef {
    let named = identity(manifest);
    let namespace = named
        .namespace
        .clone()
        .or_else(|| Some("default".to_owned()));
    ObjectRef { namespace, ..named }
}

/// Bodies are never blobs here.
fn inline(body: &Body) -> &Value {
    match body {
        Body::Inline(value) => value,
        Body::Blob(_) => &Value::Null,
    }
}
