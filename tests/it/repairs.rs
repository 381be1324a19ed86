//! Seed case C, the stories: a failed instance accepts what repairs it, and comes to what its history says.

use crate::clusters::{on_both_clusters, real};
use crate::operations::{instantiate, level, nothing_left, replicas, vnfcs};
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::world::World;
use serde_json::{Value, json};

fn forceful() -> Value {
    json!({"terminationType": "FORCEFUL"})
}

fn probe() -> PackageBuilder {
    package().config_map("settings").deployment("web", 1)
}

async fn failed(world: &World, id: &str, operation: &str, body: &Value, point: u8) -> String {
    let fault =
        json!([{"vnfInstanceId": id, "at": {"errorPoint": point}, "action": "fail", "times": 1}]);
    world.faults(&fault).await;
    let op = world.begin(id, operation, body).await;
    world.ends(&op, "FAILED_TEMP").await;
    op
}

async fn given_up(world: &World, id: &str, operation: &str, body: &Value, point: u8) -> String {
    let op = failed(world, id, operation, body, point).await;
    world.steer(&op, "fail").await.is(200);
    world.ends(&op, "FAILED").await;
    op
}

async fn provisioning(world: &World, id: &str) -> Value {
    world.instance(id).await["provisioning"]["state"].clone()
}

async fn uid(world: &World, version: &str, plural: &str, name: &str) -> Value {
    let path = world.place().path(version, plural, name);
    world.place().kube.get(&path).await.is(200)["metadata"]["uid"].clone()
}

async fn leftovers(world: World) {
    for how in ["adopt", "replace"] {
        let vnfd = world.onboard(&probe()).await;
        let id = world.create(&vnfd).await;
        given_up(&world, &id, "instantiate", &instantiate(&world), 4).await;
        let instance = world.instance(&id).await;
        assert_eq!(instance["provisioning"]["state"], "DEPLOYFAIL");
        assert_eq!(instance["instantiationState"], "NOT_INSTANTIATED");
        let mut listed = instance["leftovers"].as_array().expect("a list").clone();
        listed.sort_by_key(ToString::to_string);
        assert_eq!(
            Value::from(listed),
            json!(["ConfigMap/settings", "Deployment/web"])
        );
        let before = uid(&world, "v1", "configmaps", "settings").await;
        let mut again = instantiate(&world);
        again["additionalParams"]["cairn.leftovers"] = json!(how);
        world.complete(&id, "instantiate", &again).await;
        let after = uid(&world, "v1", "configmaps", "settings").await;
        assert_eq!(before == after, how == "adopt", "{how}");
        let instance = world.instance(&id).await;
        assert_eq!(instance["provisioning"]["state"], "ACTIVE");
        assert_eq!(vnfcs(&instance).len(), 1);
        assert!(instance["leftovers"].as_array().is_none_or(Vec::is_empty));
        world.complete(&id, "terminate", &forceful()).await;
        nothing_left(&world).await;
    }
}

async fn failed_scale_healed(world: World) {
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect", "numberOfSteps": 2});
    given_up(&world, &id, "scale", &out, 4).await;
    assert_eq!(provisioning(&world, &id).await, "UPDATEFAIL");
    assert_eq!(
        level(&world.instance(&id).await, "web_aspect"),
        0,
        "the level is only that of COMPLETED"
    );
    assert_eq!(replicas(&world, "deployments", "web").await, 3);
    world.complete(&id, "heal", &json!({})).await;
    assert_eq!(
        replicas(&world, "deployments", "web").await,
        1,
        "what the history says"
    );
    let instance = world.instance(&id).await;
    assert_eq!(instance["provisioning"]["state"], "ACTIVE");
    assert_eq!(vnfcs(&instance).len(), 1);
}

