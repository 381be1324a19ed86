//! From the objects of one package to those of another, over all of them.
//!
//! | object | done | undone by |
//! |---|---|---|
//! | in the new package only | applied | deleting it |
//! | in both, and nothing differs | nothing | nothing |
//! | in both, and it can be changed | applied | applying the recorded state |
//! | in both, and a field cannot be changed | deleted, then made anew; the volumes of a `StatefulSet` are kept, and said so | deleting it, then making it anew |
//! | in the old package only | deleted, once the new ones are ready | making it anew |
//! | in the old package only, and it holds what others use | kept, and said so | nothing |
//! | the Job of a hook, left by an operation that was given up | deleted | nothing: it would run again |
//!
//! Replicas are never part of it: a workload that is changed keeps the live number, one that is made anew begins
//! with it, also where the plan is made anew when the old one is gone.

use super::ask::{is_in_doubt, level_replicas, workloads};
use super::kept::{Occasion, holds, kept, refuse_loss};
use super::order::wave_of;
use super::steps::{
    create_step, empty, kept_body, settle, step, surveyed_workloads, undo_of_creation,
    undo_of_removal,
};
use super::{Inputs, Keep, claims};
use crate::hook::is_hook_job;
use crate::lcm_op_occ::plan::{Action, ManagedObject, Plan, PreState, Step, Undo};
use crate::object::{ObjectRef, Uid};
use crate::operation::Levels;
use crate::ports::{Survey, Surveyed};
use crate::problem::Problem;
use serde_json::Value;

/// Waves that one wave of kinds takes: what is made anew goes, all is applied, replicas are set.
pub(super) const WAVES_EACH: u32 = 3;
/// Wave of the kinds that are applied last and removed first.
const LAST_KIND: u32 = 7;

/// The plan of a change.
///
/// # Errors
///
/// A [`Problem`] that names what would have to be made anew and holds what must not be lost.
pub(super) fn change(
    inputs: &Inputs<'_>,
    survey: &Survey,
    levels: &Levels,
    vdus: Option<&[String]>,
    keep: &mut Keep<'_>,
) -> Result<Plan, Problem> {
    let mut plan = Plan {
        levels: Some(levels.clone()),
        objects: Vec::new(),
        workloads_before: workloads(inputs),
        workloads: surveyed_workloads(survey, levels),
        ..empty(inputs, survey)
    };
    let known = inputs.known();
    let mut ready = Vec::new();
    let mut last = 0;
    for (place, (manifest, found)) in (0u32..).zip(inputs.manifests.iter().zip(&survey.items)) {
        let wave = inputs.wave(place, found) * WAVES_EACH;
        last = last.max(wave);
        let manifest = &manifest.value;
        if found.kind.create_only {
            plan.steps
                .push(create_step(found, manifest, wave + 1, keep));
            continue;
        }
        let before = known.iter().find(|old| old.object.is(&found.object));
        if let Some(before) = before.filter(|_| is_left_alone(&plan, found, vdus)) {
            plan.objects.push(before.clone());
            let set = replicas_in_doubt(inputs, found, manifest, levels, wave + 2);
            ready.extend(set.iter().map(|_| found.object.clone()));
            plan.steps.extend(set);
            continue;
        }
        refuse_loss(found)?;
        let replicas = level_replicas(levels, manifest);
        if !found.unchanged || is_made_anew(inputs, found) {
            let steps = apply_anew(inputs, found, manifest, replicas, wave, false, keep);
            plan.steps.extend(steps);
        }
        let set = replicas_in_doubt(inputs, found, manifest, levels, wave + 2);
        plan.steps.extend(set);
        plan.objects.push(ManagedObject {
            object: found.object.clone(),
            uid: uid_kept(inputs, found),
            manifest: keep(manifest),
        });
        ready.push(found.object.clone());
    }
    let first = last + WAVES_EACH;
    let gone = remove(inputs, survey, &mut plan, first + 1, keep);
    if !gone.is_empty() && !ready.is_empty() {
        plan.steps.push(gate(first, ready.clone()));
    }
    let workloads = plan.workloads.clone();
    settle(&mut plan.steps, ready, &[], &workloads);
    plan.steps.extend(await_gone(gone));
    Ok(plan)
}

