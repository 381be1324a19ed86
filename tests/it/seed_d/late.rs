//! What comes right later is waited on, and the history tells both.

use super::rows::{claim, job};
use super::waits;
use crate::operations::{instantiate, nothing_left};
use cairn_simcluster::{Fault, FaultAction, RequestMatch, When};
use cairn_tests::client::SOON;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};

/// Instantiates to the end and answers the waits that the history tells.
async fn told(world: &World, package: &PackageBuilder) -> Vec<Value> {
    let vnfd = world.onboard(package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(world))
        .await;
    waits(world, &id).await
}

fn has(waits: &[Value], reason: &str, class: &str) -> bool {
    waits
        .iter()
        .any(|wait| wait["reason"] == reason && wait["class"] == class)
}

/// Field case 45.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_that_passes_its_deadline_may_still_recover() {
    let world = World::simple().await;
    let clocks = "{progressing: 90s, blocked: 1s, infrastructure: 60s, unclassified: 1s}";
    let slow = package()
        .clocks(clocks)
        .pods(json!({"simcluster.cairn.dev/ready-after": "4s"}))
        .deployment("web", 1)
        .last(|manifest| manifest["spec"]["progressDeadlineSeconds"] = json!(1));
    let waits = told(&world, &slow).await;
    assert!(
        has(&waits, "ProgressDeadlineExceeded", "infrastructure"),
        "{waits:#?}"
    );
    let reason = |wait: &Value| wait["object"] == "Deployment/web";
    assert!(waits.iter().any(reason), "{waits:#?}");
}

/// Field case 26: the webhook of an admission has no endpoints yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_without_endpoints_is_waited_on_until_it_has_some() {
    let world = World::simple().await;
    let clocks = "{progressing: 90s, blocked: 1s, infrastructure: 60s, unclassified: 1s}";
    let refused = FaultAction::Answer {
        status: 500,
        message: "Internal error occurred: failed calling webhook \"check.example.org\": failed to call webhook: \
                  no endpoints available for service \"check\""
            .to_owned(),
        retry_after: None,
        when: When::Before,
    };
    let writes = RequestMatch::method("PATCH").resource("configmaps");
    let fault = Fault::once(writes, refused).after(1).times(8);
    world.place().sim().inject(fault);
    let waits = told(&world, &package().clocks(clocks).config_map("settings")).await;
    assert!(
        has(&waits, "WebhookUnavailable", "infrastructure"),
        "{waits:#?}"
    );
    let words = |wait: &Value| {
        wait["message"]
            .to_string()
            .contains("no endpoints available")
    };
    assert!(waits.iter().any(words), "{waits:#?}");
}

/// Field case 40.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_with_tries_left_is_waited_on() {
    let world = World::simple().await;
    let third = package().manifest({
        let mut job = job(3);
        let template = &mut job["spec"]["template"];
        template["metadata"]["annotations"] = json!({"simcluster.cairn.dev/crash": "2",
            "simcluster.cairn.dev/exit-after": "50ms"});
        template["spec"]["restartPolicy"] = json!("OnFailure");
        job
    });
    told(&world, &third).await;
    let path = world.place().path("batch/v1", "jobs", "work");
    let job = world.place().read(&path).await.expect("the Job is there");
    assert_eq!(job["status"]["succeeded"], 1, "{job:#}");
}