/// Field case 8: a half-done terminate goes on with what is still there.
async fn failed_terminate(world: World) {
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let op = failed(&world, &id, "terminate", &forceful(), 4).await;
    assert_eq!(provisioning(&world, &id).await, "DELETEFAIL");
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    assert_eq!(provisioning(&world, &id).await, "AVAILABLE");
    nothing_left(&world).await;

    // Given up: healed back to life, and terminated after all.
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    given_up(&world, &id, "terminate", &forceful(), 4).await;
    assert_eq!(provisioning(&world, &id).await, "DELETEFAIL");
    world.complete(&id, "heal", &json!({})).await;
    let instance = world.instance(&id).await;
    assert_eq!(instance["provisioning"]["state"], "ACTIVE");
    assert_eq!(vnfcs(&instance).len(), 1);
    given_up(&world, &id, "terminate", &forceful(), 4).await;
    world.complete(&id, "terminate", &forceful()).await;
    nothing_left(&world).await;
    world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
        .is(204);
}

/// Field cases 9 and 72: a first instantiate that failed has every way out, and so has one that did nothing.
async fn every_way_out(world: World) {
    let vnfd = world.onboard(&probe()).await;
    for way in ["retry", "rollback", "fail", "nothing done"] {
        let id = world.create(&vnfd).await;
        let point = if way == "nothing done" { 2 } else { 4 };
        let op = failed(&world, &id, "instantiate", &instantiate(&world), point).await;
        match way {
            "retry" => {
                world.steer(&op, "retry").await.is(202);
                world.ends(&op, "COMPLETED").await;
            }
            "rollback" => {
                world.steer(&op, "rollback").await.is(202);
                world.ends(&op, "ROLLED_BACK").await;
                assert_eq!(provisioning(&world, &id).await, "AVAILABLE");
                nothing_left(&world).await;
                world
                    .complete(&id, "instantiate", &instantiate(&world))
                    .await;
            }
            _ => {
                world.steer(&op, "fail").await.is(200);
            }
        }
        world.complete(&id, "terminate", &forceful()).await;
        nothing_left(&world).await;
        world
            .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
            .await
            .is(204);
    }
}

/// Field case 61: of two instances of one package in one namespace the second is refused, and the first untouched.
async fn two_of_one_name(world: World) {
    let vnfd = world.onboard(&probe()).await;
    let first = world.create(&vnfd).await;
    world
        .complete(&first, "instantiate", &instantiate(&world))
        .await;
    let before = uid(&world, "apps/v1", "deployments", "web").await;
    let second = world.create(&vnfd).await;
    let op = world
        .begin(&second, "instantiate", &instantiate(&world))
        .await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("ConfigMap/settings") && detail.contains(&first),
        "{detail}"
    );
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(uid(&world, "apps/v1", "deployments", "web").await, before);
    assert_eq!(provisioning(&world, &first).await, "ACTIVE");
    world.complete(&first, "terminate", &forceful()).await;
}

/// Field case 13: every try keeps its cause, and the last one is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_try_keeps_its_cause_and_a_retry_begins_anew() {
    let world = World::simple().await;
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    let op = failed(&world, &id, "instantiate", &instantiate(&world), 3).await;
    for point in [4, 5] {
        let fault = json!([{"vnfInstanceId": id, "at": {"errorPoint": point}, "action": "fail", "times": 1}]);
        world.faults(&fault).await;
        world.steer(&op, "retry").await.is(202);
        world.ends(&op, "FAILED_TEMP").await;
    }
    let seen = world.op(&op).await;
    let tries = seen["tries"].as_array().expect("tries");
    assert_eq!(tries.len(), 3);
    for (one, point) in tries.iter().zip([3, 4, 5]) {
        let cause = one["cause"]["detail"].as_str().expect("a cause");
        assert!(cause.contains(&format!("error point {point}")), "{cause}");
        assert!(
            one["startedAt"].is_string() && one["endedAt"].is_string(),
            "{one:#}"
        );
    }
    let shown = seen["error"]["detail"].as_str().expect("an error");
    assert!(
        shown.contains("error point 5") && shown.contains("error point 3"),
        "{shown}"
    );
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
}

