//! Undo: planned before the change, in reverse, only of what this operation changed (seed case B).

use super::super::plan::Outcome;
use super::*;
use crate::testing::{OpStory, deployment};
use serde_json::json;

fn replicas(story: &OpStory, name: &str) -> Option<u32> {
    story
        .world
        .cluster
        .thing(name)
        .and_then(|thing| thing.replicas)
}

/// What exists, with the replicas: equal before and after when all is undone.
fn picture(story: &OpStory) -> Vec<(String, Option<u32>, serde_json::Value)> {
    let mut all: Vec<_> = story
        .world
        .cluster
        .things
        .iter()
        .map(|t| (t.object.to_string(), t.replicas, t.body["data"].clone()))
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Killed after every turn in turn: whatever was done is undone, and the record agrees with the cluster.
#[test]
fn whatever_was_done_when_it_was_killed_is_undone() {
    for (kind, story) in OpStory::every_kind() {
        if kind == "MODIFY_INFO" {
            continue;
        }
        let begun = story.at(ErrorPoint::NotifyProcessing);
        let before = picture(&begun);
        for turns in 0..60 {
            let mut story = begun.clone();
            for _ in 0..turns {
                story.world.turn();
            }
            if !story.state().is_transitional() {
                break;
            }
            story.world.fail_here("killed and given up");
            let story = story.rolled_back();
            assert_eq!(
                story.state(),
                OperationState::RolledBack,
                "{kind} after {turns}"
            );
            assert_eq!(picture(&story), before, "{kind} after {turns}");
            let instance = story.world.instance();
            assert!(instance.claim.is_none(), "{kind} after {turns}");
            for managed in instance.instantiated.iter().flat_map(|info| &info.objects) {
                let there = story
                    .world
                    .cluster
                    .thing(&managed.object.to_string())
                    .unwrap();
                let known = managed.uid.as_ref().is_none_or(|uid| *uid == there.uid);
                assert!(known, "{kind} after {turns}: {}", managed.object);
            }
        }
    }
}

#[test]
fn an_instantiate_is_undone_in_reverse_order() {
    let story = op()
        .instantiate()
        .failed_at(ErrorPoint::PostVimControl)
        .rolling_back();
    assert_eq!(
        undo_names(story.op()),
        [
            "delete StatefulSet/db",
            "delete Deployment/web",
            "delete Service/web",
            "delete ConfigMap/config",
            "await-gone Deployment/web … StatefulSet/db (4 objects)",
            "verify Deployment/web … StatefulSet/db (4 objects)",
        ]
        .map(|name| name.replace("Deployment/web … StatefulSet/db", &ends(story.op())))
    );
}

/// First and last object of the settling steps: they follow the order of the plan.
fn ends(op: &VnfLcmOpOcc) -> String {
    let gone = op.undo.iter().find_map(|log| match &log.undo.step.action {
        Action::AwaitGone { objects, .. } => Some(objects.clone()),
        _ => None,
    });
    let gone = gone.unwrap();
    format!("{} … {}", gone[0].0, gone[gone.len() - 1].0)
}

#[test]
fn waves_run_backwards_too() {
    let story = op()
        .instantiate()
        .failed_at(ErrorPoint::PostVimControl)
        .rolling_back();
    let waves: Vec<(u32, String)> = story
        .op()
        .undo
        .iter()
        .map(|log| (log.undo.step.wave, log.undo.step.action.kind().to_owned()))
        .collect();
    let kinds = [
        "delete",
        "delete",
        "delete",
        "delete",
        "await-gone",
        "verify",
    ];
    let expected: Vec<(u32, String)> = [0, 0, 1, 2, 3, 4]
        .into_iter()
        .zip(kinds.map(str::to_owned))
        .collect();
    assert_eq!(waves, expected);
}

#[test]
fn only_what_was_begun_is_undone() {
    for begun in 0..=4 {
        let story = op().instantiate().at(ErrorPoint::PreVimControl);
        let mut story = story.until(|op| done_steps(op) >= begun);
        let touched = touched_steps(story.op());
        story.world.fail_here("killed");
        let story = story.rolling_back();
        let undoes = story
            .op()
            .undo
            .iter()
            .filter(|log| log.undo.undoes.is_some())
            .count();
        assert_eq!(undoes, touched, "after {begun}");
    }
}

#[test]
fn without_any_effect_there_is_nothing_to_undo() {
    let mut story = op().instantiate().failed_at(ErrorPoint::PreVimControl);
    story.world.rollback().unwrap();
    assert_eq!(story.op().undo, Vec::new());
    assert_eq!(story.world.go_on(), OperationState::RolledBack);
}

#[test]
fn volumes_of_stateful_sets_that_an_instantiate_made_go_too() {
    let volumes = |story: OpStory| {
        let story = story.rolling_back();
        story
            .op()
            .undo
            .iter()
            .find_map(|log| match &log.undo.step.action {
                Action::AwaitGone { volumes, .. } => Some(*volumes),
                _ => None,
            })
    };
    assert_eq!(
        volumes(op().instantiate().failed_at(ErrorPoint::PostVimControl)),
        Some(true)
    );
    // A heal makes again what was missing; the volumes are older than it.
    let mut heal = op().heal_all().begun();
    heal.world.cluster.take_away("StatefulSet/db");
    let heal = heal.failed_at(ErrorPoint::PostVimControl);
    assert_eq!(volumes(heal), Some(false));
}

#[test]
fn what_was_there_before_is_restored_and_what_is_foreign_left_alone() {
    let mut story = op().instantiate().begun();
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"},
        "data": {"mine": "not yours"}});
    story.world.cluster.put_foreign(&foreign);
    let story = story.completed();
    assert_eq!(story.state(), OperationState::FailedTemp);
    let error = story.op().error_shown().unwrap().detail;
    assert_eq!(error, "ConfigMap/config NotOurs");
    assert_eq!(story.op().leftovers(), Vec::new());
    let story = story.rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert_eq!(story.world.cluster.names(), ["ConfigMap/config"]);
    let there = &story.world.cluster.thing("ConfigMap/config").unwrap().body;
    assert_eq!(there["data"], foreign["data"]);
}

