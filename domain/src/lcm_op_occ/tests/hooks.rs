//! Hooks: at their moments, each item once, in whatever way the operation goes on (seed case A8).

mod left;

use super::*;
use crate::hook::{Hook, Items, LABEL, Moment, ResultFrom};
use crate::object::Body;
use crate::testing::OpStory;
use serde_json::json;
use std::collections::BTreeMap;

fn hook(name: &str, moment: Moment, items: Items) -> Hook {
    Hook {
        operation: name
            .split_once('_')
            .map_or("", |(operation, _)| operation)
            .to_owned(),
        moment,
        name: name.to_owned(),
        file: format!("Files/hooks/{name}.yaml"),
        job: json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "given"},
            "spec": {"ttlSecondsAfterFinished": 5,
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}),
        items,
        parallel: false,
        clock_ms: Some(7000),
        result: ResultFrom::Optional,
        register_vim: false,
    }
}

fn workers() -> Items {
    Items::Listed(vec!["one".into(), "two".into(), "three".into()])
}

/// The hooks of an INSTANTIATE at each of their moments; the last one registers a VIM.
fn with_hooks() -> OpStory {
    let mut story = op().instantiate();
    story.world.hooks = vec![
        hook("instantiate_start", Moment::Start, Items::Once),
        Hook {
            register_vim: true,
            ..hook("instantiate_end", Moment::End, workers())
        },
        hook(
            "instantiate_rollback_start",
            Moment::RollbackStart,
            Items::Once,
        ),
        hook(
            "instantiate_rollback_end",
            Moment::RollbackEnd,
            Items::PerVdu,
        ),
        hook("scale_start", Moment::Start, Items::Once),
    ];
    let registers = json!({"registerVim": {"vimId": "edge", "accessFrom": {"secret": "s"}}});
    story
        .world
        .cluster
        .results
        .insert("three".into(), registers);
    story
}

/// What the Jobs did, as `hook item`, in order; what failed says so.
fn ran(story: &OpStory) -> Vec<String> {
    story
        .world
        .cluster
        .effects
        .iter()
        .filter(|effect| effect.starts_with("run-hook"))
        .filter_map(|effect| {
            let (_, rest) = effect.split_once(" (")?;
            Some(rest.replace([')', ','], ""))
        })
        .collect()
}

fn hook_jobs(story: &OpStory) -> usize {
    let things = &story.world.cluster.things;
    things
        .iter()
        .filter(|thing| thing.body["metadata"]["labels"].get(LABEL).is_some())
        .count()
}

fn call_of(story: &OpStory, item: &str) -> String {
    let steps = story.op().steps.iter().map(|log| &log.step.action);
    let undo = story.op().undo.iter().map(|log| &log.undo.step.action);
    let planned = story
        .op()
        .plan
        .iter()
        .flat_map(|plan| &plan.rollback_hooks)
        .map(|step| &step.action);
    let found = steps.chain(undo).chain(planned).find(|action| {
        matches!(action, Action::RunHook { item: Some(known), .. } if known == item)
            || matches!(action, Action::RunHook { hook, item: None, .. } if hook == item)
    });
    let action = found.expect("the hook is planned");
    format!("{} {}", action.kind(), action.subject())
}

/// Ran to the plan; then the Job of this item fails once.
fn failing(item: &str) -> OpStory {
    let mut story = with_hooks().until(|op| op.plan.is_some());
    let call = call_of(&story, item);
    story.world.cluster.refuse(&call, "Job", "Failed", 1);
    story.world.go_on();
    story
}

const ALL_RUN: [&str; 4] = [
    "instantiate_start",
    "instantiate_end one",
    "instantiate_end two",
    "instantiate_end three",
];

#[test]
fn start_hooks_run_before_the_first_write_and_end_hooks_when_all_is_ready() {
    let story = with_hooks().completed();
    assert_eq!(story.state(), OperationState::Completed);
    assert_eq!(ran(&story), ALL_RUN);
    let effects = &story.world.cluster.effects;
    let place = |what: &str| effects.iter().position(|e| e.contains(what)).unwrap();
    assert!(place("instantiate_start") < place("apply"));
    assert!(place("apply Deployment/web") < place("instantiate_end"));
    assert_eq!(story.world.cluster.vims.len(), 1);
    assert_eq!(hook_jobs(&story), 0, "finished Jobs are removed");
    let info = story.world.instance().instantiated.as_ref().unwrap();
    assert!(info.objects.iter().all(|o| o.object.kind != "Job"));
}

