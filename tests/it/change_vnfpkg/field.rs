//! What went wrong for others when they upgraded, each under the number that it has among the field cases.

use super::sampled::Sampler;
use super::{Changing, broken, compared, first, image, second};
use crate::clusters::real;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::list_path;
use cairn_tests::world::World;
use serde_json::{Value, json};

/// Runs a case on both clusters.
macro_rules! on_both {
    ($($case:ident: $simulated:ident, $real:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $simulated() {
                $case(World::simple().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $real() {
                let Some(world) = real().await else {
                    return;
                };
                $case(world).await;
            }
        )+
    };
}

on_both! {
    headless: case_17_a_cluster_ip_comes_back_by_making_the_service_anew, case_17_on_the_real_cluster;
    claims: case_18_a_claim_that_was_not_changed_is_not_written, case_18_on_the_real_cluster;
    second_rollback: case_20_a_second_rollback_restores_what_went_since, case_20_on_the_real_cluster;
    definitions: case_24_a_definition_stays_with_the_resources_of_others, case_24_on_the_real_cluster;
    no_ready_pod: case_36_no_ready_pod_is_not_completed, case_36_on_the_real_cluster;
    scaled: case_53_a_scaled_workload_keeps_its_number, case_53_on_the_real_cluster;
    fields: case_58_fields_that_the_new_version_has_no_more_go, case_58_on_the_real_cluster;
    namespaces: case_66_a_namespace_that_the_new_version_names_no_more_stays, case_66_on_the_real_cluster;
}

async fn headless(world: World) {
    let one = first();
    let two = second(&one)
        .changed("Deployment", "web", broken)
        .changed("Service", "web", |web| {
            web["spec"]["clusterIP"] = json!("None");
        });
    let changing = Changing::begin(world, &one, &two).await;
    let picture = changing.picture().await;
    let uid = |service: &Value| service["metadata"]["uid"].clone();
    let before = changing.object("v1", "services", "web").await;
    let op = changing.ask().await;
    let halted = changing.world.ends(&op, "FAILED_TEMP").await;
    let plan = halted["plan"].as_array().expect("a plan");
    let steps: Vec<&Value> = plan
        .iter()
        .filter(|step| step["object"] == "Service/web")
        .collect();
    let told: Vec<_> = steps
        .iter()
        .map(|s| (s["kind"].as_str(), s["undo"]["how"].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some("delete"), Some("recreate")),
            (Some("apply"), Some("delete"))
        ],
        "{halted:#}"
    );
    let why = steps[0]["because"].as_str().unwrap_or_default();
    assert!(why.contains("clusterIP"), "{halted:#}");
    let now = changing.object("v1", "services", "web").await;
    assert_eq!(now["spec"]["clusterIP"], "None");
    changing.world.steer(&op, "rollback").await.is(202);
    changing.world.ends(&op, "ROLLED_BACK").await;
    let after = changing.object("v1", "services", "web").await;
    assert_eq!(compared(&after), compared(&before));
    assert_ne!(uid(&after), uid(&before), "it is another one");
    assert_eq!(changing.picture().await, picture);
}

fn claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
            "resources": {"requests": {"storage": "1Mi"}}}})
}

async fn claims(world: World) {
    let one = first().manifest(claim("data"));
    let two = second(&one).changed("Deployment", "web", broken);
    let changing = Changing::begin(world, &one, &two).await;
    let place = changing.world.place();
    let path = place.path("v1", "persistentvolumeclaims", "data");
    // As the volume controller does when it binds one.
    let volume = format!("pv-{}", place.suffix);
    let bound = json!({"spec": {"volumeName": volume}});
    place.kube.merge(&path, &bound).await.is(200);
    let before = changing
        .object("v1", "persistentvolumeclaims", "data")
        .await;
    let written = |claim: &Value| {
        let by_us = claim["metadata"]["managedFields"]
            .as_array()
            .expect("a list");
        let ours = |entry: &&Value| {
            let manager = entry["manager"].as_str().unwrap_or_default();
            manager.starts_with("cairn-")
        };
        by_us.iter().filter(ours).cloned().collect::<Vec<_>>()
    };
    changing.fails_and_is_rolled_back().await;
    let after = changing
        .object("v1", "persistentvolumeclaims", "data")
        .await;
    assert_eq!(written(&after), written(&before), "nothing was sent for it");
    assert_eq!(
        after["metadata"]["annotations"],
        before["metadata"]["annotations"]
    );
    assert_eq!(after["spec"]["volumeName"], json!(volume));
}

async fn second_rollback(world: World) {
    let one = first();
    let two = second(&one).changed("Deployment", "web", broken);
    let changing = Changing::begin(world, &one, &two).await;
    let picture = changing.picture().await;
    let op = changing.ask().await;
    changing.world.ends(&op, "FAILED_TEMP").await;
    // The first undo step puts the configuration back; the one after it breaks.
    let fault = json!([{"operation": "CHANGE_VNFPKG", "at": {"undoStep": 2, "edge": "before"},
        "action": "fail", "times": 1}]);
    changing.world.faults(&fault).await;
    changing.world.steer(&op, "rollback").await.is(202);
    let halted = changing.world.ends(&op, "FAILED_TEMP").await;
    let undo = halted["undo"].as_array().expect("an undo list");
    let done: Vec<&Value> = undo.iter().filter(|u| u["state"] == "done").collect();
    assert!(
        done.iter().any(|u| u["object"] == "ConfigMap/settings"),
        "{halted:#}"
    );
    let settings = changing.world.place().path("v1", "configmaps", "settings");
    let deleted = changing
        .world
        .place()
        .kube
        .delete(&settings, &json!({}))
        .await;
    deleted.is(200);
    changing.world.steer(&op, "rollback").await.is(202);
    changing.world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(changing.picture().await, picture);
}