/// What is only in the old package is removed when all that is new is ready.
fn gate(wave: u32, objects: Vec<ObjectRef>) -> Step {
    let await_ready = Action::AwaitReady {
        objects,
        replaced: Vec::new(),
    };
    Step {
        gates: true,
        ..step(wave, await_ready, Undo::Nothing)
    }
}

/// The workload of a VDU that `vdu_params` does not name stays as it is.
fn is_left_alone(plan: &Plan, found: &Surveyed, vdus: Option<&[String]>) -> bool {
    let Some(named) = vdus else { return false };
    plan.workloads
        .iter()
        .any(|(vdu, workload)| workload.is(&found.object) && !named.contains(vdu))
}

/// It cannot be changed in place: a field is immutable, or it ran and failed.
pub(super) fn is_made_anew(inputs: &Inputs<'_>, found: &Surveyed) -> bool {
    match &found.pre {
        PreState::Ours { failed, .. } => {
            (found.needs_recreate.is_some() || *failed)
                && !was_begun(inputs, &found.object)
                && !holds(found)
        }
        PreState::Absent | PreState::Foreign { .. } => false,
    }
}

/// What this operation has begun to apply is not what was there before: it is never planned to be made anew. A Job
/// of it that failed is made again by its own step.
pub(super) fn was_begun(inputs: &Inputs<'_>, object: &ObjectRef) -> bool {
    inputs.op.steps.iter().any(|log| {
        log.touched
            && matches!(&log.step.action, Action::Apply { object: applied, .. } if applied.is(object))
    })
}

/// The step that makes an object again which this operation has deleted to make it anew, as it was planned when the
/// old one was still there.
fn planned_before<'a>(inputs: &Inputs<'a>, object: &ObjectRef) -> Option<&'a Step> {
    let deleted = inputs.op.steps.iter().any(|log| {
        log.touched
            && matches!(&log.step.action, Action::Delete { object: one, .. } if one.is(object))
            && matches!(log.step.undo, Undo::Recreate { .. })
    });
    let mut steps = inputs.op.steps.iter().filter(|_| deleted);
    let makes =
        |action: &Action| matches!(action, Action::Apply { object: one, .. } if one.is(object));
    steps
        .find(|log| makes(&log.step.action))
        .map(|log| &log.step)
}

/// The number of replicas that it had then. One that was in doubt was nobody's.
fn number_before(inputs: &Inputs<'_>, object: &ObjectRef) -> Option<u32> {
    match &planned_before(inputs, object)?.action {
        Action::Apply { replicas, .. } if !is_in_doubt(inputs, object) => *replicas,
        _ => None,
    }
}

fn uid_kept(inputs: &Inputs<'_>, found: &Surveyed) -> Option<Uid> {
    match &found.pre {
        PreState::Ours { uid, .. } if !is_made_anew(inputs, found) => Some(uid.clone()),
        PreState::Ours { .. } | PreState::Absent | PreState::Foreign { .. } => None,
    }
}

