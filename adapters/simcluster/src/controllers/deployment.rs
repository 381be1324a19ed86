//! Deployments: the replica set of the template, the rollout, and what is said about it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::act::{
    MANAGER, condition, controller_reference, controller_uid, set_condition, set_count, short_hash,
};
use super::{Pass, rollout};
use crate::json;
use crate::kinds::Kind;

pub(super) const SETS: &str = "replicasets.apps";
pub(super) const COMPONENT: &str = "deployment-controller";
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";
const HASH: &str = "pod-template-hash";

/// When a rollout last got on, and what it looked like then.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    seen: String,
    since: Instant,
}

pub(super) fn run(pass: &mut Pass<'_>) {
    let kind = pass.state.kinds.get("deployments.apps");
    for deployment in pass.list("deployments.apps") {
        if json::is_deleting(&deployment) {
            report(pass, &kind, &deployment, None);
        } else {
            sync(pass, &kind, &deployment);
        }
    }
}

fn sync(pass: &mut Pass<'_>, kind: &Kind, deployment: &Value) {
    adopt(pass, kind, deployment);
    let paused = json::flag(deployment, "/spec/paused");
    let mut new = new_set(deployment, &sets_of(pass, deployment));
    let size = rollout::first_size(pass, deployment);
    if let Some(size) =
        size.filter(|_| new.is_none() && !paused && pass.may_try(json::uid(deployment)))
    {
        make_set(pass, kind, deployment, size);
        new = new_set(deployment, &sets_of(pass, deployment));
    }
    if let Some(set) = new.as_ref().filter(|_| !paused) {
        number(pass, kind, deployment, set);
    }
    rollout::step(
        pass,
        deployment,
        new.as_ref().map(|set| json::uid(set)).unwrap_or_default(),
        paused,
    );
    report(
        pass,
        kind,
        deployment,
        new.as_ref().map(|set| json::name(set)),
    );
    forget_history(pass, deployment);
}

/// A replica set that matches and has no controller is taken in.
fn adopt(pass: &mut Pass<'_>, kind: &Kind, deployment: &Value) {
    let sets = pass.state.kinds.get(SETS);
    let wanted = json::at(deployment, "/spec/selector");
    let orphans: Vec<Arc<Value>> = pass
        .state
        .store
        .list(SETS, json::namespace(deployment))
        .filter(|set| controller_uid(set).is_empty() && !json::is_deleting(set))
        .filter(|set| crate::selector::matches_labels(wanted, json::at(set, "/metadata/labels")))
        .cloned()
        .collect();
    for orphan in orphans {
        let reference = controller_reference(kind, deployment);
        pass.change(&sets, &orphan, MANAGER, |set| {
            json::list_mut(set, "/metadata/ownerReferences").push(reference);
        });
    }
}

/// The replica sets of a deployment, oldest revision first.
pub(super) fn sets_of(pass: &Pass<'_>, deployment: &Value) -> Vec<Arc<Value>> {
    let uid = json::uid(deployment);
    let mut sets: Vec<Arc<Value>> = pass
        .state
        .store
        .list(SETS, json::namespace(deployment))
        .filter(|set| controller_uid(set) == uid)
        .cloned()
        .collect();
    sets.sort_by_key(|set| revision(set));
    sets
}

fn revision(object: &Value) -> i64 {
    json::text(object, REVISION).parse().unwrap_or(0)
}

/// The set whose template is the deployment's, apart from the hash label.
fn new_set(deployment: &Value, sets: &[Arc<Value>]) -> Option<Arc<Value>> {
    let template = json::at(deployment, "/spec/template");
    sets.iter()
        .find(|set| {
            let mut own = json::at(set, "/spec/template").clone();
            json::remove(&mut own, &format!("/metadata/labels/{HASH}"));
            own == *template && !json::is_deleting(set)
        })
        .cloned()
}

