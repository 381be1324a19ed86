//! Seed case A at the level of the rules: a retry works, whatever failed before, and does nothing twice.

use super::super::event::{AffectedVnfc, ChangeType};
use super::*;
use crate::lcm_op_occ::plan::Outcome;
use crate::operation::{Operation, Params};
use crate::testing::{OpStory, levels};
use std::collections::BTreeMap;

/// Resource changes without what differs from run to run: how many pods of each VDU changed how.
fn counted(changes: &[AffectedVnfc]) -> BTreeMap<(String, ChangeType), usize> {
    let mut counts = BTreeMap::new();
    for change in changes {
        *counts
            .entry((change.vnfc.vdu_id.clone(), change.change_type))
            .or_default() += 1;
    }
    counts
}

fn works_on_the_cluster() -> impl Iterator<Item = (&'static str, OpStory)> {
    OpStory::every_kind()
        .into_iter()
        .filter(|(kind, _)| *kind != "MODIFY_INFO")
}

#[test]
fn a1_retry_is_legal_whatever_failed_before() {
    for (kind, story) in works_on_the_cluster() {
        let story = story
            .failed_at(ErrorPoint::PreVimControl)
            .retried_and_failed_at(ErrorPoint::PostVimControl)
            .retried_and_failed_at(ErrorPoint::VnfConfigEnd)
            .rolled_back();
        assert_eq!(story.state(), OperationState::RolledBack, "{kind}");
        let tries: Vec<_> = story
            .op()
            .tries
            .iter()
            .map(|t| {
                (
                    t.attempt,
                    t.cause.as_ref().map_or("", |cause| &cause.detail),
                )
            })
            .collect();
        let causes = [
            (1, "failed at point 3"),
            (2, "failed at point 4"),
            (3, "failed at point 6"),
        ];
        assert_eq!(tries, causes, "{kind}");
        let shown = story.op().error_shown().unwrap().detail;
        assert_eq!(
            shown, "failed at point 6 (first cause: failed at point 3)",
            "{kind}"
        );
    }
}

#[test]
fn a1_the_error_is_shown_while_a_retry_runs_and_gone_when_it_completes() {
    let mut story = op().heal_one().failed_at(ErrorPoint::PostVimControl);
    story.world.retry().unwrap();
    assert_eq!(
        story.op().error_shown().unwrap().detail,
        "failed at point 4"
    );
    story.world.go_on();
    assert_eq!(story.op().error_shown(), None);
}

#[test]
fn a2_the_plan_of_a_scale_holds_all_it_needs() {
    for (story, from, to) in [(op().scale_out(), 2, 4), (op().scale_in(), 2, 1)] {
        let story = story.failed_at(ErrorPoint::PreVimControl);
        let plan = story.op().plan.clone().unwrap();
        assert_eq!(plan.levels, Some(levels(to)));
        let set = &story.op().steps[0].step.action;
        assert!(
            matches!(set, Action::SetReplicas { object, from: f, to: t }
                if object.name == "web" && (*f, *t) == (from, to)),
            "{set:?}"
        );
        let story = story.retried();
        assert_eq!(story.state(), OperationState::Completed);
        let info = story.world.instance().instantiated.clone().unwrap();
        assert_eq!(info.levels, levels(to));
        assert_eq!(
            story
                .world
                .cluster
                .thing("Deployment/web")
                .unwrap()
                .replicas,
            Some(to)
        );
    }
}

#[test]
fn a3_terminate_can_be_retried_after_a_failure_at_every_error_point() {
    for point in &ErrorPoint::ALL[1..] {
        let story = op().terminate().failed_at(*point).retried();
        assert_eq!(story.state(), OperationState::Completed, "{point:?}");
        assert_eq!(
            story.world.cluster.names(),
            Vec::<String>::new(),
            "{point:?}"
        );
        assert_eq!(story.world.instance().instantiated, None, "{point:?}");
    }
}

