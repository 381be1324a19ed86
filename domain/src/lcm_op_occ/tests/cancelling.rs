//! Cancel (SOL003 5.4.17): a fact in the journal, accepted in every transitional state.

use super::*;
use crate::waits::{Classified, Obstacle, WaitClass};

fn waiting_for(world: &mut World, at: Timestamp) {
    let obstacle = Obstacle {
        object: "Deployment/web".into(),
        source: "event".into(),
        reason: "FailedCreate".into(),
        message: "exceeded quota: pods=2".into(),
        progress: 0,
    };
    let classified = Classified {
        class: WaitClass::Blocked,
        clock_ms: 30_000,
    };
    world
        .tell(Command::Obstruct {
            at,
            obstacles: vec![(obstacle, classified)],
        })
        .unwrap();
}

#[test]
fn the_error_of_a_cancelled_operation_names_what_it_was_waiting_for() {
    for (mode, how) in [
        (CancelMode::Graceful, "gracefully"),
        (CancelMode::Forceful, "forcefully"),
    ] {
        let mut story = op().instantiate().at(ErrorPoint::PostVimControl);
        waiting_for(&mut story.world, later());
        let story = story.cancelled(mode);
        assert_eq!(story.state(), OperationState::FailedTemp);
        let told = names(&story.history());
        assert_eq!(
            told[told.len() - 2..],
            ["OperationCancelled", "OperationFailedTemporarily"]
        );
        let error = story.op().error_shown().unwrap();
        assert_eq!(error.title.as_deref(), Some("Operation cancelled"));
        assert_eq!(
            error.detail,
            format!(
                "cancelled {how} in PROCESSING while waiting for \
                 Deployment/web FailedCreate: exceeded quota: pods=2"
            )
        );
        assert_eq!(story.op().cancel, None);
    }
}

#[test]
fn cancel_ends_where_the_state_says() {
    let forceful = CancelMode::Forceful;
    let starting = op().scale_out().begun().cancelled(forceful);
    assert_eq!(starting.state(), OperationState::RolledBack);
    let working = op()
        .scale_out()
        .at(ErrorPoint::PreVimControl)
        .cancelled(forceful);
    assert_eq!(working.state(), OperationState::FailedTemp);
    let undoing = op()
        .scale_out()
        .failed_at(ErrorPoint::PostVimControl)
        .rolling_back();
    assert_eq!(
        undoing.cancelled(forceful).state(),
        OperationState::FailedTemp
    );
    let modifying = op().modify_info().begun().cancelled(forceful);
    assert_eq!(modifying.state(), OperationState::RolledBack);
    assert!(modifying.world.instance().info.metadata.is_empty());
}

#[test]
fn forceful_after_graceful_is_accepted_any_other_second_cancel_is_not() {
    use CancelMode::{Forceful, Graceful};
    for (first, second, accepted) in [
        (Graceful, Forceful, true),
        (Graceful, Graceful, false),
        (Forceful, Graceful, false),
        (Forceful, Forceful, false),
    ] {
        let mut story = op().instantiate().at(ErrorPoint::PreVimControl);
        story.world.cancel(first).unwrap();
        let answer = story.world.cancel(second);
        assert_eq!(answer.is_ok(), accepted, "{first:?} then {second:?}");
        if let Err(refused) = answer {
            assert_eq!(refused, "a cancellation is pending already");
        }
    }
}

#[test]
fn no_step_begins_once_a_cancel_is_pending() {
    let mut story = op().instantiate().at(ErrorPoint::PreVimControl);
    story.world.cancel(CancelMode::Graceful).unwrap();
    let begin = Command::Begin {
        at: later(),
        steps: vec![0],
    };
    assert!(story.world.tell(begin).is_err());
    assert_eq!(touched_steps(story.op()), 0);
}

#[test]
fn the_result_of_a_step_that_was_running_is_still_recorded() {
    let mut story = op().instantiate().until(|op| touched_steps(op) > 0);
    story.world.cancel(CancelMode::Graceful).unwrap();
    let outcome = super::super::plan::Outcome::Created;
    story
        .world
        .tell(Command::Finish {
            at: later(),
            step: 0,
            outcome,
        })
        .unwrap();
    story.world.go_on();
    assert_eq!(
        (story.state(), done_steps(story.op())),
        (OperationState::FailedTemp, 1)
    );
}

#[test]
fn a_grant_that_comes_after_the_cancel_does_not_begin_the_work() {
    let mut story = op().instantiate().begun();
    story
        .world
        .tell(Command::RequestGrant { at: later() })
        .unwrap();
    story.world.cancel(CancelMode::Graceful).unwrap();
    let grant_id = crate::ids::GrantId::parse("late").unwrap();
    assert!(
        story
            .world
            .tell(Command::Grant {
                at: later(),
                grant_id
            })
            .is_err()
    );
    assert_eq!(story.world.go_on(), OperationState::RolledBack);
}

#[test]
fn when_the_operation_ends_first_its_own_result_stands() {
    let mut story = op().instantiate().at(ErrorPoint::NotifyCompleted);
    story.world.cancel(CancelMode::Graceful).unwrap();
    story.world.tell(Command::Complete { at: later() }).unwrap();
    assert_eq!(
        (story.state(), story.op().cancel),
        (OperationState::Completed, None)
    );
}

#[test]
fn a_cancelled_rollback_names_the_cancel_and_the_first_cause() {
    let story = op()
        .instantiate()
        .failed_at(ErrorPoint::PostVimControl)
        .rolling_back()
        .cancelled(CancelMode::Graceful);
    let shown = story.op().error_shown().unwrap().detail;
    assert_eq!(
        shown,
        "cancelled gracefully in ROLLING_BACK (first cause: failed at point 4)"
    );
    assert_eq!(story.rolled_back().state(), OperationState::RolledBack);
}
