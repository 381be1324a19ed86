//! Server-side apply, other patches, and what is refused.

use serde_json::json;

use crate::conversation::{Cluster, DEPLOYMENTS, MAPS, deployment, map};

#[tokio::test]
async fn the_first_apply_creates_and_the_second_changes() {
    let cluster = Cluster::ready().await;
    let path = format!("{MAPS}/a");
    assert_eq!(
        cluster
            .apply(&path, "one", &map("a", &json!({"k": "1"})))
            .await
            .code,
        201
    );
    let again = cluster
        .apply(&path, "one", &map("a", &json!({"k": "1"})))
        .await;
    assert_eq!(again.code, 200);
    let before = again.body["metadata"]["resourceVersion"].clone();
    let same = cluster
        .apply(&path, "one", &map("a", &json!({"k": "1"})))
        .await;
    assert_eq!(
        same.body["metadata"]["resourceVersion"], before,
        "nothing changed"
    );
}

#[tokio::test]
async fn an_apply_that_leaves_a_field_out_removes_it() {
    let cluster = Cluster::ready().await;
    let path = format!("{MAPS}/a");
    cluster
        .apply(&path, "one", &map("a", &json!({"k": "1", "l": "2"})))
        .await;
    cluster.merge(&path, &json!({"data": {"m": "3"}})).await;
    let left = cluster
        .apply(&path, "one", &map("a", &json!({"k": "1"})))
        .await;
    assert_eq!(left.body["data"], json!({"k": "1", "m": "3"}));
}

#[tokio::test]
async fn replicas_scaled_by_another_hand_conflict_until_they_are_left_out() {
    let cluster = Cluster::ready().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster
        .apply(&path, "one", &deployment("web", 1, "web:1", &json!({})))
        .await;
    let scale = format!("{path}/scale?fieldManager=hand");
    assert_eq!(
        cluster
            .merge(&scale, &json!({"spec": {"replicas": 3}}))
            .await
            .code,
        200
    );
    let refused = cluster
        .apply(&path, "one", &deployment("web", 1, "web:1", &json!({})))
        .await;
    assert_eq!(refused.code, 409);
    assert_eq!(
        refused.body["message"],
        "Apply failed with 1 conflict: conflict with \"hand\" with subresource \"scale\" using \
         apps/v1: .spec.replicas"
    );
    let mut without = deployment("web", 1, "web:2", &json!({}));
    without["spec"].as_object_mut().unwrap().remove("replicas");
    let kept = cluster.apply(&path, "one", &without).await;
    assert_eq!(kept.body["spec"]["replicas"], 3);
}

#[tokio::test]
async fn leaving_out_replicas_that_one_owns_scales_to_one() {
    let cluster = Cluster::ready().await;
    let path = format!("{DEPLOYMENTS}/web");
    cluster
        .apply(&path, "one", &deployment("web", 3, "web:1", &json!({})))
        .await;
    let mut without = deployment("web", 3, "web:1", &json!({}));
    without["spec"].as_object_mut().unwrap().remove("replicas");
    let scaled = cluster.apply(&path, "one", &without).await;
    assert_eq!(scaled.body["spec"]["replicas"], 1);
}