/// The steps that bring one object to its manifest, whatever is there.
pub(super) fn apply_anew(
    inputs: &Inputs<'_>,
    found: &Surveyed,
    manifest: &Value,
    replicas: Option<u32>,
    wave: u32,
    force_owned: bool,
    keep: &mut Keep<'_>,
) -> Vec<Step> {
    let object = found.object.clone();
    let replicas = number_before(inputs, &object).or(replicas);
    let apply = |replicas: Option<u32>, manifest| Action::Apply {
        object: object.clone(),
        manifest,
        replicas,
        force_owned,
    };
    match &found.pre {
        PreState::Ours {
            uid,
            body,
            replicas: live,
            ..
        } if is_made_anew(inputs, found) => {
            // Undone the other way round: the new one goes, then the old one is made again.
            let delete = Action::Delete {
                object: object.clone(),
                uid: Some(uid.clone()),
                grace_s: None,
            };
            let body = kept_body(body, *live, keep);
            let failed = || "it failed; applied again it would not run again".to_owned();
            let because = found.needs_recreate.clone().unwrap_or_else(failed);
            vec![
                Step {
                    because: Some(because),
                    residue: claims::kept_of_old(found, manifest),
                    ..step(wave, delete, Undo::Recreate { body })
                },
                Step {
                    residue: claims::kept_of_new(found, manifest),
                    ..step(
                        wave + 1,
                        apply(live.or(replicas), keep(manifest)),
                        Undo::Delete,
                    )
                },
            ]
        }
        PreState::Ours {
            body,
            replicas: live,
            ..
        } => {
            let body = kept_body(body, *live, keep);
            let undo = Undo::Restore { body };
            vec![step(wave + 1, apply(replicas, keep(manifest)), undo)]
        }
        PreState::Absent | PreState::Foreign { .. } => {
            let undo = undo_of_creation(&object.kind);
            let before = planned_before(inputs, &object);
            vec![Step {
                residue: before.map_or_else(Vec::new, |step| step.residue.clone()),
                ..step(wave + 1, apply(replicas, keep(manifest)), undo)
            }]
        }
    }
}

/// Where a scale that was given up left them in doubt, a change of the whole sets the replicas of the level.
pub(super) fn replicas_in_doubt(
    inputs: &Inputs<'_>,
    found: &Surveyed,
    manifest: &Value,
    levels: &Levels,
    wave: u32,
) -> Option<Step> {
    let to = level_replicas(levels, manifest).filter(|_| is_in_doubt(inputs, &found.object))?;
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
    Some(step(wave, action, Undo::Replicas { from: *from }))
}

/// Removes what was read and is no part of the VNF any more, workloads before what they need; answers what is to
/// be gone.
pub(super) fn remove(
    inputs: &Inputs<'_>,
    survey: &Survey,
    plan: &mut Plan,
    first: u32,
    keep: &mut Keep<'_>,
) -> Vec<(ObjectRef, Option<Uid>)> {
    let all = inputs.all();
    let mut gone = Vec::new();
    for found in &survey.reads {
        let Some(known) = all.iter().find(|known| known.object.is(&found.object)) else {
            continue;
        };
        if let Some(why) = kept(&found.object.kind, Occasion::Replaced) {
            // It stays an object of the VNF: a termination finds it.
            if found.pre != PreState::Absent {
                plan.kept.push(format!("{}: {why}", found.object));
                plan.objects.push(known.clone());
            }
            continue;
        }
        plan.removed.push(known.clone());
        match &found.pre {
            PreState::Ours {
                uid,
                body,
                replicas,
                ..
            } => {
                let delete = Action::Delete {
                    object: found.object.clone(),
                    uid: Some(uid.clone()),
                    grace_s: None,
                };
                let undo = undo_of_removal(is_hook_job(&known.manifest), body, *replicas, keep);
                let wave = first + LAST_KIND - wave_of(found.object.group(), &found.object.kind);
                plan.steps.push(step(wave, delete, undo));
                gone.push((found.object.clone(), Some(uid.clone())));
            }
            PreState::Foreign { .. } => {
                plan.kept
                    .push(format!("{}: it belongs to somebody else now", found.object));
            }
            // Its pods may be ending.
            PreState::Absent => gone.push((found.object.clone(), known.uid.clone())),
        }
    }
    gone
}

/// Waits for what was removed, beside what is waited for to be ready.
pub(super) fn await_gone(objects: Vec<(ObjectRef, Option<Uid>)>) -> Option<Step> {
    let wait = Action::AwaitGone {
        objects,
        volumes: false,
    };
    match &wait {
        Action::AwaitGone { objects, .. } if objects.is_empty() => None,
        _ => Some(step(0, wait, Undo::Nothing)),
    }
}
