//! A plan made anew after a PATCH: what was begun keeps its place, its state and its first undo.

use super::*;
use crate::lcm_op_occ::plan::Undo;
use crate::operation::{Leftovers, Params};
use crate::testing::OpStory;
use serde_json::{Map, json};

/// A PATCH of the metadata beside the halted operation.
fn patched(mut story: OpStory) -> OpStory {
    let changes = Map::from_iter([("metadata".to_owned(), json!({"site": "south"}))]);
    story.world.run(Params::ModifyInfo { changes });
    story.world.back_to_previous();
    story
}

fn revised(story: &OpStory) -> Vec<Option<usize>> {
    let found = story
        .world
        .history()
        .iter()
        .rev()
        .find_map(|event| match event {
            VnfLcmOpOccEvent::PlanRevised { carried, .. } => Some(carried.clone()),
            _ => None,
        });
    found.expect("the plan was made anew")
}

#[test]
fn a_retry_without_a_patch_keeps_the_plan() {
    let story = op()
        .instantiate()
        .failed_at(ErrorPoint::PreVimControl)
        .retried();
    assert!(!names(&story.history()).contains(&"PlanRevised"));
    assert!(names(&story.history()).contains(&"PlanRechecked"));
}

#[test]
fn steps_that_were_begun_keep_place_state_and_first_undo() {
    let story = op().instantiate().at(ErrorPoint::PreVimControl);
    let mut story = story.until(|op| done_steps(op) == 2);
    story.world.fail_here("broken");
    let before = story.op().clone();
    let mut story = patched(story);
    story.world.retry().unwrap();
    story.world.go_until(|op| op.plan_checked);
    let carried = revised(&story);
    assert_eq!(carried.len(), before.steps.len());
    for (step, was) in before.steps.iter().enumerate() {
        assert_eq!(carried[step], was.touched.then_some(step));
        let is = &story.op().steps[step];
        assert_eq!(
            (&is.state, is.in_effect, is.touched),
            (&was.state, was.touched, was.touched)
        );
        if was.touched {
            assert_eq!(
                is.step.undo,
                Undo::Delete,
                "it was absent before the operation"
            );
        }
    }
    story.world.go_on();
    assert_eq!(story.state(), OperationState::Completed);
}

#[test]
fn after_a_revision_all_is_still_undone() {
    let story = patched(op().instantiate().failed_at(ErrorPoint::PostVimControl));
    let story = story.retried_and_failed_at(ErrorPoint::VnfConfigEnd);
    assert!(!revised(&story).is_empty());
    let story = story.rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert_eq!(story.world.cluster.names(), Vec::<String>::new());
}

#[test]
fn a_scale_keeps_the_number_that_it_read_first() {
    let story = patched(op().scale_out().failed_at(ErrorPoint::PostVimControl));
    let story = story
        .retried_and_failed_at(ErrorPoint::InternalProcessing)
        .rolled_back();
    assert_eq!(
        story
            .world
            .cluster
            .thing("Deployment/web")
            .unwrap()
            .replicas,
        Some(2)
    );
}

#[test]
fn a_heal_evicts_nothing_in_place_of_what_it_evicted() {
    for story in [op().heal_one(), op().heal_all()] {
        let story = patched(story.failed_at(ErrorPoint::InternalProcessing));
        let evictions = |story: &OpStory| {
            story
                .world
                .cluster
                .effects
                .iter()
                .filter(|e| e.starts_with("evict"))
                .count()
        };
        let before = evictions(&story);
        let story = story
            .retried_and_failed_at(ErrorPoint::VnfConfigEnd)
            .retried();
        assert_eq!(story.state(), OperationState::Completed);
        assert_eq!(evictions(&story), before);
    }
}

#[test]
fn a_terminate_made_anew_still_removes_everything_and_can_be_undone() {
    let story = op().terminate().at(ErrorPoint::PreVimControl);
    let mut story = story.until(|op| done_steps(op) == 2);
    story.world.fail_here("broken");
    let story = patched(story).retried_and_failed_at(ErrorPoint::InternalProcessing);
    assert_eq!(story.world.cluster.names(), Vec::<String>::new());
    let undone = story.clone().rolled_back();
    assert_eq!(undone.world.cluster.names().len(), 4);
    assert_eq!(story.retried().state(), OperationState::Completed);
}

#[test]
fn leftovers_are_replaced_once_not_again_at_each_revision() {
    let mut world = World::new();
    world.begin(instantiate_params(2)).unwrap();
    world.go_until(|op| done_steps(op) == 4);
    world.fail_here("broken");
    world.fail().unwrap();
    let old = world.cluster.uid_of("Deployment/web");
    world.additional.leftovers = Leftovers::Replace;
    let mut story = op();
    story.world = world;
    let story = story
        .instantiate_here()
        .failed_at(ErrorPoint::PostVimControl);
    let new = story.world.cluster.uid_of("Deployment/web");
    assert_ne!(old, new);
    let story = patched(story)
        .retried_and_failed_at(ErrorPoint::VnfConfigEnd)
        .retried();
    assert_eq!(story.state(), OperationState::Completed);
    assert_eq!(
        story.world.cluster.thing("Deployment/web").unwrap().uid,
        new
    );
}

