//! Server-side apply: what every write of Cairn is made of.

use cairn_tests::answer::Answer;
use cairn_tests::kinds::pod_spec;
use cairn_tests::place::Place;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": data})
}

async fn apply_as(place: &Place, manager: &str, data: Value) -> Answer {
    place
        .kube
        .apply(
            &place.path("v1", "configmaps", "cm"),
            manager,
            false,
            &config_map(&data),
        )
        .await
}

fn deployment(replicas: Option<u32>, image: &str) -> Value {
    let mut spec = pod_spec();
    spec["containers"][0]["image"] = json!(image);
    let mut manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}}});
    if let Some(replicas) = replicas {
        manifest["spec"]["replicas"] = json!(replicas);
    }
    manifest
}

pub async fn the_first_apply_is_201_and_the_next_200(place: Place) {
    let made = apply_as(&place, "ours", json!({"a": "1"})).await.is(201);
    let again = apply_as(&place, "ours", json!({"a": "1"})).await.is(200);
    assert_eq!(made["metadata"]["uid"], again["metadata"]["uid"]);
    // Nothing changed, so nothing was written.
    assert_eq!(
        made["metadata"]["resourceVersion"],
        again["metadata"]["resourceVersion"]
    );
    let entry = &again["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["manager"], &entry["operation"]),
        (&json!("ours"), &json!("Apply"))
    );
    assert_eq!(entry["fieldsV1"], json!({"f:data": {"f:a": {}}}));
}

pub async fn onto_what_belongs_to_another_apply_answers_200_and_mixes_the_data(place: Place) {
    let theirs = config_map(&json!({"theirs": "1"}));
    place
        .kube
        .post(&place.list("v1", "configmaps"), &theirs)
        .await
        .is(201);
    let mixed = apply_as(&place, "ours", json!({"ours": "2"})).await.is(200);
    assert_eq!(mixed["data"], json!({"theirs": "1", "ours": "2"}));
    // Applying nothing withdraws our fields and leaves theirs.
    let bare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}});
    let path = place.path("v1", "configmaps", "cm");
    let left = place.kube.apply(&path, "ours", false, &bare).await.is(200);
    assert_eq!(left["data"], json!({"theirs": "1"}));
}

pub async fn a_resource_version_is_no_guard_for_what_does_not_exist(place: Place) {
    let mut manifest = config_map(&json!({"a": "1"}));
    let made = apply_as(&place, "ours", json!({"a": "1"})).await.is(201);
    manifest["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let path = place.path("v1", "configmaps", "cm");
    place.kube.delete(&path, &json!({})).await.is(200);
    // One would think that a version says "only if it is still that one"; it makes another.
    let other = place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    assert_ne!(other["metadata"]["uid"], made["metadata"]["uid"]);
    let old = place.kube.apply(&path, "ours", false, &manifest).await;
    assert_eq!(
        (old.status, old.reason()),
        (409, "Conflict"),
        "{:#}",
        old.body
    );
}

pub async fn an_apply_with_another_uid_is_refused(place: Place) {
    let made = apply_as(&place, "ours", json!({"a": "1"})).await.is(201);
    let path = place.path("v1", "configmaps", "cm");
    let mut manifest = config_map(&json!({"a": "2"}));
    manifest["metadata"]["uid"] = made["metadata"]["uid"].clone();
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(200);
    manifest["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    let other = place.kube.apply(&path, "ours", false, &manifest).await;
    assert_eq!(
        (other.status, other.reason()),
        (422, "Invalid"),
        "{:#}",
        other.body
    );
    assert!(
        other.message().contains("metadata.uid: Invalid value"),
        "{}",
        other.message()
    );
    // The object is gone: an apply with its UID does not make another.
    place.kube.delete(&path, &json!({})).await.is(200);
    manifest["metadata"]["uid"] = made["metadata"]["uid"].clone();
    let gone = place.kube.apply(&path, "ours", false, &manifest).await;
    assert_eq!(
        (gone.status, gone.reason()),
        (409, "Conflict"),
        "{:#}",
        gone.body
    );
}

pub async fn a_conflict_names_the_manager_and_the_field(place: Place) {
    apply_as(&place, "first", json!({"a": "1", "b": "1"}))
        .await
        .is(201);
    let refused = apply_as(&place, "second", json!({"a": "2"})).await;
    assert_eq!((refused.status, refused.reason()), (409, "Conflict"));
    assert_eq!(
        refused.message(),
        "Apply failed with 1 conflict: conflict with \"first\": .data.a"
    );
    let cause = &refused.body["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldManagerConflict");
    assert_eq!(
        (&cause["field"], &cause["message"]),
        (&json!(".data.a"), &json!("conflict with \"first\""))
    );
    // The same value is no conflict: it is shared.
    apply_as(&place, "second", json!({"a": "1"})).await.is(200);
}

pub async fn two_conflicts_are_listed(place: Place) {
    let theirs = config_map(&json!({"a": "1", "b": "1"}));
    let list = format!(
        "{}?fieldManager=kubectl-edit",
        place.list("v1", "configmaps")
    );
    place.kube.post(&list, &theirs).await.is(201);
    let refused = apply_as(&place, "ours", json!({"a": "2", "b": "2"})).await;
    assert_eq!(refused.status, 409);
    assert_eq!(
        refused.message(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using v1:\n- .data.a\n- .data.b"
    );
}

pub async fn force_takes_a_field_over(place: Place) {
    apply_as(&place, "first", json!({"a": "1", "b": "1"}))
        .await
        .is(201);
    let path = place.path("v1", "configmaps", "cm");
    let forced = place
        .kube
        .apply(&path, "second", true, &config_map(&json!({"a": "2"})))
        .await
        .is(200);
    assert_eq!(forced["data"], json!({"a": "2", "b": "1"}));
    let refused = apply_as(&place, "first", json!({"a": "3"})).await;
    assert_eq!(refused.status, 409, "{:#}", refused.body);
}

pub async fn one_hand_edit_of_an_image_makes_every_later_apply_a_conflict(place: Place) {
    let path = place.path("apps/v1", "deployments", "web");
    let manifest = deployment(Some(1), "cairn.test/pause:1");
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    let edit = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "main", "image": "cairn.test/web:1", "imagePullPolicy": "IfNotPresent"}]}}}});
    let edited = format!("{path}?fieldManager=kubectl-set");
    place.kube.merge(&edited, &edit).await.is(200);
    for _ in 0..2 {
        let refused = place.kube.apply(&path, "ours", false, &manifest).await;
        assert_eq!(refused.status, 409);
        assert_eq!(
            refused.message(),
            "Apply failed with 1 conflict: conflict with \"kubectl-set\" using apps/v1: \
             .spec.template.spec.containers[name=\"main\"].image"
        );
    }
    place
        .kube
        .apply(&path, "ours", true, &manifest)
        .await
        .is(200);
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(200);
}

