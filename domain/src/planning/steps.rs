//! The steps of each operation.

use super::ask::{level_replicas, number_changes, workloads};
use super::order::wave_of;
use super::{Inputs, Keep, identity, is_workload};
use crate::lcm_op_occ::plan::{
    Action, ManagedObject, Plan, PreState, STEP_VERSION, Step, Undo, Vnfc,
};
use crate::object::ObjectRef;
use crate::operation::{Leftovers, Levels, Params};
use crate::ports::{Survey, Surveyed};
use crate::problem::Problem;
use serde_json::Value;

/// Waves of eviction, after everything that is applied.
const EVICTION_WAVE: u32 = 1_000_000;

/// Makes the plan.
///
/// # Errors
///
/// A [`Problem`] when what the cluster shows makes the operation impossible; nothing was written.
pub fn plan(inputs: &Inputs<'_>, survey: &Survey, keep: &mut Keep<'_>) -> Result<Plan, Problem> {
    let mut plan = match &inputs.op.params {
        Params::Instantiate { levels, .. } => instantiate(inputs, survey, levels, keep),
        Params::Scale { levels, .. } | Params::ScaleToLevel { levels } => {
            scale(inputs, survey, levels)?
        }
        Params::Heal { vnfcs, .. } if vnfcs.is_empty() => heal_all(inputs, survey, keep),
        Params::Heal { vnfcs, .. } => heal_some(inputs, survey, vnfcs),
        Params::Terminate { forceful, .. } => terminate(inputs, survey, *forceful, keep),
        Params::ModifyInfo { .. } => empty(inputs, survey),
    };
    plan.patches = inputs.instance.patches;
    check_cluster(inputs, survey)?;
    Ok(plan)
}

/// The cluster must be the one that the instance, or the plan before, was made for.
///
/// # Errors
///
/// A [`Problem`] naming both UIDs.
pub fn check_cluster(inputs: &Inputs<'_>, survey: &Survey) -> Result<(), Problem> {
    let planned = inputs
        .op
        .plan
        .as_ref()
        .map(|plan| plan.cluster_uid.as_str());
    let instantiated = inputs
        .instance
        .instantiated
        .as_ref()
        .map(|info| info.cluster_uid.as_str());
    let leftovers = inputs.instance.leftovers_cluster.as_deref();
    match planned.filter(|_| inputs.op.has_written()).or(instantiated).or(leftovers) {
        Some(known) if known != survey.cluster_uid => Err(Problem::new(
            409,
            format!(
                "this is another cluster: its kube-system namespace has UID {}, the VNF's has {known}; point vimConnectionInfo to the cluster of the VNF",
                survey.cluster_uid
            ),
        )
        .titled("Another cluster")),
        Some(_) | None => Ok(()),
    }
}

fn empty(inputs: &Inputs<'_>, survey: &Survey) -> Plan {
    Plan {
        cluster_uid: survey.cluster_uid.clone(),
        namespace: inputs.namespace(),
        steps: Vec::new(),
        workloads: workloads(inputs),
        levels: inputs
            .instance
            .instantiated
            .as_ref()
            .map(|info| info.levels.clone()),
        objects: inputs.owned().to_vec(),
        kept: Vec::new(),
        patches: 0,
    }
}

fn step(wave: u32, action: Action, undo: Undo) -> Step {
    Step {
        version: STEP_VERSION,
        wave,
        action,
        undo,
    }
}

fn settle(
    steps: &mut Vec<Step>,
    ready: Vec<ObjectRef>,
    replaced: &[Vnfc],
    workloads: &[(String, ObjectRef)],
) {
    let replaced = replaced.iter().map(|vnfc| vnfc.uid.clone()).collect();
    if !ready.is_empty() {
        steps.push(step(
            0,
            Action::AwaitReady {
                objects: ready,
                replaced,
            },
            Undo::Nothing,
        ));
    }
    let inventory = Action::TakeInventory {
        workloads: workloads.to_vec(),
    };
    steps.push(step(1, inventory, Undo::Nothing));
}

fn instantiate(inputs: &Inputs<'_>, survey: &Survey, levels: &Levels, keep: &mut Keep<'_>) -> Plan {
    let in_given_order = inputs.op.additional.def_files.is_some();
    let mut plan = Plan {
        levels: Some(levels.clone()),
        objects: Vec::new(),
        ..empty(inputs, survey)
    };
    for (place, (manifest, found)) in (0u32..).zip(inputs.manifests.iter().zip(&survey.items)) {
        let wave = if in_given_order {
            place
        } else {
            wave_of(found.object.group(), &found.object.kind)
        };
        let manifest = &manifest.value;
        plan.steps
            .extend(apply_steps(inputs, found, manifest, levels, wave, keep));
        if !found.kind.create_only {
            plan.objects.push(managed(found, manifest, keep));
        }
    }
    plan.workloads = levels
        .workloads
        .iter()
        .filter_map(|(vdu, name)| {
            let found = survey
                .items
                .iter()
                .find(|f| is_workload(&f.object.kind) && f.object.name == *name)?;
            Some((vdu.clone(), found.object.clone()))
        })
        .collect();
    let ready = plan.objects.iter().map(|o| o.object.clone()).collect();
    let workloads = plan.workloads.clone();
    settle(&mut plan.steps, ready, &[], &workloads);
    plan
}