fn is_done(op: &VnfLcmOpOcc, kind: &str, subject: &str) -> bool {
    op.steps.iter().any(|log| {
        log.step.action.kind() == kind
            && log.step.action.subject() == subject
            && matches!(log.state, StepState::Done { .. })
    })
}

fn replicas(story: &OpStory) -> Option<u32> {
    let web = story.world.cluster.thing("Deployment/web");
    web.and_then(|web| web.replicas)
}

/// A workload that is made anew, of which an autoscaler has made 7 meanwhile: halted when the old one is deleted.
fn deleted_to_be_made_anew(mut story: OpStory) -> OpStory {
    for thing in &mut story.world.cluster.things {
        if thing.object.kind == "Deployment" {
            thing.replicas = Some(7);
            thing.body["spec"]["selector"] = json!("drifted");
        }
    }
    let mut story = story.until(|op| is_done(op, "delete", "Deployment/web"));
    story.world.fail_here("broken");
    assert_eq!(replicas(&story), None, "it is deleted");
    story
}

#[test]
fn what_was_deleted_to_be_made_anew_begins_with_the_number_that_it_had() {
    for story in [op().change_vnfpkg(), op().heal_all()] {
        let story = patched(deleted_to_be_made_anew(story));
        let completed = story.clone().retried();
        assert_eq!(completed.state(), OperationState::Completed);
        assert_eq!(replicas(&completed), Some(7));

        // Also where the plan is made anew once more, and where it vanishes again.
        let mut twice = patched(
            story
                .clone()
                .retried_and_failed_at(ErrorPoint::PostVimControl),
        );
        twice.world.cluster.take_away("Deployment/web");
        let twice = twice.retried();
        assert_eq!(twice.state(), OperationState::Completed);
        assert_eq!(replicas(&twice), Some(7));

        let undone = story
            .retried_and_failed_at(ErrorPoint::PostVimControl)
            .rolled_back();
        assert_eq!(undone.state(), OperationState::RolledBack);
        assert_eq!(replicas(&undone), Some(7));
    }
}

#[test]
fn what_a_given_up_scale_left_in_doubt_begins_with_the_number_of_its_level() {
    let mut scaled = op().scale_out().failed_at(ErrorPoint::PostVimControl);
    scaled.world.fail().unwrap();
    let mut story = op().heal_all();
    story.world = scaled.world;
    let story = patched(deleted_to_be_made_anew(story)).retried();
    assert_eq!(story.state(), OperationState::Completed);
    assert_eq!(replicas(&story), Some(2));
}

fn job() -> crate::ports::Manifest {
    crate::testing::manifest(
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}}),
    )
}

#[test]
fn a_job_of_this_operation_that_failed_is_nothing_that_was_there_before() {
    let mut story = op().change_vnfpkg();
    let before = story.world.cluster.names();
    story.world.next_manifests.push(job());
    let mut story = story.at(ErrorPoint::PostVimControl);
    story.world.cluster.fail("Job/migrate");
    let failed = story.world.cluster.uid_of("Job/migrate");
    story.world.go_on();
    assert_eq!(story.state(), OperationState::FailedTemp);
    let story = patched(story);

    let completed = story.clone().retried();
    assert_eq!(completed.state(), OperationState::Completed);
    let made = completed.world.cluster.thing("Job/migrate").unwrap();
    assert!(!made.failed && made.uid != failed, "it ran again");
    let info = completed.world.instance().instantiated.clone().unwrap();
    let mut recorded = info.objects.iter().filter(|o| o.object.kind == "Job");
    assert_eq!(recorded.next().unwrap().uid.as_ref(), Some(&made.uid));

    let undone = story
        .retried_and_failed_at(ErrorPoint::VnfConfigEnd)
        .rolled_back();
    assert_eq!(undone.state(), OperationState::RolledBack);
    assert_eq!(undone.world.cluster.names(), before);
}

#[test]
fn a_job_that_had_failed_before_is_there_again_after_a_rollback() {
    let mut story = op().heal_all();
    let mut world = World::new();
    world.manifests.push(job());
    world.instantiate();
    world.cluster.fail("Job/migrate");
    story.world = world;
    let before = story.world.cluster.names();
    let failed = story.world.cluster.uid_of("Job/migrate");
    let mut story = story.until(|op| is_done(op, "apply", "Job/migrate"));
    story.world.cluster.fail("Job/migrate");
    story.world.fail_here("broken");
    let story = patched(story);
    let completed = story.clone().retried();
    assert_eq!(completed.state(), OperationState::Completed);
    let made = completed.world.cluster.thing("Job/migrate").unwrap();
    assert!(!made.failed && made.uid != failed);
    let undone = story
        .retried_and_failed_at(ErrorPoint::VnfConfigEnd)
        .rolled_back();
    assert_eq!(undone.state(), OperationState::RolledBack);
    assert_eq!(undone.world.cluster.names(), before);
}
