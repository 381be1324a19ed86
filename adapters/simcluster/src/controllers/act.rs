//! What every controller does: write a status, set a condition, tell an event, make a pod.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Pass;
use crate::json;
use crate::kinds::Kind;
use crate::status::ApiResult;
use crate::write::{Options, random_suffix};

/// The manager under which the controllers write.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// How many events are kept; the oldest go first. A real cluster forgets them after an hour.
const EVENTS: usize = 2_000;

impl Pass<'_> {
    /// Writes a status. An object that vanished meanwhile needs none.
    pub fn set_status(&mut self, kind: &Kind, object: &Value, manager: &str, status: Value) {
        if json::at(object, "/status") == &status {
            return;
        }
        let at = (json::namespace(object), json::name(object));
        let written = self
            .state
            .update(kind, at, &Options::status_by(manager), |live| {
                let mut next = live.clone();
                json::set(&mut next, "/status", status);
                Ok(next)
            });
        ignore_missing(written.map(|_| ()));
    }

    /// Changes an object that is not a status.
    pub fn change(
        &mut self,
        kind: &Kind,
        object: &Value,
        manager: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let at = (json::namespace(object), json::name(object));
        let written = self.state.update(kind, at, &Options::by(manager), |live| {
            let mut next = live.clone();
            change(&mut next);
            Ok(next)
        });
        ignore_missing(written.map(|_| ()));
    }

    /// Changes annotations with a write of the status, as the deployment controller does.
    pub fn change_through_status(
        &mut self,
        kind: &Kind,
        object: &Value,
        manager: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let at = (json::namespace(object), json::name(object));
        let written = self
            .state
            .update(kind, at, &Options::status_by(manager), |live| {
                let mut next = live.clone();
                change(&mut next);
                Ok(next)
            });
        ignore_missing(written.map(|_| ()));
    }

    /// Pods whose controller is `owner`.
    pub fn pods_of(&self, owner: &Value) -> Vec<Arc<Value>> {
        let uid = json::uid(owner);
        self.state
            .store
            .list("pods", json::namespace(owner))
            .filter(|pod| controller_uid(pod) == uid)
            .cloned()
            .collect()
    }

    /// Makes a pod from a template; an empty name is generated from the owner's.
    ///
    /// # Errors
    /// The server's refusal: quota, missing service account, a name that is taken.
    pub fn make_pod(
        &mut self,
        owner_kind: &Kind,
        owner: &Value,
        template: &Value,
        name: &str,
        finish: impl FnOnce(&mut Value),
    ) -> ApiResult<Arc<Value>> {
        let mut pod = json!({"metadata": {}, "spec": json::at(template, "/spec")});
        for field in ["labels", "annotations", "finalizers"] {
            if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
                json::set(&mut pod, &format!("/metadata/{field}"), value.clone());
            }
        }
        if name.is_empty() {
            let prefix = format!("{}-", json::name(owner));
            json::set(&mut pod, "/metadata/generateName", prefix.clone());
            json::set(
                &mut pod,
                "/metadata/name",
                format!("{prefix}{}", random_suffix()),
            );
        } else {
            json::set(&mut pod, "/metadata/name", name);
        }
        json::set(
            &mut pod,
            "/metadata/ownerReferences",
            json!([controller_reference(owner_kind, owner)]),
        );
        finish(&mut pod);
        let pods = self.state.kinds.get("pods");
        self.state
            .create_as(MANAGER, &pods, json::namespace(owner), pod)
    }

    /// Deletes an object in the background; one that is gone is well.
    pub fn delete(&mut self, kind: &Kind, object: &Value) {
        let options =
            crate::delete::DeleteOptions::propagate(crate::delete::Propagation::Background);
        let at = (json::namespace(object), json::name(object));
        ignore_missing(self.state.delete(kind, at, &options).map(|_| ()));
    }

    /// Records an event about `object`. The same words again raise the count.
    pub fn event(&mut self, object: &Value, reason: &str, message: &str, component: &str) {
        self.tell(object, "Normal", reason, message, component);
    }

    /// Records a warning about `object`.
    pub fn warn(&mut self, object: &Value, reason: &str, message: &str, component: &str) {
        self.tell(object, "Warning", reason, message, component);
    }

    /// Records a warning only if these words were not said about `object` yet.
    pub fn warn_once(&mut self, object: &Value, reason: &str, message: &str, component: &str) {
        if !self.was_told(object, reason, message) {
            self.warn(object, reason, message, component);
        }
    }

    /// Records an event only if these words were not said about `object` yet.
    pub fn event_once(&mut self, object: &Value, reason: &str, message: &str, component: &str) {
        if !self.was_told(object, reason, message) {
            self.event(object, reason, message, component);
        }
    }

    fn was_told(&self, object: &Value, reason: &str, message: &str) -> bool {
        self.told(object, reason, message).is_some()
    }

    /// The event that said these words about `object`, if it is still there.
    fn told(&self, object: &Value, reason: &str, message: &str) -> Option<Arc<Value>> {
        let of_object = self.state.memory.told.get(json::uid(object))?;
        let (namespace, name) = of_object.get(&format!("{reason} {message}"))?;
        self.state.get("events", namespace, name)
    }

    fn tell(&mut self, object: &Value, kind: &str, reason: &str, message: &str, component: &str) {
        let namespace = match json::namespace(object) {
            "" => "default",
            namespace => namespace,
        };
        let events = self.state.kinds.get("events");
        let same = self.told(object, reason, message);
        if let Some(event) = same {
            let stamp = self.stamp.clone();
            self.change(&events, &event, component, |event| {
                let count = json::int(event, "/count", 1) + 1;
                json::set(event, "/count", count);
                json::set(event, "/lastTimestamp", stamp);
            });
            return;
        }
        let event = json!({
            "metadata": {"name": format!("{}.{}", json::name(object), random_suffix() + &random_suffix())},
            "involvedObject": {
                "apiVersion": json::text(object, "/apiVersion"),
                "kind": json::kind(object),
                "name": json::name(object),
                "namespace": json::namespace(object),
                "uid": json::uid(object),
                "resourceVersion": json::text(object, "/metadata/resourceVersion"),
            },
            "reason": reason,
            "message": message,
            "type": kind,
            // The scheduler writes by the newer event API, which knows no source.
            "source": if component == "default-scheduler" { json!({}) } else { source(component) },
            "reportingComponent": component,
            "firstTimestamp": self.stamp,
            "lastTimestamp": self.stamp,
            "count": 1,
        });
        // An event for a namespace that is ending is refused, as it is on a real server.
        match self.state.create_as(component, &events, namespace, event) {
            Ok(event) => {
                let place = (namespace.to_owned(), json::name(&event).to_owned());
                let memory = &mut self.state.memory;
                memory.events.push_back(place.clone());
                let of_object = memory.told.entry(json::uid(object).to_owned());
                let words = format!("{reason} {message}");
                of_object.or_default().insert(words, place);
            }
            Err(error) => tracing::debug!(error = error.message, "an event was refused"),
        }
        self.forget_events();
    }

    fn forget_events(&mut self) {
        while self.state.memory.events.len() > EVENTS {
            if let Some((namespace, name)) = self.state.memory.events.pop_front() {
                self.state.store.remove("events", &namespace, &name);
            }
        }
    }
}

