//! Stateful sets: pods with numbers, one after the other, each with its claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::act::{MANAGER, count, is_ended, is_ready, set_count};
use super::{Pass, revision};
use crate::json;
use crate::kinds::Kind;

const COMPONENT: &str = "statefulset-controller";

pub(super) fn run(pass: &mut Pass<'_>) {
    let kind = pass.state.kinds.get("statefulsets.apps");
    for set in pass.list("statefulsets.apps") {
        let update = revision::current(pass, &kind, &set);
        if !json::is_deleting(&set) {
            sync(pass, &kind, &set, &update);
        }
        report(pass, &kind, &set, &update);
    }
}

fn first(set: &Value) -> i64 {
    json::int(set, "/spec/ordinals/start", 0)
}

fn ordinal(pod: &Value) -> Option<i64> {
    json::name(pod).rsplit_once('-')?.1.parse().ok()
}

fn pods_by_ordinal(pass: &Pass<'_>, set: &Value) -> BTreeMap<i64, Arc<Value>> {
    pass.pods_of(set)
        .into_iter()
        .filter_map(|pod| Some((ordinal(&pod)?, pod)))
        .collect()
}

fn sync(pass: &mut Pass<'_>, kind: &Kind, set: &Value, update: &str) {
    let pods = pods_by_ordinal(pass, set);
    let range = first(set)..first(set) + json::int(set, "/spec/replicas", 1);
    let in_order = json::text(set, "/spec/podManagementPolicy") != "Parallel";
    let pod_kind = pass.state.kinds.get("pods");
    for ordinal in range.clone() {
        match pods.get(&ordinal) {
            None => {
                make(pass, kind, set, ordinal, update);
                if in_order {
                    return;
                }
            }
            Some(pod) if is_ended(pod) && !json::is_deleting(pod) => {
                pass.delete(&pod_kind, pod);
                return;
            }
            // The next one waits for this one, also while this one cannot become ready.
            Some(pod) if in_order && !is_ready(pod) => return,
            Some(_) => {}
        }
    }
    let surplus: Vec<&Arc<Value>> = pods
        .iter()
        .rev()
        .filter(|(ordinal, _)| !range.contains(ordinal))
        .map(|(_, pod)| pod)
        .collect();
    if !surplus.is_empty() {
        shrink(pass, set, &surplus, in_order);
        return;
    }
    replace_outdated(pass, set, &pods, update);
}

fn shrink(pass: &mut Pass<'_>, set: &Value, surplus: &[&Arc<Value>], in_order: bool) {
    for pod in surplus {
        if !json::is_deleting(pod) {
            remove(pass, set, pod);
        }
        if in_order {
            return;
        }
    }
}

fn remove(pass: &mut Pass<'_>, set: &Value, pod: &Value) {
    let kind = pass.state.kinds.get("pods");
    pass.delete(&kind, pod);
    let (name, of) = (json::name(pod), json::name(set));
    let message = format!("Delete Pod {name} in StatefulSet {of} successful");
    pass.event(set, "SuccessfulDelete", &message, COMPONENT);
}

/// Deletes the highest pod of an older template, down to the partition; its successor is new.
fn replace_outdated(
    pass: &mut Pass<'_>,
    set: &Value,
    pods: &BTreeMap<i64, Arc<Value>>,
    update: &str,
) {
    if json::text(set, "/spec/updateStrategy/type") == "OnDelete" {
        return;
    }
    let partition = json::int(set, "/spec/updateStrategy/rollingUpdate/partition", 0);
    for (ordinal, pod) in pods.iter().rev() {
        if *ordinal < partition {
            return;
        }
        if revision::of(pod) != update && !json::is_deleting(pod) {
            remove(pass, set, pod);
            return;
        }
        if !is_ready(pod) {
            return;
        }
    }
}

