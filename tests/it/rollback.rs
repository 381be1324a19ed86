//! Rollback that is known to work: what the plan promises, what is compared after it, and where the next one begins.

mod hindered;
mod leftovers;

use crate::clusters::on_both_clusters;
use crate::operations::{instantiate, nothing_left, replicas};
use cairn_simcluster::{Fault, FaultAction, RequestMatch, When};
use cairn_tests::client::SOON;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::world::World;
use serde_json::{Value, json};

const FORCEFUL: &str = "FORCEFUL";

/// An instance of a package, instantiated.
async fn deployed(world: &World, package: &PackageBuilder) -> String {
    let vnfd = world.onboard(package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(world))
        .await;
    id
}

/// An operation that failed at an error point.
async fn failed(world: &World, id: &str, operation: &str, body: &Value, point: u8) -> String {
    let fault =
        json!([{"vnfInstanceId": id, "at": {"errorPoint": point}, "action": "fail", "times": 1}]);
    world.faults(&fault).await;
    let op = world.begin(id, operation, body).await;
    world.ends(&op, "FAILED_TEMP").await;
    op
}

/// A failed instantiate of a package.
async fn failed_instantiate(
    world: &World,
    package: &PackageBuilder,
    point: u8,
) -> (String, String) {
    let vnfd = world.onboard(package).await;
    let id = world.create(&vnfd).await;
    let op = failed(world, &id, "instantiate", &instantiate(world), point).await;
    (id, op)
}

/// A TERMINATE that failed with all its deletes made.
async fn failed_terminate(world: &World, id: &str) -> String {
    let body = json!({"terminationType": FORCEFUL});
    failed(world, id, "terminate", &body, 4).await
}

async fn roll_back(world: &World, op: &str, state: &str) -> Value {
    world.steer(op, "rollback").await.is(202);
    world.ends(op, state).await
}

/// The steps of the plan that write an object, as `kind: how`.
fn undo_of(op: &Value, object: &str) -> Vec<String> {
    let steps = op["plan"].as_array().expect("a plan").iter();
    steps
        .filter(|step| step["object"] == object && step["kind"] != "take-inventory")
        .map(|step| {
            format!(
                "{}: {}",
                step["kind"].as_str().expect("a kind"),
                step["undo"]["how"].as_str().expect("how")
            )
        })
        .collect()
}

fn says(op: &Value, words: &[&str]) {
    let detail = op["error"]["detail"].as_str().expect("a detail");
    for word in words {
        assert!(detail.contains(word), "{word}: {detail}");
    }
}

async fn colour(world: &World, name: &str) -> Value {
    let path = world.place().path("v1", "configmaps", name);
    world.place().kube.get(&path).await.is(200)["data"]["colour"].clone()
}

async fn plan_and_pre_state(world: World) {
    let kube = &world.place().kube;
    let wanted = package()
        .config_map("drifted")
        .config_map("missing")
        .deployment("web", 1);
    let (id, op) = failed_instantiate(&world, &wanted, 4).await;
    let seen = world.op(&op).await;
    for object in ["ConfigMap/drifted", "ConfigMap/missing", "Deployment/web"] {
        assert_eq!(undo_of(&seen, object), ["apply: delete"], "{seen:#}");
    }
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;

    let drifted = world.place().path("v1", "configmaps", "drifted");
    let missing = world.place().path("v1", "configmaps", "missing");
    kube.merge(&drifted, &json!({"data": {"colour": "green"}}))
        .await
        .is(200);
    kube.delete(&missing, &json!({})).await.ok();
    kube.gone(&missing, SOON).await;
    let op = failed(&world, &id, "heal", &json!({}), 5).await;
    let seen = world.op(&op).await;
    assert_eq!(undo_of(&seen, "ConfigMap/drifted"), ["apply: restore"]);
    assert_eq!(undo_of(&seen, "ConfigMap/missing"), ["apply: delete"]);
    assert_eq!(undo_of(&seen, "Deployment/web"), ["apply: restore"]);
    assert_eq!(
        colour(&world, "drifted").await,
        "blue",
        "the heal set it back"
    );
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(
        colour(&world, "drifted").await,
        "green",
        "as it was before the heal"
    );
    assert_eq!(world.place().read(&missing).await, None);
    assert!(
        world
            .history(&id)
            .await
            .iter()
            .any(|event| event["type"] == "RollbackVerified")
    );

    let op = failed_terminate(&world, &id).await;
    let seen = world.op(&op).await;
    for object in ["ConfigMap/drifted", "Deployment/web"] {
        assert_eq!(undo_of(&seen, object), ["delete: recreate"], "{seen:#}");
    }
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(colour(&world, "drifted").await, "green");
    assert_eq!(replicas(&world, "deployments", "web").await, 1);
}

/// Holds a rollback before the first undo step of this kind, and answers the occurrence as it is held.
async fn held_before(world: &World, op: &str, kind: &str) -> Value {
    let hold =
        |index: u64| json!([{"at": {"undoStep": index, "edge": "before"}, "action": "hold"}]);
    world.faults(&hold(0)).await;
    world.steer(op, "rollback").await.is(202);
    let begun = world
        .op_until(op, "to roll back", |seen| {
            seen["undo"].as_array().is_some_and(|list| !list.is_empty())
        })
        .await;
    let place = begun["undo"]
        .as_array()
        .expect("a list")
        .iter()
        .position(|step| step["kind"] == kind)
        .unwrap_or_else(|| panic!("{begun:#}"));
    world.faults(&hold(place as u64)).await;
    world
        .op_until(op, "to be held there", |seen| {
            seen["undo"].as_array().is_some_and(|list| {
                list[..place].iter().all(|step| step["state"] == "done")
                    && list[place]["state"] == "started"
            })
        })
        .await
}

