//! Seed case B: the rollback of an instantiate removes what it made and nothing else, for every kind; the rollback
//! of a scale sets the number back that was read before.

use crate::clusters::on_both_clusters;
use cairn_tests::kinds::{
    DEFINITION, KINDS, Kind as ObjectKind, pod_spec, reviews, widget, widget_version,
};
use cairn_tests::package::package;
use cairn_tests::world::World;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;

/// Kinds that are tried side by side.
const TOGETHER: usize = 6;

fn instantiate(world: &World) -> Value {
    crate::operations::instantiate(world)
}

/// A package with this manifest alone; its namespace is the request's to say.
fn only(mut manifest: Value) -> cairn_tests::package::PackageBuilder {
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    package().manifest(manifest)
}

fn name_of(kind: &ObjectKind) -> String {
    format!(
        "{}-{}",
        kind.kind.to_lowercase(),
        kind.api_version.replace(['/', '.'], "-")
    )
}

async fn made_and_rolled_back(world: &World, kind: &ObjectKind, id: &str) {
    let (place, name) = (world.place(), name_of(kind));
    let path = kind.path(place, &name);
    let op = world.begin(id, "instantiate", &instantiate(world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"]
            .to_string()
            .contains("error point 4"),
        "{halted:#}"
    );
    let made = place
        .read(&path)
        .await
        .unwrap_or_else(|| panic!("{path} was made"));
    assert_eq!(
        made["metadata"]["labels"]["cairn.dev/vnf-instance-id"],
        json!(id)
    );
    world.steer(&op, "rollback").await.is(202);
    let undone = world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(undone["residue"], json!([]), "{undone:#}");
    assert_eq!(place.read(&path).await, None, "nothing is left");
}

async fn there_before_and_left_alone(world: &World, kind: &ObjectKind, id: &str) {
    let (place, name) = (world.place(), name_of(kind));
    let path = kind.path(place, &name);
    let theirs = place
        .kube
        .post(&kind.list(place), &kind.manifest(place, &name))
        .await;
    assert_eq!(theirs.status, 201, "{:#}", theirs.body);
    let op = world.begin(id, "instantiate", &instantiate(world)).await;
    if kind.kind == "Namespace" {
        // A namespace may be there for many to share: it is used, never taken over, and left.
        world.ends(&op, "COMPLETED").await;
        world
            .complete(id, "terminate", &json!({"terminationType": "FORCEFUL"}))
            .await;
    } else {
        let halted = world.ends(&op, "FAILED_TEMP").await;
        let detail = halted["error"]["detail"].as_str().expect("a detail");
        assert!(
            detail.contains(&kind.name(place, &name)),
            "the conflict names it: {detail}"
        );
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
    }
    let left = place.read(&path).await.expect("it is still there");
    assert_eq!(left["metadata"]["uid"], theirs.body["metadata"]["uid"]);
    assert_eq!(
        left["metadata"]["labels"].get("cairn.dev/vnf-instance-id"),
        None
    );
    assert_eq!(left["metadata"].get("deletionTimestamp"), None);
    place
        .kube
        .delete(&path, &json!({"propagationPolicy": "Background"}))
        .await
        .ok();
}

/// Makes an instance per kind and sets a fault for each.
async fn every_kind(world: World) {
    let world = &world;
    let mut subjects = Vec::new();
    for kind in KINDS {
        let manifest = kind.manifest(world.place(), &name_of(kind));
        if !kind.namespaced {
            world
                .place()
                .remove_at_end(kind.path(world.place(), &name_of(kind)));
        }
        let vnfd = world.onboard(&only(manifest)).await;
        subjects.push((kind, world.create(&vnfd).await));
    }
    let fault = |id: &String| {
        json!({"vnfInstanceId": id, "operation": "INSTANTIATE", "at": {"errorPoint": 4}, "action": "fail",
            "times": 1})
    };
    let faults: Vec<Value> = subjects.iter().map(|(_, id)| fault(id)).collect();
    world.faults(&Value::from(faults)).await;
    let failed: Vec<String> = futures::stream::iter(&subjects)
        .map(|(kind, id)| async move {
            let both = async {
                made_and_rolled_back(world, kind, id).await;
                there_before_and_left_alone(world, kind, id).await;
            };
            let ended = AssertUnwindSafe(both).catch_unwind().await;
            ended
                .is_err()
                .then(|| format!("{} {}", kind.api_version, kind.kind))
        })
        .buffer_unordered(TOGETHER)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    assert!(failed.is_empty(), "{failed:?}");
}

async fn create_only(world: World) {
    let place = world.place();
    let mut builder = package().config_map("settings");
    let all = reviews(place);
    for (index, (_, _, _, mut manifest)) in all.clone().into_iter().enumerate() {
        manifest["metadata"]["name"] = json!(format!("review-{index}"));
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        builder = builder.manifest(manifest);
    }
    let nodes = place.kube.get("/api/v1/nodes").await.is(200);
    let node = nodes["items"]
        .as_array()
        .expect("nodes")
        .iter()
        .find(|n| n["spec"]["unschedulable"] != true);
    let mut spec = pod_spec();
    spec["schedulerName"] = json!("nobody");
    builder = builder
        .manifest(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bound"}, "spec": spec}))
        .manifest(json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node.expect("a node")["metadata"]["name"]}}));
    let vnfd = world.onboard(&builder).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"at": {"errorPoint": 5}, "action": "fail", "times": 1}]))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let plan = halted["plan"].as_array().expect("a plan");
    let posted: Vec<_> = plan
        .iter()
        .filter(|step| {
            step["object"]
                .as_str()
                .is_some_and(|o| o.contains("Review/") || o.starts_with("Binding/"))
        })
        .collect();
    assert_eq!(posted.len(), all.len() + 1, "{plan:#?}");
    for step in posted {
        assert_eq!(step["state"], "done", "{step:#}");
        assert_ne!(step["undo"]["how"], "delete", "{step:#}");
    }
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(place.read(&place.path("v1", "pods", "bound")).await, None);
    if let Some(sim) = &place.sim {
        let posts = sim.requests().into_iter().filter(|r| {
            r.method == "POST"
                && !r.dry_run
                && (r.path.ends_with("reviews") || r.path.ends_with("bindings"))
        });
        // Cairn's own access reviews go to the same path; the package's went once each.
        let locals = posts
            .filter(|r| r.path.ends_with("localsubjectaccessreviews"))
            .count();
        assert_eq!(locals, 1);
    }
}