/// Field cases 37 and 38: what is no gate is not waited for.
async fn no_gate(place: Place) {
    let ground = Ground::new(Kind::Sqlite, place).await;
    let world = World::on(ground.expect("SQLite is always there")).await;
    let package = package()
        .manifest(claim("unused", Some("manual"), "1Gi"))
        .service("web")
        .last(|manifest| {
            manifest["spec"]["type"] = json!("LoadBalancer");
            manifest["spec"]["externalIPs"] = json!(["192.0.2.7"]);
        });
    let waits = told(&world, &package).await;
    let forbidden = |wait: &Value| wait["reason"] == "NoAddress" || wait["reason"] == "Unbound";
    assert!(!waits.iter().any(forbidden), "{waits:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_without_a_consumer_and_an_external_address_are_no_gates() {
    no_gate(Place::simulated().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_without_a_consumer_and_an_external_address_are_no_gates_on_the_real_cluster() {
    let Some(place) = Place::real().await else {
        return;
    };
    no_gate(place).await;
}

/// A transitional operation says what it waits for, since when, and until when.
#[track_caller]
fn says_what_it_waits_for(seen: &Value, state: &str, object: &str, reason: &str) {
    assert_eq!(seen["operationState"], state, "{seen:#}");
    let waits = seen["waits"].as_array().expect("waits");
    let wait = waits.iter().find(|wait| wait["object"] == object);
    let wait = wait.unwrap_or_else(|| panic!("{object} is not told: {seen:#}"));
    assert_eq!(wait["reason"], reason, "{wait:#}");
    assert!(wait["message"].as_str().is_some_and(|m| !m.is_empty()));
    assert!(wait["until"].as_str() > wait["since"].as_str(), "{wait:#}");
}

/// A `ConfigMap` that a finalizer of somebody else keeps.
fn kept() -> PackageBuilder {
    package()
        .clocks("{progressing: 90s, blocked: 60s, infrastructure: 60s, unclassified: 1s}")
        .config_map("kept")
        .last(|manifest| {
            manifest["metadata"]["finalizers"] = json!(["example.org/keep"]);
        })
}

/// Field cases 65 and 125: a finalizer holds a terminate and a rollback; both say so, and neither strips it.
async fn finalizers(place: Place) {
    let ground = Ground::new(Kind::Sqlite, place).await;
    let world = World::on(ground.expect("SQLite is always there")).await;
    let vnfd = world
        .onboard(&kept().manifest(claim("data", None, "500Gi")))
        .await;
    let path = world.place().path("v1", "configmaps", "kept");
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let seen = world
        .op_until(&op, "to wait", |seen| {
            seen["waits"].as_array().is_some_and(|w| !w.is_empty())
        })
        .await;
    says_what_it_waits_for(&seen, "PROCESSING", "PersistentVolumeClaim/data", "Unbound");
    world.cancel(&op, "GRACEFUL").await.is(202);
    world.ends(&op, "FAILED_TEMP").await;

    world.steer(&op, "rollback").await.is(202);
    let held = |seen: &Value| seen["waits"].to_string().contains("Finalizers");
    let seen = world.op_until(&op, "to wait for a finalizer", held).await;
    says_what_it_waits_for(&seen, "ROLLING_BACK", "ConfigMap/kept", "Finalizers");
    assert!(seen["waits"].to_string().contains("example.org/keep"));
    world.cancel(&op, "GRACEFUL").await.is(202);
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"]
            .to_string()
            .contains("example.org/keep"),
        "{halted:#}"
    );
    world.steer(&op, "rollback").await.is(202);
    world.op_until(&op, "to wait for a finalizer", held).await;
    let freed = json!({"metadata": {"finalizers": null}});
    world.place().kube.merge(&path, &freed).await.is(200);
    world.ends(&op, "ROLLED_BACK").await;
    nothing_left(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_finalizer_holds_is_told_and_cancellable() {
    finalizers(Place::simulated().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_finalizer_holds_is_told_and_cancellable_on_the_real_cluster() {
    let Some(place) = Place::real().await else {
        return;
    };
    finalizers(place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminate_that_a_finalizer_holds_is_retried_once_it_is_gone() {
    let world = World::simple().await;
    let package = kept().clocks("{progressing: 90s, blocked: 1s, infrastructure: 1s}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let forceful = json!({"terminationType": "FORCEFUL"});
    let op = world.begin(&id, "terminate", &forceful).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].to_string();
    assert!(
        detail.contains("example.org/keep") && detail.contains("ConfigMap/kept"),
        "{detail}"
    );
    let path = world.place().path("v1", "configmaps", "kept");
    let freed = json!({"metadata": {"finalizers": null}});
    world.place().kube.merge(&path, &freed).await.is(200);
    world.place().kube.gone(&path, SOON).await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    nothing_left(&world).await;
}
