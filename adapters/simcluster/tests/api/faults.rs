//! Scripted faults and the log of requests.

use std::time::Duration;

use axum::body::Body;
use cairn_simcluster::{Fault, FaultAction, RequestMatch, SimCluster, SimOptions, When};
use http::Request;
use http_body_util::BodyExt;
use serde_json::json;

use crate::conversation::{Cluster, DEPLOYMENTS, MAPS, deployment, map};

fn answer(status: u16, when: When) -> FaultAction {
    FaultAction::Answer {
        status,
        message: String::new(),
        retry_after: Some(2),
        when,
    }
}

#[tokio::test]
async fn an_answer_before_the_effect_leaves_nothing() {
    let cluster = Cluster::ready().await;
    let posts = RequestMatch::method("POST")
        .resource("configmaps")
        .name("a");
    cluster
        .sim
        .inject(Fault::once(posts, answer(429, When::Before)));
    let refused = cluster.post(MAPS, &map("a", &json!({}))).await;
    assert_eq!(
        (refused.code, &refused.body["details"]["retryAfterSeconds"]),
        (429, &json!(2))
    );
    assert_eq!(cluster.get(&format!("{MAPS}/a")).await.code, 404);
    assert_eq!(cluster.post(MAPS, &map("a", &json!({}))).await.code, 201);
}

#[tokio::test]
async fn an_answer_lost_after_the_effect_leaves_the_effect() {
    let cluster = Cluster::ready().await;
    cluster.sim.clear_requests();
    let posts = RequestMatch::method("POST").resource("configmaps");
    cluster
        .sim
        .inject(Fault::once(posts, FaultAction::DropAnswer(When::After)));
    let request = Request::post(MAPS)
        .header("content-type", "application/json")
        .body(Body::from(map("a", &json!({})).to_string()))
        .unwrap();
    let response = cluster.raw(request).await;
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(cluster.get(&format!("{MAPS}/a")).await.code, 200);
    let log = cluster.sim.requests();
    assert_eq!((log[0].method.as_str(), log[0].status), ("POST", 0));
    assert_eq!(log.iter().filter(|record| record.is_effect()).count(), 1);
}

#[tokio::test]
async fn a_scale_that_is_ignored_answers_as_if_it_were_not() {
    let cluster = Cluster::ready().await;
    cluster
        .post(DEPLOYMENTS, &deployment("web", 1, "web:1", &json!({})))
        .await;
    let matching = RequestMatch::method("PATCH").subresource("scale");
    cluster
        .sim
        .inject(Fault::once(matching, FaultAction::IgnoreScale));
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scaled = cluster
        .merge(&path, &json!({"spec": {"replicas": 4}}))
        .await;
    assert_eq!(
        (scaled.code, &scaled.body["spec"]["replicas"]),
        (200, &json!(4))
    );
    assert_eq!(cluster.get(&path).await.body["spec"]["replicas"], 1);
}

#[tokio::test]
async fn frozen_controllers_do_nothing_until_they_thaw() {
    let cluster = Cluster::ready().await;
    cluster.sim.freeze_controllers(true);
    cluster
        .post(DEPLOYMENTS, &deployment("web", 1, "web:1", &json!({})))
        .await;
    let waited = cluster.sim.wait_until(Duration::from_millis(200), |sim| {
        !sim.list("apps/v1", "ReplicaSet", "default").is_empty()
    });
    assert!(waited.await.is_err());
    cluster.sim.clear_faults();
    cluster.available("web", 1).await;
}

#[tokio::test]
async fn a_token_is_demanded_where_one_is_set() {
    let options = SimOptions {
        bearer_token: Some("secret".to_owned()),
        ..SimOptions::default()
    };
    let cluster = Cluster {
        sim: SimCluster::new(options),
    };
    assert_eq!(cluster.get("/api/v1/namespaces").await.code, 401);
    assert_eq!(cluster.get("/healthz").await.code, 200);
    let request = Request::get("/api/v1/namespaces")
        .header("authorization", "Bearer secret")
        .body(Body::empty())
        .unwrap();
    assert_eq!(cluster.raw(request).await.status(), 200);
}

#[tokio::test]
async fn access_reviews_deny_what_was_denied() {
    let cluster = Cluster::ready().await;
    cluster.sim.deny("create", "pods", "default");
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let ask = |verb: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes":
                {"verb": verb, "resource": "pods", "namespace": "default"}}})
    };
    assert_eq!(
        cluster.post(path, &ask("create")).await.body["status"]["allowed"],
        false
    );
    assert_eq!(
        cluster.post(path, &ask("get")).await.body["status"]["allowed"],
        true
    );
    assert_eq!(cluster.get(path).await.code, 405);
}