fn source(component: &str) -> Value {
    let mut source = json!({"component": component});
    if component == "kubelet" {
        source["host"] = json!(crate::state::NODE);
    }
    source
}

/// A controller's write may come too late; the next pass sees why.
fn ignore_missing(result: ApiResult<()>) {
    if let Err(error) = result
        && error.code != 404
    {
        tracing::warn!(error = error.message, "a simulated controller was refused");
    }
}

/// The UID of the owner that controls the object, or nothing.
pub(super) fn controller_uid(object: &Value) -> &str {
    json::list(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| json::flag(owner, "/controller"))
        .map_or("", |owner| json::text(owner, "/uid"))
}

pub(super) fn controller_reference(kind: &Kind, owner: &Value) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.kind, "name": json::name(owner),
        "uid": json::uid(owner), "controller": true, "blockOwnerDeletion": true})
}

/// Sets a condition; its transition time moves only with its status.
pub(super) fn set_condition(
    status: &mut Value,
    (kind, value): (&str, bool),
    reason: &str,
    message: &str,
    now: &str,
) {
    let text = if value { "True" } else { "False" };
    let conditions = json::list_mut(status, "/conditions");
    let mut condition = json!({"type": kind, "status": text, "lastTransitionTime": now});
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    if !message.is_empty() {
        condition["message"] = json!(message);
    }
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(old) => {
            if old["status"] == text {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            if let Some(update) = old.get("lastUpdateTime") {
                condition["lastUpdateTime"] = update.clone();
            }
            if let Some(probe) = old.get("lastProbeTime") {
                condition["lastProbeTime"] = probe.clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    json::list(object, "/status/conditions")
        .iter()
        .find(|c| c["type"] == kind)
}

/// Whether a condition of the object's status is True.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|c| c["status"] == "True")
}

/// A pod that neither ended nor is about to.
pub(super) fn is_active(pod: &Value) -> bool {
    !json::is_deleting(pod) && !is_ended(pod)
}

pub(super) fn is_ended(pod: &Value) -> bool {
    matches!(json::text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub(super) fn is_ready(pod: &Value) -> bool {
    is_true(pod, "Ready") && !json::is_deleting(pod)
}

/// A number or a percentage of `of`, rounded up or down.
pub(super) fn share(value: &Value, of: i64, round_up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent: i64 = value
        .as_str()
        .and_then(|text| text.trim_end_matches('%').parse().ok())
        .unwrap_or(0);
    if round_up {
        (percent * of + 99) / 100
    } else {
        percent * of / 100
    }
}

/// A count as JSON numbers hold it.
pub(super) fn count<T>(items: impl IntoIterator<Item = T>) -> i64 {
    i64::try_from(items.into_iter().count()).unwrap_or(i64::MAX)
}

/// Puts a number into a status, or leaves it out when it is zero, as Go's encoder does.
pub(super) fn set_count(status: &mut Value, field: &str, number: i64) {
    if number == 0 {
        json::remove(status, &format!("/{field}"));
    } else {
        json::set(status, &format!("/{field}"), number);
    }
}

/// A short name for a text, stable for ever: FNV-1a in the letters of generated names.
pub(super) fn short_hash(text: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut name = String::new();
    for _ in 0..10 {
        let index = usize::try_from(hash % 27).unwrap_or(0);
        name.push(char::from(LETTERS[index]));
        hash /= 27;
    }
    name
}
