//! What a rollback that is given up leaves, and rollbacks over what an earlier operation had left: nothing of it is
//! forgotten, so that it can be removed.

use super::{FORCEFUL, colour, failed_instantiate, roll_back, says};
use crate::change_vnfpkg::broken;
use crate::clusters::on_both_clusters;
use crate::operations::{instantiate, nothing_left};
use cairn_tests::client::SOON;
use cairn_tests::package::package;
use cairn_tests::world::World;
use serde_json::{Value, json};

const FINALIZER: &str = "example.com/hold";

/// What the instance is told to have left, sorted.
async fn leftovers(world: &World, id: &str) -> Vec<String> {
    let instance = world.instance(id).await;
    let listed = instance["leftovers"].as_array().cloned();
    let listed = listed.unwrap_or_default();
    let mut names: Vec<String> = listed
        .iter()
        .map(|name| name.as_str().expect("a text").to_owned())
        .collect();
    names.sort();
    names
}

async fn delete(world: &World, id: &str) -> cairn_tests::answer::Answer {
    world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
}

/// DELETE is refused and names the object.
async fn cannot_be_deleted(world: &World, id: &str, object: &str) {
    let refused = delete(world, id).await;
    assert_eq!(refused.status, 409, "{:#}", refused.body);
    assert!(refused.detail().contains(object), "{}", refused.detail());
}

/// Nothing is left in the cluster or on record.
async fn all_is_gone(world: &World, id: &str) {
    nothing_left(world).await;
    assert_eq!(leftovers(world, id).await, Vec::<String>::new());
    delete(world, id).await.is(204);
}

/// A finalizer holds what a rollback has asked to delete; the rollback is given up. The object is on record until a
/// terminate has seen it gone: one asked for afterwards, or one that meets the finalizer itself.
async fn held_and_given_up(world: World) {
    let clocks = "{progressing: 90s, blocked: 1s, infrastructure: 1s, unclassified: 1s}";
    let kube = &world.place().kube;
    let path = world.place().path("v1", "configmaps", "held");
    let free = json!({"metadata": {"finalizers": null}});
    let forceful = json!({"terminationType": FORCEFUL});
    for freed_before in [true, false] {
        let wanted = package()
            .clocks(clocks)
            .config_map("held")
            .deployment("web", 1);
        let (id, op) = failed_instantiate(&world, &wanted, 4).await;
        let hold = json!({"metadata": {"finalizers": [FINALIZER]}});
        kube.merge(&path, &hold).await.is(200);
        let halted = roll_back(&world, &op, "FAILED_TEMP").await;
        says(&halted, &["ConfigMap/held", FINALIZER]);
        let there = world.place().read(&path).await.expect("it is held");
        assert!(
            there["metadata"]["deletionTimestamp"].is_string(),
            "it was asked to go: {there:#}"
        );
        world.steer(&op, "fail").await.is(200);
        world.ends(&op, "FAILED").await;
        let left = leftovers(&world, &id).await;
        assert!(left.contains(&"ConfigMap/held".to_owned()), "{left:?}");
        cannot_be_deleted(&world, &id, "ConfigMap/held").await;

        if freed_before {
            kube.merge(&path, &free).await.is(200);
            kube.gone(&path, SOON).await;
            world.complete(&id, "terminate", &forceful).await;
        } else {
            let op = world.begin(&id, "terminate", &forceful).await;
            let halted = world.ends(&op, "FAILED_TEMP").await;
            says(&halted, &["ConfigMap/held", FINALIZER]);
            kube.merge(&path, &free).await.is(200);
            world.steer(&op, "retry").await.is(202);
            world.ends(&op, "COMPLETED").await;
        }
        all_is_gone(&world, &id).await;
    }
}

/// An instantiate that gives leftovers another form fails as the first did, and is rolled back: they are as they were,
/// which was never ready, and still known.
async fn over_broken_leftovers(world: World) {
    for how in ["adopt", "replace"] {
        let wanted = package()
            .config_map("settings")
            .deployment("web", 1)
            .last(broken);
        let vnfd = world.onboard(&wanted).await;
        let id = world.create(&vnfd).await;
        let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
        let halted = world.ends(&op, "FAILED_TEMP").await;
        says(&halted, &["ImagePull"]);
        world.steer(&op, "fail").await.is(200);
        let both = ["ConfigMap/settings", "Deployment/web"];
        assert_eq!(leftovers(&world, &id).await, both, "{how}");
        let before = uids(&world).await;

        let mut again = instantiate(&world);
        again["additionalParams"]["cairn.leftovers"] = json!(how);
        let op = world.begin(&id, "instantiate", &again).await;
        let halted = world.ends(&op, "FAILED_TEMP").await;
        says(&halted, &["ImagePull"]);
        let between = uids(&world).await;
        let undone = roll_back(&world, &op, "ROLLED_BACK").await;
        assert_eq!(undone["tries"].as_array().map(Vec::len), Some(1));
        let after = uids(&world).await;
        for ((before, between), after) in before.iter().zip(&between).zip(&after) {
            let same = how == "adopt";
            assert_eq!(before == between, same, "{how}");
            assert_eq!(between == after, same, "{how}");
        }
        assert_eq!(colour(&world, "settings").await, "blue");
        assert_eq!(leftovers(&world, &id).await, both, "{how}");
        let instance = world.instance(&id).await;
        assert_eq!(instance["instantiationState"], "NOT_INSTANTIATED");
        assert_eq!(instance["provisioning"]["state"], "DEPLOYFAIL", "{how}");
        cannot_be_deleted(&world, &id, "Deployment/web").await;

        let forceful = json!({"terminationType": FORCEFUL});
        world.complete(&id, "terminate", &forceful).await;
        all_is_gone(&world, &id).await;
    }
}

/// The UIDs of the two objects of the VNF.
async fn uids(world: &World) -> Vec<Value> {
    let mut found = Vec::new();
    for (version, plural, name) in [
        ("v1", "configmaps", "settings"),
        ("apps/v1", "deployments", "web"),
    ] {
        let path = world.place().path(version, plural, name);
        let object = world.place().kube.get(&path).await.is(200);
        found.push(object["metadata"]["uid"].clone());
    }
    found
}

on_both_clusters! {
    held_and_given_up: what_a_finalizer_holds_is_not_forgotten_by_a_rollback_that_is_given_up,
        what_a_finalizer_holds_is_not_forgotten_by_a_rollback_that_is_given_up_on_the_real_cluster;
    over_broken_leftovers: a_rollback_over_leftovers_that_were_never_ready_ends_with_them,
        a_rollback_over_leftovers_that_were_never_ready_ends_with_them_on_the_real_cluster;
}
