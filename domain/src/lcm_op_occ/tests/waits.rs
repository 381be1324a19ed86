//! Waits: each has a reason and a clock that ends it, and only changes are told.

use super::*;
use crate::operation::OperationState;
use crate::waits::{Classified, Obstacle, WaitClass};

/// An instantiate that has made everything and waits, with its time.
struct Waiting {
    world: World,
    at: Timestamp,
}

fn waiting() -> Waiting {
    let mut story = op().instantiate().at(ErrorPoint::PostVimControl);
    let steps = vec![story.op().steps.len() - 2];
    story
        .world
        .tell(Command::Begin { at: later(), steps })
        .unwrap();
    Waiting {
        world: story.world,
        at: later(),
    }
}

fn obstacle(object: &str, reason: &str) -> Obstacle {
    Obstacle {
        object: object.into(),
        source: "pod".into(),
        reason: reason.into(),
        message: format!("it says {reason}"),
        progress: 0,
    }
}

fn class(class: WaitClass, seconds: u64) -> Classified {
    Classified {
        class,
        clock_ms: seconds * 1000,
    }
}

const PROGRESSING: WaitClass = WaitClass::Progressing;
const BLOCKED: WaitClass = WaitClass::Blocked;

impl Waiting {
    fn pass(&mut self, seconds: u64) {
        self.at = self.at.plus_millis(seconds * 1000);
    }

    /// What is in the way now; answers the names of the new events.
    fn sees(&mut self, obstacles: &[(&str, &str, Classified)]) -> Vec<&'static str> {
        let known = self.world.history().len();
        let obstacles = obstacles
            .iter()
            .map(|(object, reason, c)| (obstacle(object, reason), *c))
            .collect();
        self.world
            .tell(Command::Obstruct {
                at: self.at,
                obstacles,
            })
            .unwrap();
        names(&self.world.history()[known..])
    }

    /// Seconds until the wait of an object is over.
    fn left(&self, object: &str) -> Option<u64> {
        let wait = self
            .world
            .op()
            .waits
            .iter()
            .find(|wait| wait.object == object)?;
        Some(wait.until.millis_since(self.at) / 1000)
    }

    fn progressed(&mut self, object: &str, seconds: u64) -> bool {
        let Some(event) = self.world.op().progressed(self.at, object, seconds * 1000) else {
            return false;
        };
        let state = super::super::evolve(Some(self.world.op().clone()), &event).unwrap();
        self.world.replace(state, event);
        true
    }
}

#[test]
fn a_wait_is_told_when_it_begins_changes_and_ends() {
    let mut w = waiting();
    assert_eq!(
        w.sees(&[("Pod/a", "Pending", class(PROGRESSING, 600))]),
        ["WaitStarted"]
    );
    assert_eq!(w.left("Pod/a"), Some(600));
    w.pass(10);
    assert_eq!(
        w.sees(&[("Pod/a", "Pending", class(PROGRESSING, 600))]),
        Vec::<&str>::new()
    );
    let unschedulable = class(WaitClass::Infrastructure, 600);
    assert_eq!(
        w.sees(&[("Pod/a", "Unschedulable", unschedulable)]),
        ["WaitChanged"]
    );
    assert_eq!(
        w.left("Pod/a"),
        Some(600),
        "another class has a clock of its own"
    );
    assert_eq!(w.sees(&[]), ["WaitEnded"]);
    assert_eq!(w.world.op().waits, Vec::new());
}

#[test]
fn flapping_between_two_reasons_of_a_class_restarts_no_clock() {
    let mut w = waiting();
    for turn in 0..6 {
        let reason = if turn % 2 == 0 {
            "ContainerCreating"
        } else {
            "PodInitializing"
        };
        w.sees(&[("Pod/a", reason, class(PROGRESSING, 600))]);
        assert_eq!(w.left("Pod/a"), Some(600 - turn * 10));
        w.pass(10);
    }
}

#[test]
fn flapping_between_classes_restarts_no_clock_and_counts_each_classes_own_time() {
    let mut w = waiting();
    for turn in 0..4 {
        w.sees(&[("Pod/a", "Pending", class(PROGRESSING, 600))]);
        assert_eq!(w.left("Pod/a"), Some(600 - turn * 10));
        w.pass(10);
        w.sees(&[("Pod/a", "CreateContainerConfigError", class(BLOCKED, 60))]);
        assert_eq!(w.left("Pod/a"), Some(60 - turn * 5));
        w.pass(5);
    }
}

#[test]
fn what_was_ready_for_an_hour_does_not_fail_at_its_first_hiccup() {
    let mut w = waiting();
    w.sees(&[("Pod/a", "NotReady", class(PROGRESSING, 600))]);
    w.pass(120);
    w.sees(&[("Pod/b", "Pending", class(PROGRESSING, 7200))]);
    w.pass(3600);
    w.sees(&[
        ("Pod/a", "NotReady", class(PROGRESSING, 600)),
        ("Pod/b", "Pending", class(PROGRESSING, 7200)),
    ]);
    assert_eq!(w.left("Pod/a"), Some(480), "two minutes are used up");
    assert_eq!(w.left("Pod/b"), Some(3600));
}

