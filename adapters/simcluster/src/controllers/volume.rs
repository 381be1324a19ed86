//! Claims and volumes: binding, provisioning, release, and the protection of what is used.

use std::sync::Arc;

use serde_json::{Value, json};

use super::act::{MANAGER, is_ended};
use super::{Pass, garbage, scheduler};
use crate::json;

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
const CLASSES: &str = "storageclasses.storage.k8s.io";
const COMPONENT: &str = "persistentvolume-controller";
const SELECTED: &str = "/metadata/annotations/volume.kubernetes.io~1selected-node";
/// Classes with this provisioner get volumes made for them; no other provisioner is there.
const PROVISIONER: &str = "simcluster.cairn.dev/provisioner";

pub(super) fn run_volumes(pass: &mut Pass<'_>) {
    for volume in pass.list(VOLUMES) {
        judge_volume(pass, &volume);
    }
}

pub(super) fn run_claims(pass: &mut Pass<'_>) {
    for claim in pass.list(CLAIMS) {
        if json::is_deleting(&claim) {
            unprotect_claim(pass, &claim);
        } else if json::text(&claim, "/status/phase") == "Bound" {
            notice_loss(pass, &claim);
        } else {
            find_volume(pass, &claim);
        }
    }
}

/// Whether the pod's claims are there and bound, in the scheduler's words if not. An empty text
/// means that binding is under way.
pub(super) fn ready_for(pass: &mut Pass<'_>, pod: &Value) -> Result<(), String> {
    let total = pass.state.store.list("nodes", "").count();
    let no = |why: &str| Err(format!("0/{total} nodes are available: {why}. not found"));
    for name in claims_of(pod) {
        let Some(claim) = pass.state.get(CLAIMS, json::namespace(pod), &name) else {
            return no(&format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if json::is_deleting(&claim) {
            return no(&format!(
                "persistentvolumeclaim \"{name}\" is being deleted"
            ));
        }
        if json::text(&claim, "/status/phase") == "Bound" {
            continue;
        }
        if !waits_for_consumer(pass, &claim) {
            return no("pod has unbound immediate PersistentVolumeClaims");
        }
        if json::has(&claim, SELECTED) {
            return Err(String::new());
        }
        if best_volume(pass, &claim).is_none() && provisioner(pass, &claim) != PROVISIONER {
            return no(&format!(
                "{total} node(s) didn't find available persistent volumes to bind"
            ));
        }
        let kind = pass.state.kinds.get(CLAIMS);
        pass.change(&kind, &claim, "kube-scheduler", |claim| {
            json::set(claim, SELECTED, scheduler::selected_node());
        });
        return Err(String::new());
    }
    Ok(())
}

/// The names of the claims that a pod uses.
pub(super) fn claims_of(pod: &Value) -> Vec<String> {
    json::list(pod, "/spec/volumes")
        .iter()
        .map(|volume| json::text(volume, "/persistentVolumeClaim/claimName").to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn class_of(object: &Value) -> &str {
    json::text(object, "/spec/storageClassName")
}

fn class(pass: &Pass<'_>, claim: &Value) -> Option<Arc<Value>> {
    pass.state.get(CLASSES, "", class_of(claim))
}

fn provisioner(pass: &Pass<'_>, claim: &Value) -> String {
    class(pass, claim)
        .map(|class| json::text(&class, "/provisioner").to_owned())
        .unwrap_or_default()
}

fn waits_for_consumer(pass: &Pass<'_>, claim: &Value) -> bool {
    class(pass, claim)
        .is_some_and(|class| json::text(&class, "/volumeBindingMode") == "WaitForFirstConsumer")
}

fn judge_volume(pass: &mut Pass<'_>, volume: &Value) {
    let kind = pass.state.kinds.get(VOLUMES);
    let uid = json::text(volume, "/spec/claimRef/uid").to_owned();
    let claim = pass
        .state
        .get(
            CLAIMS,
            json::text(volume, "/spec/claimRef/namespace"),
            json::text(volume, "/spec/claimRef/name"),
        )
        .filter(|claim| json::uid(claim) == uid);
    let phase = match (uid.is_empty(), claim.is_some()) {
        (true, _) => "Available",
        (false, true) => "Bound",
        (false, false) => "Released",
    };
    let mut status = json::at(volume, "/status").clone();
    if json::text(&status, "/phase") != phase {
        json::set(&mut status, "/phase", phase);
        json::set(&mut status, "/lastPhaseTransitionTime", pass.stamp.clone());
        pass.set_status(&kind, volume, MANAGER, status);
    }
    let provisioned =
        json::annotation(volume, "pv.kubernetes.io/provisioned-by") == Some(PROVISIONER);
    let delete = json::text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete";
    if phase == "Released" && delete && provisioned && !json::is_deleting(volume) {
        pass.delete(&kind, volume);
    }
    if json::is_deleting(volume) && phase != "Bound" {
        garbage::release(pass, &kind, volume, "kubernetes.io/pv-protection");
    }
}

/// A claim that a pod uses stays until the pod is gone.
fn unprotect_claim(pass: &mut Pass<'_>, claim: &Value) {
    let name = json::name(claim);
    let used = pass
        .state
        .store
        .list("pods", json::namespace(claim))
        .any(|pod| !is_ended(pod) && claims_of(pod).iter().any(|used| used == name));
    if !used && garbage::has_finalizer(claim, "kubernetes.io/pvc-protection") {
        let kind = pass.state.kinds.get(CLAIMS);
        garbage::release(pass, &kind, claim, "kubernetes.io/pvc-protection");
    }
}

fn notice_loss(pass: &mut Pass<'_>, claim: &Value) {
    if pass
        .state
        .get(VOLUMES, "", json::text(claim, "/spec/volumeName"))
        .is_some()
    {
        return;
    }
    let kind = pass.state.kinds.get(CLAIMS);
    let mut status = json::at(claim, "/status").clone();
    json::set(&mut status, "/phase", "Lost");
    pass.set_status(&kind, claim, MANAGER, status);
    let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    pass.warn(claim, "ClaimLost", message, COMPONENT);
}

fn find_volume(pass: &mut Pass<'_>, claim: &Value) {
    if json::text(claim, "/status/phase") == "Lost" {
        return;
    }
    if waits_for_consumer(pass, claim) && !json::has(claim, SELECTED) {
        let message = "waiting for first consumer to be created before binding";
        pass.event_once(claim, "WaitForFirstConsumer", message, COMPONENT);
        return;
    }
    if let Some(volume) = best_volume(pass, claim) {
        bind(pass, claim, &volume);
    } else if provisioner(pass, claim) == PROVISIONER {
        provision(pass, claim);
    } else {
        explain(pass, claim);
    }
}

fn explain(pass: &mut Pass<'_>, claim: &Value) {
    let wanted = class_of(claim);
    if wanted.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        pass.event_once(claim, "FailedBinding", message, COMPONENT);
        return;
    }
    let provisioner = provisioner(pass, claim);
    if provisioner.is_empty() {
        let message = format!("storageclass.storage.k8s.io \"{wanted}\" not found");
        pass.warn_once(claim, "ProvisioningFailed", &message, COMPONENT);
    } else if provisioner == "kubernetes.io/no-provisioner" {
        let message = "no volume plugin matched name: kubernetes.io/no-provisioner";
        pass.warn_once(claim, "ProvisioningFailed", message, COMPONENT);
    } else {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' \
             or manually by the system administrator. If volume creation is delayed, please verify \
             that the provisioner is running and correctly registered."
        );
        pass.event_once(claim, "ExternalProvisioning", &message, COMPONENT);
    }
}

/// The smallest volume that the claim can have; one that names the claim goes first.
fn best_volume(pass: &Pass<'_>, claim: &Value) -> Option<Arc<Value>> {
    let named = json::text(claim, "/spec/volumeName");
    let wanted = scheduler::quantity(json::text(claim, "/spec/resources/requests/storage"));
    let size = |volume: &Value| scheduler::quantity(json::text(volume, "/spec/capacity/storage"));
    let is_for = |volume: &Value| {
        json::text(volume, "/spec/claimRef/name") == json::name(claim)
            && json::text(volume, "/spec/claimRef/namespace") == json::namespace(claim)
    };
    let free = |volume: &Value| {
        let uid = json::text(volume, "/spec/claimRef/uid");
        let taken = json::has(volume, "/spec/claimRef") && !is_for(volume);
        !taken && (uid.is_empty() || uid == json::uid(claim)) && !json::is_deleting(volume)
    };
    let selector = json::at(claim, "/spec/selector");
    pass.state
        .store
        .list(VOLUMES, "")
        .filter(|volume| free(volume) && size(volume) >= wanted)
        .filter(|volume| named.is_empty() || json::name(volume) == named)
        .filter(|volume| class_of(volume) == class_of(claim))
        .filter(|volume| {
            let modes = json::list(volume, "/spec/accessModes");
            json::list(claim, "/spec/accessModes")
                .iter()
                .all(|mode| modes.contains(mode))
        })
        .filter(|volume| {
            selector.is_null()
                || crate::selector::matches_labels(selector, json::at(volume, "/metadata/labels"))
        })
        .min_by(|a, b| {
            (!is_for(a), size(a))
                .partial_cmp(&(!is_for(b), size(b)))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
        .cloned()
}

fn claim_reference(claim: &Value) -> Value {
    json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "namespace": json::namespace(claim), "name": json::name(claim), "uid": json::uid(claim),
        "resourceVersion": json::text(claim, "/metadata/resourceVersion")})
}

fn bind(pass: &mut Pass<'_>, claim: &Value, volume: &Value) {
    let (claims, volumes) = (pass.state.kinds.get(CLAIMS), pass.state.kinds.get(VOLUMES));
    if json::text(volume, "/spec/claimRef/uid") != json::uid(claim) {
        let reference = claim_reference(claim);
        pass.change(&volumes, volume, MANAGER, |volume| {
            json::set(volume, "/spec/claimRef", reference);
            let by = "/metadata/annotations/pv.kubernetes.io~1bound-by-controller";
            json::set(volume, by, "yes");
        });
    }
    let name = json::name(volume).to_owned();
    pass.change(&claims, claim, MANAGER, |claim| {
        if !json::has(claim, "/spec/volumeName") {
            json::set(claim, "/spec/volumeName", name);
            let by = "/metadata/annotations/pv.kubernetes.io~1bound-by-controller";
            json::set(claim, by, "yes");
        }
        json::set(
            claim,
            "/metadata/annotations/pv.kubernetes.io~1bind-completed",
            "yes",
        );
    });
    let mut status = json::at(claim, "/status").clone();
    json::set(&mut status, "/phase", "Bound");
    json::set(
        &mut status,
        "/accessModes",
        json::at(volume, "/spec/accessModes").clone(),
    );
    json::set(
        &mut status,
        "/capacity",
        json::at(volume, "/spec/capacity").clone(),
    );
    pass.set_status(&claims, claim, MANAGER, status);
}

fn provision(pass: &mut Pass<'_>, claim: &Value) {
    let kind = pass.state.kinds.get(VOLUMES);
    let policy = class(pass, claim).map_or_else(
        || "Delete".to_owned(),
        |c| json::text(&c, "/reclaimPolicy").to_owned(),
    );
    let name = format!("pvc-{}", json::uid(claim));
    let volume = json!({
        "metadata": {"name": name,
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": json::at(claim, "/spec/resources/requests/storage")},
            "accessModes": json::at(claim, "/spec/accessModes"),
            "storageClassName": class_of(claim),
            "persistentVolumeReclaimPolicy": policy,
            "claimRef": claim_reference(claim),
            "hostPath": {"path": format!("/simulated/{name}")},
        },
    });
    match pass.state.create_as(PROVISIONER, &kind, "", volume) {
        Ok(_) => {
            let message = format!("Successfully provisioned volume {name}");
            pass.event(claim, "ProvisioningSucceeded", &message, PROVISIONER);
        }
        Err(error) => {
            pass.warn_once(claim, "ProvisioningFailed", &error.message, PROVISIONER);
        }
    }
}
