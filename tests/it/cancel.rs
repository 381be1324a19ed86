//! Cancel: accepted wherever an operation moves, carried out in bounded time, and told honestly when it races.
//!
//! The windows around each effect are those of `windows.rs`, the error points those of seed case A; here are the
//! waits, calls that never return, the race with the end, and what comes after.

use crate::operations::{instantiate, nothing_left, probe};
use cairn::wiring::Before;
use cairn_simcluster::{Fault, FaultAction, RequestMatch, When};
use cairn_tests::client::SOON;
use cairn_tests::held::Hold;
use cairn_tests::package::package;
use cairn_tests::until::until;
use cairn_tests::world::{Conditions, Ground, World};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A call that never returns is cancelled within this time.
const CANCELLED: Duration = Duration::from_secs(10);

/// Long enough that no clock ends what a test cancels.
const LONG: &str = "{progressing: 10m, blocked: 10m, infrastructure: 10m, unclassified: 10m}";

async fn waits(world: &World, op: &str) -> Value {
    let seen = world
        .op_until(op, "to wait", |seen| {
            seen["waits"]
                .as_array()
                .is_some_and(|waits| !waits.is_empty())
        })
        .await;
    seen["waits"][0].clone()
}

/// Cancels, and answers what the operation looks like when it rests.
async fn cancelled(world: &World, op: &str, mode: &str) -> Value {
    let began = Instant::now();
    world.cancel(op, mode).await.is(202);
    let seen = world.ends(op, "FAILED_TEMP").await;
    assert!(began.elapsed() < CANCELLED, "{mode}: {:?}", began.elapsed());
    assert_eq!(seen["isCancelPending"], false, "{seen:#}");
    let detail = seen["error"]["detail"].as_str().unwrap_or_default();
    assert!(detail.to_lowercase().contains("cancel"), "{seen:#}");
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_pods_is_cancelled_in_both_modes_and_says_what_it_waited_for() {
    let world = World::simple().await;
    let never = package()
        .clocks(LONG)
        .pods(json!({"simcluster.cairn.dev/pull": "fail"}))
        .deployment("web", 1);
    let vnfd = world.onboard(&never).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    for mode in ["GRACEFUL", "FORCEFUL"] {
        let is_pull = |seen: &Value| {
            let reason = seen["waits"][0]["reason"].as_str().unwrap_or_default();
            reason.contains("ImagePull")
        };
        world.op_until(&op, "to wait for the image", is_pull).await;
        let seen = cancelled(&world, &op, mode).await;
        let detail = seen["error"]["detail"].as_str().expect("a detail");
        assert!(detail.contains("ImagePull"), "{seen:#}");
        if mode == "GRACEFUL" {
            world.steer(&op, "retry").await.is(202);
        }
    }
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    nothing_left(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checks_before_the_first_write_are_cancelled_while_the_cluster_is_silent() {
    let world = World::simple().await;
    let vnfd = world.onboard(&probe().clocks(LONG)).await;
    let id = world.create(&vnfd).await;
    let sim = world.place().sim();
    for (mode, silence) in [
        ("GRACEFUL", FaultAction::DropAnswer(When::Before)),
        ("FORCEFUL", FaultAction::Hang(SOON, When::Before)),
    ] {
        sim.inject(Fault::always(RequestMatch::any(), silence));
        let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
        if mode == "GRACEFUL" {
            assert_eq!(waits(&world, &op).await["reason"], "Unreachable");
        } else {
            world
                .op_until(&op, "to check", |seen| seen["point"] == 2)
                .await;
        }
        cancelled(&world, &op, mode).await;
        sim.clear_faults();
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
        nothing_left(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_waits_of_a_rollback_are_cancelled_and_it_is_rolled_back_again() {
    let world = World::simple().await;
    let vnfd = world.onboard(&probe().clocks(LONG)).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"at": {"errorPoint": 4}, "action": "fail"}]))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world.ends(&op, "FAILED_TEMP").await;
    let (kind, at) = (
        ("v1", "ConfigMap"),
        (world.place().namespace.as_str(), "settings"),
    );
    let hold = json!({"metadata": {"finalizers": ["example.test/hold"]}});
    let sim = world.place().sim();
    sim.patch("somebody", kind, at, &hold).expect("a finalizer");
    for mode in ["GRACEFUL", "FORCEFUL"] {
        world.steer(&op, "rollback").await.is(202);
        let waited = waits(&world, &op).await;
        assert_eq!(waited["object"], "ConfigMap/settings", "{waited:#}");
        let seen = cancelled(&world, &op, mode).await;
        let open = seen["undo"].as_array().expect("a list").iter();
        assert!(open.clone().any(|step| step["state"] != "done"), "{seen:#}");
    }
    let free = json!({"metadata": {"finalizers": null}});
    sim.patch("somebody", kind, at, &free)
        .expect("no finalizer");
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    nothing_left(&world).await;
}

/// A write that never returns, forward or back.
async fn never_returns(world: &World, back: bool) -> (String, String) {
    let vnfd = world.onboard(&probe().clocks(LONG)).await;
    let id = world.create(&vnfd).await;
    let hang = FaultAction::Hang(SOON, When::Before);
    let sim = world.place().sim();
    if back {
        world
            .faults(&json!([{"at": {"errorPoint": 4}, "action": "fail"}]))
            .await;
        let op = world.begin(&id, "instantiate", &instantiate(world)).await;
        world.ends(&op, "FAILED_TEMP").await;
        sim.inject(Fault::always(
            RequestMatch::method("DELETE").resource("services"),
            hang,
        ));
        sim.clear_requests();
        world.steer(&op, "rollback").await.is(202);
        world
            .op_until(&op, "the undo to begin", |seen| {
                let undo = seen["undo"].as_array().cloned().unwrap_or_default();
                undo.iter()
                    .any(|step| step["object"] == "Service/web" && step["state"] == "started")
            })
            .await;
        return (id, op);
    }
    // The dry run before has no effect and returns; the apply itself does not.
    let writes = RequestMatch::method("PATCH").resource("services");
    sim.inject(Fault::always(writes, hang).after(1));
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    world
        .op_until(&op, "the step to begin", |seen| {
            let plan = seen["plan"].as_array().cloned().unwrap_or_default();
            plan.iter()
                .any(|step| step["object"] == "Service/web" && step["state"] == "started")
        })
        .await;
    (id, op)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_never_returns_is_cancelled_by_force_after_a_gentle_word() {
    for back in [false, true] {
        let world = World::simple().await;
        let (_, op) = never_returns(&world, back).await;
        world.cancel(&op, "GRACEFUL").await.is(202);
        let seen = world.op(&op).await;
        assert_eq!(seen["isCancelPending"], true, "{seen:#}");
        assert_eq!(seen["cancelMode"], "GRACEFUL", "{seen:#}");
        // A word said twice is refused, a stronger one is not.
        world.cancel(&op, "GRACEFUL").await.is(409);
        cancelled(&world, &op, "FORCEFUL").await;
        world.cancel(&op, "FORCEFUL").await.is(409);
        world.place().sim().clear_faults();
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
        nothing_left(&world).await;
    }
}

/// An operation that can be cancelled until its last append, and how it ends when it is.
struct Race<'a> {
    world: &'a World,
    hold: &'a Hold,
    vnfd: String,
    operation: &'static str,
    mode: &'static str,
}

impl Race<'_> {
    async fn begin(&self) -> (String, String) {
        let id = self.world.create(&self.vnfd).await;
        let body = if self.operation == "modify" {
            json!({"vnfInstanceName": "renamed"})
        } else {
            instantiate(self.world)
        };
        let op = self.world.begin(&id, self.operation, &body).await;
        (id, op)
    }

    /// How many of these events the operation has.
    async fn counts(&self, id: &str) -> [usize; 3] {
        let history = self.world.history(id).await;
        [
            "CancelRequested",
            "OperationCancelled",
            "OperationCompleted",
        ]
        .map(|name| history.iter().filter(|event| event["type"] == name).count())
    }

    /// The end is decided and not yet written when the cancel is: the cancel counts.
    async fn the_cancel_is_written_first(&self) {
        self.hold.next("OperationCompleted");
        let (id, op) = self.begin().await;
        self.hold.held().await;
        self.world.cancel(&op, self.mode).await.is(202);
        self.hold.release();
        let modify = self.operation == "modify";
        let state = if modify { "ROLLED_BACK" } else { "FAILED_TEMP" };
        let seen = self.world.ends(&op, state).await;
        assert_eq!(seen["isCancelPending"], false, "{seen:#}");
        assert_eq!(self.counts(&id).await, [1, 1, 0]);
        if !modify {
            self.world.steer(&op, "rollback").await.is(202);
            self.world.ends(&op, "ROLLED_BACK").await;
        }
    }

    /// The cancel is decided and not yet written when the end is: it is refused, and leaves no trace.
    async fn the_end_is_written_first(&self) {
        self.world
            .faults(&json!([{"at": {"errorPoint": 7}, "action": "hold"}]))
            .await;
        let (id, op) = self.begin().await;
        self.world
            .op_until(&op, "to be held", |seen| seen["point"] == 7)
            .await;
        self.hold.next("CancelRequested");
        let ended = async {
            self.hold.held().await;
            self.world.faults(&json!([])).await;
            let seen = self.world.ends(&op, "COMPLETED").await;
            self.hold.release();
            seen
        };
        let (answer, seen) = tokio::join!(self.world.cancel(&op, self.mode), ended);
        assert_eq!(answer.status, 409, "{:#}", answer.body);
        assert_eq!(seen["isCancelPending"], false, "{seen:#}");
        assert_eq!(self.counts(&id).await, [0, 0, 1]);
        if self.operation == "instantiate" {
            let forceful = json!({"terminationType": "FORCEFUL"});
            self.world.complete(&id, "terminate", &forceful).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_cancel_and_the_end_that_race_the_first_in_the_log_counts() {
    let hold = Hold::default();
    let before = hold.clone();
    let conditions = Conditions {
        before: Before {
            log: Some(Box::new(move |log| before.before_log(log))),
            ..Before::default()
        },
        ..Conditions::default()
    };
    let world = World::under(Ground::simple().await, conditions, |_| {}).await;
    let vnfd = world.onboard(&package().config_map("settings")).await;
    for operation in ["modify", "instantiate"] {
        for mode in ["GRACEFUL", "FORCEFUL"] {
            let race = Race {
                world: &world,
                hold: &hold,
                vnfd: vnfd.clone(),
                operation,
                mode,
            };
            race.the_cancel_is_written_first().await;
            race.the_end_is_written_first().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_fails_twice_goes_on_where_it_stopped() {
    let world = World::simple().await;
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    let faults = json!([
        {"at": {"errorPoint": 4}, "action": "fail"},
        {"at": {"undoStep": 2, "edge": "before"}, "action": "fail", "times": 2}
    ]);
    world.faults(&faults).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world.ends(&op, "FAILED_TEMP").await;
    world.place().sim().clear_requests();
    for _ in 0..2 {
        world.steer(&op, "rollback").await.is(202);
        let seen = world.ends(&op, "FAILED_TEMP").await;
        let open = seen["undo"].as_array().expect("a list").iter();
        let open = open.filter(|step| step["state"] != "done").count();
        assert!(open > 0, "{seen:#}");
        assert!(seen["undo"].as_array().map(Vec::len) > Some(3), "{seen:#}");
    }
    world.steer(&op, "rollback").await.is(202);
    let seen = world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(seen["tries"].as_array().map(Vec::len), Some(1), "{seen:#}");
    nothing_left(&world).await;
    // Each object was deleted once.
    let deletes = world.place().sim().requests();
    let mut deletes: Vec<String> = deletes
        .into_iter()
        .filter(|request| request.method == "DELETE" && request.is_effect())
        .map(|request| request.path)
        .collect();
    let count = deletes.len();
    deletes.sort();
    deletes.dedup();
    assert_eq!(deletes.len(), count, "{deletes:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_before_the_grant_leaves_nothing_and_frees_the_instance() {
    let world = World::simple().await;
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    for mode in ["GRACEFUL", "FORCEFUL"] {
        world
            .faults(&json!([{"at": {"state": "STARTING"}, "action": "hold"}]))
            .await;
        let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
        let spent = || async {
            let all = world.get("/cairn/v1/faults").await.is(200);
            if all[0]["times"] == 0 {
                Ok(())
            } else {
                Err(all)
            }
        };
        until(SOON, "the hold to begin", spent).await;
        world.cancel(&op, mode).await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
    }
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
}