pub async fn a_field_left_out_goes_away_where_nobody_else_owns_it(place: Place) {
    apply_as(&place, "ours", json!({"a": "1", "b": "1"}))
        .await
        .is(201);
    apply_as(&place, "other", json!({"b": "1"})).await.is(200);
    let left = apply_as(&place, "ours", json!({})).await.is(200);
    assert_eq!(left["data"], json!({"b": "1"}));
}

pub async fn replicas_left_out_by_their_owner_become_one(place: Place) {
    let path = place.path("apps/v1", "deployments", "web");
    let image = "cairn.test/pause:1";
    place
        .kube
        .apply(&path, "ours", false, &deployment(Some(3), image))
        .await
        .is(201);
    let left = place
        .kube
        .apply(&path, "ours", false, &deployment(None, image))
        .await
        .is(200);
    assert_eq!(left["spec"]["replicas"], 1);
}

pub async fn replicas_owned_by_another_stay_when_they_are_left_out(place: Place) {
    let path = place.path("apps/v1", "deployments", "web");
    let image = "cairn.test/pause:1";
    place
        .kube
        .apply(&path, "ours", false, &deployment(Some(1), image))
        .await
        .is(201);
    let scale = format!("{path}/scale?fieldManager=somebody");
    place
        .kube
        .merge(&scale, &json!({"spec": {"replicas": 2}}))
        .await
        .is(200);
    let refused = place
        .kube
        .apply(&path, "ours", false, &deployment(Some(1), image))
        .await;
    assert_eq!(refused.status, 409);
    assert_eq!(
        refused.message(),
        "Apply failed with 1 conflict: conflict with \"somebody\" with subresource \"scale\" using apps/v1: \
         .spec.replicas"
    );
    let left = place
        .kube
        .apply(&path, "ours", false, &deployment(None, image))
        .await
        .is(200);
    assert_eq!(left["spec"]["replicas"], 2);
}

pub async fn a_dry_run_changes_nothing_and_refuses_what_would_be_refused(place: Place) {
    let dry = format!("{}?dryRun=All", place.path("v1", "configmaps", "cm"));
    let tried = place
        .kube
        .apply(&dry, "ours", false, &config_map(&json!({"a": "1"})))
        .await;
    assert_eq!(tried.status, 201, "{:#}", tried.body);
    assert_eq!(
        place.read(&place.path("v1", "configmaps", "cm")).await,
        None
    );
    let bad = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "No_Name"}});
    let dry = format!("{}?dryRun=All", place.path("v1", "configmaps", "No_Name"));
    let refused = place.kube.apply(&dry, "ours", false, &bad).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (422, "Invalid"),
        "{:#}",
        refused.body
    );
    assert!(
        refused.message().contains("metadata.name"),
        "{}",
        refused.message()
    );
}

