//! A change of the package is undone in an order of its own, and what was put back is looked after again.

use super::*;
use crate::testing::OpStory;

fn halted() -> OpStory {
    op().change_vnfpkg().failed_at(ErrorPoint::PostVimControl)
}

#[test]
fn configuration_comes_back_before_workloads_and_permissions_of_the_new_version_go_last() {
    let story = halted().rolling_back();
    assert_eq!(
        undo_names(story.op()),
        [
            "apply ConfigMap/config",
            "delete Service/web",
            "apply Service/web",
            "apply Deployment/web",
            "apply StatefulSet/db",
            "delete Deployment/cache",
            "await-ready Deployment/web … StatefulSet/db (4 objects)",
            "delete Role/reader",
            "await-gone Role/reader, Deployment/cache",
            "await-ready Deployment/web … StatefulSet/db (4 objects)",
            "take-inventory StatefulSet/db, Deployment/web",
            "verify Deployment/web … Deployment/cache (6 objects)",
        ]
    );
}

#[test]
fn waves_have_no_gaps() {
    let story = halted().rolling_back();
    let mut waves: Vec<u32> = story
        .op()
        .undo
        .iter()
        .map(|log| log.undo.step.wave)
        .collect();
    assert!(waves.is_sorted(), "{waves:?}");
    waves.dedup();
    let all: Vec<u32> = (0..).take(waves.len()).collect();
    assert_eq!(waves, all);
}

#[test]
fn what_was_removed_comes_back_with_another_uid_that_is_on_record() {
    let before = op().change_vnfpkg().begun();
    let uid = |story: &OpStory, name: &str| story.world.cluster.uid_of(name);
    let removed = uid(&before, "StatefulSet/db");
    let story = halted().rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    let instance = story.world.instance();
    let objects = &instance.instantiated.as_ref().unwrap().objects;
    for name in ["StatefulSet/db", "Service/web", "Deployment/web"] {
        let known = objects.iter().find(|o| o.object.to_string() == name);
        assert_eq!(known.unwrap().uid, Some(uid(&story, name)), "{name}");
    }
    assert_ne!(uid(&story, "StatefulSet/db"), removed);
}

#[test]
fn replicas_are_those_that_were_there() {
    let mut story = op().change_vnfpkg().begun();
    let web = |story: &OpStory| {
        story
            .world
            .cluster
            .thing("Deployment/web")
            .unwrap()
            .replicas
    };
    let db = story.world.cluster.things.iter_mut();
    // Somebody, an autoscaler say, has set another number than the level's.
    for thing in db.filter(|thing| thing.object.kind == "StatefulSet") {
        thing.replicas = Some(3);
    }
    assert_eq!(web(&story), Some(2));
    let story = story.failed_at(ErrorPoint::PostVimControl);
    assert_eq!(web(&story), Some(2));
    let story = story.rolled_back();
    let db = story.world.cluster.thing("StatefulSet/db").unwrap();
    assert_eq!((web(&story), db.replicas), (Some(2), Some(3)));
}

/// Field case 20: the texts are as they should be, and the cluster is not.
#[test]
fn a_second_rollback_restores_what_went_since_the_first() {
    let mut story = halted().rolling_back();
    story.world.go_until(|op| {
        let mut undo = op.undo.iter();
        undo.any(|log| log.undo.undoes.is_none() && log.state == StepState::Started)
    });
    story.world.fail_here("the rollback broke");
    assert_eq!(story.state(), OperationState::FailedTemp);
    story.world.cluster.take_away("ConfigMap/config");
    let story = story.rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    let config = story.world.cluster.thing("ConfigMap/config").unwrap();
    assert_eq!(config.body["data"]["a"], "1");
}

#[test]
fn a_retry_after_a_rollback_that_broke_goes_on_to_the_new_package() {
    for undone in 0..9 {
        let mut story = halted().rolling_back();
        for _ in 0..undone {
            story.world.turn();
        }
        if !story.state().is_transitional() {
            break;
        }
        story.world.fail_here("the rollback broke");
        let story = story.retried();
        assert_eq!(story.state(), OperationState::Completed, "after {undone}");
        let names = story.world.cluster.names();
        assert_eq!(names.len(), 5, "after {undone}: {names:?}");
        assert!(
            !names.contains(&"StatefulSet/db".to_owned()),
            "after {undone}"
        );
        let service = story.world.cluster.thing("Service/web").unwrap();
        assert_eq!(service.body["spec"]["selector"], "new", "after {undone}");
    }
}
