//! Notifications: one per state entered, in order for each subscription and instance, and none is lost.

use crate::operations::instantiate;
use cairn_tests::package::package;
use cairn_tests::receiver::Receiver;
use cairn_tests::world::{Ground, World};
use serde_json::{Value, json};

async fn subscribe(world: &World, receiver: &Receiver) -> String {
    world
        .post(
            "/vnflcm/v2/subscriptions",
            &json!({"callbackUri": receiver.uri()}),
        )
        .await
        .is(201)["id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

/// What a notification tells, in a word.
fn word(told: &Value) -> String {
    match told["notificationType"].as_str().expect("a type") {
        "VnfLcmOperationOccurrenceNotification" => format!(
            "{} {} {}",
            told["operation"].as_str().expect("an operation"),
            told["operationState"].as_str().expect("a state"),
            told["notificationStatus"].as_str().expect("a status")
        ),
        other => other.to_owned(),
    }
}

/// Creates, fails, retries, terminates, deletes; answers the instance's id.
async fn story(world: &World) -> String {
    let vnfd = world
        .onboard(&package().config_map("settings").deployment("web", 1))
        .await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"operation": "INSTANTIATE", "at": {"errorPoint": 4}, "action": "fail"}]))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    world.ends(&op, "FAILED_TEMP").await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    world
        .complete(&id, "modify", &json!({"vnfInstanceName": "other"}))
        .await;
    world
        .complete(&id, "terminate", &json!({"terminationType": "FORCEFUL"}))
        .await;
    world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
        .is(204);
    id
}

const STORY: [&str; 12] = [
    "VnfIdentifierCreationNotification",
    "INSTANTIATE STARTING START",
    "INSTANTIATE PROCESSING START",
    "INSTANTIATE FAILED_TEMP RESULT",
    "INSTANTIATE PROCESSING START",
    "INSTANTIATE COMPLETED RESULT",
    "MODIFY_INFO PROCESSING START",
    "MODIFY_INFO COMPLETED RESULT",
    "TERMINATE STARTING START",
    "TERMINATE PROCESSING START",
    "TERMINATE COMPLETED RESULT",
    "VnfIdentifierDeletionNotification",
];

fn words(told: &[Value]) -> Vec<String> {
    told.iter().map(word).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_state_entered_is_told_once_and_in_order() {
    let (world, receiver) = (World::simple().await, Receiver::start().await);
    subscribe(&world, &receiver).await;
    let id = story(&world).await;
    let told = receiver.accepted_are(STORY.len()).await;
    assert_eq!(words(&told), STORY);
    let mut ids: Vec<_> = told
        .iter()
        .map(|t| t["id"].as_str().expect("an id").to_owned())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), STORY.len(), "each has an id of its own");
    for one in &told {
        assert_eq!(one["vnfInstanceId"], json!(id));
        let failed = matches!(
            one["operationState"].as_str(),
            Some("FAILED_TEMP" | "FAILED" | "ROLLED_BACK")
        );
        assert_eq!(one.get("error").is_some(), failed, "{one:#}");
        for (name, link) in one["_links"].as_object().expect("links") {
            let href = link["href"].as_str().expect("a link");
            assert!(
                href.starts_with(cairn_tests::world::PUBLIC_URL),
                "{name}: {href}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_accepted_comes_again_before_anything_later() {
    let (world, receiver) = (World::simple().await, Receiver::start().await);
    // A redirect is no acceptance, and an error neither.
    receiver.answer_next(&[302, 500]);
    subscribe(&world, &receiver).await;
    story(&world).await;
    receiver.accepted_are(STORY.len()).await;
    let told = receiver.told();
    assert_eq!(told[0].body["id"], told[1].body["id"]);
    assert_eq!(told[0].body["id"], told[2].body["id"]);
    assert_eq!(words(&receiver.accepted()), STORY);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_survives_a_crash_and_nothing_is_told_twice() {
    let ground = Ground::simple().await;
    let (world, receiver) = (World::on(ground).await, Receiver::start().await);
    receiver.answer_always(Some(503));
    subscribe(&world, &receiver).await;
    story(&world).await;
    let ground = world.kill();
    let before = receiver.told().first().map(|told| told.body["id"].clone());
    receiver.answer_always(None);
    let world = World::on(ground).await;
    let told = receiver.accepted_are(STORY.len()).await;
    assert_eq!(words(&told), STORY);
    if let Some(before) = before {
        assert_eq!(
            told[0]["id"], before,
            "the same notification has the same id after a restart"
        );
    }
    let ground = world.end().await;
    // Another start, and a rebuild, tell nothing again.
    let world = World::on(ground).await;
    let vnfd = world.onboard(&package().config_map("x")).await;
    world.create(&vnfd).await;
    let told = receiver.accepted_are(STORY.len() + 1).await;
    assert_eq!(
        word(&told[STORY.len()]),
        "VnfIdentifierCreationNotification"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_can_be_read_and_sent_again() {
    let (world, receiver) = (World::simple().await, Receiver::start().await);
    let body = json!({"callbackUri": receiver.uri(), "authentication": {"authType": ["BASIC"],
        "paramsBasic": {"userName": "nfvo", "password": "planted-pass"}}});
    let made = world.post("/vnflcm/v2/subscriptions", &body).await.is(201);
    assert!(!made.to_string().contains("planted-pass"));
    let subscription = made["id"].as_str().expect("an id");
    let vnfd = world.onboard(&package().config_map("x")).await;
    world.create(&vnfd).await;
    let told = receiver.accepted_are(1).await;
    let authorization = receiver.told()[0].headers["authorization"]
        .to_str()
        .expect("text")
        .to_owned();
    assert_eq!(authorization, "Basic bmZ2bzpwbGFudGVkLXBhc3M=");
    let path = format!("/cairn/v1/subscriptions/{subscription}/deliveries");
    let delivered =
        cairn_tests::until::until(cairn_tests::client::SOON, "the delivery", || async {
            let list = world.get(&path).await.is(200);
            if list[0]["state"] == "DELIVERED" {
                Ok(list)
            } else {
                Err(list)
            }
        })
        .await;
    assert_eq!(delivered[0]["notificationId"], told[0]["id"]);
    assert_eq!(delivered[0]["lastAnswer"], 204);
    assert!(!delivered.to_string().contains("planted-pass"));
    let again = format!(
        "{path}/{}/resend",
        delivered[0]["id"].as_str().expect("an id")
    );
    world.post(&again, &json!({})).await.is(202);
    let twice = receiver.accepted_are(2).await;
    assert_eq!(twice[0], twice[1], "a copy is the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_does_not_answer_is_422_and_a_second_subscription_303() {
    let (world, receiver) = (World::simple().await, Receiver::start().await);
    let closed = json!({"callbackUri": "http://127.0.0.1:1/"});
    let refused = world.post("/vnflcm/v2/subscriptions", &closed).await;
    assert_eq!(refused.status, 422, "{:#}", refused.body);
    let first = subscribe(&world, &receiver).await;
    let same = world
        .post(
            "/vnflcm/v2/subscriptions",
            &json!({"callbackUri": receiver.uri()}),
        )
        .await;
    assert_eq!((same.status, same.located()), (303, first.clone()));
    let path = format!("/vnflcm/v2/subscriptions/{first}");
    world.delete(&path).await.is(204);
    world.delete(&path).await.is(404);
}