fn make_set(pass: &mut Pass<'_>, kind: &Kind, deployment: &Value, size: i64) {
    let mut template = json::at(deployment, "/spec/template").clone();
    let hash = short_hash(&template.to_string());
    let name = format!("{}-{hash}", json::name(deployment));
    json::set(
        &mut template,
        &format!("/metadata/labels/{HASH}"),
        hash.clone(),
    );
    let mut selector = json::at(deployment, "/spec/selector").clone();
    json::set(&mut selector, &format!("/matchLabels/{HASH}"), hash);
    let mut set = json!({
        "metadata": {"name": name, "labels": template["metadata"]["labels"],
            "annotations": {}, "ownerReferences": [controller_reference(kind, deployment)]},
        "spec": {"replicas": size, "selector": selector, "template": template},
    });
    for (key, value) in json::map(deployment, "/metadata/annotations")
        .into_iter()
        .flatten()
    {
        if key != "kubectl.kubernetes.io/last-applied-configuration" {
            set["metadata"]["annotations"][key] = value.clone();
        }
    }
    if let Some(seconds) = deployment.pointer("/spec/minReadySeconds") {
        set["spec"]["minReadySeconds"] = seconds.clone();
    }
    json::remove(&mut set, REVISION);
    rollout::annotate(deployment, &mut set);
    let sets = pass.state.kinds.get(SETS);
    let made = pass
        .state
        .create_as(MANAGER, &sets, json::namespace(deployment), set);
    if let Err(error) = made {
        let message = format!(
            "Failed to create new replica set \"{name}\": {}",
            error.message
        );
        pass.warn(deployment, "ReplicaSetCreateError", &message, COMPONENT);
        pass.failed(json::uid(deployment));
    } else {
        pass.succeeded(json::uid(deployment));
        if size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            pass.event(deployment, "ScalingReplicaSet", &message, COMPONENT);
        }
    }
}

/// The newest set has the highest revision, and the deployment shows it.
fn number(pass: &mut Pass<'_>, kind: &Kind, deployment: &Value, new: &Value) {
    let others = sets_of(pass, deployment);
    let highest = others
        .iter()
        .filter(|set| json::uid(set) != json::uid(new))
        .map(|set| revision(set))
        .max()
        .unwrap_or(0);
    let mut own = revision(new);
    if own <= highest {
        own = highest + 1;
        let sets = pass.state.kinds.get(SETS);
        pass.change(&sets, new, MANAGER, |set| {
            json::set(set, REVISION, own.to_string());
        });
    }
    if revision(deployment) != own {
        pass.change_through_status(kind, deployment, MANAGER, |d| {
            json::set(d, REVISION, own.to_string());
        });
    }
}

fn forget_history(pass: &mut Pass<'_>, deployment: &Value) {
    let kept =
        usize::try_from(json::int(deployment, "/spec/revisionHistoryLimit", 10)).unwrap_or(10);
    let sets = sets_of(pass, deployment);
    let newest = sets
        .last()
        .map(|set| json::uid(set).to_owned())
        .unwrap_or_default();
    let idle: Vec<&Arc<Value>> = sets
        .iter()
        .filter(|set| json::uid(set) != newest && !json::is_deleting(set))
        .filter(|set| json::int(set, "/spec/replicas", 0) == 0)
        .filter(|set| json::int(set, "/status/replicas", 0) == 0)
        .collect();
    let kind = pass.state.kinds.get(SETS);
    for set in idle.iter().take(idle.len().saturating_sub(kept)) {
        pass.delete(&kind, set);
    }
}

/// Sums over the sets, as far as their own controller has reported.
struct Sums {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
}

fn report(pass: &mut Pass<'_>, kind: &Kind, deployment: &Value, new: Option<&str>) {
    let sets = sets_of(pass, deployment);
    let sum = |field: &str| -> i64 {
        sets.iter()
            .map(|set| json::int(set, &format!("/status/{field}"), 0))
            .sum()
    };
    let new_set = sets.iter().find(|set| Some(json::name(set)) == new);
    let sums = Sums {
        replicas: sum("replicas"),
        updated: new_set.map_or(0, |set| json::int(set, "/status/replicas", 0)),
        ready: sum("readyReplicas"),
        available: sum("availableReplicas"),
    };
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let mut status = json::at(deployment, "/status").clone();
    if !status.is_object() {
        status = json!({});
    }
    json::set(
        &mut status,
        "/observedGeneration",
        json::int(deployment, "/metadata/generation", 1),
    );
    json::set(
        &mut status,
        "/terminatingReplicas",
        sum("terminatingReplicas"),
    );
    set_count(&mut status, "replicas", sums.replicas);
    set_count(&mut status, "updatedReplicas", sums.updated);
    set_count(&mut status, "readyReplicas", sums.ready);
    set_count(&mut status, "availableReplicas", sums.available);
    set_count(
        &mut status,
        "unavailableReplicas",
        (sums.replicas.max(wanted) - sums.available).max(0),
    );
    if !json::is_deleting(deployment) {
        say_available(pass, deployment, &mut status, &sums, wanted);
        say_progress(
            pass,
            deployment,
            &mut status,
            &sums,
            new_set.map(AsRef::as_ref),
        );
        say_failure(pass, &mut status, new_set.map(AsRef::as_ref));
    }
    pass.set_status(kind, deployment, MANAGER, status);
}

