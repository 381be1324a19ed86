//! A process that dies with operations in every transitional state: whoever comes next goes on with all of them,
//! and one whose record cannot be read keeps none of the others waiting. How long it takes is the benchmark
//! `takeover`'s to tell.

use cairn_tests::client::SOON;
use cairn_tests::package::package;
use cairn_tests::place::Place;
use cairn_tests::until::until;
use cairn_tests::world::{Ground, Kind, World, execute};
use serde_json::{Value, json};

/// Operations in each state.
const EACH: usize = 4;

/// In which state an operation is held, and how it ends once it goes on.
const HELD: [(&str, &str); 3] = [
    ("STARTING", "COMPLETED"),
    ("PROCESSING", "COMPLETED"),
    ("ROLLING_BACK", "ROLLED_BACK"),
];

/// The faults that hold the operation of an instance in a state.
fn holding(state: &str, instance: &str) -> Vec<Value> {
    let fault =
        |at: Value, action: &str| json!({"vnfInstanceId": instance, "at": at, "action": action});
    match state {
        "STARTING" => vec![fault(json!({"state": "STARTING"}), "hold")],
        "PROCESSING" => vec![fault(json!({"errorPoint": 4}), "hold")],
        _ => vec![
            fault(json!({"errorPoint": 4}), "fail"),
            fault(json!({"undoStep": 0, "edge": "before"}), "hold"),
        ],
    }
}

/// Begins an instantiate in a namespace of its own.
async fn begun(world: &World, instance: &str, namespace: &str) -> String {
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let sim = world.place().sim();
    sim.create("test", made).expect("a namespace");
    let body = json!({"flavourId": "default", "additionalParams": {"namespace": namespace}});
    world.begin(instance, "instantiate", &body).await
}

/// Operations that are held in their states, each with how it ends.
async fn held(world: &World) -> Vec<(String, &'static str)> {
    let vnfd = world.onboard(&package().config_map("settings")).await;
    let (mut instances, mut faults) = (Vec::new(), Vec::new());
    for (state, ends) in HELD {
        for _ in 0..EACH {
            let id = world.create(&vnfd).await;
            faults.extend(holding(state, &id));
            instances.push((id, state, ends));
        }
    }
    world.faults(&json!(faults)).await;
    let mut ops = Vec::new();
    for (n, (id, state, ends)) in instances.iter().enumerate() {
        let op = begun(world, id, &format!("n-{n}")).await;
        if *state == "ROLLING_BACK" {
            world.ends(&op, "FAILED_TEMP").await;
            world.steer(&op, "rollback").await.is(202);
        }
        let is_held = |seen: &Value| {
            seen["operationState"] == *state && (*state != "PROCESSING" || seen["point"] == 4)
        };
        world.op_until(&op, "to be held", is_held).await;
        ops.push((op, *ends));
    }
    ops
}

async fn all_go_on(kind: Kind) {
    let Some(ground) = Ground::new(kind, Place::simulated().await).await else {
        return;
    };
    let first = World::on(ground).await;
    let mut ops = held(&first).await;
    let ground = first.kill();
    let (broken, _) = ops.remove(EACH);
    let database = ground.database.open().await;
    let nonsense = "UPDATE events SET payload = '{\"nonsense\": true}' \
                    WHERE aggregate_id = $1 AND sequence = 2";
    execute(&database, nonsense, &broken).await;
    let state = "DELETE FROM states WHERE aggregate_id = $1";
    execute(&database, state, &broken).await;
    let second = World::on(ground.clone()).await;
    for (op, ends) in &ops {
        second.ends(op, ends).await;
    }
    until(SOON, "the broken one to be set aside", || async {
        let sql = "SELECT quarantined FROM work WHERE op_id = $1 AND quarantined IS NOT NULL";
        let row = database.fetch_optional(sql, vec![broken.as_str().into()]);
        match row.await {
            Ok(Some(row)) => row.text(0).map_err(|error| error.to_string()),
            Ok(None) => Err("it is not".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    database.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_in_every_transitional_state_go_on_on_sqlite() {
    all_go_on(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_in_every_transitional_state_go_on_on_postgresql() {
    all_go_on(Kind::Postgres).await;
}
