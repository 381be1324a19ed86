//! What a wait is told.

use crate::bench::Bench;
use crate::objects::{config_map, deployment, service, stateful_set};
use cairn_domain::lcm_op_occ::plan::Action;
use cairn_domain::ports::ContainerPlatform as _;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

pub async fn a_quota_is_told_with_its_numbers(bench: Bench) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"pods": "2"}}});
    bench.post(&bench.path("resourcequotas", ""), quota).await;
    let path = bench.path("resourcequotas", "few");
    let deadline = Instant::now() + Duration::from_secs(30);
    while bench.get(&path).await["status"]["hard"]["pods"] != "2" {
        assert!(Instant::now() < deadline, "the quota is not counted");
        tokio::task::yield_now().await;
    }
    for (name, manifest) in [
        ("Deployment/web", deployment("web", 3, "cairn.test/web:1")),
        ("StatefulSet/db", stateful_set("db", 1, "cairn.test/web:1")),
    ] {
        bench.must(&bench.apply(&manifest)).await;
        let ready = bench.ready(&[&manifest]);
        let told = bench
            .until_told(&ready, |o| o.object == name && o.reason == "QuotaExceeded")
            .await;
        assert!(
            told.message.contains("few") && told.message.contains("pods used 2 of 2"),
            "{}",
            told.message
        );
    }
    bench
        .patch(&path, json!({"spec": {"hard": {"pods": "4"}}}))
        .await;
    bench.done().await;
}

pub async fn an_image_that_cannot_be_pulled_is_told_in_the_kubelets_words(bench: Bench) {
    let mut web = deployment("web", 1, "cairn.test/missing:1");
    web["spec"]["template"]["metadata"]["annotations"] =
        json!({"simcluster.cairn.dev/pull": "fail"});
    bench.must(&bench.apply(&web)).await;
    let ready = bench.ready(&[&web]);
    let told = bench
        .until_told(&ready, |o| o.reason == "ImagePullBackOff")
        .await;
    assert!(told.object.starts_with("Pod/web-"), "{told:?}");
    assert_eq!(told.source, "container");
    assert!(
        told.message.contains("cairn.test/missing:1"),
        "{}",
        told.message
    );
    bench.done().await;
}

pub async fn a_watch_ends_when_something_changes(bench: Bench) {
    let web = deployment("web", 1, "cairn.test/web:1");
    bench.up(&web).await;
    let ready = bench.ready(&[&web]);
    bench.must(&ready).await;
    let start = Instant::now();
    let waits = bench.platform.changed(&bench.scope, &ready, 30_000);
    let path = bench.path("deployments", "web");
    let changes = bench.patch(&path, json!({"metadata": {"labels": {"a": "b"}}}));
    tokio::join!(waits, changes);
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    bench.done().await;
}

pub async fn a_watch_does_not_tell_again_what_was_seen(bench: Bench) {
    let cfg = config_map("cfg", "a");
    bench.must(&bench.apply(&cfg)).await;
    bench.must(&bench.ready(&[&cfg])).await;
    let path = bench.path("configmaps", "cfg");
    bench
        .patch(&path, json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    // The look was at the time before the change: the first wait is told of it, the next one is not.
    let delete = Action::Delete {
        object: bench.object(&cfg),
        uid: None,
        grace_s: None,
    };
    let waits = || bench.platform.changed(&bench.scope, &delete, 3_000);
    let start = Instant::now();
    waits().await;
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    let start = Instant::now();
    waits().await;
    assert!(
        start.elapsed() >= Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    bench.done().await;
}

pub async fn a_service_waits_for_an_endpoint_only_where_it_selects_pods(bench: Bench) {
    let lonely = service("lonely", "nobody");
    bench.up(&lonely).await;
    let mut late = deployment("late", 1, "cairn.test/late:1");
    late["spec"]["template"]["metadata"]["annotations"] =
        json!({"simcluster.cairn.dev/ready-after": "2s"});
    let front = service("front", "late");
    bench.must(&bench.apply(&late)).await;
    bench.must(&bench.apply(&front)).await;
    let ready = Action::AwaitReady {
        objects: vec![bench.object(&front)],
        replaced: Vec::new(),
    };
    bench
        .until_told(&ready, |o| {
            o.object == "Service/front" && o.reason == "NoEndpoints"
        })
        .await;
    bench.until_done(&ready).await;
    bench.done().await;
}
