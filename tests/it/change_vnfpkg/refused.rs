//! What is refused at once, and what ends before the first write.

use super::{Changing, first, image, second};
use crate::operations::instantiate;
use cairn_tests::client::Sent;
use cairn_tests::package::package;
use cairn_tests::world::World;
use serde_json::{Value, json};

async fn refusal(world: &World, id: &str, body: &Value) -> String {
    let answer = world.ask(id, "change_vnfpkg", body).await;
    let detail = answer.is(422)["detail"].clone();
    detail.as_str().expect("a detail").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_is_refused_with_field_and_what_is_allowed() {
    let one = first();
    let changing = Changing::begin(World::simple().await, &one, &second(&one)).await;
    let (world, id) = (&changing.world, &changing.id);
    let with = |params: Value| json!({"vnfdId": changing.next, "additionalParams": params});
    for (body, says) in [
        (json!({}), "vnfdId"),
        (
            json!({"vnfdId": "none-such"}),
            "no onboarded package has the VNFD none-such",
        ),
        (json!({"vnfdId": one.vnfd_id}), "already"),
        (with(json!({"upgrade_type": "BlueGreen"})), "RollingUpdate"),
        (
            with(json!({"vdu_params": [{"vdu_id": "NONE"}]})),
            "CACHE, DB, WEB",
        ),
        (with(json!({"namespace": "elsewhere"})), "cannot be moved"),
        (
            with(json!({"lcm-kubernetes-def-files": ["Files/none.yaml"]})),
            "Files/none.yaml",
        ),
        (
            with(json!({"lcm-kubernetes-def-files": ["Files/kubernetes/000.yaml"]})),
            "none of the manifests has the workload",
        ),
        (
            with(json!({"helm_chart_path": "a"})),
            "Helm charts are not supported",
        ),
    ] {
        let detail = refusal(world, id, &body).await;
        assert!(detail.contains(says), "{body}: {detail}");
    }
    let occurrences = world.get("/vnflcm/v2/vnf_lcm_op_occs").await.is(200);
    assert_eq!(
        occurrences.as_array().expect("a list").len(),
        1,
        "the instantiate"
    );

    let (package, _) = super::usage(world, &changing.next).await;
    let path = format!("/vnfpkgm/v2/vnf_packages/{package}");
    let disable = json!({"operationalState": "DISABLED"});
    let sent = Sent::json(reqwest::Method::PATCH, &path, Some(&disable));
    world.send(sent).await.is(200);
    let detail = refusal(world, id, &json!({"vnfdId": changing.next})).await;
    assert!(detail.contains("is DISABLED"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_instantiated_is_not_changed() {
    let one = first();
    let world = World::simple().await;
    let vnfd = world.onboard(&one).await;
    let next = world.onboard(&second(&one)).await;
    let id = world.create(&vnfd).await;
    let body = json!({"vnfdId": next});
    world.ask(&id, "change_vnfpkg", &body).await.is(409);
    let none = "/vnflcm/v2/vnf_instances/none-such/change_vnfpkg";
    world.post(none, &body).await.is(404);
}

/// An aspect that is scaled and has no place in the new VNFD.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aspect_that_is_scaled_cannot_go() {
    let one = package().deployment("web", 1).deployment("gone", 1);
    let two = one.next_version().without("Deployment", "gone");
    let changing = Changing::begin(World::simple().await, &one, &two).await;
    let (world, id) = (&changing.world, &changing.id);
    let scale = |way: &str| json!({"type": way, "aspectId": "gone_aspect"});
    world.complete(id, "scale", &scale("SCALE_OUT")).await;
    let detail = refusal(world, id, &json!({"vnfdId": changing.next})).await;
    assert!(detail.contains("scale it to 0 first"), "{detail}");
    world.complete(id, "scale", &scale("SCALE_IN")).await;
    changing.complete().await;
    assert!(!changing.exists("apps/v1", "deployments", "gone").await);
    let after = world.instance(id).await;
    let status = &after["instantiatedVnfInfo"]["scaleStatus"];
    assert_eq!(status.as_array().expect("a list").len(), 1, "{after:#}");
}

fn claim(class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Mi"}}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_would_have_to_be_made_anew_ends_it_with_nothing_touched() {
    let one = package().manifest(claim("manual")).config_map("settings");
    let two = one
        .next_version()
        .changed("PersistentVolumeClaim", "data", |data| {
            data["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        })
        .changed("ConfigMap", "settings", |m| {
            m["data"]["colour"] = json!("red");
        });
    let changing = Changing::begin(World::simple().await, &one, &two).await;
    let before = changing.picture().await;
    let op = changing.ask().await;
    let halted = changing.world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains("PersistentVolumeClaim/data") && detail.contains("never made anew"),
        "{halted:#}"
    );
    assert_eq!(halted["plan"], json!([]), "{halted:#}");
    assert_eq!(changing.picture().await, before);
    changing.world.steer(&op, "rollback").await.is(202);
    changing.world.ends(&op, "ROLLED_BACK").await;
}

/// A field that somebody else has set is theirs, unless the request says otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_another_manager_is_a_conflict_unless_it_is_taken_over() {
    let one = package().deployment("web", 1);
    let two = one
        .next_version()
        .changed("Deployment", "web", |web| image(web, "cairn.test/web:2"));
    let world = World::simple().await;
    let vnfd = world.onboard(&one).await;
    let next = world.onboard(&two).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let mut taken = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}});
    image(&mut taken, "cairn.test/web:mine");
    let path = world.place().path("apps/v1", "deployments", "web");
    world
        .place()
        .kube
        .apply(&path, "somebody", true, &taken)
        .await
        .is(200);
    let op = world
        .begin(&id, "change_vnfpkg", &json!({"vnfdId": next}))
        .await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains("somebody") && detail.contains("image"),
        "{halted:#}"
    );
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    let body = json!({"vnfdId": next, "additionalParams": {"cairn.takeOver": true}});
    world.complete(&id, "change_vnfpkg", &body).await;
    let web = world.place().kube.get(&path).await.is(200);
    let now = &web["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(now, "cairn.test/web:2");
}