fn definition(group: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn widget(group: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name},
        "spec": {"size": 1}})
}

async fn definitions(world: World) {
    let group = format!("t{}.example.org", world.place().suffix);
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    world.place().remove_at_end(&crd);
    let one = first();
    let two = second(&one)
        .manifest(definition(&group))
        .manifest(widget(&group, "ours"))
        .changed("Deployment", "web", broken);
    let changing = Changing::begin(world, &one, &two).await;
    let place = changing.world.place();
    let op = changing.ask().await;
    changing.world.ends(&op, "FAILED_TEMP").await;
    let version = format!("{group}/v1");
    assert!(changing.exists(&version, "widgets", "ours").await);
    let list = list_path(&version, "widgets", Some(&place.namespace));
    place
        .kube
        .post(&list, &widget(&group, "theirs"))
        .await
        .is(201);
    changing.world.steer(&op, "rollback").await.is(202);
    let undone = changing.world.ends(&op, "ROLLED_BACK").await;
    assert!(!changing.exists(&version, "widgets", "ours").await);
    assert!(changing.exists(&version, "widgets", "theirs").await);
    assert!(place.read(&crd).await.is_some());
    let residue = undone["residue"].as_array().expect("a list");
    let named = format!("CustomResourceDefinition/widgets.{group}");
    assert!(
        residue
            .iter()
            .any(|r| r.as_str().is_some_and(|r| r.starts_with(&named))),
        "{undone:#}"
    );
}

async fn no_ready_pod(world: World) {
    let one = package().deployment("web", 1).last(|web| {
        web["spec"]["strategy"] = json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0}});
    });
    let two = one.next_version().changed("Deployment", "web", broken);
    let changing = Changing::begin(world, &one, &two).await;
    changing.fails_and_is_rolled_back().await;
    let web = changing.object("apps/v1", "deployments", "web").await;
    assert_eq!(web["status"]["readyReplicas"], 1, "{web:#}");
}

/// Its number is 5 by SCALE while the manifests say 2; it never is anything else, whatever is done.
async fn scaled(world: World) {
    let one = package().deployment("web", 2);
    let two = one
        .next_version()
        .changed("Deployment", "web", |web| image(web, "cairn.test/web:2"));
    let three = two.next_version().changed("Deployment", "web", broken);
    let changing = Changing::begin(world, &one, &two).await;
    let (world, id) = (&changing.world, &changing.id);
    let to = json!({"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 3}]});
    world.complete(id, "scale_to_level", &to).await;
    let sampler = Sampler::of(world, "deployments", "web");
    world.complete(id, "scale_to_level", &to).await;
    changing.complete().await;
    world.complete(id, "heal", &json!({})).await;
    let vnfd = world.onboard(&three).await;
    let body = json!({"vnfdId": vnfd});
    let op = world.begin(id, "change_vnfpkg", &body).await;
    world.ends(&op, "FAILED_TEMP").await;
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(sampler.end().await, [5]);
}

async fn fields(world: World) {
    let env = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| json!({"name": name, "value": "1"}))
            .collect()
    };
    let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53}]);
    let with = |package: PackageBuilder, names: &[&str], ports: &Value| {
        package
            .changed("Deployment", "web", |web| {
                web["spec"]["template"]["spec"]["containers"][0]["env"] = env(names);
            })
            .changed("Service", "web", |web| web["spec"]["ports"] = ports.clone())
    };
    let base = package().service("web").deployment("web", 1);
    let one = with(base.clone(), &["A", "B"], &ports);
    let two = with(base.next_version(), &["A"], &json!([ports[1]]));
    let changing = Changing::begin(world, &one, &two).await;
    let before = changing.object("v1", "services", "web").await;
    assert_eq!(before["spec"]["ports"].as_array().expect("ports").len(), 2);
    changing.complete().await;
    let web = changing.object("apps/v1", "deployments", "web").await;
    let left = &web["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(left, &env(&["A"]), "{web:#}");
    let service = changing.object("v1", "services", "web").await;
    let ports: Vec<&Value> = service["spec"]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .map(|port| &port["protocol"])
        .collect();
    assert_eq!(ports, ["TCP"], "{service:#}");
}

async fn namespaces(world: World) {
    let name = format!("own-{}", world.place().suffix);
    let path = format!("/api/v1/namespaces/{name}");
    world.place().remove_at_end(&path);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let inside = |config: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": config, "namespace": name}, "data": {"a": "1"}})
    };
    let one = package()
        .manifest(namespace)
        .manifest(inside("kept"))
        .manifest(inside("gone"));
    let two = one
        .next_version()
        .without("Namespace", &name)
        .without("ConfigMap", "gone");
    let changing = Changing::begin(world, &one, &two).await;
    let kube = &changing.world.place().kube;
    let list = list_path("v1", "configmaps", Some(&name));
    kube.post(&list, &inside("foreign")).await.is(201);
    let done = changing.complete().await;
    let residue = done["residue"].as_array().expect("a list");
    let named = format!("Namespace/{name}: ");
    assert!(
        residue
            .iter()
            .any(|r| r.as_str().is_some_and(|r| r.starts_with(&named))),
        "{done:#}"
    );
    let seen = kube.get(&path).await.is(200);
    assert!(seen["metadata"].get("deletionTimestamp").is_none());
    for (config, status) in [("foreign", 200), ("kept", 200), ("gone", 404)] {
        assert_eq!(
            kube.get(&format!("{list}/{config}")).await.status,
            status,
            "{config}"
        );
    }
}
