//! One step of a deployment's rollout: how many pods each replica set is to have now.

use std::sync::Arc;

use serde_json::Value;

use super::Pass;
use super::act::{MANAGER, share};
use super::deployment::{COMPONENT, SETS, sets_of};
use crate::json;

pub(super) fn max_surge(deployment: &Value) -> i64 {
    let wanted = json::int(deployment, "/spec/replicas", 1);
    share(
        json::at(deployment, "/spec/strategy/rollingUpdate/maxSurge"),
        wanted,
        true,
    )
}

pub(super) fn max_unavailable(deployment: &Value) -> i64 {
    let wanted = json::int(deployment, "/spec/replicas", 1);
    if json::text(deployment, "/spec/strategy/type") != "RollingUpdate" || wanted == 0 {
        return 0;
    }
    let most = share(
        json::at(deployment, "/spec/strategy/rollingUpdate/maxUnavailable"),
        wanted,
        false,
    );
    // Neither surge nor unavailability would stand still for ever.
    if most == 0 && max_surge(deployment) == 0 {
        1
    } else {
        most.min(wanted)
    }
}

/// Scales the sets one step; `new` is the UID of the set of the current template.
pub(super) fn step(pass: &mut Pass<'_>, deployment: &Value, new: &str, paused: bool) {
    let sets = sets_of(pass, deployment);
    let (current, old): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| json::uid(set) == new);
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let Some(current) = current.first() else {
        // Recreate takes the old pods away before it makes the new set.
        if json::text(deployment, "/spec/strategy/type") == "Recreate" && !paused {
            for set in &old {
                scale(pass, deployment, set, 0);
            }
            return;
        }
        // Paused before its first set, or refused: a single old set still follows the number.
        if let Some(last) = old.iter().rev().find(|set| size(set) > 0) {
            scale(pass, deployment, last, wanted);
        }
        return;
    };
    let old_size: i64 = old.iter().map(|set| size(set)).sum();
    if old_size == 0 || paused {
        if old_size == 0 && may_start(pass, deployment, &old) {
            scale(pass, deployment, current, wanted);
        }
        return;
    }
    if json::text(deployment, "/spec/strategy/type") == "Recreate" {
        for set in &old {
            scale(pass, deployment, set, 0);
        }
        return;
    }
    grow(pass, deployment, current, old_size, wanted);
    shrink(pass, deployment, current, &old, wanted);
}

/// How many pods a new set begins with; `None` while Recreate waits for the old ones to go.
pub(super) fn first_size(pass: &Pass<'_>, deployment: &Value) -> Option<i64> {
    let old = sets_of(pass, deployment);
    let wanted = json::int(deployment, "/spec/replicas", 1);
    if json::text(deployment, "/spec/strategy/type") == "Recreate" {
        let gone = old.iter().all(|set| size(set) == 0) && may_start(pass, deployment, &old);
        return gone.then_some(wanted);
    }
    let room = wanted + max_surge(deployment) - old.iter().map(|set| size(set)).sum::<i64>();
    Some(room.clamp(0, wanted))
}

/// Notes on a set what its deployment wants of all sets together.
pub(super) fn annotate(deployment: &Value, set: &mut Value) {
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let most = wanted + max_surge(deployment);
    let annotations = "/metadata/annotations/deployment.kubernetes.io~1";
    json::set(
        set,
        &format!("{annotations}desired-replicas"),
        wanted.to_string(),
    );
    json::set(set, &format!("{annotations}max-replicas"), most.to_string());
}

fn size(set: &Value) -> i64 {
    json::int(set, "/spec/replicas", 0)
}

/// Recreate waits until the last old pod is gone, terminating ones included.
fn may_start(pass: &Pass<'_>, deployment: &Value, old: &[Arc<Value>]) -> bool {
    json::text(deployment, "/spec/strategy/type") != "Recreate"
        || old.iter().all(|set| pass.pods_of(set).is_empty())
}

fn grow(pass: &mut Pass<'_>, deployment: &Value, new: &Value, old_size: i64, wanted: i64) {
    if size(new) > wanted {
        scale(pass, deployment, new, wanted);
        return;
    }
    let room = wanted + max_surge(deployment) - old_size - size(new);
    let more = room.min(wanted - size(new));
    if more > 0 {
        scale(pass, deployment, new, size(new) + more);
    }
}

/// Takes away what may go: first old pods that do not work, then working ones.
fn shrink(pass: &mut Pass<'_>, deployment: &Value, new: &Value, old: &[Arc<Value>], wanted: i64) {
    // A set that was just made smaller has not counted its pods again yet.
    let available = |set: &Value| json::int(set, "/status/availableReplicas", 0).min(size(set));
    let new = pass
        .state
        .get(SETS, json::namespace(new), json::name(new))
        .unwrap_or_else(|| Arc::new(new.clone()));
    let all: i64 = old.iter().map(|set| size(set)).sum::<i64>() + size(&new);
    let least = wanted - max_unavailable(deployment);
    let new_missing = size(&new) - available(&new);
    let mut may_go = all - least - new_missing;
    if may_go <= 0 {
        return;
    }
    let mut left: Vec<i64> = old.iter().map(|set| size(set)).collect();
    for (index, set) in old.iter().enumerate() {
        let broken = (left[index] - available(set)).max(0).min(may_go.max(0));
        left[index] -= broken;
        may_go -= broken;
    }
    let working: i64 = old.iter().map(|set| available(set)).sum::<i64>() + available(&new);
    let mut surplus = (working - least).clamp(0, may_go.max(0));
    for (index, set) in old.iter().enumerate() {
        let gone = left[index].min(available(set)).min(surplus);
        left[index] -= gone;
        surplus -= gone;
    }
    for (set, size) in old.iter().zip(left) {
        scale(pass, deployment, set, size);
    }
}

fn scale(pass: &mut Pass<'_>, deployment: &Value, set: &Value, to: i64) {
    let from = size(set);
    if from == to {
        return;
    }
    let kind = pass.state.kinds.get(SETS);
    pass.change(&kind, set, MANAGER, |set| {
        json::set(set, "/spec/replicas", to);
        annotate(deployment, set);
    });
    let how = if to > from { "up" } else { "down" };
    let message = format!(
        "Scaled {how} replica set {} from {from} to {to}",
        json::name(set)
    );
    pass.event(deployment, "ScalingReplicaSet", &message, COMPONENT);
}