#[tokio::test]
async fn another_uid_is_refused_whether_the_object_is_there_or_not() {
    let cluster = Cluster::ready().await;
    let mut object = map("a", &json!({}));
    object["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    let absent = cluster.apply(&format!("{MAPS}/a"), "one", &object).await;
    assert_eq!(absent.code, 409);
    cluster.post(MAPS, &map("a", &json!({}))).await;
    let other = cluster.apply(&format!("{MAPS}/a"), "one", &object).await;
    assert_eq!(other.code, 422);
    assert_eq!(cluster.put(&format!("{MAPS}/a"), &object).await.code, 409);
}

#[tokio::test]
async fn a_dry_run_is_judged_and_not_stored() {
    let cluster = Cluster::ready().await;
    let path = format!("{MAPS}?dryRun=All");
    assert_eq!(cluster.post(&path, &map("a", &json!({}))).await.code, 201);
    assert_eq!(cluster.get(&format!("{MAPS}/a")).await.code, 404);
    assert_eq!(cluster.post(&path, &map("A", &json!({}))).await.code, 422);
    let nowhere = "/api/v1/namespaces/nowhere/configmaps?dryRun=All";
    let missing = cluster.post(nowhere, &map("a", &json!({}))).await;
    assert_eq!(missing.body["message"], "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn a_stale_resource_version_is_a_conflict() {
    let cluster = Cluster::ready().await;
    let made = cluster.post(MAPS, &map("a", &json!({"k": "1"}))).await.body;
    cluster
        .merge(&format!("{MAPS}/a"), &json!({"data": {"k": "2"}}))
        .await;
    let refused = cluster.put(&format!("{MAPS}/a"), &made).await;
    assert_eq!(
        (refused.code, refused.body["reason"].as_str()),
        (409, Some("Conflict"))
    );
}

#[tokio::test]
async fn unknown_fields_are_refused_when_asked_and_always_by_apply() {
    let cluster = Cluster::ready().await;
    let mut object = deployment("web", 1, "web:1", &json!({}));
    object["spec"]["replicsa"] = json!(2);
    let strict = cluster
        .post(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), &object)
        .await;
    assert_eq!(strict.code, 400);
    let applied = cluster
        .apply(&format!("{DEPLOYMENTS}/web"), "one", &object)
        .await;
    assert_eq!(applied.code, 500);
    let kept = cluster.post(DEPLOYMENTS, &object).await;
    assert_eq!(kept.code, 201);
    assert!(kept.body["spec"].get("replicsa").is_none());
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let cluster = Cluster::ready().await;
    let media = "application/vnd.kubernetes.protobuf";
    assert_eq!(
        cluster.send("POST", MAPS, media, &json!("x")).await.code,
        415
    );
    let path = format!("{MAPS}/a");
    assert_eq!(
        cluster
            .send("PATCH", &path, "application/json", &json!({}))
            .await
            .code,
        415
    );
    let huge = map("a", &json!({"k": "x".repeat(4 * 1024 * 1024)}));
    assert_eq!(cluster.post(MAPS, &huge).await.code, 413);
}

#[tokio::test]
async fn a_custom_kind_is_served_once_it_is_established() {
    let cluster = Cluster::ready().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer"},
                        "mode": {"type": "string", "default": "plain"}}},
                    "status": {"type": "object",
                        "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(cluster.post(definitions, &definition).await.code, 201);
    let kind = "CustomResourceDefinition";
    cluster
        .until(|sim| {
            sim.get("apiextensions.k8s.io/v1", kind, "", "widgets.example.org")
                .is_some_and(|d| !d["status"]["conditions"].is_null())
        })
        .await;
    let widgets = "/apis/example.org/v1/namespaces/default/widgets";
    let widget = |spec| {
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": spec})
    };
    assert_eq!(cluster.post(widgets, &widget(json!({}))).await.code, 422);
    let made = cluster
        .apply(&format!("{widgets}/a"), "one", &widget(json!({"size": 1})))
        .await;
    assert_eq!(
        (made.code, &made.body["spec"]["mode"]),
        (201, &json!("plain"))
    );
    let discovered = cluster.get("/apis/example.org/v1").await.body;
    assert_eq!(discovered["resources"][1]["name"], "widgets/status");
    cluster
        .delete(&format!("{definitions}/widgets.example.org"), "Background")
        .await;
    cluster
        .until(|sim| {
            sim.get("apiextensions.k8s.io/v1", kind, "", "widgets.example.org")
                .is_none()
        })
        .await;
    assert_eq!(cluster.get(widgets).await.code, 404);
}