async fn definition_is_kept(world: World) {
    let place = world.place();
    let definition = DEFINITION.path(place, "");
    place.remove_at_end(&definition);
    let mut custom = widget(place, "w");
    custom["metadata"]
        .as_object_mut()
        .expect("metadata")
        .remove("namespace");
    let builder = package()
        .manifest(DEFINITION.manifest(place, ""))
        .manifest(custom);
    let vnfd = world.onboard(&builder).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"at": {"errorPoint": 4}, "action": "fail", "times": 1}]))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world.ends(&op, "FAILED_TEMP").await;
    let path = place.path(&widget_version(place), "widgets", "w");
    assert!(place.read(&path).await.is_some());
    world.steer(&op, "rollback").await.is(202);
    let undone = world.ends(&op, "ROLLED_BACK").await;
    let name = DEFINITION.name(place, "");
    assert!(undone["residue"].to_string().contains(&name), "{undone:#}");
    assert_eq!(place.read(&path).await, None);
    assert!(
        place.read(&definition).await.is_some(),
        "a definition is never removed"
    );
}

async fn replicas_restored(world: World) {
    let kinds = [
        ("Deployment", "deployments"),
        ("ReplicaSet", "replicasets"),
        ("StatefulSet", "statefulsets"),
    ];
    for (kind, plural) in kinds {
        let name = kind.to_lowercase();
        let vnfd = world.onboard(&package().workload(kind, &name, 1)).await;
        let id = world.create(&vnfd).await;
        world.faults(&json!([])).await;
        world
            .complete(&id, "instantiate", &instantiate(&world))
            .await;
        world
            .faults(&json!([{"operation": "SCALE", "at": {"errorPoint": 4}, "action": "fail"}]))
            .await;
        let out =
            json!({"type": "SCALE_OUT", "aspectId": format!("{name}_aspect"), "numberOfSteps": 2});
        let op = world.begin(&id, "scale", &out).await;
        world.ends(&op, "FAILED_TEMP").await;
        assert_eq!(
            crate::operations::replicas(&world, plural, &name).await,
            3,
            "{kind}"
        );
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
        assert_eq!(
            crate::operations::replicas(&world, plural, &name).await,
            1,
            "{kind}"
        );
        let history = world.history(&id).await;
        let restored: Vec<_> = history
            .iter()
            .filter(|e| e["type"] == "ReplicasRestored")
            .collect();
        assert_eq!(restored.len(), 1, "{kind}");
        let data = &restored[0]["data"];
        assert_eq!(
            (&data["from"], &data["to"]),
            (&json!(3), &json!(1)),
            "{data:#}"
        );
        assert_eq!(
            crate::operations::vnfcs(&world.instance(&id).await).len(),
            1,
            "{kind}"
        );
    }
}

async fn nothing_scaled_nothing_restored(world: World) {
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    world
        .faults(&json!([{"operation": "SCALE", "at": {"errorPoint": 3}, "action": "fail"}]))
        .await;
    let op = world
        .begin(
            &id,
            "scale",
            &json!({"type": "SCALE_OUT", "aspectId": "web_aspect"}),
        )
        .await;
    world.ends(&op, "FAILED_TEMP").await;
    // Somebody else scales meanwhile: that is theirs, and stays.
    let scale = format!(
        "{}/scale",
        world.place().path("apps/v1", "deployments", "web")
    );
    world
        .place()
        .kube
        .merge(&scale, &json!({"spec": {"replicas": 4}}))
        .await
        .is(200);
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(
        crate::operations::replicas(&world, "deployments", "web").await,
        4
    );
    assert!(
        world
            .history(&id)
            .await
            .iter()
            .all(|event| event["type"] != "ReplicasRestored")
    );
}

on_both_clusters! {
    every_kind: every_kind_is_made_and_rolled_back_or_left_alone,
        every_kind_is_made_and_rolled_back_or_left_alone_on_the_real_cluster;
    create_only: what_can_only_be_created_is_posted_once_and_has_no_undo,
        what_can_only_be_created_is_posted_once_and_has_no_undo_on_the_real_cluster;
    definition_is_kept: a_definition_is_kept_and_reported,
        a_definition_is_kept_and_reported_on_the_real_cluster;
    replicas_restored: the_rollback_of_a_scale_restores_the_number_before,
        the_rollback_of_a_scale_restores_the_number_before_on_the_real_cluster;
    nothing_scaled_nothing_restored: a_scale_that_changed_nothing_restores_nothing,
        a_scale_that_changed_nothing_restores_nothing_on_the_real_cluster;
}