fn managed(found: &Surveyed, manifest: &Value, keep: &mut Keep<'_>) -> ManagedObject {
    let uid = match &found.pre {
        PreState::Ours { uid, .. } => Some(uid.clone()),
        PreState::Absent | PreState::Foreign { .. } => None,
    };
    ManagedObject {
        object: found.object.clone(),
        uid,
        manifest: keep(manifest),
    }
}

fn apply_steps(
    inputs: &Inputs<'_>,
    found: &Surveyed,
    manifest: &Value,
    levels: &Levels,
    wave: u32,
    keep: &mut Keep<'_>,
) -> Vec<Step> {
    let object = found.object.clone();
    if found.kind.create_only {
        let why = format!("{} can only be created", object.kind);
        let undo = if object.kind.ends_with("Review") {
            Undo::Nothing
        } else {
            Undo::Impossible { why }
        };
        return vec![step(
            wave,
            Action::Create {
                object,
                manifest: keep(manifest),
            },
            undo,
        )];
    }
    let replaced =
        inputs.op.additional.leftovers == Leftovers::Replace || found.needs_recreate.is_some();
    let apply = |undo, keep: &mut Keep<'_>| {
        let action = Action::Apply {
            object: object.clone(),
            manifest: keep(manifest),
            replicas: level_replicas(levels, manifest),
            force_owned: false,
        };
        step(wave + 1, action, undo)
    };
    match &found.pre {
        PreState::Ours { uid, body, .. } if replaced && !is_kept(&object.kind) => {
            let mut steps = vec![apply(Undo::Nothing, keep)];
            let body = kept_body(body, keep);
            let delete = Action::Delete {
                object,
                uid: Some(uid.clone()),
                grace_s: None,
            };
            steps.insert(0, step(0, delete, Undo::Recreate { body }));
            steps
        }
        PreState::Ours { body, .. } => {
            let mut one = apply(Undo::Nothing, keep);
            one.undo = Undo::Restore {
                body: kept_body(body, keep),
            };
            vec![one]
        }
        PreState::Absent | PreState::Foreign { .. } => {
            vec![apply(undo_of_creation(&object.kind), keep)]
        }
    }
}

fn kept_body(body: &crate::object::Body, keep: &mut Keep<'_>) -> crate::object::Body {
    match body {
        crate::object::Body::Inline(value) => keep(value),
        blob @ crate::object::Body::Blob(_) => blob.clone(),
    }
}

/// Kinds that Cairn never deletes on its own.
fn is_kept(kind: &str) -> bool {
    kind == "CustomResourceDefinition"
}

fn undo_of_creation(kind: &str) -> Undo {
    if is_kept(kind) {
        return Undo::Impossible {
            why: "kept, for custom resources of others would go with it".to_owned(),
        };
    }
    Undo::Delete
}

fn scale(inputs: &Inputs<'_>, survey: &Survey, levels: &Levels) -> Result<Plan, Problem> {
    let mut plan = Plan {
        levels: Some(levels.clone()),
        ..empty(inputs, survey)
    };
    let mut ready = Vec::new();
    for (vdu, object) in plan.workloads.clone() {
        let Some(to) = levels.vdu_replicas.get(&vdu).copied() else {
            continue;
        };
        if !number_changes(inputs, levels, &vdu) {
            continue;
        }
        let from = live_replicas(survey, &object)?;
        plan.steps.push(step(
            0,
            Action::SetReplicas {
                object: object.clone(),
                from,
                to,
            },
            Undo::Replicas { from },
        ));
        ready.push(object);
    }
    let workloads = plan.workloads.clone();
    settle(&mut plan.steps, ready, &[], &workloads);
    Ok(plan)
}

fn live_replicas(survey: &Survey, object: &ObjectRef) -> Result<u32, Problem> {
    let found = survey.reads.iter().find(|found| found.object.is(object));
    match found.map(|found| (&found.pre, found.kind.scalable)) {
        Some((
            PreState::Ours {
                replicas: Some(replicas),
                ..
            },
            _,
        )) => Ok(*replicas),
        Some((PreState::Ours { .. }, _)) => Err(Problem::new(
            409,
            format!("{object} cannot be scaled: its kind has no replicas"),
        )),
        Some((PreState::Absent | PreState::Foreign { .. }, _)) | None => Err(Problem::new(
            409,
            format!(
                "{object} of this VNF is not in the cluster any more; heal the VNF instance first"
            ),
        )),
    }
}