fn make(pass: &mut Pass<'_>, kind: &Kind, set: &Value, ordinal: i64, update: &str) {
    if !pass.may_try(json::uid(set)) {
        return;
    }
    let name = format!("{}-{ordinal}", json::name(set));
    let partition = json::int(set, "/spec/updateStrategy/rollingUpdate/partition", 0);
    let current = json::text(set, "/status/currentRevision").to_owned();
    let wanted = if ordinal >= partition || current.is_empty() {
        update
    } else {
        &current
    };
    let template = revision::template(pass, set, wanted)
        .unwrap_or_else(|| json::at(set, "/spec/template").clone());
    let claims = make_claims(pass, set, &name);
    let outcome = pass.make_pod(kind, set, &template, &name, |pod| {
        let labels = "/metadata/labels";
        json::set(
            pod,
            "/metadata/generateName",
            format!("{}-", json::name(set)),
        );
        json::set(pod, &format!("{labels}/{}", revision::LABEL), wanted);
        json::set(
            pod,
            &format!("{labels}/statefulset.kubernetes.io~1pod-name"),
            name.clone(),
        );
        json::set(
            pod,
            &format!("{labels}/apps.kubernetes.io~1pod-index"),
            ordinal.to_string(),
        );
        json::set(pod, "/spec/hostname", name.clone());
        let subdomain = json::text(set, "/spec/serviceName");
        if !subdomain.is_empty() {
            json::set(pod, "/spec/subdomain", subdomain);
        }
        for (volume, claim) in claims {
            let volumes = json::list_mut(pod, "/spec/volumes");
            volumes.retain(|v| v["name"] != volume.as_str());
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        }
    });
    match outcome {
        Ok(_) => {
            pass.succeeded(json::uid(set));
            let message = format!(
                "Create Pod {name} in StatefulSet {} successful",
                json::name(set)
            );
            pass.event(set, "SuccessfulCreate", &message, COMPONENT);
        }
        // The name is held by a pod that is not ours, or by one that has not gone yet.
        Err(error) => {
            pass.failed(json::uid(set));
            let message = format!(
                "Create Pod {name} in StatefulSet {} failed error: {}",
                json::name(set),
                error.message
            );
            pass.warn(set, "FailedCreate", &message, COMPONENT);
        }
    }
}

/// The claims of a pod, by the volume that they fill. They carry no owner and stay.
fn make_claims(pass: &mut Pass<'_>, set: &Value, pod: &str) -> Vec<(String, String)> {
    let kind = pass.state.kinds.get("persistentvolumeclaims");
    let mut claims = Vec::new();
    for template in json::list(set, "/spec/volumeClaimTemplates") {
        let volume = json::name(template).to_owned();
        let name = format!("{volume}-{pod}");
        if pass
            .state
            .get("persistentvolumeclaims", json::namespace(set), &name)
            .is_none()
        {
            let mut claim = json!({"metadata": {"name": name}, "spec": template["spec"]});
            if let Some(annotations) = template.pointer("/metadata/annotations") {
                claim["metadata"]["annotations"] = annotations.clone();
            }
            let mut labels = json::at(template, "/metadata/labels").clone();
            for (key, value) in json::map(set, "/spec/selector/matchLabels")
                .into_iter()
                .flatten()
            {
                json::set(
                    &mut labels,
                    &format!("/{}", json::escape(key)),
                    value.clone(),
                );
            }
            claim["metadata"]["labels"] = labels;
            match pass
                .state
                .create_as(MANAGER, &kind, json::namespace(set), claim)
            {
                Ok(_) => {
                    let message = format!(
                        "Create Claim {name} Pod {pod} in StatefulSet {} success",
                        json::name(set)
                    );
                    pass.event(set, "SuccessfulCreate", &message, COMPONENT);
                }
                Err(error) => {
                    let message = format!(
                        "Create Claim {name} for Pod {pod} in StatefulSet {} failed error: {}",
                        json::name(set),
                        error.message
                    );
                    pass.warn(set, "FailedCreate", &message, COMPONENT);
                }
            }
        }
        claims.push((volume, name));
    }
    claims
}

fn report(pass: &mut Pass<'_>, kind: &Kind, set: &Value, update: &str) {
    let pods = pods_by_ordinal(pass, set);
    let alive = || pods.values().filter(|pod| !json::is_deleting(pod));
    let of = |name: &str| count(alive().filter(|pod| revision::of(pod) == name));
    let ready = count(alive().filter(|pod| is_ready(pod)));
    let wanted = json::int(set, "/spec/replicas", 1);
    let mut status = json::at(set, "/status").clone();
    let mut current = json::text(&status, "/currentRevision").to_owned();
    let updated = of(update);
    let partition = json::int(set, "/spec/updateStrategy/rollingUpdate/partition", 0);
    let complete = updated == wanted && ready == wanted && count(&pods) == wanted && partition == 0;
    if current.is_empty() || complete {
        update.clone_into(&mut current);
    }
    json::set(
        &mut status,
        "/observedGeneration",
        json::int(set, "/metadata/generation", 1),
    );
    json::set(&mut status, "/replicas", count(&pods));
    json::set(&mut status, "/availableReplicas", ready);
    set_count(&mut status, "readyReplicas", ready);
    set_count(&mut status, "currentReplicas", of(&current));
    set_count(&mut status, "updatedReplicas", updated);
    json::set(&mut status, "/currentRevision", current);
    json::set(&mut status, "/updateRevision", update);
    json::set(&mut status, "/collisionCount", 0);
    pass.set_status(kind, set, MANAGER, status);
}