on_both_clusters! {
    leftovers: leftovers_are_listed_and_adopted_or_replaced,
        leftovers_are_listed_and_adopted_or_replaced_on_the_real_cluster;
    failed_scale_healed: a_heal_after_a_failed_scale_brings_back_what_the_history_says,
        a_heal_after_a_failed_scale_brings_back_what_the_history_says_on_the_real_cluster;
    failed_terminate: a_failed_terminate_is_retried_healed_or_asked_for_again,
        a_failed_terminate_is_retried_healed_or_asked_for_again_on_the_real_cluster;
    every_way_out: a_first_instantiate_that_failed_has_every_way_out,
        a_first_instantiate_that_failed_has_every_way_out_on_the_real_cluster;
    two_of_one_name: of_two_instances_of_one_name_the_second_is_refused,
        of_two_instances_of_one_name_the_second_is_refused_on_the_real_cluster;
}

/// Field case 10: the log was restored from a backup, and the cluster knows more than it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_restored_log_does_not_know_is_named_and_left_alone() {
    let world = World::simple().await;
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    let left = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings",
        "labels": {"cairn.dev/vnf-instance-id": id},
        "annotations": {"cairn.dev/operation-id": "of-after-the-backup"}}, "data": {"colour": "red"}});
    let (kube, maps) = (&world.place().kube, world.place().list("v1", "configmaps"));
    kube.post(&maps, &left).await.is(201);
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("ConfigMap/settings"), "{detail}");
    let path = format!("{maps}/settings");
    assert_eq!(
        kube.get(&path).await.is(200)["data"]["colour"],
        "red",
        "left alone"
    );
    // It is found by its label, and once it is gone the operation goes on.
    let ours = format!("{maps}?labelSelector=cairn.dev%2Fvnf-instance-id%3D{id}");
    assert_eq!(
        kube.get(&ours).await.is(200)["items"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    kube.delete(&path, &json!({})).await.ok();
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
}

/// Field case 42.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_that_stands_still_is_named_by_its_numbers() {
    let world = World::simple().await;
    let clocks = "{progressing: 2s, blocked: 1s, infrastructure: 1s, unclassified: 1s}";
    let vnfd = world
        .onboard(&package().clocks(clocks).deployment("web", 2))
        .await;
    let id = world.create(&vnfd).await;
    world.place().sim().freeze_controllers(true);
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("Deployment/web"), "{detail}");
    world.place().sim().freeze_controllers(false);
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
}

/// Field case 34, where the cluster counts more than pods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_above_the_quota_is_named_with_its_numbers_on_the_real_cluster() {
    let Some(world) = real().await else { return };
    let (kube, place) = (&world.place().kube, world.place());
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "little-room"},
        "spec": {"hard": {"requests.storage": "1Gi"}}});
    kube.post(&place.list("v1", "resourcequotas"), &quota)
        .await
        .is(201);
    let path = place.path("v1", "resourcequotas", "little-room");
    let soon = cairn_tests::client::SOON;
    kube.until(&path, soon, "to count", |q| q["status"]["used"].is_object())
        .await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
            "resources": {"requests": {"storage": "2Gi"}}}});
    let vnfd = world
        .onboard(&package().config_map("a").manifest(claim))
        .await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    for word in ["little-room", "requests.storage", "2Gi"] {
        assert!(detail.contains(word), "{word}: {detail}");
    }
    kube.merge(
        &path,
        &json!({"spec": {"hard": {"requests.storage": "4Gi"}}}),
    )
    .await
    .is(200);
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    world.complete(&id, "terminate", &forceful()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_a_terminate_kept_is_not_made_anew_by_the_next_instantiate() {
    let world = World::simple().await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
            "resources": {"requests": {"storage": "1Mi"}}}});
    let one = package().manifest(claim).config_map("settings");
    let two = one
        .next_version()
        .changed("PersistentVolumeClaim", "data", |data| {
            data["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        });
    let (vnfd, next) = (world.onboard(&one).await, world.onboard(&two).await);
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    world.complete(&id, "terminate", &forceful()).await;
    let before = uid(&world, "v1", "persistentvolumeclaims", "data").await;
    world
        .complete(&id, "modify", &json!({"vnfdId": next}))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("PersistentVolumeClaim/data") && detail.contains("never made anew"),
        "{detail}"
    );
    assert_eq!(halted["plan"], json!([]), "{halted:#}");
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    let after = uid(&world, "v1", "persistentvolumeclaims", "data").await;
    assert_eq!(after, before);
}