/// Field case 20: a rollback is done when the cluster is as before, not when all has been applied.
async fn difference_is_a_failure(world: World) {
    let clocks = "{progressing: 3s, blocked: 1s, infrastructure: 1s, unclassified: 1s}";
    let wanted = package()
        .clocks(clocks)
        .config_map("settings")
        .config_map("other");
    let id = deployed(&world, &wanted).await;
    let op = failed_terminate(&world, &id).await;
    held_before(&world, &op, "verify").await;
    let kube = &world.place().kube;
    let settings = world.place().path("v1", "configmaps", "settings");
    kube.merge(&settings, &json!({"data": {"colour": null}}))
        .await
        .is(200);
    world.faults(&json!([])).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    says(&halted, &["ConfigMap/settings", "not as recorded: data"]);
    assert_eq!(
        world.instance(&id).await["provisioning"]["state"],
        "DELETEFAIL"
    );
    // The next rollback puts it right.
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(colour(&world, "settings").await, "blue");
    assert_eq!(world.instance(&id).await["provisioning"]["state"], "ACTIVE");
}

async fn others_changed_and_deleted(world: World) {
    let wanted = package()
        .config_map("changed")
        .config_map("deleted")
        .config_map("replaced")
        .deployment("web", 1);
    let (_, op) = failed_instantiate(&world, &wanted, 4).await;
    let kube = &world.place().kube;
    let path = |name: &str| world.place().path("v1", "configmaps", name);
    kube.merge(
        &path("changed"),
        &json!({"data": {"colour": "red", "theirs": "too"}}),
    )
    .await
    .is(200);
    for name in ["deleted", "replaced"] {
        kube.delete(&path(name), &json!({})).await.ok();
        kube.gone(&path(name), SOON).await;
    }
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "replaced"},
        "data": {"colour": "theirs"}});
    let theirs = kube
        .post(&world.place().list("v1", "configmaps"), &theirs)
        .await
        .is(201);
    roll_back(&world, &op, "ROLLED_BACK").await;
    nothing_left(&world).await;
    for name in ["changed", "deleted"] {
        assert_eq!(world.place().read(&path(name)).await, None, "{name}");
    }
    let left = world
        .place()
        .read(&path("replaced"))
        .await
        .expect("it is theirs");
    assert_eq!(left["metadata"]["uid"], theirs["metadata"]["uid"]);
    assert_eq!(left["data"], theirs["data"]);
}

on_both_clusters! {
    plan_and_pre_state: the_plan_says_how_each_object_is_undone_and_so_it_is,
        the_plan_says_how_each_object_is_undone_and_so_it_is_on_the_real_cluster;
    difference_is_a_failure: a_difference_after_a_rollback_fails_it_by_field_and_the_next_mends_it,
        a_difference_after_a_rollback_fails_it_by_field_and_the_next_mends_it_on_the_real_cluster;
    others_changed_and_deleted: what_others_changed_or_deleted_meanwhile_goes_and_what_they_made_stays,
        what_others_changed_or_deleted_meanwhile_goes_and_what_they_made_stays_on_the_real_cluster;
}

/// Field cases 129 and 133: what is undone stays undone, and the next rollback begins where the last one stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_failed_goes_on_where_it_stopped() {
    let world = World::simple().await;
    let mut wanted = package();
    for name in ["a", "b", "c"] {
        wanted = wanted.config_map(name);
    }
    let (id, op) = failed_instantiate(&world, &wanted, 4).await;
    let gone = RequestMatch::method("DELETE").name("b");
    let refusal = FaultAction::Answer {
        status: 422,
        message: "not now".into(),
        retry_after: None,
        when: When::Before,
    };
    world
        .place()
        .sim()
        .inject(Fault::once(gone, refusal).times(2));
    for _ in 0..2 {
        let halted = roll_back(&world, &op, "FAILED_TEMP").await;
        says(&halted, &["ConfigMap/b", "not now"]);
        let left = |name: &str| {
            world
                .place()
                .sim()
                .get("v1", "ConfigMap", &world.place().namespace, name)
        };
        assert_eq!(left("a"), None, "the others of the wave are undone");
        assert_eq!(left("c"), None);
        assert!(left("b").is_some());
    }
    roll_back(&world, &op, "ROLLED_BACK").await;
    nothing_left(&world).await;
    let deleted = |name: &str| {
        let requests = world.place().sim().requests();
        let path = format!("/configmaps/{name}");
        requests
            .iter()
            .filter(|r| r.method == "DELETE" && r.path.ends_with(&path))
            .count()
    };
    assert_eq!((deleted("a"), deleted("b"), deleted("c")), (1, 3, 1));
    let undone = world.history(&id).await;
    let undone = undone
        .iter()
        .filter(|event| event["type"] == "RollbackStarted");
    assert_eq!(undone.count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_after_a_part_of_the_retry_takes_back_both_tries() {
    let world = World::simple().await;
    let wanted = package()
        .config_map("a")
        .service("web")
        .deployment("web", 1);
    let vnfd = world.onboard(&wanted).await;
    let id = world.create(&vnfd).await;
    let fail =
        |step: u8| json!([{"at": {"step": step, "edge": "after"}, "action": "fail", "times": 1}]);
    world.faults(&fail(0)).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world.ends(&op, "FAILED_TEMP").await;
    // Somebody deletes what the first try made, so that the second makes it again.
    let a = world.place().path("v1", "configmaps", "a");
    world.place().kube.delete(&a, &json!({})).await.ok();
    world.faults(&fail(2)).await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "FAILED_TEMP").await;
    roll_back(&world, &op, "ROLLED_BACK").await;
    nothing_left(&world).await;
    assert_eq!(
        world.instance(&id).await["provisioning"]["state"],
        "AVAILABLE"
    );
}