fn say_available(
    pass: &Pass<'_>,
    deployment: &Value,
    status: &mut Value,
    sums: &Sums,
    wanted: i64,
) {
    let (value, reason, message) =
        if sums.available >= wanted - rollout::max_unavailable(deployment) {
            (
                true,
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            )
        } else {
            (
                false,
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
    set_dated(status, ("Available", value), reason, message, &pass.stamp);
}

/// Conditions of deployments also say when they were looked at last.
fn set_dated(status: &mut Value, condition: (&str, bool), reason: &str, message: &str, now: &str) {
    let find = |status: &Value| {
        json::list(status, "/conditions")
            .iter()
            .find(|c| c["type"] == condition.0)
            .cloned()
    };
    let before = find(status);
    set_condition(status, condition, reason, message, now);
    let same = |old: &Value, new: &Value| {
        old["status"] == new["status"]
            && old["reason"] == new["reason"]
            && old["message"] == new["message"]
    };
    let after = find(status).unwrap_or_default();
    let updated = match &before {
        Some(old) if same(old, &after) => json::text(old, "/lastUpdateTime").to_owned(),
        _ => now.to_owned(),
    };
    let all = json::list_mut(status, "/conditions");
    if let Some(own) = all.iter_mut().find(|c| c["type"] == condition.0) {
        own["lastUpdateTime"] = json!(updated);
    }
}

fn say_progress(
    pass: &mut Pass<'_>,
    deployment: &Value,
    status: &mut Value,
    sums: &Sums,
    new: Option<&Value>,
) {
    let Some(name) = new.map(json::name) else {
        return;
    };
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let uid = json::uid(deployment).to_owned();
    let complete = sums.updated == wanted && sums.replicas == wanted && sums.available == wanted;
    let stamp = pass.stamp.clone();
    if complete {
        pass.state.memory.progress.remove(&uid);
        let message = format!("ReplicaSet \"{name}\" has successfully progressed.");
        set_dated(
            status,
            ("Progressing", true),
            "NewReplicaSetAvailable",
            &message,
            &stamp,
        );
        return;
    }
    let was = condition(deployment, "Progressing");
    let reason = was
        .map(|c| json::text(c, "/reason").to_owned())
        .unwrap_or_default();
    // A set that once was complete and lost pods is not a rollout: nothing is timed.
    let same_set = was.is_some_and(|c| json::text(c, "/message").contains(&format!("\"{name}\"")));
    if reason == "NewReplicaSetAvailable" && same_set {
        return;
    }
    let seen = format!(
        "{name} {} {} {} {}",
        sums.replicas, sums.updated, sums.ready, sums.available
    );
    if got_on(pass, deployment, &uid, seen) {
        if reason.is_empty() {
            let message = format!("Created new replica set \"{name}\"");
            set_dated(
                status,
                ("Progressing", true),
                "NewReplicaSetCreated",
                &message,
                &stamp,
            );
        } else {
            let message = format!("ReplicaSet \"{name}\" is progressing.");
            set_dated(
                status,
                ("Progressing", true),
                "ReplicaSetUpdated",
                &message,
                &stamp,
            );
        }
    } else if !json::flag(deployment, "/spec/paused") {
        let message = format!("ReplicaSet \"{name}\" has timed out progressing.");
        set_dated(
            status,
            ("Progressing", false),
            "ProgressDeadlineExceeded",
            &message,
            &stamp,
        );
    }
}

/// Whether the rollout moved within its deadline.
fn got_on(pass: &mut Pass<'_>, deployment: &Value, uid: &str, seen: String) -> bool {
    let deadline = json::int(deployment, "/spec/progressDeadlineSeconds", 600);
    let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(600));
    let now = pass.now;
    let progress = pass
        .state
        .memory
        .progress
        .entry(uid.to_owned())
        .or_insert_with(|| Progress {
            seen: seen.clone(),
            since: now,
        });
    if progress.seen != seen {
        *progress = Progress { seen, since: now };
    }
    let ends = progress.since + deadline;
    if now < ends {
        pass.wake_at(ends);
        return true;
    }
    false
}

/// What stops the new set from making pods is shown on the deployment too.
fn say_failure(pass: &Pass<'_>, status: &mut Value, new: Option<&Value>) {
    match new.and_then(|set| condition(set, "ReplicaFailure")) {
        Some(failure) => {
            let (reason, message) = (
                json::text(failure, "/reason"),
                json::text(failure, "/message"),
            );
            set_dated(
                status,
                ("ReplicaFailure", true),
                reason,
                message,
                &pass.stamp,
            );
        }
        None => {
            if json::has(status, "/conditions") {
                json::list_mut(status, "/conditions").retain(|c| c["type"] != "ReplicaFailure");
            }
        }
    }
}
