//! Who follows `affectedVnfcs` has the VNFCs that a GET of the instance shows, also where Kubernetes replaced pods
//! behind everybody's back.

use crate::clusters::on_both_clusters;
use crate::operations::{instantiate, vnfcs};
use cairn_tests::client::SOON;
use cairn_tests::package::package;
use cairn_tests::until::until;
use cairn_tests::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The VNFCs as an NFVO has them: from what the occurrences told it.
#[derive(Default)]
struct Follower(BTreeSet<String>);

impl Follower {
    /// Takes over what an occurrence tells; nothing that it has is added, nothing else removed. Answers how many
    /// were added and removed.
    fn hear(&mut self, op: &Value) -> (usize, usize) {
        let told = op["resourceChanges"]["affectedVnfcs"].as_array().cloned();
        let (mut added, mut removed) = (0, 0);
        for change in told.unwrap_or_default() {
            let id = change["computeResource"]["resourceId"].as_str();
            let id = id.expect("a pod").to_owned();
            match change["changeType"].as_str() {
                Some("ADDED") => {
                    assert!(self.0.insert(id.clone()), "{id} was known: {op:#}");
                    added += 1;
                }
                Some("REMOVED") => {
                    assert!(self.0.remove(&id), "{id} was not known: {op:#}");
                    removed += 1;
                }
                _ => panic!("{change:#}"),
            }
        }
        (added, removed)
    }

    /// It has what a GET of the instance shows, and that is what there is.
    async fn has_the_record(&self, world: &World, id: &str) {
        let shown = vnfcs(&world.instance(id).await);
        let shown: BTreeSet<String> = shown.iter().map(pod_of).collect();
        assert_eq!(self.0, shown);
        assert_eq!(self.0, living(world).await);
    }
}

fn pod_of(vnfc: &Value) -> String {
    let pod = vnfc["computeResource"]["resourceId"].as_str();
    pod.expect("a pod").to_owned()
}

/// The pods of the namespace that are not being deleted.
async fn living(world: &World) -> BTreeSet<String> {
    let place = world.place();
    let pods = place.kube.get(&place.list("v1", "pods")).await.is(200);
    let pods = pods["items"].as_array().expect("a list").iter();
    let living = pods.filter(|pod| pod["metadata"].get("deletionTimestamp").is_none());
    let names = living.filter_map(|pod| pod["metadata"]["name"].as_str());
    names.map(str::to_owned).collect()
}

/// Deletes a pod that the record names by hand, and awaits that Kubernetes has made another.
async fn replace_one(world: &World, id: &str) {
    let before = living(world).await;
    let known = pod_of(&vnfcs(&world.instance(id).await)[0]);
    let path = world.place().path("v1", "pods", &known);
    let now = json!({"gracePeriodSeconds": 0});
    world.place().kube.delete(&path, &now).await.ok();
    until(SOON, "another pod", || async {
        let pods = living(world).await;
        let replaced = !pods.contains(&known) && pods.len() == before.len();
        if replaced { Ok(()) } else { Err(pods) }
    })
    .await;
}

/// An operation that fails when all its effects are made, and is rolled back.
async fn rolled_back(world: &World, id: &str, operation: &str, body: &Value) -> Value {
    let fault =
        json!([{"vnfInstanceId": id, "at": {"errorPoint": 5}, "action": "fail", "times": 1}]);
    world.faults(&fault).await;
    let op = world.begin(id, operation, body).await;
    world.ends(&op, "FAILED_TEMP").await;
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await
}

async fn replaced_behind_its_back(world: World) {
    let vnfd = world.onboard(&package().deployment("web", 2)).await;
    let id = world.create(&vnfd).await;
    let mut follower = Follower::default();
    let body = instantiate(&world);
    let done = world.complete(&id, "instantiate", &body).await;
    assert_eq!(follower.hear(&done), (2, 0));
    follower.has_the_record(&world, &id).await;

    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    replace_one(&world, &id).await;
    let done = world.complete(&id, "scale", &out).await;
    assert_eq!(follower.hear(&done), (2, 1), "{done:#}");
    follower.has_the_record(&world, &id).await;

    // A heal of one VNFC tells that one, and the one that was replaced before.
    replace_one(&world, &id).await;
    let there = living(&world).await;
    let known = vnfcs(&world.instance(&id).await);
    let one = known.iter().find(|vnfc| there.contains(&pod_of(vnfc)));
    let one = one.expect("a VNFC that is there")["id"].clone();
    let body = json!({"vnfcInstanceId": [one]});
    let done = world.complete(&id, "heal", &body).await;
    assert_eq!(follower.hear(&done), (2, 2), "{done:#}");
    follower.has_the_record(&world, &id).await;

    replace_one(&world, &id).await;
    let done = world.complete(&id, "heal", &json!({})).await;
    assert_eq!(follower.hear(&done), (3, 3), "{done:#}");
    follower.has_the_record(&world, &id).await;

    // A rollback tells the pods that there are after it.
    replace_one(&world, &id).await;
    let undone = rolled_back(&world, &id, "scale", &out).await;
    let (added, removed) = follower.hear(&undone);
    assert!(added == removed && added >= 1, "{undone:#}");
    follower.has_the_record(&world, &id).await;

    replace_one(&world, &id).await;
    let body = json!({"terminationType": "FORCEFUL"});
    let done = world.complete(&id, "terminate", &body).await;
    assert_eq!(follower.hear(&done), (0, 3), "{done:#}");
    assert_eq!(follower.0, BTreeSet::new());
}

on_both_clusters! {
    replaced_behind_its_back: pods_that_were_deleted_by_hand_are_told_by_the_next_operation,
        pods_that_were_deleted_by_hand_are_told_by_the_next_operation_on_the_real_cluster;
}
