//! Every window of every operation, reached from outside: before and after the effect of each step, forward and back.
//!
//! In each the try fails, or is held and cancelled, and then goes on or back. Faults name their instance, so cases run
//! side by side in one world.

use crate::seed_a::case::{Case, Doing, Ready, Way, next, small};
use cairn_tests::client::SOON;
use cairn_tests::until::until;
use cairn_tests::world::World;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;

/// How many cases run side by side.
const TOGETHER: usize = 8;
/// How many are prepared with one list of faults; each has two at most, and a process takes 100.
const BATCH: usize = 50;
/// Environment variable: cancels in both modes at each window, instead of one mode on each side of an effect.
const EXHAUSTIVE: &str = "CAIRN_TEST_EXHAUSTIVE";

/// What happens in a window, and what is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    FailAndRetry,
    FailAndRollBack,
    Cancel(&'static str),
}

/// A side of the effect of a step, forward or of the rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    back: bool,
    step: usize,
    edge: &'static str,
}

impl Window {
    fn at(self) -> Value {
        let key = if self.back { "undoStep" } else { "step" };
        json!({key: self.step, "edge": self.edge})
    }

    /// How a fault names it in the error.
    fn told(self) -> String {
        let what = if self.back { "undo step" } else { "step" };
        format!("{what} {}, {} its effect", self.step, self.edge)
    }
}

struct One<'a> {
    ready: Ready<'a>,
    window: Window,
    then: Then,
}

impl One<'_> {
    fn faults(&self) -> Vec<Value> {
        let instance = &self.ready.instance;
        let action = if matches!(self.then, Then::Cancel(_)) {
            "hold"
        } else {
            "fail"
        };
        let here = json!({"vnfInstanceId": instance, "at": self.window.at(), "action": action});
        if !self.window.back {
            return vec![here];
        }
        // With all effects made there is most to undo.
        let before = json!({"vnfInstanceId": instance, "at": {"errorPoint": 4}, "action": "fail"});
        vec![before, here]
    }

    async fn run(&self) {
        let world = self.ready.world;
        let op = self.ready.begin().await;
        if self.window.back {
            world.ends(&op, "FAILED_TEMP").await;
            world.steer(&op, "rollback").await.is(202);
        }
        if let Then::Cancel(mode) = self.then {
            self.held().await;
            world.cancel(&op, mode).await.is(202);
        }
        let broken = world.ends(&op, "FAILED_TEMP").await;
        assert_eq!(broken["isCancelPending"], false, "{broken:#}");
        self.is_told(&broken);
        if self.then == Then::FailAndRetry && !self.window.back {
            world.steer(&op, "retry").await.is(202);
            let done = world.ends(&op, "COMPLETED").await;
            return self.ready.as_if_nothing_had_been(&done).await;
        }
        // What is undone already is not undone again, and what is open is.
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
        self.ready.as_before().await;
    }

    /// Awaits that the operation is held in the window: a hold spends its count when it begins.
    async fn held(&self) {
        let what = format!("to be held at {}", self.window.told());
        until(SOON, &what, || async {
            let all = self.ready.world.get("/cairn/v1/faults").await.is(200);
            let here = all.as_array().expect("a list").iter().any(|fault| {
                fault["vnfInstanceId"] == self.ready.instance
                    && fault["action"] == "hold"
                    && fault["times"] == 0
            });
            if here { Ok(()) } else { Err("not held yet") }
        })
        .await;
    }

    fn is_told(&self, broken: &Value) {
        let detail = broken["error"]["detail"]
            .as_str()
            .unwrap_or_default()
            .to_lowercase();
        let expected = match self.then {
            Then::Cancel(_) => "cancel".to_owned(),
            Then::FailAndRetry | Then::FailAndRollBack => self.window.told(),
        };
        assert!(detail.contains(&expected), "{expected}: {broken:#}");
    }
}

