//! Several replicas on one PostgreSQL: whoever lives goes on with what the dead left, and nobody writes late.

use crate::operations::instantiate;
use cairn_tests::child::Served;
use cairn_tests::client::SOON;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::Place;
use cairn_tests::until::until;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lease lasts 10 s, a sweep comes each second; the rest is for a busy machine.
const TAKEOVER: Duration = Duration::from_secs(25);

async fn ground() -> Option<Arc<Ground>> {
    Ground::new(Kind::Postgres, Place::simulated().await).await
}

fn small() -> PackageBuilder {
    package().config_map("settings").deployment("web", 1)
}

/// Holds an instantiate where its first wave is written.
async fn held(world: &World) -> (String, String) {
    let vnfd = world.onboard(&small()).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"at": {"errorPoint": 4}, "action": "hold"}]))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    world
        .op_until(&op, "to be held", |seen| seen["point"] == 4)
        .await;
    (id, op)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_replica_left_is_gone_on_with_when_its_lease_lapses() {
    let Some(ground) = ground().await else { return };
    let first = World::on(ground.clone()).await;
    let (id, op) = held(&first).await;
    let second = World::on(ground.clone()).await;
    assert_eq!(second.op(&op).await["operationState"], "PROCESSING");
    let ground_again = first.kill();
    let began = Instant::now();
    second.ends(&op, "COMPLETED").await;
    assert!(began.elapsed() < TAKEOVER, "{:?}", began.elapsed());
    assert_eq!(
        second.instance(&id).await["provisioning"]["state"],
        "ACTIVE"
    );
    let made = ground_again
        .place
        .sim()
        .requests()
        .into_iter()
        .filter(|r| r.status == 201 && !r.dry_run);
    let made = made
        .filter(|r| r.path.ends_with("/deployments/web"))
        .count();
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_asked_to_end_hands_over_at_once() {
    let Some(ground) = ground().await else { return };
    let first = World::on(ground.clone()).await;
    let (_, op) = held(&first).await;
    let second = World::on(ground.clone()).await;
    first.end().await;
    let began = Instant::now();
    second.ends(&op, "COMPLETED").await;
    // Well before a lease could have lapsed.
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_operations_of_a_dead_replica_are_all_claimed() {
    let Some(ground) = ground().await else { return };
    let first = World::on(ground.clone()).await;
    let vnfd = first.onboard(&package().config_map("settings")).await;
    first
        .faults(&json!([{"at": {"errorPoint": 3}, "action": "hold", "times": 1000}]))
        .await;
    let mut ops = Vec::new();
    for index in 0..30 {
        let namespace = format!("n-{index}");
        let made =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        ground
            .place
            .sim()
            .create("test", made)
            .expect("a namespace");
        let id = first.create(&vnfd).await;
        let body = json!({"flavourId": "default", "additionalParams": {"namespace": namespace}});
        ops.push(first.begin(&id, "instantiate", &body).await);
    }
    for op in &ops {
        first
            .op_until(op, "to be held", |seen| seen["point"] == 3)
            .await;
    }
    let ground = first.kill();
    let second = World::on(ground).await;
    for op in &ops {
        second.ends(op, "COMPLETED").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_answer_the_same_bytes_at_once() {
    let Some(ground) = ground().await else { return };
    let (first, second) = (
        World::on(ground.clone()).await,
        World::on(ground.clone()).await,
    );
    let vnfd = first.onboard(&small()).await;
    let id = first.create(&vnfd).await;
    // What one has answered, the other shows without delay.
    assert_eq!(second.instance(&id).await, first.instance(&id).await);
    let op = second.begin(&id, "instantiate", &instantiate(&first)).await;
    first.op(&op).await;
    first.ends(&op, "COMPLETED").await;
    for path in ["vnf_instances", "vnf_lcm_op_occs"] {
        let path = format!("/vnflcm/v2/{path}");
        assert_eq!(
            first.get(&path).await.is(200),
            second.get(&path).await.is(200)
        );
    }
    // Faults are for one process alone.
    first.put("/cairn/v1/faults", &json!([])).await.is(409);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_slept_past_its_lease_writes_nothing_more() {
    let Some(ground) = ground().await else { return };
    let sleeper = Served::start(&ground, &["--enable-faults"]).await;
    let vnfd = sleeper.client.onboard(&small()).await;
    let id = sleeper.client.create(&vnfd).await;
    sleeper
        .client
        .faults(&json!([{"at": {"errorPoint": 3}, "action": "hold"}]))
        .await;
    let body =
        json!({"flavourId": "default", "additionalParams": {"namespace": ground.place.namespace}});
    let op = sleeper.client.begin(&id, "instantiate", &body).await;
    sleeper
        .client
        .op_until(&op, "to be held", |seen| seen["point"] == 3)
        .await;
    sleeper.signal("STOP").await;

    let other = World::on(ground.clone()).await;
    other.ends(&op, "COMPLETED").await;
    let (events, requests) = (other.history(&id).await, effects(&ground));
    sleeper.signal("CONT").await;
    // It is awake: it answers, and has had time for the heartbeat that tells it.
    until(SOON, "the sleeper to answer", || async {
        let answer = sleeper.client.try_send(get("/healthz")).await;
        answer
            .filter(|a| a.status == 200)
            .map(|_| ())
            .ok_or("no answer")
    })
    .await;
    sleeper.client.delete("/cairn/v1/faults").await;
    let seen = sleeper.client.op(&op).await;
    assert_eq!(seen["operationState"], "COMPLETED");
    // The sleeper's own way out of the operation is an append that its fence refuses.
    sleeper.signal("TERM").await;
    let mut sleeper = sleeper;
    assert!(sleeper.ended(Duration::from_secs(10)).await);
    assert_eq!(other.history(&id).await, events);
    assert_eq!(effects(&ground), requests);
}

fn get(path: &str) -> cairn_tests::client::Sent {
    cairn_tests::client::Sent::json(axum::http::Method::GET, path, None)
}

/// How many requests changed the cluster so far.
fn effects(ground: &Ground) -> usize {
    ground
        .place
        .sim()
        .requests()
        .iter()
        .filter(|r| r.is_effect())
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_cannot_be_read_is_quarantined_and_stops_nothing() {
    let ground = Ground::simple().await;
    let world = World::on(ground.clone()).await;
    let (_, op) = held(&world).await;
    let ground = world.kill();
    corrupt(&ground, &op).await;
    let world = World::on(ground).await;
    let vnfd = world.onboard(&package().config_map("other")).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let broken: Value = world
        .get(&format!("/cairn/v1/vnf_lcm_op_occs/{op}"))
        .await
        .body;
    assert_ne!(broken["operationState"], "COMPLETED", "{broken:#}");
}

/// Makes the last event of an operation unreadable, and its state row with it.
async fn corrupt(ground: &Ground, op: &str) {
    let database = ground.database.open().await;
    let sql = "UPDATE events SET payload = '{\"nonsense\": true}' WHERE aggregate_id = $1 AND sequence = \
               (SELECT MAX(sequence) FROM events WHERE aggregate_id = $1)";
    cairn_tests::world::execute(&database, sql, op).await;
    cairn_tests::world::execute(&database, "DELETE FROM states WHERE aggregate_id = $1", op).await;
    database.close().await;
}
