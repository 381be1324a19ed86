//! The steps of each operation.

use super::ask::{known_cluster, level_replicas, number_changes, workloads};
use super::change::{
    WAVES_EACH, apply_anew, await_gone, is_made_anew, remove, replicas_in_doubt, was_begun,
};
use super::hooks;
use super::kept::{Occasion, holds, kept, refuse_loss};
use super::{Inputs, Keep, another_cluster, change, claims, is_workload};
use crate::hook::is_hook_job;
use crate::lcm_op_occ::plan::{Action, ManagedObject, Plan, PreState, Step, Undo, Vnfc};
use crate::object::{Body, ObjectRef};
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
        Params::Instantiate { levels, .. } => instantiate(inputs, survey, levels, keep)?,
        Params::Scale { levels, .. } | Params::ScaleToLevel { levels } => {
            scale(inputs, survey, levels)?
        }
        Params::Heal { vnfcs, .. } if vnfcs.is_empty() => heal_all(inputs, survey, keep)?,
        Params::Heal { vnfcs, .. } => heal_some(inputs, survey, vnfcs),
        Params::ChangeVnfpkg { levels, vdus, .. } => {
            change::change(inputs, survey, levels, vdus.as_deref(), keep)?
        }
        Params::Terminate { forceful, .. } => terminate(inputs, survey, *forceful, keep),
        Params::ModifyInfo { .. } => empty(inputs, survey),
    };
    plan.patches = inputs.instance.patches;
    check_cluster(inputs, survey)?;
    hooks::add(inputs, survey, &mut plan, keep);
    Ok(plan)
}