#[test]
fn replicas_are_restored_only_where_they_were_changed() {
    let restored = |story: &OpStory| {
        let mut all = Vec::new();
        for event in story.history() {
            if let VnfLcmOpOccEvent::ReplicasRestored {
                resource, from, to, ..
            } = event
            {
                all.push((resource.to_string(), from, to));
            }
        }
        all
    };
    for (story, changed) in [(op().scale_out(), 4), (op().scale_in(), 1)] {
        let unchanged = story
            .clone()
            .failed_at(ErrorPoint::PreVimControl)
            .rolled_back();
        assert_eq!(restored(&unchanged), []);
        let undone = story.clone().failed_at(ErrorPoint::PostVimControl);
        assert_eq!(replicas(&undone, "Deployment/web"), Some(changed));
        let undone = undone.rolled_back();
        assert_eq!(
            restored(&undone),
            [("Deployment/web".to_owned(), changed, 2)]
        );
        assert_eq!(replicas(&undone, "Deployment/web"), Some(2));
        // Its intent was recorded, but the process died before the call.
        let mut intended = story.until(|op| op.steps.iter().any(|log| log.touched));
        intended.world.fail_here("killed");
        let intended = intended.rolled_back();
        assert_eq!(restored(&intended), []);
    }
}

#[test]
fn restored_replicas_are_told_although_the_answer_was_lost() {
    let mut story = op().scale_out().failed_at(ErrorPoint::PostVimControl);
    story
        .world
        .cluster
        .lose_answer("set-replicas Deployment/web", true);
    let story = story.rolled_back();
    assert!(names(&story.history()).contains(&"ReplicasRestored"));
}

#[test]
fn a_heal_has_nothing_to_undo_on_the_pods() {
    let story = op()
        .heal_one()
        .failed_at(ErrorPoint::PostVimControl)
        .rolling_back();
    assert_eq!(
        undo_names(story.op()),
        ["take-inventory Deployment/web, StatefulSet/db".to_owned()].map(|name| name.replace(
            "Deployment/web, StatefulSet/db",
            "StatefulSet/db, Deployment/web"
        ))
    );
    let mut story = story;
    story.world.go_on();
    let pods: Vec<_> = story
        .world
        .cluster
        .things
        .iter()
        .flat_map(|t| t.pods.iter().map(|(n, _)| n.clone()))
        .collect();
    let mut known: Vec<_> = story
        .world
        .instance()
        .vnfcs()
        .iter()
        .map(|v| v.id.clone())
        .collect();
    let mut pods = pods;
    pods.sort();
    known.sort();
    assert_eq!(known, pods, "vnfcResourceInfo names the pods that exist");
}

#[test]
fn a_terminate_is_undone_by_making_again_what_was_deleted() {
    let story = op().terminate();
    let before = picture(&story.clone().begun());
    let story = story.failed_at(ErrorPoint::InternalProcessing);
    assert_eq!(story.world.cluster.names(), Vec::<String>::new());
    let story = story.rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert_eq!(picture(&story), before);
    assert!(names(&story.history()).contains(&"RollbackVerified"));
    // The record knows the new UIDs and the new pods, so that the VNF can be terminated after all.
    let mut world = story.world;
    let pods = world.instance().vnfcs().len();
    assert_eq!(pods, 3);
    world.run(crate::operation::Params::Terminate {
        forceful: true,
        graceful_timeout_s: None,
    });
    assert_eq!(world.op().state, OperationState::Completed);
    assert_eq!(world.cluster.names(), Vec::<String>::new());
}

