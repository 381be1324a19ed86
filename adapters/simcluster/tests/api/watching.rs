//! Watches and lists.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::conversation::{Cluster, MAPS, SOON, map};

/// An open watch, read line by line.
struct Watch {
    body: Body,
    rest: Vec<u8>,
}

impl Watch {
    async fn open(cluster: &Cluster, path: &str) -> Self {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        Self {
            body: cluster.raw(request).await.into_body(),
            rest: Vec::new(),
        }
    }

    /// The next event, or `None` when the watch has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(SOON, self.body.frame())
                .await
                .expect("an event");
            self.rest
                .extend_from_slice(&frame?.unwrap().into_data().unwrap());
        }
    }
}

fn told(event: &Value) -> (&str, &str) {
    let name = event["object"]["metadata"]["name"].as_str().unwrap_or("");
    (event["type"].as_str().unwrap(), name)
}

#[tokio::test]
async fn a_watch_tells_what_comes_after_its_version() {
    let cluster = Cluster::ready().await;
    cluster.post(MAPS, &map("old", &json!({}))).await;
    let list = cluster.get(MAPS).await.body;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?watch=true&resourceVersion={version}");
    let mut watch = Watch::open(&cluster, &path).await;
    cluster.post(MAPS, &map("new", &json!({}))).await;
    cluster
        .merge(&format!("{MAPS}/new"), &json!({"data": {"k": "1"}}))
        .await;
    cluster.delete(&format!("{MAPS}/new"), "Background").await;
    for wanted in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(told(&watch.next().await.unwrap()), (wanted, "new"));
    }
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let cluster = Cluster::ready().await;
    let path = format!("{MAPS}?watch=1&labelSelector=in%3Dyes");
    let mut watch = Watch::open(&cluster, &path).await;
    cluster.post(MAPS, &map("a", &json!({}))).await;
    let label = |value: Value| json!({"metadata": {"labels": {"in": value}}});
    cluster
        .merge(&format!("{MAPS}/a"), &label(json!("yes")))
        .await;
    cluster
        .merge(&format!("{MAPS}/a"), &label(Value::Null))
        .await;
    assert_eq!(told(&watch.next().await.unwrap()), ("ADDED", "a"));
    assert_eq!(told(&watch.next().await.unwrap()), ("DELETED", "a"));
}

#[tokio::test]
async fn a_version_that_is_forgotten_is_gone() {
    let cluster = Cluster::ready().await;
    cluster.post(MAPS, &map("a", &json!({}))).await;
    cluster.sim.forget_changes();
    let mut watch = Watch::open(&cluster, &format!("{MAPS}?watch=1&resourceVersion=1")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn cut_watches_end_without_a_word() {
    let cluster = Cluster::ready().await;
    let path = format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dnone");
    let mut watch = Watch::open(&cluster, &path).await;
    cluster.sim.cut_watches();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let cluster = Cluster::ready().await;
    for name in ["a", "b", "c"] {
        cluster.post(MAPS, &map(name, &json!({}))).await;
    }
    let first = cluster.get(&format!("{MAPS}?limit=2")).await.body;
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = cluster
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .body;
    let names: Vec<&str> = second["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["c", "kube-root-ca.crt"]);
}

#[tokio::test]
async fn streaming_lists_are_not_offered() {
    let cluster = Cluster::ready().await;
    let path = format!("{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    assert_eq!(cluster.get(&path).await.code, 422);
}