/// How many steps an operation has, forward and back, found by doing it once.
async fn measure(world: &World, vnfds: (&str, &str), doing: Doing) -> (usize, usize) {
    let case = case(doing);
    let name = format!("measure-{}", doing.path().replace('_', "-"));
    let ready = Ready::make(world, vnfds, case, &name).await;
    let fault =
        json!([{"vnfInstanceId": ready.instance, "at": {"errorPoint": 4}, "action": "fail"}]);
    world.faults(&fault).await;
    let op = ready.begin().await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    world.steer(&op, "rollback").await.is(202);
    let undone = world.ends(&op, "ROLLED_BACK").await;
    let count = |list: &Value| list.as_array().expect("a list").len();
    (count(&halted["plan"]), count(&undone["undo"]))
}

fn case(doing: Doing) -> Case {
    Case {
        doing,
        point: 4,
        way: Way::Retry,
    }
}

fn windows(back: bool, steps: usize) -> Vec<Window> {
    let both = |step| ["before", "after"].map(|edge| Window { back, step, edge });
    (0..steps).flat_map(both).collect()
}

fn thens(window: Window) -> Vec<Then> {
    let exhaustive = std::env::var_os(EXHAUSTIVE).is_some();
    let mut thens = vec![Then::FailAndRollBack];
    if !window.back {
        thens.push(Then::FailAndRetry);
    }
    // Each mode on one side of each effect, alternating from step to step.
    let graceful = window.step.is_multiple_of(2) == (window.edge == "before");
    if exhaustive || graceful {
        thens.push(Then::Cancel("GRACEFUL"));
    }
    if exhaustive || !graceful {
        thens.push(Then::Cancel("FORCEFUL"));
    }
    thens
}

async fn in_every_window(doing: Doing) {
    let world = World::simple().await;
    let first = small();
    let vnfd = world.onboard(&first).await;
    let second = world.onboard(&next(&first)).await;
    let vnfds = (vnfd.as_str(), second.as_str());
    let (forward, back) = measure(&world, vnfds, doing).await;
    assert!(forward > 0);
    let cases: Vec<(Window, Then)> = [windows(false, forward), windows(true, back)]
        .concat()
        .into_iter()
        .flat_map(|window| thens(window).into_iter().map(move |then| (window, then)))
        .collect();
    let mut failed = Vec::new();
    for (batch, cases) in cases.chunks(BATCH).enumerate() {
        failed.extend(side_by_side(&world, vnfds, doing, batch, cases).await);
    }
    assert!(
        failed.is_empty(),
        "{doing:?}: {} of {} cases failed: {failed:#?}",
        failed.len(),
        cases.len()
    );
}

async fn side_by_side(
    world: &World,
    vnfds: (&str, &str),
    doing: Doing,
    batch: usize,
    cases: &[(Window, Then)],
) -> Vec<(Window, Then)> {
    let made = cases
        .iter()
        .enumerate()
        .map(|(index, (window, then))| async move {
            let name = format!("{batch}-{index}");
            One {
                ready: Ready::make(world, vnfds, case(doing), &name).await,
                window: *window,
                then: *then,
            }
        });
    let all: Vec<One<'_>> = futures::stream::iter(made)
        .buffered(TOGETHER)
        .collect()
        .await;
    let faults: Vec<Value> = all.iter().flat_map(One::faults).collect();
    world.faults(&Value::from(faults)).await;
    futures::stream::iter(&all)
        .map(|one| async move {
            let ended = AssertUnwindSafe(one.run()).catch_unwind().await;
            ended.is_err().then_some((one.window, one.then))
        })
        .buffer_unordered(TOGETHER)
        .filter_map(|failed| async move { failed })
        .collect()
        .await
}

macro_rules! windows {
    ($($name:ident: $doing:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                in_every_window(Doing::$doing).await;
            }
        )+
    };
}

windows! {
    an_instantiate_goes_on_and_back_from_every_window: Instantiate,
    a_scale_out_goes_on_and_back_from_every_window: ScaleOut,
    a_scale_in_goes_on_and_back_from_every_window: ScaleIn,
    a_scale_to_level_goes_on_and_back_from_every_window: ScaleToLevel,
    a_heal_of_one_vnfc_goes_on_and_back_from_every_window: HealOne,
    a_heal_of_all_goes_on_and_back_from_every_window: HealAll,
    a_terminate_goes_on_and_back_from_every_window: Terminate,
}