/// The cluster must be the one that the instance, or the plan before, was made for.
///
/// # Errors
///
/// A [`Problem`] naming both clusters; nothing was written.
pub fn check_cluster(inputs: &Inputs<'_>, survey: &Survey) -> Result<(), Problem> {
    match known_cluster(inputs) {
        Some(known) if known != survey.cluster_uid => Err(Problem::new(
            409,
            another_cluster(&survey.cluster_uid, known),
        )
        .titled("Another cluster")),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn empty(inputs: &Inputs<'_>, survey: &Survey) -> Plan {
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
        objects: inputs.known(),
        removed: Vec::new(),
        workloads_before: Vec::new(),
        kept: Vec::new(),
        patches: 0,
        inventory: survey.vnfcs.clone(),
        rollback_hooks: Vec::new(),
        leftovers: {
            let left = inputs.instance.leftovers.iter();
            left.map(|managed| managed.object.clone()).collect()
        },
    }
}

pub(super) fn step(wave: u32, action: Action, undo: Undo) -> Step {
    Step::new(wave, action, undo)
}

pub(super) fn settle(
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

fn instantiate(
    inputs: &Inputs<'_>,
    survey: &Survey,
    levels: &Levels,
    keep: &mut Keep<'_>,
) -> Result<Plan, Problem> {
    let mut plan = Plan {
        levels: Some(levels.clone()),
        objects: Vec::new(),
        ..empty(inputs, survey)
    };
    for (place, (manifest, found)) in (0u32..).zip(inputs.manifests.iter().zip(&survey.items)) {
        refuse_loss(found)?;
        let wave = inputs.wave(place, found);
        let manifest = &manifest.value;
        plan.steps
            .extend(apply_steps(inputs, found, manifest, levels, wave, keep));
        if !found.kind.create_only {
            plan.objects.push(managed(inputs, found, manifest, keep));
        }
    }
    plan.workloads = surveyed_workloads(survey, levels);
    let ready = plan.objects.iter().map(|o| o.object.clone()).collect();
    let workloads = plan.workloads.clone();
    other_leftovers(inputs, survey, &mut plan, keep);
    settle(&mut plan.steps, ready, &[], &workloads);
    Ok(plan)
}

/// The workloads that realise the VDUs, by VDU, among what is to be applied.
pub(super) fn surveyed_workloads(survey: &Survey, levels: &Levels) -> Vec<(String, ObjectRef)> {
    let find = |name: &String| {
        let mut items = survey.items.iter();
        items.find(|f| is_workload(&f.object.kind) && f.object.name == *name)
    };
    levels
        .workloads
        .iter()
        .filter_map(|(vdu, name)| Some((vdu.clone(), find(name)?.object.clone())))
        .collect()
}

/// Leftovers that none of the manifests describes: they are the VNF's from now on, or are removed.
fn other_leftovers(inputs: &Inputs<'_>, survey: &Survey, plan: &mut Plan, keep: &mut Keep<'_>) {
    let mut gone = Vec::new();
    for found in &survey.reads {
        let PreState::Ours {
            uid,
            body,
            replicas,
            ..
        } = &found.pre
        else {
            continue;
        };
        let recorded = inputs
            .owned()
            .iter()
            .find(|owned| owned.object.is(&found.object));
        let Some(recorded) = recorded else { continue };
        let hook = is_hook_job(&recorded.manifest);
        let adopted = inputs.op.additional.leftovers == Leftovers::Adopt;
        let why = kept(&found.object.kind, Occasion::Replaced).filter(|_| !adopted);
        if !hook && (adopted || why.is_some()) {
            plan.kept
                .extend(why.map(|why| format!("{}: {why}", found.object)));
            plan.objects.push(ManagedObject {
                uid: Some(uid.clone()),
                ..recorded.clone()
            });
            continue;
        }
        let object = found.object.clone();
        gone.push((object.clone(), Some(uid.clone())));
        let delete = Action::Delete {
            object,
            uid: Some(uid.clone()),
            grace_s: None,
        };
        plan.steps.push(step(
            0,
            delete,
            undo_of_removal(hook, body, *replicas, keep),
        ));
    }
    if !gone.is_empty() {
        plan.steps.push(step(
            0,
            Action::AwaitGone {
                objects: gone,
                volumes: false,
            },
            Undo::Nothing,
        ));
    }
}

/// What is removed is made again by a rollback; but the Job of a hook would run again.
pub(super) fn undo_of_removal(
    hook: bool,
    body: &Body,
    replicas: Option<u32>,
    keep: &mut Keep<'_>,
) -> Undo {
    if hook {
        return Undo::Nothing;
    }
    Undo::Recreate {
        body: kept_body(body, replicas, keep),
    }
}

/// Whether an object on record is the Job of a hook that a given-up operation left.
fn is_hook(recorded: &[ManagedObject], object: &ObjectRef) -> bool {
    let found = recorded.iter().find(|known| known.object.is(object));
    found.is_some_and(|known| is_hook_job(&known.manifest))
}

fn is_replaced(inputs: &Inputs<'_>, found: &Surveyed) -> bool {
    matches!(found.pre, PreState::Ours { .. })
        && !holds(found)
        && !was_begun(inputs, &found.object)
        && (inputs.op.additional.leftovers == Leftovers::Replace || found.needs_recreate.is_some())
}

fn managed(
    inputs: &Inputs<'_>,
    found: &Surveyed,
    manifest: &Value,
    keep: &mut Keep<'_>,
) -> ManagedObject {
    let uid = match &found.pre {
        PreState::Ours { uid, .. } if !is_replaced(inputs, found) => Some(uid.clone()),
        PreState::Ours { .. } | PreState::Absent | PreState::Foreign { .. } => None,
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
    // Wave 0 belongs to what is removed first.
    let wave = wave + 1;
    if found.kind.create_only {
        return vec![create_step(found, manifest, wave, keep)];
    }
    let apply = Action::Apply {
        object: object.clone(),
        manifest: keep(manifest),
        replicas: level_replicas(levels, manifest),
        force_owned: false,
    };
    match &found.pre {
        PreState::Ours {
            uid,
            body,
            replicas,
            ..
        } if is_replaced(inputs, found) => {
            // Undone the other way round: the new one goes, then the old one is made again.
            let body = kept_body(body, *replicas, keep);
            let delete = Action::Delete {
                object,
                uid: Some(uid.clone()),
                grace_s: None,
            };
            vec![
                Step {
                    residue: claims::kept_of_old(found, manifest),
                    ..step(0, delete, Undo::Recreate { body })
                },
                Step {
                    residue: claims::kept_of_new(found, manifest),
                    ..step(wave, apply, Undo::Delete)
                },
            ]
        }
        PreState::Ours { body, replicas, .. } => {
            vec![step(
                wave,
                apply,
                Undo::Restore {
                    body: kept_body(body, *replicas, keep),
                },
            )]
        }
        PreState::Absent | PreState::Foreign { .. } => {
            vec![step(wave, apply, undo_of_creation(&object.kind))]
        }
    }
}

/// A step that sends what can only be created.
pub(super) fn create_step(
    found: &Surveyed,
    manifest: &Value,
    wave: u32,
    keep: &mut Keep<'_>,
) -> Step {
    let object = found.object.clone();
    let undo = if object.kind.ends_with("Review") {
        Undo::Nothing
    } else {
        let why = format!("{} can only be created", object.kind);
        Undo::Impossible { why }
    };
    let manifest = keep(manifest);
    step(wave, Action::Create { object, manifest }, undo)
}

/// The state to restore. The number of replicas is part of it, whoever set it: an object that is made again
/// without one would begin with 1.
pub(super) fn kept_body(body: &Body, replicas: Option<u32>, keep: &mut Keep<'_>) -> Body {
    let Body::Inline(value) = body else {
        return body.clone();
    };
    let mut value = value.clone();
    if let (Some(replicas), Some(spec)) = (
        replicas,
        value.get_mut("spec").and_then(Value::as_object_mut),
    ) {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    keep(&value)
}

pub(super) fn undo_of_creation(kind: &str) -> Undo {
    match kept(kind, Occasion::Undone) {
        Some(why) => Undo::Impossible {
            why: why.to_owned(),
        },
        None => Undo::Delete,
    }
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
    let victims = victims(inputs, survey, |vnfc| chosen.contains(&vnfc.id));
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

/// The pods to be replaced are chosen once: a plan made anew must not evict those that took their place.
fn victims(inputs: &Inputs<'_>, survey: &Survey, chosen: impl Fn(&Vnfc) -> bool) -> Vec<Vnfc> {
    if inputs.op.plan.is_none() {
        return survey
            .vnfcs
            .iter()
            .filter(|vnfc| chosen(vnfc))
            .cloned()
            .collect();
    }
    let planned = inputs
        .op
        .steps
        .iter()
        .filter_map(|log| match &log.step.action {
            Action::Evict { vnfc } => Some(vnfc.clone()),
            _ => None,
        });
    planned.collect()
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

fn heal_all(inputs: &Inputs<'_>, survey: &Survey, keep: &mut Keep<'_>) -> Result<Plan, Problem> {
    let mut plan = empty(inputs, survey);
    let levels = plan.levels.clone().unwrap_or_default();
    let mut last = 0;
    for (place, (found, manifest)) in (0u32..).zip(survey.items.iter().zip(inputs.recorded)) {
        refuse_loss(found)?;
        let wave = inputs.wave(place, found) * WAVES_EACH;
        last = last.max(wave);
        plan.steps.extend(apply_anew(
            inputs,
            found,
            manifest,
            level_replicas(&levels, manifest),
            wave,
            true,
            keep,
        ));
        if is_made_anew(inputs, found) {
            plan.objects
                .iter_mut()
                .filter(|managed| managed.object.is(&found.object))
                .for_each(|managed| managed.uid = None);
        }
        plan.steps.extend(replicas_in_doubt(
            inputs,
            found,
            manifest,
            &levels,
            wave + 2,
        ));
    }
    // What a given-up change left is no part of the VNF.
    let gone = remove(inputs, survey, &mut plan, last + WAVES_EACH, keep);
    let victims = victims(inputs, survey, |_| true);
    evict(&mut plan.steps, &victims);
    let ready = plan.objects.iter().map(|o| o.object.clone()).collect();
    let workloads = plan.workloads.clone();
    settle(&mut plan.steps, ready, &victims, &workloads);
    plan.steps.extend(await_gone(gone));
    Ok(plan)
}

fn terminate(inputs: &Inputs<'_>, survey: &Survey, forceful: bool, keep: &mut Keep<'_>) -> Plan {
    let mut plan = Plan {
        levels: None,
        objects: inputs.all(),
        ..empty(inputs, survey)
    };
    let volumes = inputs.op.additional.delete_volumes;
    let waves: Vec<u32> = (0u32..)
        .zip(&survey.reads)
        .map(|(place, found)| inputs.wave(place, found))
        .collect();
    let last = waves.iter().max().copied().unwrap_or(0);
    let mut gone = Vec::new();
    for (wave, found) in waves.into_iter().zip(&survey.reads) {
        let PreState::Ours {
            uid,
            body,
            replicas,
            ..
        } = &found.pre
        else {
            continue;
        };
        if let Some(why) = kept(&found.object.kind, Occasion::Terminated { volumes }) {
            plan.kept.push(format!("{}: {why}", found.object));
            continue;
        }
        let action = Action::Delete {
            object: found.object.clone(),
            uid: Some(uid.clone()),
            grace_s: forceful.then_some(0),
        };
        plan.steps.push(step(
            last - wave,
            action,
            undo_of_removal(is_hook(&plan.objects, &found.object), body, *replicas, keep),
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
