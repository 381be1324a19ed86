//! Error points: a common language for "where it broke".

use super::super::fold::evolve;
use super::*;
use crate::announce::entered;
use crate::operation::Operation;
use crate::testing::OpStory;
use std::collections::BTreeMap;

/// The points of each try, as recorded.
fn points_by_try(history: &[VnfLcmOpOccEvent]) -> BTreeMap<u32, Vec<u8>> {
    let mut tries: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for event in history {
        if let VnfLcmOpOccEvent::ErrorPointReached { point, attempt, .. } = event {
            tries.entry(*attempt).or_default().push(point.number());
        }
    }
    tries
}

#[test]
fn a_run_without_failure_passes_every_point_once_and_in_order() {
    for (kind, story) in OpStory::every_kind() {
        let story = story.completed();
        assert_eq!(story.state(), OperationState::Completed, "{kind}");
        let first = u8::from(story.op().operation() == Operation::ModifyInfo);
        let expected: Vec<u8> = (first..=7).collect();
        assert_eq!(
            points_by_try(&story.history()),
            BTreeMap::from([(1, expected)]),
            "{kind}"
        );
    }
}

#[test]
fn every_try_passes_points_one_to_seven_again_however_many_steps_are_done() {
    for (kind, story) in OpStory::every_kind()
        .into_iter()
        .filter(|(k, _)| *k != "MODIFY_INFO")
    {
        for point in &ErrorPoint::ALL[1..] {
            let story = story.clone().failed_at(*point);
            assert_eq!(
                story.state(),
                OperationState::FailedTemp,
                "{kind} at {point:?}"
            );
            let story = story.retried();
            assert_eq!(
                story.state(),
                OperationState::Completed,
                "{kind} at {point:?}"
            );
            let tries = points_by_try(&story.history());
            let first: Vec<u8> = (0..=point.number()).collect();
            let second: Vec<u8> = (1..=7).collect();
            assert_eq!(
                tries,
                BTreeMap::from([(1, first), (2, second)]),
                "{kind} at {point:?}"
            );
        }
    }
}

#[test]
fn a_failure_at_point_zero_ends_in_rolled_back_by_itself() {
    for (kind, story) in OpStory::every_kind()
        .into_iter()
        .filter(|(k, _)| *k != "MODIFY_INFO")
    {
        let story = story.failed_at(ErrorPoint::Initial);
        assert_eq!(story.state(), OperationState::RolledBack, "{kind}");
        assert!(story.world.instance().claim.is_none(), "{kind}");
    }
}

#[test]
fn modify_info_ends_in_rolled_back_wherever_it_fails_and_changes_nothing() {
    for point in &ErrorPoint::ALL[1..] {
        let story = op().modify_info().failed_at(*point);
        assert_eq!(story.state(), OperationState::RolledBack, "{point:?}");
        assert!(story.world.instance().info.metadata.is_empty());
    }
}

#[test]
fn points_are_neither_skipped_nor_passed_twice() {
    let mut story = op().instantiate().at(ErrorPoint::NotifyProcessing);
    let skip = Command::ReachPoint {
        at: later(),
        point: ErrorPoint::PreVimControl,
    };
    assert!(
        story
            .world
            .tell(skip)
            .unwrap_err()
            .contains("earlier moment")
    );
    let known = story.history().len();
    let twice = Command::ReachPoint {
        at: later(),
        point: ErrorPoint::NotifyProcessing,
    };
    story.world.tell(twice).unwrap();
    assert_eq!(story.history().len(), known);
}

#[test]
fn nothing_is_completed_before_its_last_point() {
    let mut story = op().instantiate().at(ErrorPoint::VnfConfigEnd);
    assert!(story.world.tell(Command::Complete { at: later() }).is_err());
    let mut undoing = op()
        .instantiate()
        .failed_at(ErrorPoint::PostVimControl)
        .rolling_back();
    assert!(
        undoing
            .world
            .tell(Command::FinishRollback { at: later() })
            .is_err()
    );
}

/// The state changes by the events that enter one, and by none else; what is told is what happened.
#[test]
fn each_state_is_entered_by_exactly_one_event() {
    let stories = [
        op().instantiate()
            .failed_at(ErrorPoint::PostVimControl)
            .retried(),
        op().scale_out()
            .failed_at(ErrorPoint::InternalProcessing)
            .rolled_back(),
        op().terminate()
            .failed_at(ErrorPoint::VnfConfigStart)
            .given_up(),
        op().modify_info().completed(),
        op().heal_all()
            .at(ErrorPoint::PreVimControl)
            .cancelled(CancelMode::Graceful)
            .retried(),
    ];
    for story in stories {
        let mut state = None;
        let mut told = Vec::new();
        for event in &story.history() {
            let before = state.as_ref().map(|op: &VnfLcmOpOcc| op.state);
            state = evolve(state, event);
            let after = state.as_ref().map(|op| op.state);
            assert_eq!(
                entered(event).is_some(),
                before != after,
                "{}",
                event.name()
            );
            told.extend(entered(event));
        }
        assert_eq!(told.last(), state.map(|op| op.state).as_ref());
    }
}
