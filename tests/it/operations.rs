//! Every operation to its end, with what the API and the cluster then show.

use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};

/// A small network function with something of each sort.
pub fn probe() -> PackageBuilder {
    package()
        .config_map("settings")
        .secret("credentials", "planted")
        .service("web")
        .deployment("web", 1)
        .workload("StatefulSet", "db", 1)
}

/// Instantiates into the namespace of the test.
pub fn instantiate(world: &World) -> Value {
    json!({"flavourId": "default", "additionalParams": {"namespace": world.place().namespace}})
}

async fn story(world: World) {
    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    assert_eq!(
        world.instance(&id).await["provisioning"],
        json!({"state": "AVAILABLE", "target": null})
    );

    let done = world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let instance = world.instance(&id).await;
    assert_eq!(instance["instantiationState"], "INSTANTIATED");
    assert_eq!(
        instance["provisioning"],
        json!({"state": "ACTIVE", "target": null})
    );
    assert_eq!(vnfcs(&instance).len(), 2);
    let changed = &done["resourceChanges"]["affectedVnfcs"];
    assert_eq!(changed.as_array().expect("a list").len(), 2, "{done:#}");

    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect", "numberOfSteps": 2});
    world.complete(&id, "scale", &out).await;
    assert_eq!(level(&world.instance(&id).await, "web_aspect"), 2);
    assert_eq!(replicas(&world, "deployments", "web").await, 3);
    let into = json!({"type": "SCALE_IN", "aspectId": "web_aspect"});
    world.complete(&id, "scale", &into).await;
    assert_eq!(replicas(&world, "deployments", "web").await, 2);
    let to = json!({"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 0},
        {"aspectId": "db_aspect", "scaleLevel": 1}]});
    world.complete(&id, "scale_to_level", &to).await;
    assert_eq!(replicas(&world, "deployments", "web").await, 1);
    assert_eq!(replicas(&world, "statefulsets", "db").await, 2);
    assert_eq!(vnfcs(&world.instance(&id).await).len(), 3);

    heal(&world, &id).await;
    let patch = json!({"vnfInstanceName": "renamed", "metadata": {"site": "a"}});
    world.complete(&id, "modify", &patch).await;
    let instance = world.instance(&id).await;
    assert_eq!(
        (&instance["vnfInstanceName"], &instance["metadata"]["site"]),
        (&json!("renamed"), &json!("a"))
    );

    let gently = json!({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1});
    world.complete(&id, "terminate", &gently).await;
    let instance = world.instance(&id).await;
    assert_eq!(instance["instantiationState"], "NOT_INSTANTIATED");
    assert_eq!(
        instance["provisioning"],
        json!({"state": "AVAILABLE", "target": null})
    );
    nothing_left(&world).await;
    world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
        .is(204);
    world
        .get(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
        .is(404);
    assert!(
        !world.history(&id).await.is_empty(),
        "the history outlives the instance"
    );
    world.end().await;
}

async fn heal(world: &World, id: &str) {
    let before = vnfcs(&world.instance(id).await);
    let healed = before[0]["id"].clone();
    let done = world
        .complete(id, "heal", &json!({"vnfcInstanceId": [healed]}))
        .await;
    let changes = done["resourceChanges"]["affectedVnfcs"]
        .as_array()
        .expect("a list")
        .clone();
    let kinds: Vec<_> = changes
        .iter()
        .map(|c| c["changeType"].as_str().expect("a text"))
        .collect();
    assert_eq!(kinds, ["REMOVED", "ADDED"], "{done:#}");
    let deleted = world.place().path("v1", "configmaps", "settings");
    world.place().kube.delete(&deleted, &json!({})).await.ok();
    world.complete(id, "heal", &json!({})).await;
    assert!(
        world.place().read(&deleted).await.is_some(),
        "a missing object is made again"
    );
    assert_eq!(vnfcs(&world.instance(id).await).len(), before.len());
}

/// The VNFCs of an instance.
pub fn vnfcs(instance: &Value) -> Vec<Value> {
    let info = &instance["instantiatedVnfInfo"]["vnfcResourceInfo"];
    info.as_array().cloned().unwrap_or_default()
}

/// The level of an aspect.
pub fn level(instance: &Value, aspect: &str) -> u64 {
    let status = instance["instantiatedVnfInfo"]["scaleStatus"]
        .as_array()
        .expect("scaleStatus");
    let found = status
        .iter()
        .find(|s| s["aspectId"] == aspect)
        .expect("the aspect");
    found["scaleLevel"].as_u64().expect("a level")
}

/// `spec.replicas` of a workload.
pub async fn replicas(world: &World, plural: &str, name: &str) -> u64 {
    let path = world.place().path("apps/v1", plural, name);
    world.place().kube.get(&path).await.is(200)["spec"]["replicas"]
        .as_u64()
        .expect("a number")
}

/// Nothing of ours is in the namespace.
pub async fn nothing_left(world: &World) {
    let place = world.place();
    let ours = "?labelSelector=cairn.dev%2Fvnf-instance-id";
    for (version, plural) in [
        ("v1", "configmaps"),
        ("v1", "secrets"),
        ("v1", "services"),
        ("v1", "pods"),
        ("apps/v1", "deployments"),
        ("apps/v1", "statefulsets"),
        ("apps/v1", "replicasets"),
    ] {
        let path = format!("{}{ours}", place.list(version, plural));
        let left = place.kube.get(&path).await.is(200);
        assert_eq!(left["items"], json!([]), "{plural}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_completes_on_sqlite_and_the_simulated_cluster() {
    story(World::simple().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_completes_on_postgresql_and_the_simulated_cluster() {
    let place = Place::simulated().await;
    let Some(ground) = Ground::new(Kind::Postgres, place).await else {
        return;
    };
    story(World::on(ground).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_completes_on_the_real_cluster() {
    let Some(world) = crate::clusters::real().await else {
        return;
    };
    story(world).await;
}

/// A package may hold several files for one workload, of which an instantiate names one: what was not deployed
/// neither clashes with what was nor scales it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scale_looks_at_the_files_that_were_deployed_and_no_others() {
    let world = World::simple().await;
    let mut other = Value::Null;
    let alternatives = package()
        .deployment("web", 1)
        .last(|web| other = web.clone())
        .manifest(other)
        .manifest(
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"}, "spec": {"maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        );
    let vnfd = world.onboard(&alternatives).await;
    let id = world.create(&vnfd).await;
    let mut body = instantiate(&world);
    body["additionalParams"]["lcm-kubernetes-def-files"] = json!(["Files/kubernetes/000.yaml"]);
    world.complete(&id, "instantiate", &body).await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    world.complete(&id, "scale", &out).await;
    assert_eq!(replicas(&world, "deployments", "web").await, 2);
}