#[test]
fn a_job_is_named_by_operation_hook_and_item_and_told_what_it_is_for() {
    let story = with_hooks().until(|op| op.plan.is_some());
    let bodies: Vec<_> = story
        .op()
        .steps
        .iter()
        .filter_map(|log| match &log.step.action {
            Action::RunHook {
                object,
                manifest: crate::object::Body::Inline(body),
                ..
            } => Some((object.name.clone(), body.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(bodies.len(), 4);
    let names: std::collections::BTreeSet<_> = bodies.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 4, "each item has a name of its own");
    for (name, body) in &bodies {
        assert_eq!(body["metadata"]["name"], name.as_str());
        assert!(body["spec"].get("ttlSecondsAfterFinished").is_none());
    }
    let env = bodies[3].1["spec"]["template"]["spec"]["containers"][0]["env"].to_string();
    for told in ["CAIRN_HOOK_ITEM", "three", "vnf-1", "op-1", "INSTANTIATE"] {
        assert!(env.contains(told), "{env} should tell {told}");
    }
}

/// What the container of each hook's Job is told, by hook, whether its turn has come or not.
fn told(story: &OpStory, variable: &str) -> BTreeMap<String, Option<String>> {
    let op = story.op();
    let of_rollback = op.plan.iter().flat_map(|plan| &plan.rollback_hooks);
    let steps = op.steps.iter().map(|log| &log.step).chain(of_rollback);
    let hooks = steps.filter_map(|step| match &step.action {
        Action::RunHook { hook, manifest, .. } => Some((hook.clone(), manifest)),
        _ => None,
    });
    let value = |manifest: &Body| {
        let Body::Inline(job) = manifest else {
            panic!()
        };
        let env = &job["spec"]["template"]["spec"]["containers"][0]["env"];
        let mut env = env.as_array().unwrap().iter();
        let found = env.find(|one| one["name"] == variable);
        found.map(|one| one["value"].as_str().unwrap().to_owned())
    };
    hooks.map(|(hook, job)| (hook, value(job))).collect()
}

/// Its hooks are of the new package, those of its rollback too.
#[test]
fn hooks_of_a_change_are_told_the_vnfd_that_they_are_of_and_the_one_before() {
    let mut story = op().change_vnfpkg();
    let names = [
        ("change_vnfpkg_start", Moment::Start),
        ("change_vnfpkg_end", Moment::End),
        ("change_vnfpkg_rollback_start", Moment::RollbackStart),
        ("change_vnfpkg_rollback_end", Moment::RollbackEnd),
    ];
    story.world.hooks = names
        .map(|(name, moment)| Hook {
            operation: "change_vnfpkg".into(),
            ..hook(name, moment, Items::Once)
        })
        .to_vec();
    let story = patched_and_retried(story.failed_at(ErrorPoint::PreVimControl));
    let all = |value: &str| {
        let told = names.map(|(name, _)| (name.to_owned(), Some(value.to_owned())));
        BTreeMap::from(told)
    };
    assert_eq!(told(&story, "CAIRN_VNFD_ID"), all("vnfd-2"));
    assert_eq!(told(&story, "CAIRN_VNFD_ID_BEFORE"), all("vnfd-1"));

    let others = with_hooks().completed();
    let of_all = |variable| told(&others, variable).into_values().collect::<Vec<_>>();
    assert_eq!(of_all("CAIRN_VNFD_ID"), vec![Some("vnfd-1".to_owned()); 4]);
    assert_eq!(of_all("CAIRN_VNFD_ID_BEFORE"), vec![None; 4]);
}

/// A plan made anew tells the same.
fn patched_and_retried(mut story: OpStory) -> OpStory {
    let changes = json!({"metadata": {"site": "south"}});
    let changes = changes.as_object().cloned().unwrap();
    story
        .world
        .run(crate::operation::Params::ModifyInfo { changes });
    story.world.back_to_previous();
    story.retried_and_failed_at(ErrorPoint::VnfConfigEnd)
}

#[test]
fn a_failed_start_hook_halts_after_point_2_with_nothing_written() {
    let story = failing("instantiate_start");
    assert_eq!(story.state(), OperationState::FailedTemp);
    assert_eq!(story.op().point, Some(ErrorPoint::VnfConfigStart));
    assert!(
        !story
            .world
            .cluster
            .effects
            .iter()
            .any(|e| e.starts_with("apply"))
    );
}

#[test]
fn a_failed_end_hook_halts_after_point_5() {
    let story = failing("two");
    assert_eq!(story.state(), OperationState::FailedTemp);
    assert_eq!(story.op().point, Some(ErrorPoint::InternalProcessing));
}

#[test]
fn a_retry_runs_only_the_items_that_are_not_done() {
    for item in ["instantiate_start", "one", "two", "three"] {
        let story = failing(item).retried();
        assert_eq!(story.state(), OperationState::Completed, "{item}");
        let all = ran(&story);
        for expected in ALL_RUN {
            let times = all.iter().filter(|one| one.as_str() == expected).count();
            assert_eq!(times, 1, "{item}: {expected} in {all:?}");
        }
        assert_eq!(all.iter().filter(|one| one.ends_with("failed")).count(), 1);
    }
}

#[test]
fn what_is_done_stays_done_when_its_job_is_gone() {
    let mut story = with_hooks().failed_at(ErrorPoint::VnfConfigEnd);
    story
        .world
        .cluster
        .things
        .retain(|thing| thing.object.kind != "Job");
    let story = story.retried();
    assert_eq!(story.state(), OperationState::Completed);
    assert_eq!(ran(&story), ALL_RUN);
    assert_eq!(story.world.cluster.vims.len(), 1);
}

#[test]
fn a_rollback_removes_jobs_and_registration_and_runs_its_own_hooks_around_the_undo() {
    let story = with_hooks()
        .failed_at(ErrorPoint::VnfConfigEnd)
        .rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert!(story.world.cluster.things.is_empty());
    assert!(story.world.cluster.vims.is_empty());
    let undo: Vec<&str> = story
        .op()
        .undo
        .iter()
        .map(|log| log.undo.step.action.kind())
        .collect();
    assert_eq!(undo[..2], ["run-hook", "unregister-vim"]);
    assert_eq!(
        undo[undo.len() - 4..],
        ["verify", "run-hook", "run-hook", "remove-hook-jobs"],
        "{undo:?}"
    );
}

#[test]
fn a_vim_that_was_there_before_stays_registered() {
    let mut story = with_hooks();
    let vim = crate::ids::VimId::parse("edge").unwrap();
    story.world.cluster.vims.push(vim);
    let story = story.failed_at(ErrorPoint::VnfConfigEnd).rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert_eq!(story.world.cluster.vims.len(), 1);
}

#[test]
fn a_rollback_before_anything_was_begun_runs_no_hook() {
    let story = with_hooks()
        .failed_at(ErrorPoint::VnfConfigStart)
        .rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert!(ran(&story).is_empty());
}

#[test]
fn a_rollback_that_goes_on_does_not_run_its_hooks_again_and_one_of_a_further_try_does() {
    let mut story = failing("two").rolling_back();
    story
        .world
        .cluster
        .refuse("delete Deployment/web", "call", "Forbidden", 100);
    story.world.go_on();
    assert_eq!(story.state(), OperationState::FailedTemp);
    let begun = |story: &OpStory| {
        let all = ran(story);
        all.iter()
            .filter(|one| one.starts_with("instantiate_rollback_start"))
            .count()
    };
    assert_eq!(begun(&story), 1);
    let mut again = story.clone();
    again.world.cluster = {
        let mut cluster = again.world.cluster.clone();
        cluster.heed();
        cluster
    };
    let finished = again.clone().rolled_back();
    assert_eq!(finished.state(), OperationState::RolledBack);
    assert_eq!(begun(&finished), 1);
    let further = again
        .retried_and_failed_at(ErrorPoint::VnfConfigEnd)
        .rolled_back();
    assert_eq!(further.state(), OperationState::RolledBack);
    assert_eq!(begun(&further), 2);
}

#[test]
fn a_rollback_that_broke_after_it_removed_its_jobs_runs_no_hook_again() {
    let mut story = failing("two").rolling_back();
    let removal = story.op().undo.last().unwrap().undo.step.action.clone();
    assert_eq!(removal.kind(), "remove-hook-jobs");
    let call = format!("{} {}", removal.kind(), removal.subject());
    let hooks = ["instantiate_rollback_start", "instantiate_rollback_end"];
    let begun = |story: &OpStory| {
        let all = ran(story);
        let of_rollback = |one: &&String| hooks.iter().any(|hook| one.starts_with(hook));
        all.iter().filter(of_rollback).count()
    };
    for _ in 0..2 {
        story.world.cluster.refuse(&call, "call", "Forbidden", 100);
        story.world.go_on();
        assert_eq!(story.state(), OperationState::FailedTemp);
        assert_eq!(begun(&story), 3);
        let things = &mut story.world.cluster.things;
        things.retain(|thing| thing.object.kind != "Job");
        story.world.cluster.heed();
        story = story.rolling_back();
    }
    story.world.go_on();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert_eq!(begun(&story), 3);
}

#[test]
fn a_cancel_while_a_hook_runs_leaves_its_job_and_a_retry_goes_on_with_it() {
    for mode in [CancelMode::Graceful, CancelMode::Forceful] {
        let mut story = with_hooks().until(|op| op.plan.is_some());
        let call = call_of(&story, "one");
        story.world.cluster.refuse(&call, "Job", "HookRunning", 3);
        story.world.go_until(|op| !op.waits.is_empty());
        let story = story.cancelled(mode);
        assert_eq!(story.state(), OperationState::FailedTemp);
        let story = story.retried();
        assert_eq!(story.state(), OperationState::Completed);
        assert_eq!(ran(&story), ALL_RUN);
    }
}

/// A change of the package whose hook, at this moment, registered a VIM, halted at the end.
fn change_that_registered(moment: Moment) -> OpStory {
    let mut story = op().change_vnfpkg();
    story.world.hooks = vec![Hook {
        operation: "change_vnfpkg".into(),
        register_vim: true,
        ..hook("change_vnfpkg_hook", moment, workers())
    }];
    let registers = json!({"registerVim": {"vimId": "edge", "accessFrom": {"secret": "s"}}});
    let results = &mut story.world.cluster.results;
    results.insert("three".into(), registers);
    story.failed_at(ErrorPoint::InternalProcessing)
}

#[test]
fn a_rollback_of_a_change_that_halts_anywhere_still_knows_the_vims() {
    for moment in [Moment::Start, Moment::End] {
        let mut halted = change_that_registered(moment);
        if moment == Moment::End {
            halted = halted.retried_and_failed_at(ErrorPoint::VnfConfigEnd);
        }
        assert_eq!(halted.world.cluster.vims.len(), 1);
        for turns in 0..80 {
            let mut story = halted.clone().rolling_back();
            for _ in 0..turns {
                story.world.turn();
            }
            if !story.state().is_transitional() {
                break;
            }
            story.world.fail_here("the rollback broke");
            let story = story.rolled_back();
            assert_eq!(story.state(), OperationState::RolledBack, "after {turns}");
            assert!(
                story.world.cluster.vims.is_empty(),
                "{moment:?}, after {turns}"
            );
            assert_eq!(hook_jobs(&story), 0, "{moment:?}, after {turns}");
        }
    }
}

#[test]
fn a_terminate_goes_on_without_hooks_that_cannot_run_and_says_so() {
    let mut story = op().terminate();
    story.world.hooks = vec![
        hook("terminate_start", Moment::Start, Items::Once),
        hook("terminate_end", Moment::End, workers()),
        hook("scale_start", Moment::Start, Items::Once),
    ];
    story.world.cluster.hooks_left_out = Some("namespace gone does not exist".into());
    let story = story.completed();
    assert_eq!(ran(&story), Vec::<String>::new());
    assert_eq!(
        story.op().residue,
        [
            "hook terminate_start: not run, as namespace gone does not exist",
            "hook terminate_end: not run, as namespace gone does not exist",
        ]
    );
}

/// Killed after every turn in turn: each item runs once, however often the process dies.
#[test]
fn no_crash_runs_an_item_twice() {
    let begun = with_hooks().at(ErrorPoint::NotifyProcessing);
    for turns in 0..80 {
        let mut story = begun.clone();
        for _ in 0..turns {
            story.world.turn();
        }
        if !story.state().is_transitional() {
            break;
        }
        story.world.fail_here("killed");
        let retried = story.clone().retried();
        assert_eq!(retried.state(), OperationState::Completed, "after {turns}");
        assert_eq!(ran(&retried), ALL_RUN, "after {turns}");
        let undone = story.rolled_back();
        assert_eq!(undone.state(), OperationState::RolledBack, "after {turns}");
        assert!(undone.world.cluster.things.is_empty(), "after {turns}");
        assert!(undone.world.cluster.vims.is_empty(), "after {turns}");
    }
}
