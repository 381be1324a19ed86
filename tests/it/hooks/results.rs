//! What a hook leaves as its result.

use super::{halts, leaves, outcome, step_of, web};
use crate::operations::instantiate;
use cairn_tests::world::World;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_result_is_told_and_what_is_one_is_in_the_history_without_secrets() {
    let world = World::simple().await;
    for (left, inputs, why) in [
        ("done", "{}", "is no JSON"),
        ("[1]", "{}", "must be a JSON object"),
        (
            "",
            "{result: termination-message}",
            "no termination message",
        ),
        (
            r#"{"registerVim": {"vimId": "x", "accessFrom": {"secret": "s"}}}"#,
            "{}",
            "does not declare register_vim",
        ),
    ] {
        let package = web().hook("instantiate_start", leaves(left), inputs);
        let (_, op, halted) = halts(&world, &package).await;
        let said = halted["error"]["detail"].as_str().expect("a detail");
        assert!(said.contains(why), "{left}: {said}");
        assert_eq!(halted["error"]["status"], 422);
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
    }
    let well = r#"{"nodes": 3, "join_token": "planted"}"#;
    let package = web().hook("instantiate_start", leaves(well), "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let done = world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let op = done["id"].as_str().expect("an id");
    let told = outcome(&world, &id, op, step_of(&done, "run-hook")).await;
    assert_eq!(told["result"], json!({"nodes": 3}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_a_hook_promises_is_waited_for_and_reaches_no_event() {
    let world = World::simple().await;
    let package = web().hook("instantiate_start", leaves(""), "{result: {secret: made}}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world
        .op_until(&op, "to wait for the Secret", |seen| {
            let waits = seen["waits"].as_array().expect("waits");
            waits.iter().any(|wait| wait["object"] == "Secret/made")
        })
        .await;
    let place = world.place();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"},
        "stringData": {"password": "planted"}});
    place
        .kube
        .post(&place.list("v1", "secrets"), &secret)
        .await
        .is(201);
    world.ends(&op, "COMPLETED").await;
    assert!(
        !json!(world.history(&id).await)
            .to_string()
            .contains("planted")
    );
}