pub async fn a_dry_run_into_a_namespace_not_yet_made_is_404(place: Place) {
    let path = "/api/v1/namespaces/none-such/configmaps/cm?dryRun=All";
    let refused = place
        .kube
        .apply(path, "ours", false, &config_map(&json!({})))
        .await;
    assert_eq!(
        (refused.status, refused.reason()),
        (404, "NotFound"),
        "{:#}",
        refused.body
    );
    assert_eq!(refused.message(), "namespaces \"none-such\" not found");
}

pub async fn onto_what_is_being_deleted_apply_succeeds_and_it_vanishes(place: Place) {
    let path = place.path("v1", "configmaps", "cm");
    let mut held = config_map(&json!({"a": "1"}));
    held["metadata"]["finalizers"] = json!(["example.org/held"]);
    let made = place.kube.apply(&path, "other", false, &held).await.is(201);
    place.kube.delete(&path, &json!({})).await.ok();
    let applied = apply_as(&place, "ours", json!({"b": "2"})).await.is(200);
    assert_eq!(applied["metadata"]["uid"], made["metadata"]["uid"]);
    assert!(applied["metadata"]["deletionTimestamp"].is_string());
    place
        .kube
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .ok();
    place.kube.gone(&path, SOON).await;
}

/// The parts of an object that a person would call its content.
fn content(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for part in [
        "managedFields",
        "resourceVersion",
        "generation",
        "creationTimestamp",
    ] {
        metadata.remove(part);
    }
    object.as_object_mut().expect("an object").remove("status");
    object
}

pub async fn there_and_back_a_service_and_a_stateful_set_are_equal(place: Place) {
    let service = |port: u32| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"selector": {"app": "s"}, "ports": [{"name": "p", "port": port}]}})
    };
    let stateful = |image: &str| {
        let mut manifest = deployment(Some(1), image);
        manifest["kind"] = json!("StatefulSet");
        manifest["spec"]["serviceName"] = json!("s");
        manifest
    };
    let path = place.path("v1", "services", "s");
    let before = place
        .kube
        .apply(&path, "ours", false, &service(80))
        .await
        .is(201);
    place
        .kube
        .apply(&path, "ours", false, &service(81))
        .await
        .is(200);
    let after = place
        .kube
        .apply(&path, "ours", false, &service(80))
        .await
        .is(200);
    assert_eq!(content(after), content(before));
    let path = place.path("apps/v1", "statefulsets", "web");
    let before = place
        .kube
        .apply(&path, "ours", false, &stateful("cairn.test/pause:1"))
        .await
        .is(201);
    place
        .kube
        .apply(&path, "ours", false, &stateful("cairn.test/web:1"))
        .await
        .is(200);
    let after = place
        .kube
        .apply(&path, "ours", false, &stateful("cairn.test/pause:1"))
        .await
        .is(200);
    assert_eq!(content(after), content(before));
}

pub async fn a_changed_cluster_ip_is_refused_as_invalid(place: Place) {
    let path = place.path("v1", "services", "s");
    let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]}});
    let made = place
        .kube
        .apply(&path, "ours", false, &service)
        .await
        .is(201);
    assert!(
        made["spec"]["clusterIP"]
            .as_str()
            .is_some_and(|ip| ip != "None" && !ip.is_empty())
    );
    service["spec"]["clusterIP"] = json!("None");
    let refused = place.kube.apply(&path, "ours", true, &service).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (422, "Invalid"),
        "{:#}",
        refused.body
    );
    assert!(
        refused
            .message()
            .contains("spec.clusterIPs[0]: Invalid value"),
        "{}",
        refused.message()
    );
}

pub async fn a_changed_selector_of_a_deployment_is_refused_as_invalid(place: Place) {
    let path = place.path("apps/v1", "deployments", "web");
    let mut manifest = deployment(Some(0), "cairn.test/pause:1");
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    manifest["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    manifest["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let refused = place.kube.apply(&path, "ours", false, &manifest).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (422, "Invalid"),
        "{:#}",
        refused.body
    );
    assert!(
        refused.message().contains("field is immutable"),
        "{}",
        refused.message()
    );
}

pub async fn an_unknown_field_is_refused_by_strict_validation(place: Place) {
    let mut manifest = deployment(Some(0), "cairn.test/pause:1");
    manifest["spec"]["replicaz"] = json!(1);
    let path = place.path("apps/v1", "deployments", "web");
    let refused = place.kube.apply(&path, "ours", false, &manifest).await;
    // Apply always knows the schema, so a field outside it cannot be owned.
    assert!(matches!(refused.status, 400 | 500), "{:#}", refused.body);
    assert!(
        refused.message().contains("replicaz"),
        "{}",
        refused.message()
    );
}
