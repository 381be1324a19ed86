//! What is to be looked at before a plan is made or looked over.

use super::{Inputs, hooks, identity, is_workload};
use crate::lcm_op_occ::plan::ManagedObject;
use crate::object::ObjectRef;
use crate::operation::{Levels, Params};
use crate::ports::{Manifest, SurveyItem, SurveyRequest};
use serde_json::Value;

/// The request of the survey.
#[must_use]
pub fn survey_request(inputs: &Inputs<'_>) -> SurveyRequest {
    let mut request = of_params(inputs);
    request.cluster_uid = known_cluster(inputs).map(str::to_owned);
    // After all others, so that those keep their places.
    request.items.extend(hooks::items(inputs));
    request.ends_hooks = hooks::are_ended(inputs);
    request
}

/// The cluster that the instance runs on, or that the plan has written to: any other one is the wrong one.
pub(super) fn known_cluster<'a>(inputs: &Inputs<'a>) -> Option<&'a str> {
    let plan = inputs.op.plan.as_ref().filter(|_| inputs.op.has_written());
    let instantiated = inputs.instance.instantiated.as_ref();
    let left = Some(&inputs.instance.leftovers).filter(|leftovers| !leftovers.is_empty());
    plan.map(|plan| plan.cluster_uid.as_str())
        .or_else(|| instantiated.map(|info| info.cluster_uid.as_str()))
        .or_else(|| left.and(inputs.instance.leftovers_cluster.as_deref()))
}

fn of_params(inputs: &Inputs<'_>) -> SurveyRequest {
    match &inputs.op.params {
        Params::Instantiate { levels, .. } => instantiate(inputs, levels),
        Params::Scale { levels, .. } | Params::ScaleToLevel { levels } => scale(inputs, levels),
        Params::Heal { vnfcs, .. } if vnfcs.is_empty() => heal_all(inputs),
        Params::Heal { .. } => SurveyRequest {
            workloads: workloads(inputs),
            evicts: true,
            skip_dry_run: true,
            ..SurveyRequest::default()
        },
        Params::ChangeVnfpkg { levels, .. } => change(inputs, levels),
        Params::Terminate { .. } => SurveyRequest {
            reads: reads(&inputs.all()),
            workloads: workloads(inputs),
            skip_dry_run: true,
            ..SurveyRequest::default()
        },
        Params::ModifyInfo { .. } => SurveyRequest::default(),
    }
}

fn instantiate(inputs: &Inputs<'_>, levels: &Levels) -> SurveyRequest {
    let items = described_items(inputs, levels);
    // Leftovers that no manifest describes are looked at too: they are adopted or removed.
    SurveyRequest {
        items,
        reads: reads(&undescribed(inputs, inputs.known())),
        ..SurveyRequest::default()
    }
}

/// What is only in the old package is looked at too: it is removed.
fn change(inputs: &Inputs<'_>, levels: &Levels) -> SurveyRequest {
    SurveyRequest {
        items: described_items(inputs, levels),
        reads: reads(&undescribed(inputs, inputs.all())),
        workloads: workloads(inputs),
        ..SurveyRequest::default()
    }
}

/// What a given-up change left beside the objects of the VNF.
fn strays(inputs: &Inputs<'_>) -> Vec<ManagedObject> {
    inputs.all().split_off(inputs.known().len())
}

/// The objects that none of the manifests describes.
fn undescribed(inputs: &Inputs<'_>, mut objects: Vec<ManagedObject>) -> Vec<ManagedObject> {
    objects.retain(|left| {
        let described = |m: &Manifest| names(&identity(&m.value), &left.object);
        !inputs.manifests.iter().any(described)
    });
    objects
}

fn described_items(inputs: &Inputs<'_>, levels: &Levels) -> Vec<SurveyItem> {
    inputs
        .manifests
        .iter()
        .map(|manifest| SurveyItem {
            replicas: level_replicas(levels, &manifest.value),
            recorded_uid: recorded(inputs, &identity(&manifest.value)),
            manifest: manifest.value.clone(),
            hook: None,
        })
        .collect()
}

/// Whether a manifest's identity is that of an object, whatever namespace it leaves to the default.
fn names(named: &ObjectRef, object: &ObjectRef) -> bool {
    object.kind == named.kind
        && object.group() == named.group()
        && object.name == named.name
        && (named.namespace.is_none() || object.namespace == named.namespace)
}