#[test]
fn progress_begins_the_clock_anew_and_is_told_once_half_of_it_has_run() {
    let mut w = waiting();
    w.sees(&[("Deployment/web", "RollingOut", class(PROGRESSING, 600))]);
    w.pass(200);
    assert!(!w.progressed("Deployment/web", 600));
    w.pass(150);
    assert!(w.progressed("Deployment/web", 600));
    assert_eq!(w.left("Deployment/web"), Some(600));
    w.sees(&[("Deployment/web", "Deleting", class(PROGRESSING, 600))]);
    assert_eq!(
        w.left("Deployment/web"),
        Some(600),
        "the new clock is the one that counts"
    );
    w.sees(&[("Deployment/web", "QuotaExceeded", class(BLOCKED, 30))]);
    w.pass(20);
    assert!(
        !w.progressed("Deployment/web", 600),
        "a blocked wait is no progress"
    );
}

/// A day of flapping, looked at every ten seconds.
fn a_day(mut sees: impl FnMut(&mut Waiting, u64)) -> Waiting {
    let mut w = waiting();
    for turn in 0..(24 * 360) {
        sees(&mut w, turn);
        w.pass(10);
    }
    w
}

fn told(w: &Waiting) -> usize {
    let waits = names(w.world.history()).into_iter();
    waits.filter(|name| name.starts_with("Wait")).count()
}

#[test]
fn a_day_of_flapping_readiness_stays_under_200_events() {
    let day = class(PROGRESSING, 48 * 3600);
    let reasons = a_day(|w, turn| {
        let reason = if turn % 2 == 0 { "NotReady" } else { "Pending" };
        w.sees(&[("Pod/a", reason, day)]);
    });
    assert!(told(&reasons) < 200, "{}", told(&reasons));
    assert_eq!(reasons.left("Pod/a"), Some(24 * 3600), "the clock ran on");

    let readiness = a_day(|w, turn| {
        let flaps = [("Pod/a", "NotReady", day), ("Pod/b", "NotReady", day)];
        w.sees(if turn % 2 == 0 { &flaps[..] } else { &[] });
    });
    assert!(told(&readiness) < 200, "{}", told(&readiness));

    let classes = a_day(|w, turn| {
        let c = if turn % 2 == 0 {
            day
        } else {
            class(WaitClass::Infrastructure, 48 * 3600)
        };
        w.sees(&[("Pod/a", "NotReady", c)]);
    });
    assert!(told(&classes) < 200, "{}", told(&classes));
}

#[test]
fn after_a_day_of_flapping_each_wait_still_has_a_recorded_end() {
    let day = class(PROGRESSING, 48 * 3600);
    let mut w = a_day(|w, turn| {
        let flap = [("Pod/a", "NotReady", day)];
        w.sees(if turn % 2 == 0 { &flap[..] } else { &[] });
    });
    w.sees(&[("Pod/a", "NotReady", day)]);
    assert!(w.left("Pod/a").is_some());
    assert!(w.world.op().waiting_since("Pod/a", PROGRESSING).is_some());
    // Another object, and another class of the same one, are told as if nothing had flapped.
    w.sees(&[
        ("Pod/a", "Evicted", class(BLOCKED, 60)),
        ("Pod/c", "Pending", class(BLOCKED, 30)),
    ]);
    assert_eq!((w.left("Pod/a"), w.left("Pod/c")), (Some(60), Some(30)));
}

#[test]
fn two_reasons_of_one_object_are_one_wait_the_one_that_ends_first() {
    let mut w = waiting();
    let both = [
        ("Pod/a", "Pending", class(PROGRESSING, 600)),
        ("Pod/a", "Quota", class(BLOCKED, 30)),
    ];
    assert_eq!(w.sees(&both), ["WaitStarted"]);
    assert_eq!(w.left("Pod/a"), Some(30));
    assert_eq!(w.sees(&both), Vec::<&str>::new());
}

#[test]
fn clocks_begin_anew_with_each_try() {
    let mut story = op().instantiate().begun();
    story
        .world
        .cluster
        .refuse("apply ConfigMap/config", "call", "QuotaExceeded", u32::MAX);
    let story = story.completed();
    assert_eq!(story.state(), OperationState::FailedTemp);
    assert_eq!(story.op().waits, Vec::new());
    let problem = story.op().error.clone().unwrap();
    assert_eq!(problem.detail, "ConfigMap/config QuotaExceeded");
    let story = story.retried();
    let tries = &story.op().tries;
    assert_eq!(tries.len(), 2);
    for one in tries {
        let lasted = one.ended_at.unwrap().millis_since(one.started_at) / 1000;
        assert!(
            (30..70).contains(&lasted),
            "quota is waited on for 30 s, not {lasted} s"
        );
    }
}

#[test]
fn a_permanent_cause_ends_the_try_at_once() {
    let mut story = op().instantiate().begun();
    story.world.cluster.refuse(
        "apply ConfigMap/config",
        "call",
        "AdmissionRefused",
        u32::MAX,
    );
    let story = story.completed();
    assert_eq!(story.state(), OperationState::FailedTemp);
    let refused = story.op().steps.iter().find_map(|log| match &log.state {
        StepState::Failed { class, .. } => Some(*class),
        _ => None,
    });
    assert_eq!(refused, Some(WaitClass::Permanent));
}