fn heal_some(inputs: &Inputs<'_>, survey: &Survey, chosen: &[String]) -> Plan {
    let mut plan = empty(inputs, survey);
    let victims: Vec<Vnfc> = survey
        .vnfcs
        .iter()
        .filter(|vnfc| chosen.contains(&vnfc.id))
        .cloned()
        .collect();
    let vdus: Vec<&str> = inputs
        .instance
        .vnfcs()
        .iter()
        .filter(|vnfc| chosen.contains(&vnfc.id))
        .map(|vnfc| vnfc.vdu_id.as_str())
        .collect();
    evict(&mut plan.steps, &victims);
    let ready = plan
        .workloads
        .iter()
        .filter(|(vdu, _)| vdus.contains(&vdu.as_str()))
        .map(|(_, workload)| workload.clone())
        .collect();
    let workloads = plan.workloads.clone();
    settle(&mut plan.steps, ready, &victims, &workloads);
    plan
}

fn evict(steps: &mut Vec<Step>, victims: &[Vnfc]) {
    steps.extend(victims.iter().map(|vnfc| {
        step(
            EVICTION_WAVE,
            Action::Evict { vnfc: vnfc.clone() },
            Undo::Nothing,
        )
    }));
}

fn heal_all(inputs: &Inputs<'_>, survey: &Survey, keep: &mut Keep<'_>) -> Plan {
    let mut plan = empty(inputs, survey);
    let levels = plan.levels.clone().unwrap_or_default();
    for (found, manifest) in survey.items.iter().zip(inputs.recorded) {
        let wave = wave_of(found.object.group(), &found.object.kind);
        let undo = match &found.pre {
            PreState::Ours { body, .. } => Undo::Restore {
                body: kept_body(body, keep),
            },
            PreState::Absent | PreState::Foreign { .. } => undo_of_creation(&found.object.kind),
        };
        let action = Action::Apply {
            object: found.object.clone(),
            manifest: keep(manifest),
            replicas: level_replicas(&levels, manifest),
            force_owned: true,
        };
        plan.steps.push(step(wave, action, undo));
        plan.steps
            .extend(replicas_in_doubt(inputs, found, manifest, &levels));
    }
    evict(&mut plan.steps, &survey.vnfcs);
    let ready = plan.objects.iter().map(|o| o.object.clone()).collect();
    let workloads = plan.workloads.clone();
    settle(&mut plan.steps, ready, &survey.vnfcs, &workloads);
    plan
}

/// Where the last scale was given up, a heal of all sets the replicas of the recorded level.
fn replicas_in_doubt(
    inputs: &Inputs<'_>,
    found: &Surveyed,
    manifest: &Value,
    levels: &Levels,
) -> Option<Step> {
    let to = level_replicas(levels, manifest).filter(|_| inputs.instance.scale_in_doubt)?;
    let PreState::Ours {
        replicas: Some(from),
        ..
    } = &found.pre
    else {
        return None;
    };
    let action = Action::SetReplicas {
        object: found.object.clone(),
        from: *from,
        to,
    };
    Some(step(
        wave_of("apps", "Deployment") + 1,
        action,
        Undo::Replicas { from: *from },
    ))
}

fn terminate(inputs: &Inputs<'_>, survey: &Survey, forceful: bool, keep: &mut Keep<'_>) -> Plan {
    let mut plan = Plan {
        levels: None,
        ..empty(inputs, survey)
    };
    let volumes = inputs.op.additional.delete_volumes;
    let last = survey
        .reads
        .iter()
        .map(|f| wave_of(f.object.group(), &f.object.kind))
        .max();
    let mut gone = Vec::new();
    for found in &survey.reads {
        let PreState::Ours { uid, body, .. } = &found.pre else {
            continue;
        };
        if let Some(why) = stays(&found.object.kind, volumes) {
            plan.kept.push(format!("{}: {why}", found.object));
            continue;
        }
        let wave = last.unwrap_or(0) - wave_of(found.object.group(), &found.object.kind);
        let action = Action::Delete {
            object: found.object.clone(),
            uid: Some(uid.clone()),
            grace_s: forceful.then_some(0),
        };
        plan.steps.push(step(
            wave,
            action,
            Undo::Recreate {
                body: kept_body(body, keep),
            },
        ));
        gone.push((found.object.clone(), Some(uid.clone())));
    }
    // Also what was absent already is waited for: its pods may be ending.
    let absent = survey.reads.iter().filter(|f| f.pre == PreState::Absent);
    gone.extend(absent.map(|f| (f.object.clone(), None)));
    plan.steps.push(step(
        0,
        Action::AwaitGone {
            objects: gone,
            volumes,
        },
        Undo::Nothing,
    ));
    plan
}

fn stays(kind: &str, volumes: bool) -> Option<&'static str> {
    match kind {
        "CustomResourceDefinition" => Some("kept, for custom resources of others would go with it"),
        "PersistentVolumeClaim" | "PersistentVolume" if !volumes => {
            Some("volumes are kept unless cairn.deleteVolumes is true")
        }
        _ => None,
    }
}

/// The identity that a manifest has in its namespace.
#[must_use]
pub fn in_namespace(manifest: &Value, namespace: &str) -> ObjectRef {
    let named = identity(manifest);
    let namespace = named
        .namespace
        .clone()
        .or_else(|| Some(namespace.to_owned()));
    ObjectRef { namespace, ..named }
}