#[test]
fn a_partial_rollback_goes_on_with_what_is_open() {
    let mut story = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    story
        .world
        .cluster
        .refuse("delete Service/web", "call", "Invalid", 1);
    let story = story.rolled_back();
    assert_eq!(story.state(), OperationState::FailedTemp);
    let open: Vec<String> = story
        .op()
        .undo
        .iter()
        .filter(|log| !matches!(log.state, StepState::Done { .. }))
        .map(|log| log.undo.step.action.kind().to_owned())
        .collect();
    assert_eq!(
        open,
        ["delete", "delete", "await-gone", "verify"],
        "the list is kept"
    );
    let story = story.rolling_back();
    let deletes: Vec<String> = undo_names(story.op())
        .into_iter()
        .filter(|n| n.starts_with("delete"))
        .collect();
    assert_eq!(deletes, ["delete Service/web", "delete ConfigMap/config"]);
    let mut story = story;
    assert_eq!(story.world.go_on(), OperationState::RolledBack);
    assert_eq!(story.world.cluster.names(), Vec::<String>::new());
}

/// Was everything applied and the cluster is not as before all the same, the next rollback applies it again.
#[test]
fn a_rollback_that_found_a_difference_is_made_again() {
    let story = op().terminate().failed_at(ErrorPoint::InternalProcessing);
    let mut story = story.rolling_back();
    let names = undo_names(story.op());
    let verify = names
        .iter()
        .find(|name| name.starts_with("verify"))
        .unwrap();
    story.world.cluster.refuse(verify, "call", "Invalid", 1);
    assert_eq!(story.world.go_on(), OperationState::FailedTemp);
    let applied = |story: &OpStory| {
        undo_names(story.op())
            .into_iter()
            .filter(|name| name.starts_with("apply"))
            .count()
    };
    let first = applied(&story);
    assert!(first > 1);
    let mut story = story.rolling_back();
    assert_eq!(applied(&story), first);
    assert_eq!(story.world.go_on(), OperationState::RolledBack);
}

#[test]
fn a_retry_after_a_partial_rollback_runs_again_what_was_undone() {
    for (kind, story) in OpStory::every_kind() {
        if kind == "MODIFY_INFO" {
            continue;
        }
        for turns in 0..12 {
            let mut story = story
                .clone()
                .failed_at(ErrorPoint::InternalProcessing)
                .rolling_back();
            for _ in 0..turns {
                story.world.turn();
            }
            if !story.state().is_transitional() {
                break;
            }
            story.world.fail_here("the rollback failed");
            let story = story.retried();
            assert_eq!(
                story.state(),
                OperationState::Completed,
                "{kind} after {turns}"
            );
            let smooth = OpStory::every_kind()
                .into_iter()
                .find(|(k, _)| *k == kind)
                .unwrap()
                .1;
            assert_eq!(
                picture(&story),
                picture(&smooth.completed()),
                "{kind} after {turns}"
            );
        }
    }
}

#[test]
fn what_cannot_be_undone_is_named_and_does_not_stop_the_rollback() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.org"}});
    let mut story = op().instantiate();
    story
        .world
        .manifests
        .push(crate::testing::manifest(definition));
    let story = story.failed_at(ErrorPoint::PostVimControl).rolled_back();
    assert_eq!(story.state(), OperationState::RolledBack);
    assert_eq!(
        story.op().residue,
        [
            "CustomResourceDefinition/widgets.example.org: kept, for custom resources of others would go with it"
        ]
    );
    assert_eq!(
        story.world.cluster.names(),
        ["CustomResourceDefinition/widgets.example.org"]
    );
}

#[test]
fn what_waiting_found_to_stay_is_named() {
    let mut story = op().terminate().at(ErrorPoint::PostVimControl);
    let waits = story.op().steps.len() - 1;
    story
        .world
        .tell(Command::Begin {
            at: later(),
            steps: vec![waits],
        })
        .unwrap();
    let outcome = Outcome::Gone {
        residue: vec!["Namespace/a: occupied".into()],
    };
    story
        .world
        .tell(Command::Finish {
            at: later(),
            step: waits,
            outcome,
        })
        .unwrap();
    story.world.go_on();
    assert_eq!(story.op().residue, ["Namespace/a: occupied"]);
}

#[test]
fn an_apply_whose_outcome_nobody_knows_is_left_behind_and_undone() {
    let mut story = op().instantiate().begun();
    story
        .world
        .cluster
        .lose_answer("apply ConfigMap/config", true);
    story
        .world
        .cluster
        .refuse("apply ConfigMap/config", "call", "Invalid", 1);
    let story = story.completed();
    assert_eq!(story.state(), OperationState::FailedTemp);
    let left: Vec<String> = story
        .op()
        .leftovers()
        .iter()
        .map(|l| l.object.to_string())
        .collect();
    assert_eq!(left, ["ConfigMap/config"]);
    let story = story.rolled_back();
    assert_eq!(story.world.cluster.names(), Vec::<String>::new());
    assert_eq!(story.state(), OperationState::RolledBack);
}

#[test]
fn deployments_of_other_names_are_no_concern_of_a_rollback() {
    let mut story = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    story.world.cluster.put_foreign(&deployment("neighbour"));
    let story = story.rolled_back();
    assert_eq!(story.world.cluster.names(), ["Deployment/neighbour"]);
}