#[test]
fn a4_resource_changes_equal_those_of_a_run_that_never_failed() {
    for (kind, story) in works_on_the_cluster() {
        let smooth = story.clone().completed();
        for first in &ErrorPoint::ALL[1..] {
            for second in [ErrorPoint::VnfConfigStart, ErrorPoint::VnfConfigEnd] {
                let rough = story
                    .clone()
                    .failed_at(*first)
                    .retried_and_failed_at(second)
                    .retried();
                assert_eq!(
                    counted(&rough.op().resource_changes),
                    counted(&smooth.op().resource_changes),
                    "{kind} after {first:?} and {second:?}"
                );
            }
        }
    }
}

#[test]
fn a4_changes_are_told_against_the_record_so_that_it_can_be_followed() {
    let mut story = op().scale_out().begun();
    let old = story.world.cluster.thing("Deployment/web").unwrap().pods[0]
        .1
        .clone();
    let vnfc = story
        .world
        .instance()
        .vnfcs()
        .iter()
        .find(|v| v.uid == old)
        .unwrap()
        .clone();
    // A node drain replaced a pod between the last inventory and this operation: not our doing, but nobody else
    // tells it.
    story.world.cluster.perform(&Action::Evict { vnfc });
    let story = story.completed();
    let expected = BTreeMap::from([
        (("WEB".to_owned(), ChangeType::Added), 3),
        (("WEB".to_owned(), ChangeType::Removed), 1),
    ]);
    assert_eq!(counted(&story.op().resource_changes), expected);
}

#[test]
fn a5_what_failed_before_its_first_effect_retries_like_any_other() {
    for (kind, story) in works_on_the_cluster() {
        for point in [ErrorPoint::NotifyProcessing, ErrorPoint::VnfConfigStart] {
            let halted = story.clone().failed_at(point);
            assert!(halted.op().plan.is_none(), "{kind}");
            let effects = halted.world.cluster.effects.len();
            let undone = halted.clone().rolled_back();
            assert_eq!(undone.state(), OperationState::RolledBack, "{kind}");
            assert_eq!(undone.world.cluster.effects.len(), effects, "{kind}");
            assert_eq!(
                halted.retried().state(),
                OperationState::Completed,
                "{kind}"
            );
        }
    }
}

#[test]
fn a5_there_is_nothing_to_look_over_without_a_plan() {
    let mut story = op().instantiate().at(ErrorPoint::VnfConfigStart);
    let recheck = Command::RecheckPlan {
        at: later(),
        reopened: Vec::new(),
    };
    assert!(story.world.tell(recheck).is_err());
}

#[test]
fn a6_what_is_gone_is_not_removed_again_and_nothing_else_in_its_place() {
    for story in [op().heal_one(), op().heal_all()] {
        let halted = story.failed_at(ErrorPoint::PostVimControl);
        let effects = halted.world.cluster.effects.clone();
        let pods = |story: &OpStory| -> Vec<_> {
            story
                .world
                .cluster
                .things
                .iter()
                .flat_map(|thing| thing.pods.clone())
                .collect()
        };
        let before = pods(&halted);
        let story = halted.retried();
        assert_eq!(story.state(), OperationState::Completed);
        assert_eq!(story.world.cluster.effects, effects);
        assert_eq!(pods(&story), before);
    }
    let story = op()
        .scale_in()
        .failed_at(ErrorPoint::PostVimControl)
        .retried();
    assert_eq!(
        story
            .world
            .cluster
            .thing("Deployment/web")
            .unwrap()
            .pods
            .len(),
        1
    );
}

#[test]
fn a6_a_pod_that_somebody_else_removed_counts_as_removed() {
    let mut story = op().heal_one().at(ErrorPoint::PreVimControl);
    let Action::Evict { vnfc } = story.op().steps[0].step.action.clone() else {
        panic!()
    };
    story.world.cluster.perform(&Action::Evict { vnfc });
    story.world.go_on();
    let outcome = StepState::Done {
        outcome: Outcome::Evicted { was_absent: true },
    };
    assert_eq!(story.op().steps[0].state, outcome);
    assert_eq!(story.state(), OperationState::Completed);
}

