//! The clock of the machine is set back or forward by an hour in mid-operation.

use super::{ends, is_made_once, is_told_once, on_postgres, waiting};
use crate::operations::instantiate;
use crate::seed_d::claim;
use cairn::edge::SystemClock;
use cairn_domain::ports::Clock;
use cairn_domain::time::Timestamp;
use cairn_tests::client::SOON;
use cairn_tests::package::package;
use cairn_tests::receiver::Receiver;
use cairn_tests::until::until;
use cairn_tests::world::{Conditions, Ground, World};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const HOUR_MS: i64 = 60 * 60 * 1000;

/// The time of this machine and a little more, or less.
#[derive(Clone, Default)]
struct Jumping(Arc<AtomicI64>);

impl Jumping {
    fn jump(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }
}

/// Jumps while an operation is held at each of some points; another replica looks on.
async fn jumps(by: i64) {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let clock = Jumping::default();
    let conditions = Conditions {
        clock: Arc::new(clock.clone()),
        ..Conditions::default()
    };
    let world = World::under(ground.clone(), conditions, |_| {}).await;
    let receiver = Receiver::start().await;
    let subscription = json!({"callbackUri": receiver.uri()});
    world
        .post("/vnflcm/v2/subscriptions", &subscription)
        .await
        .is(201);
    // The first notification has to be sent again, after a pause that this clock measured.
    receiver.answer_next(&[503]);
    let (id, op) = waiting(&world).await;
    let owner = world.op(&op).await["owner"].clone();
    let other = World::on(ground.clone()).await;
    clock.jump(by);
    // The other replica has swept when it has carried out something of its own.
    let vnfd = other.onboard(&package().config_map("other")).await;
    let its = other.create(&vnfd).await;
    other
        .complete(&its, "instantiate", &instantiate(&other))
        .await;
    let seen = world.op(&op).await;
    if seen["operationState"] == "PROCESSING" {
        assert_eq!(seen["owner"], owner, "the lease is not touched");
    }
    ends(&world, &op, "COMPLETED").await;
    let history = world.history(&id).await;
    is_told_once(&history);
    is_made_once(&ground);
    let mine = |told: &Value| told["vnfInstanceId"] == id;
    let states = until(SOON, "the notifications of the operation", || async {
        let told: Vec<Value> = receiver.accepted().into_iter().filter(mine).collect();
        let last = told.last().map(|one| one["operationState"].clone());
        if last == Some(json!("COMPLETED")) {
            Ok(told)
        } else {
            Err(told)
        }
    })
    .await;
    let states: Vec<&str> = states
        .iter()
        .filter_map(|one| one["operationState"].as_str())
        .collect();
    assert_eq!(states, ["STARTING", "PROCESSING", "COMPLETED"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_forward_moves_no_lease() {
    jumps(HOUR_MS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_back_moves_no_lease_and_holds_up_no_notification() {
    jumps(-HOUR_MS).await;
}

/// Jumps while an instantiate waits for a claim that nothing binds, with a clock of 3 s; what came of it.
async fn jumps_in_a_wait(by: i64) -> (World, Jumping, String) {
    let clock = Jumping::default();
    let conditions = Conditions {
        clock: Arc::new(clock.clone()),
        ..Conditions::default()
    };
    let world = World::under(Ground::simple().await, conditions, |_| {}).await;
    let stuck = package()
        .clocks("{infrastructure: 3s}")
        .manifest(claim("data", None, "500Gi"));
    let vnfd = world.onboard(&stuck).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world
        .op_until(&op, "to wait", |seen| {
            seen["waits"][0]["reason"] == "Unbound"
        })
        .await;
    clock.jump(by);
    (world, clock, op)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_back_makes_no_wait_endless() {
    let (world, _clock, op) = jumps_in_a_wait(-HOUR_MS).await;
    let halted = ends(&world, &op, "FAILED_TEMP").await;
    assert!(halted["error"]["detail"].to_string().contains("data"));
    world.steer(&op, "rollback").await.is(202);
    ends(&world, &op, "ROLLED_BACK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_forward_ends_a_wait_and_a_retry_waits_anew() {
    let (world, clock, op) = jumps_in_a_wait(HOUR_MS).await;
    ends(&world, &op, "FAILED_TEMP").await;
    // It is put right again, and the history of that hour is not in the way.
    clock.jump(-HOUR_MS);
    world.steer(&op, "retry").await.is(202);
    let waiting = world
        .op_until(&op, "to wait again", |seen| {
            seen["waits"][0]["reason"] == "Unbound"
        })
        .await;
    assert_eq!(waiting["operationState"], "PROCESSING");
    ends(&world, &op, "FAILED_TEMP").await;
    world.steer(&op, "rollback").await.is(202);
    ends(&world, &op, "ROLLED_BACK").await;
}
