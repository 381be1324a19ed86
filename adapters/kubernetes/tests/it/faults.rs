//! A cluster in trouble: answers that are lost, refused or late.

use crate::bench::{TOKEN, behind, simulated, simulated_cluster, uid_of};
use crate::objects::{config_map, deployment};
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, StepResult};
use cairn_domain::ports::{ContainerPlatform as _, SurveyRequest};
use cairn_domain::secret::Secret;
use cairn_kubernetes::{ConfiguredCluster, RequestBody};
use cairn_simcluster::{Fault, FaultAction, RequestMatch, When};
use std::time::Duration;
use tokio::time::Instant;
use tower::ServiceExt as _;

fn answer(status: u16, message: &str, when: When) -> FaultAction {
    FaultAction::Answer {
        status,
        message: message.into(),
        retry_after: None,
        when,
    }
}

fn is_unknown(result: &StepResult) -> bool {
    matches!(result, StepResult::Unknown { .. })
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_unknown_and_then_found_done() {
    let bench = simulated("lost-answer").await;
    let cfg = config_map("cfg", "a");
    for (when, action) in [
        (When::After, FaultAction::DropAnswer(When::After)),
        (When::Before, FaultAction::DropAnswer(When::Before)),
        (When::After, answer(504, "", When::After)),
        (
            When::Before,
            answer(500, "etcdserver: request timed out", When::Before),
        ),
    ] {
        bench
            .cluster()
            .inject(Fault::once(RequestMatch::method("PATCH"), action));
        let result = bench.perform(&bench.apply(&cfg)).await;
        assert!(is_unknown(&result), "{result:?}");
        let again = bench.must(&bench.apply(&cfg)).await;
        let made_now = matches!(again, Outcome::Applied { created: true, .. });
        assert_eq!(made_now, when == When::Before, "{again:?}");
        let uid = uid_of(&again);
        let delete = Action::Delete {
            object: bench.object(&cfg),
            uid: Some(uid.clone()),
            grace_s: None,
        };
        let lost = FaultAction::DropAnswer(when);
        bench
            .cluster()
            .inject(Fault::once(RequestMatch::method("DELETE"), lost));
        assert!(is_unknown(&bench.perform(&delete).await));
        bench.must(&delete).await;
        let gone = Action::AwaitGone {
            objects: vec![(bench.object(&cfg), Some(uid))],
            volumes: false,
        };
        bench.until_done(&gone).await;
    }
    bench.done().await;
}

#[tokio::test]
async fn a_read_that_fails_makes_nothing_absent() {
    let bench = simulated("failed-read").await;
    let cfg = config_map("cfg", "a");
    let uid = uid_of(&bench.must(&bench.apply(&cfg)).await);
    let gone = Action::AwaitGone {
        objects: vec![(bench.object(&cfg), Some(uid))],
        volumes: false,
    };
    for (action, reason) in [
        (FaultAction::DropAnswer(When::Before), "Unreachable"),
        (answer(503, "", When::Before), "ServerError"),
        (answer(404, "no such page", When::Before), "NotYetServed"),
        (answer(401, "", When::Before), "Unauthorized"),
    ] {
        let reads = RequestMatch::method("GET").resource("configmaps");
        bench.cluster().inject(Fault::once(reads, action));
        let told = bench.refused(&gone).await;
        assert_eq!(told[0].reason, reason, "{told:?}");
    }
    bench.done().await;
}

#[tokio::test]
async fn too_many_requests_are_waited_out_and_no_try_is_lost() {
    let bench = simulated("too-many").await;
    let busy = FaultAction::Answer {
        status: 429,
        message: String::new(),
        retry_after: Some(1),
        when: When::Before,
    };
    bench.cluster().inject(Fault {
        matching: RequestMatch::any(),
        skip: 0,
        times: 2,
        action: busy,
    });
    let start = Instant::now();
    bench.must(&bench.apply(&config_map("cfg", "a"))).await;
    assert!(
        start.elapsed() >= Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    bench.done().await;
}

#[tokio::test]
async fn a_webhook_without_endpoints_and_a_refusal_of_one_are_told_apart() {
    let bench = simulated("webhooks").await;
    let cfg = config_map("cfg", "a");
    for (message, reason) in [
        (
            "Internal error occurred: failed calling webhook \"w\": no endpoints available for service \"s\"",
            "WebhookUnavailable",
        ),
        (
            "admission webhook \"w\" denied the request: no",
            "AdmissionRefused",
        ),
    ] {
        let said = answer(500, message, When::Before);
        bench
            .cluster()
            .inject(Fault::once(RequestMatch::method("PATCH"), said));
        let told = bench.refused(&bench.apply(&cfg)).await;
        assert_eq!(told[0].reason, reason);
    }
    bench.done().await;
}

#[tokio::test]
async fn a_number_that_the_cluster_does_not_keep_is_not_set() {
    let bench = simulated("ignored-scale").await;
    let web = deployment("web", 1, "cairn.test/web:1");
    bench.must(&bench.apply(&web)).await;
    let scale = Action::SetReplicas {
        object: bench.object(&web),
        from: 1,
        to: 2,
    };
    let writes = RequestMatch::any().subresource("scale");
    bench
        .cluster()
        .inject(Fault::always(writes, FaultAction::IgnoreScale));
    let told = bench.refused(&scale).await;
    assert_eq!(told[0].reason, "ReplicasDiffer", "{told:?}");
    bench.cluster().clear_faults();
    let conflict = answer(409, "the object has been modified", When::Before);
    let writes = RequestMatch::method("PATCH").subresource("scale");
    bench.cluster().inject(Fault::always(writes, conflict));
    let told = bench.refused(&scale).await;
    assert_eq!(told[0].reason, "VersionConflict");
    bench.cluster().clear_faults();
    assert_eq!(
        bench.must(&scale).await,
        Outcome::ReplicasSet { from: 1, to: 2 }
    );
    bench.done().await;
}

#[tokio::test]
async fn a_permission_that_lacks_is_told_before_the_first_write() {
    let bench = simulated("permissions").await;
    bench
        .cluster()
        .deny("patch", "deployments", &bench.namespace);
    let told = bench
        .blocked(&crate::bench::items(&[&deployment(
            "web",
            1,
            "cairn.test/web:1",
        )]))
        .await;
    assert_eq!(told[0].reason, "Forbidden");
    assert!(
        told[0].message.contains("patch deployments of apps"),
        "{told:?}"
    );
    bench.survey(&SurveyRequest::default()).await;
    bench.done().await;
}

#[tokio::test]
async fn a_watch_that_is_cut_or_expired_ends_the_wait_and_nothing_is_missed() {
    let bench = simulated("watches").await;
    let web = deployment("web", 1, "cairn.test/web:1");
    bench.up(&web).await;
    let ready = bench.ready(&[&web]);
    bench.must(&ready).await;
    bench.cluster().inject(Fault::once(
        RequestMatch::method("WATCH"),
        FaultAction::WatchGone,
    ));
    let start = Instant::now();
    bench.platform.changed(&bench.scope, &ready, 30_000).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    // What happened between the look and the watch is an event of the watch.
    bench.must(&ready).await;
    let labels = serde_json::json!({"metadata": {"labels": {"a": "b"}}});
    bench.patch(&bench.path("deployments", "web"), labels).await;
    bench.platform.changed(&bench.scope, &ready, 30_000).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    bench.done().await;
}

#[tokio::test]
async fn what_somebody_makes_between_our_read_and_our_write_stays_theirs() {
    let cluster = simulated_cluster();
    let raced = cluster.clone();
    let service = tower::service_fn(move |request: http::Request<RequestBody>| {
        let cluster = raced.clone();
        async move {
            if request.method() == http::Method::PATCH {
                let mut theirs = config_map("cfg", "theirs");
                let namespace = request.uri().path().split('/').nth(4).unwrap();
                theirs["metadata"]["namespace"] = serde_json::json!(namespace);
                // The second write, which takes ours back, finds it there already.
                if cluster.get("v1", "ConfigMap", namespace, "cfg").is_none() {
                    cluster.create("kubectl", theirs).unwrap();
                }
            }
            cluster.router().oneshot(request).await
        }
    });
    let configured = ConfiguredCluster::in_process(service, Some(Secret::new(TOKEN)));
    let bench = behind("raced", cluster, configured).await;
    let mut ours = config_map("cfg", "theirs");
    ours["data"]["more"] = serde_json::json!("ours");
    let told = bench.refused(&bench.apply(&ours)).await;
    assert_eq!(told[0].reason, "NotOurs", "{told:?}");
    let live = bench.get(&bench.path("configmaps", "cfg")).await;
    assert_eq!(live["data"], serde_json::json!({"key": "theirs"}));
    let labels = live["metadata"].get("labels");
    assert!(
        labels.is_none_or(|l| l.as_object().is_none_or(serde_json::Map::is_empty)),
        "{live}"
    );
    bench.done().await;
}