#[test]
fn a7_what_is_already_ours_is_adopted_not_made_again() {
    let halted = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    let effects = halted.world.cluster.effects.clone();
    let uids = |story: &OpStory| -> Vec<_> {
        story
            .world
            .cluster
            .things
            .iter()
            .map(|thing| thing.uid.clone())
            .collect()
    };
    let before = uids(&halted);
    let story = halted.retried();
    assert_eq!(story.state(), OperationState::Completed);
    assert_eq!(
        (uids(&story), &story.world.cluster.effects),
        (before, &effects)
    );
}

#[test]
fn a7_a_creation_whose_answer_was_lost_is_adopted_under_the_uid_it_has() {
    for effect in [true, false] {
        let mut story = op().instantiate().begun();
        story
            .world
            .cluster
            .lose_answer("apply Deployment/web", effect);
        let story = story.completed();
        assert_eq!(story.state(), OperationState::Completed);
        let made: Vec<_> = story
            .world
            .cluster
            .effects
            .iter()
            .filter(|e| *e == "apply Deployment/web")
            .collect();
        assert_eq!(made.len(), 1);
        let info = story.world.instance().instantiated.clone().unwrap();
        let recorded = info
            .objects
            .iter()
            .find(|o| o.object.kind == "Deployment")
            .unwrap();
        let there = story.world.cluster.thing("Deployment/web").unwrap();
        assert_eq!(recorded.uid.as_ref(), Some(&there.uid));
    }
}

#[test]
fn a_lost_answer_is_told_once_however_long_the_cluster_is_silent() {
    let mut story = op().instantiate().until(|op| touched_steps(op) > 0);
    for _ in 0..100 {
        let lost = Command::LoseAnswer {
            at: later(),
            step: 0,
            why: "timed out".into(),
        };
        story.world.tell(lost).unwrap();
    }
    let told = names(&story.history())
        .into_iter()
        .filter(|n| *n == "OutcomeUnknown")
        .count();
    assert_eq!(told, 1);
}