/// The UID recorded for an object, whatever namespace the manifest leaves to the default.
fn recorded(inputs: &Inputs<'_>, named: &ObjectRef) -> Option<crate::object::Uid> {
    let known = inputs.op.objects();
    known
        .iter()
        .chain(inputs.owned())
        .chain(&inputs.instance.leftovers)
        .find(|o| names(named, &o.object))
        .and_then(|o| o.uid.clone())
}

fn heal_all(inputs: &Inputs<'_>) -> SurveyRequest {
    let levels = inputs
        .instance
        .instantiated
        .as_ref()
        .map(|info| &info.levels);
    let items = inputs
        .known()
        .iter()
        .zip(inputs.recorded)
        .map(|(owned, manifest)| SurveyItem {
            manifest: manifest.clone(),
            replicas: levels.and_then(|levels| level_replicas(levels, manifest)),
            recorded_uid: owned.uid.clone(),
            hook: None,
        })
        .collect();
    SurveyRequest {
        items,
        reads: reads(&strays(inputs)),
        workloads: workloads(inputs),
        evicts: true,
        ..SurveyRequest::default()
    }
}

fn scale(inputs: &Inputs<'_>, levels: &Levels) -> SurveyRequest {
    let scaled: Vec<(String, ObjectRef)> = workloads_of(inputs, levels)
        .into_iter()
        .filter(|(vdu, _)| number_changes(inputs, levels, vdu))
        .collect();
    let owned = inputs
        .owned()
        .iter()
        .filter(|o| scaled.iter().any(|(_, w)| w.is(&o.object)));
    SurveyRequest {
        reads: owned.map(|o| (o.object.clone(), o.uid.clone())).collect(),
        scaled: scaled.into_iter().map(|(_, workload)| workload).collect(),
        workloads: workloads(inputs),
        skip_dry_run: true,
        ..SurveyRequest::default()
    }
}

/// Whether the replicas of a VDU are to be set: its number changes, or a scale that was given up left it in doubt.
pub(super) fn number_changes(inputs: &Inputs<'_>, levels: &Levels, vdu: &str) -> bool {
    let before = inputs
        .instance
        .instantiated
        .as_ref()
        .map(|info| &info.levels.vdu_replicas);
    let after = levels.vdu_replicas.get(vdu);
    let in_doubt = inputs.instance.scale_in_doubt.contains(vdu);
    after.is_some() && (in_doubt || before.and_then(|b| b.get(vdu)) != after)
}

/// Whether a scale that was given up left the replicas of this workload in doubt.
pub(super) fn is_in_doubt(inputs: &Inputs<'_>, object: &ObjectRef) -> bool {
    let doubted = &inputs.instance.scale_in_doubt;
    !doubted.is_empty()
        && workloads(inputs)
            .iter()
            .any(|(vdu, workload)| workload.is(object) && doubted.contains(vdu))
}

fn reads(objects: &[ManagedObject]) -> Vec<(ObjectRef, Option<crate::object::Uid>)> {
    objects
        .iter()
        .map(|o| (o.object.clone(), o.uid.clone()))
        .collect()
}

/// The workloads of the instance, by VDU.
pub(super) fn workloads(inputs: &Inputs<'_>) -> Vec<(String, ObjectRef)> {
    inputs
        .instance
        .instantiated
        .as_ref()
        .map_or_else(Vec::new, |info| workloads_of(inputs, &info.levels))
}

fn workloads_of(inputs: &Inputs<'_>, levels: &Levels) -> Vec<(String, ObjectRef)> {
    levels
        .workloads
        .iter()
        .filter_map(|(vdu, name)| {
            let owned = inputs
                .owned()
                .iter()
                .find(|o| is_workload(&o.object.kind) && o.object.name == *name)?;
            Some((vdu.clone(), owned.object.clone()))
        })
        .collect()
}

/// The replicas of its level, where a manifest is a VDU's workload that has replicas.
pub(super) fn level_replicas(levels: &Levels, manifest: &Value) -> Option<u32> {
    let kind = manifest["kind"].as_str()?;
    if !matches!(
        kind,
        "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController"
    ) {
        return None;
    }
    let name = manifest["metadata"]["name"].as_str()?;
    let (vdu, _) = levels
        .workloads
        .iter()
        .find(|(_, workload)| *workload == name)?;
    levels.vdu_replicas.get(vdu).copied()
}
