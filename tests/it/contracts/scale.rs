//! The scale subresource.

use cairn_tests::kinds::pod_spec;
use cairn_tests::place::Place;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_mins(1);

fn workload(kind: &str, name: &str, replicas: u32) -> Value {
    let mut manifest = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()}}});
    if kind == "StatefulSet" {
        manifest["spec"]["serviceName"] = json!(name);
        manifest["spec"]["podManagementPolicy"] = json!("Parallel");
    }
    manifest
}

pub async fn the_scale_subresource_sets_replicas_and_owns_them(place: Place) {
    let path = place.path("apps/v1", "deployments", "web");
    place
        .kube
        .apply(&path, "ours", false, &workload("Deployment", "web", 1))
        .await
        .is(201);
    let scale = place.kube.get(&format!("{path}/scale")).await.is(200);
    assert_eq!(
        (&scale["apiVersion"], &scale["kind"]),
        (&json!("autoscaling/v1"), &json!("Scale"))
    );
    assert_eq!(scale["spec"]["replicas"], 1);
    assert_eq!(scale["status"]["selector"], "app=web");
    let set = format!("{path}/scale?fieldManager=somebody");
    let scale = place
        .kube
        .merge(&set, &json!({"spec": {"replicas": 2}}))
        .await
        .is(200);
    assert_eq!(scale["spec"]["replicas"], 2);
    let live = place.kube.get(&path).await.is(200);
    assert_eq!(live["spec"]["replicas"], 2);
    let fields = live["metadata"]["managedFields"]
        .as_array()
        .expect("managed fields")
        .clone();
    let owner = |name: &str| {
        fields
            .iter()
            .find(|f| f["manager"] == name)
            .expect("an entry")
            .clone()
    };
    let theirs = owner("somebody");
    assert_eq!(
        (&theirs["operation"], &theirs["subresource"]),
        (&json!("Update"), &json!("scale"))
    );
    assert_eq!(theirs["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(owner("ours")["fieldsV1"]["f:spec"].get("f:replicas"), None);
}

pub async fn a_scale_with_an_old_version_is_409(place: Place) {
    let path = place.path("apps/v1", "deployments", "web");
    place
        .kube
        .apply(&path, "ours", false, &workload("Deployment", "web", 0))
        .await
        .is(201);
    let old = place.kube.get(&format!("{path}/scale")).await.is(200);
    place
        .kube
        .merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 1}}))
        .await
        .is(200);
    let refused = place.kube.put(&format!("{path}/scale"), &old).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (409, "Conflict"),
        "{:#}",
        refused.body
    );
    assert!(
        refused.message().contains("the object has been modified"),
        "{}",
        refused.message()
    );
}

pub async fn each_scalable_workload_follows_its_scale(place: Place) {
    let kinds = [
        ("Deployment", "deployments"),
        ("ReplicaSet", "replicasets"),
        ("StatefulSet", "statefulsets"),
    ];
    for (kind, plural) in kinds {
        let name = kind.to_lowercase();
        let path = place.path("apps/v1", plural, &name);
        place
            .kube
            .apply(&path, "ours", false, &workload(kind, &name, 1))
            .await
            .is(201);
        for replicas in [2, 1] {
            let body = json!({"spec": {"replicas": replicas}});
            place
                .kube
                .merge(&format!("{path}/scale"), &body)
                .await
                .is(200);
            place
                .kube
                .until(&path, SOON, "as many ready pods", |w| {
                    w["status"]["readyReplicas"] == replicas && w["status"]["replicas"] == replicas
                })
                .await;
        }
    }
}
