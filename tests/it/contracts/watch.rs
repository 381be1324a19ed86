//! Watches.

use cairn_tests::place::Place;
use cairn_tests::until::until;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

async fn make(place: &Place, name: &str) -> Value {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    place
        .kube
        .post(&place.list("v1", "configmaps"), &body)
        .await
        .is(201)
}

async fn version(place: &Place) -> String {
    let list = place
        .kube
        .get(&place.list("v1", "configmaps"))
        .await
        .is(200);
    list["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version")
        .to_owned()
}

fn named(event: &Value, name: &str) -> bool {
    event["object"]["metadata"]["name"] == name
}

pub async fn a_watch_tells_what_happens_after_the_list(place: Place) {
    make(&place, "before").await;
    let from = version(&place).await;
    let path = format!(
        "{}?watch=true&resourceVersion={from}&timeoutSeconds=60",
        place.list("v1", "configmaps")
    );
    let mut watch = place.kube.watch(&path).await;
    assert_eq!(watch.status, 200);
    make(&place, "cm").await;
    let path = place.path("v1", "configmaps", "cm");
    place
        .kube
        .merge(&path, &json!({"data": {"a": "1"}}))
        .await
        .is(200);
    place.kube.delete(&path, &json!({})).await.is(200);
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        let mut event = watch.next_of(kind).await;
        // The namespace's own objects may come late.
        while !named(&event, "cm") {
            assert!(
                !named(&event, "before"),
                "what was listed is not told again"
            );
            event = watch.next_of(kind).await;
        }
    }
}

pub async fn a_watch_from_a_forgotten_version_is_410(place: Place) {
    if let Some(sim) = &place.sim {
        sim.forget_changes();
    }
    let path = format!(
        "{}?watch=true&resourceVersion=1&timeoutSeconds=20",
        place.list("v1", "configmaps")
    );
    // The real one forgets every five minutes; then the answer is an event of a watch, or the status itself.
    if !place.is_simulated() {
        let list = place
            .kube
            .get(&format!(
                "{}?resourceVersion=1&resourceVersionMatch=Exact",
                place.list("v1", "configmaps")
            ))
            .await;
        if list.status != 410 {
            // It remembers everything still: nothing can be seen today but that the watch opens.
            assert_eq!(place.kube.watch(&path).await.status, 200);
            return;
        }
    }
    let mut watch = place.kube.watch(&path).await;
    if watch.status == 200 {
        let event = watch.next_of("ERROR").await;
        assert_eq!(
            (&event["object"]["code"], &event["object"]["reason"]),
            (&json!(410), &json!("Expired"))
        );
        assert!(watch.next().await.is_none(), "the watch ends with it");
    } else {
        assert_eq!(watch.status, 410);
    }
}

pub async fn a_watch_ends_when_its_time_is_over(place: Place) {
    let from = version(&place).await;
    let path = format!(
        "{}?watch=true&resourceVersion={from}&timeoutSeconds=1",
        place.list("v1", "secrets")
    );
    let began = Instant::now();
    let mut watch = place.kube.watch(&path).await;
    while watch.next().await.is_some() {}
    assert!(began.elapsed() < Duration::from_secs(10));
}

pub async fn bookmarks_come_when_they_are_asked_for(place: Place) {
    // The real server sends one just before a watch's time is over, the simulated one now and then.
    let bookmark = until(Duration::from_mins(1), "a bookmark", || async {
        let from = version(&place).await;
        let path = format!(
            "{}?watch=true&resourceVersion={from}&timeoutSeconds=12&allowWatchBookmarks=true",
            place.list("v1", "configmaps")
        );
        let mut watch = place.kube.watch(&path).await;
        while let Some(event) = watch.next().await {
            if event["type"] == "BOOKMARK" {
                return Ok(event);
            }
        }
        Err("the watch ended without one")
    })
    .await;
    let object = &bookmark["object"];
    assert_eq!(object["kind"], "ConfigMap");
    assert!(object["metadata"]["resourceVersion"].is_string());
    assert_eq!(object.get("data"), None);
}
