//! Seed case D: what may still come right is waited on, with a reason that can be read and a clock; what cannot
//! ends at once; and the error names the root, in the cluster's words.

mod clocks;
mod late;
mod real;
mod rows;

pub(crate) use rows::claim;

use crate::operations::instantiate;
use cairn_tests::package::package;
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use rows::{ROWS, Row};
use serde_json::{Value, json};

async fn row(place: Place, row: &Row) {
    let ground = Ground::new(Kind::Sqlite, place)
        .await
        .expect("SQLite is always there");
    let world = World::on(ground).await;
    let place = world.place();
    if let Some(before) = row.before {
        let (version, plural, body) = before();
        let made = place
            .kube
            .post(&place.list(version, plural), &body)
            .await
            .is(201);
        let name = made["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned();
        let path = place.path(version, plural, &name);
        place
            .kube
            .until(&path, cairn_tests::client::SOON, "to count", |q| {
                q["status"]["used"].is_object()
            })
            .await;
    }
    let vnfd = world.onboard(&(row.package)()).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    for word in row.says {
        assert!(detail.contains(word), "{}: {detail}", row.name);
    }
    let named = row.reasons.iter().any(|reason| detail.contains(reason));
    if row.classes == ["permanent"] {
        assert!(named, "{}: {detail}", row.name);
    } else {
        let waits = waits(&world, &id).await;
        let known = waits.iter().any(|wait| {
            row.reasons.iter().any(|r| wait["reason"] == *r)
                && row.classes.iter().any(|c| wait["class"] == *c)
        });
        assert!(known, "{}: {waits:#?}", row.name);
    }
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    crate::operations::nothing_left(&world).await;
}

/// Every wait that the history tells, whatever shape its event has.
async fn waits(world: &World, id: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for event in world.history(id).await {
        if event["type"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("Wait"))
        {
            collect(&event["data"], &mut found);
        }
    }
    found
}

fn collect(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            if members.contains_key("reason") && members.contains_key("class") {
                found.push(value.clone());
            }
            // The class may stand beside the obstacle that has the reason.
            if let (Some(class), Some(obstacle)) = (members.get("class"), members.get("obstacle")) {
                let mut both = obstacle.clone();
                both["class"] = class.clone();
                found.push(both);
            }
            members.values().for_each(|member| collect(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_obstacle_is_waited_on_and_named() {
    let rows = ROWS.iter().filter(|row| !row.only_real);
    futures::future::join_all(rows.map(|one| async move {
        row(Place::simulated().await, one).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_obstacle_is_waited_on_and_named_on_the_real_cluster() {
    futures::future::join_all(ROWS.iter().map(|one| async move {
        let Some(place) = Place::real().await else {
            return;
        };
        row(place, one).await;
    }))
    .await;
}

async fn budget(place: Place) {
    let ground = Ground::new(Kind::Sqlite, place)
        .await
        .expect("SQLite is always there");
    let world = World::on(ground).await;
    let place = world.place();
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let path = place.path("policy/v1", "poddisruptionbudgets", "keep");
    place
        .kube
        .apply(&path, "test", false, &budget)
        .await
        .is(201);
    let counted = |b: &Value| b["status"]["currentHealthy"] == 1;
    place
        .kube
        .until(&path, cairn_tests::client::SOON, "to count", counted)
        .await;
    let op = world.begin(&id, "heal", &json!({})).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"].to_string().contains("keep"),
        "{halted:#}"
    );
    let waits = waits(&world, &id).await;
    assert!(
        waits
            .iter()
            .any(|w| w["reason"] == "DisruptionBudget" && w["class"] == "blocked"),
        "{waits:#?}"
    );
    place.kube.delete(&path, &json!({})).await.ok();
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_blocks_a_heal_until_it_is_gone() {
    budget(Place::simulated().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_blocks_a_heal_until_it_is_gone_on_the_real_cluster() {
    let Some(place) = Place::real().await else {
        return;
    };
    budget(place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_out_of_reach_is_waited_on_and_then_said_so() {
    let world = World::simple().await;
    let vnfd = world.onboard(&package().config_map("x")).await;
    let id = world.create(&vnfd).await;
    let mut body = instantiate(&world);
    body["vimConnectionInfo"] = crate::seed_c::vim(world.place(), "any");
    body["vimConnectionInfo"]["vim1"]["interfaceInfo"]["endpoint"] = json!("https://127.0.0.1:1");
    let op = world.begin(&id, "instantiate", &body).await;
    world.ends(&op, "FAILED_TEMP").await;
    let waits = waits(&world, &id).await;
    assert!(
        waits
            .iter()
            .any(|w| w["reason"] == "Unreachable" && w["class"] == "infrastructure"),
        "{waits:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_permission_is_told_apart_from_a_wrong_token() {
    let world = World::simple().await;
    let vnfd = world.onboard(&package().config_map("x")).await;
    let id = world.create(&vnfd).await;
    world.place().sim().deny("*", "configmaps", "*");
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("configmaps"), "{detail}");
    assert!(!detail.contains("401"), "{detail}");
    crate::operations::nothing_left(&world).await;
}
