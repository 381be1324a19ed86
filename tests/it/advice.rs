//! A halted operation is watched: once what it waited for has come, its record says that a retry would succeed.
//! Nothing else follows of that, neither a change of its state nor a write to the cluster.

use crate::operations::{instantiate, nothing_left};
use cairn_simcluster::{RequestRecord, SimCluster};
use cairn_tests::package::package;
use cairn_tests::world::World;
use serde_json::{Value, json};

/// What tells the simulated cluster that a pod never becomes ready.
const READY_AFTER: &str = "simcluster.cairn.dev/ready-after";

/// How often the history says that a retry is advised.
async fn advised(world: &World, id: &str) -> usize {
    let history = world.history(id).await;
    let of_kind = |event: &&Value| event["type"] == "RetryAdvised";
    history.iter().filter(of_kind).count()
}

/// The writes that were answered with success; reviews of permissions are questions.
fn effects(cluster: &SimCluster) -> Vec<RequestRecord> {
    let mut all = cluster.requests();
    all.retain(|request| request.is_effect() && !request.path.ends_with("reviews"));
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_advised_once_the_cause_is_mended_and_nothing_is_done_before_it() {
    let world = World::simple().await;
    let clocks = "{progressing: 1s, blocked: 1s, infrastructure: 1s, unclassified: 1s}";
    let probe = package()
        .clocks(clocks)
        .pods(json!({READY_AFTER: "never"}))
        .deployment("web", 1);
    let vnfd = world.onboard(&probe).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert_eq!(halted["advice"], Value::Null, "{halted:#}");
    assert_eq!(advised(&world, &id).await, 0);

    let place = world.place();
    place.sim().clear_requests();
    let pods = place.sim().list("v1", "Pod", &place.namespace);
    assert_eq!(pods.len(), 1, "{pods:#?}");
    let name = pods[0]["metadata"]["name"].as_str().expect("a name");
    let mended = json!({"metadata": {"annotations": {READY_AFTER: null}}});
    let at = (place.namespace.as_str(), name);
    place
        .sim()
        .patch("test", ("v1", "Pod"), at, &mended)
        .expect("the pod is mended");

    let seen = world
        .op_until(&op, "to be advised", |seen| seen["advice"].is_string())
        .await;
    let advice = seen["advice"].as_str().expect("an advice");
    assert!(
        advice.contains("Deployment/web") && advice.contains("retry"),
        "{advice}"
    );
    assert_eq!(seen["operationState"], "FAILED_TEMP", "{seen:#}");
    assert_eq!(advised(&world, &id).await, 1);
    assert!(!place.sim().requests().is_empty(), "it was looked at");
    let done = effects(place.sim());
    assert!(done.is_empty(), "an observer writes nothing: {done:#?}");

    world.steer(&op, "retry").await.is(202);
    let completed = world.ends(&op, "COMPLETED").await;
    assert_eq!(completed["advice"], Value::Null, "{completed:#}");
    let instance = world.instance(&id).await;
    assert_eq!(instance["instantiationState"], "INSTANTIATED");
    world
        .complete(&id, "terminate", &json!({"terminationType": "FORCEFUL"}))
        .await;
    nothing_left(&world).await;
}