#[test]
fn a_retry_makes_again_what_somebody_deleted_in_between() {
    let mut story = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    story.world.cluster.take_away("ConfigMap/config");
    let story = story.retried();
    assert_eq!(story.state(), OperationState::Completed);
    let there = story.world.cluster.uid_of("ConfigMap/config");
    let info = story.world.instance().instantiated.clone().unwrap();
    let recorded = info
        .objects
        .iter()
        .find(|o| o.object.kind == "ConfigMap")
        .unwrap();
    assert_eq!(recorded.uid, Some(there));
    let why = story.history().iter().find_map(|event| match event {
        VnfLcmOpOccEvent::PlanRechecked { reopened, .. } => Some(reopened[0].why.clone()),
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("it was deleted in between"));
}

#[test]
fn a_retry_sets_replicas_again_that_somebody_changed_in_between() {
    let mut story = op().scale_out().failed_at(ErrorPoint::InternalProcessing);
    let object = story
        .world
        .cluster
        .thing("Deployment/web")
        .unwrap()
        .object
        .clone();
    story.world.cluster.perform(&Action::SetReplicas {
        object,
        from: 4,
        to: 2,
    });
    let story = story.retried();
    assert_eq!(
        story
            .world
            .cluster
            .thing("Deployment/web")
            .unwrap()
            .replicas,
        Some(4)
    );
}

#[test]
fn another_cluster_is_never_written_to() {
    for (kind, story) in works_on_the_cluster().filter(|(kind, _)| *kind != "INSTANTIATE") {
        let mut story = story.begun();
        story.world.cluster.uid = "cluster-2".into();
        let effects = story.world.cluster.effects.len();
        let story = story.completed();
        assert_eq!(story.state(), OperationState::FailedTemp, "{kind}");
        assert!(story.detail().contains("cluster-2"), "{kind}");
        assert_eq!(story.world.cluster.effects.len(), effects, "{kind}");
    }
    let mut begun = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    begun.world.cluster.uid = "cluster-2".into();
    assert_eq!(begun.retried().state(), OperationState::FailedTemp);
}

#[test]
fn every_step_done_twice_leads_to_the_same() {
    for (kind, story) in works_on_the_cluster() {
        let mut story = story.at(ErrorPoint::PreVimControl);
        for _ in 0..200 {
            let started = story
                .op()
                .steps
                .iter()
                .find(|log| log.state == StepState::Started);
            // The process dies after the effect and before its result is recorded.
            if let Some(action) = started.map(|log| log.step.action.clone()) {
                story.world.cluster.perform(&action);
            }
            if !story.world.turn() {
                break;
            }
        }
        assert_eq!(story.state(), OperationState::Completed, "{kind}");
        let left = match story.op().operation() {
            Operation::Terminate => 0,
            Operation::ChangeVnfpkg => 5,
            _ => 4,
        };
        assert_eq!(story.world.cluster.names().len(), left, "{kind}");
    }
}

#[test]
fn a_step_of_another_version_ends_nothing_and_can_be_given_up() {
    let mut story = op().instantiate().at(ErrorPoint::VnfConfigStart);
    let mut ahead = story.world.clone();
    ahead.go_until(|op| op.plan.is_some());
    let mut plan = ahead.op().plan.clone().unwrap();
    let mut strange = ahead.op().steps[0].step.clone();
    strange.action = Action::Unknown(serde_json::json!({"kind": "register-vim"}));
    plan.steps = vec![strange];
    story
        .world
        .tell(Command::FixPlan { at: later(), plan })
        .unwrap();
    let story = story.completed();
    assert_eq!(story.state(), OperationState::FailedTemp);
    assert_eq!(story.given_up().state(), OperationState::Failed);
}

#[test]
fn completion_says_what_was_changed() {
    let story = op().modify_info().completed();
    let changed = story.op().changed_info.clone().unwrap();
    assert_eq!(changed["metadata"]["site"], "north");
    let scaled = op().scale_out().completed();
    assert_eq!(scaled.op().changed_info, None);
    let Params::Scale { out, .. } = scaled.op().params else {
        panic!()
    };
    assert!(out);
}

#[test]
fn advice_is_given_once_for_each_halt() {
    let advise = || Command::Advise {
        at: later(),
        reason: "the quota was raised".into(),
    };
    let mut story = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    let known = story.history().len();
    story.world.tell(advise()).unwrap();
    story.world.tell(advise()).unwrap();
    assert_eq!(story.history().len(), known + 1);
    assert_eq!(story.op().advice.as_deref(), Some("the quota was raised"));
    let mut again = story.retried_and_failed_at(ErrorPoint::PostVimControl);
    assert_eq!(again.op().advice, None);
    let known = again.history().len();
    again.world.tell(advise()).unwrap();
    assert_eq!(again.history().len(), known + 1);
}

#[test]
fn a_retry_makes_again_what_is_being_deleted_once_it_is_gone() {
    let mut story = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    let service = story.world.cluster.thing("Service/web").unwrap().clone();
    story.world.cluster.hold("Service/web");
    story.world.cluster.perform(&Action::Delete {
        object: service.object,
        uid: Some(service.uid.clone()),
        grace_s: None,
    });
    story.world.retry().unwrap();
    story.world.go_until(|op| !op.waits.is_empty());
    let waits = &story.op().waits;
    assert_eq!(
        (waits[0].object.as_str(), waits[0].reason.as_str()),
        ("Service/web", "BeingDeleted")
    );
    story.world.cluster.let_go();
    story.world.go_on();
    assert_eq!(story.state(), OperationState::Completed);
    let made = story.world.cluster.thing("Service/web").unwrap();
    assert_ne!(made.uid, service.uid);
}

#[test]
fn a_retry_makes_a_job_again_that_failed() {
    let mut story = op().instantiate();
    let job = crate::testing::manifest(
        serde_json::json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "setup"}}),
    );
    story.world.manifests.push(job);
    let mut story = story.at(ErrorPoint::PostVimControl);
    story.world.cluster.fail("Job/setup");
    let failed = story.world.cluster.uid_of("Job/setup");
    story.world.go_on();
    assert_eq!(story.state(), OperationState::FailedTemp);
    assert!(story.detail().contains("Job/setup"));
    let story = story.retried();
    assert_eq!(story.state(), OperationState::Completed);
    let made = story.world.cluster.thing("Job/setup").unwrap();
    assert!(!made.failed && made.uid != failed);
}
