//! Deleting: preconditions, finalizers, cascades.

use cairn_tests::kinds::{DEFINITION, pod_spec, widget, widget_version};
use cairn_tests::place::Place;
use serde_json::{Value, json};
use std::time::Duration;

/// The real cluster takes its time with namespaces while others come and go.
const SOON: Duration = Duration::from_secs(150);

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

async fn make(place: &Place, name: &str) -> Value {
    place
        .kube
        .post(&place.list("v1", "configmaps"), &config_map(name))
        .await
        .is(201)
}

pub async fn a_precondition_on_another_uid_is_409(place: Place) {
    let made = make(&place, "cm").await;
    let path = place.path("v1", "configmaps", "cm");
    let other = json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}});
    let refused = place.kube.delete(&path, &other).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (409, "Conflict"),
        "{:#}",
        refused.body
    );
    assert!(refused.message().contains("UID"), "{}", refused.message());
    let ours = json!({"preconditions": {"uid": made["metadata"]["uid"]}});
    place.kube.delete(&path, &ours).await.is(200);
    place.kube.gone(&path, SOON).await;
}

pub async fn what_is_absent_is_404(place: Place) {
    let path = place.path("v1", "configmaps", "none-such");
    let absent = place.kube.delete(&path, &json!({})).await;
    assert_eq!((absent.status, absent.reason()), (404, "NotFound"));
    assert_eq!(absent.message(), "configmaps \"none-such\" not found");
    assert_eq!(
        absent.body["details"],
        json!({"kind": "configmaps", "name": "none-such"})
    );
}

pub async fn a_finalizer_keeps_an_object_until_it_is_taken_away(place: Place) {
    let mut held = config_map("cm");
    held["metadata"]["finalizers"] = json!(["example.org/held"]);
    place
        .kube
        .post(&place.list("v1", "configmaps"), &held)
        .await
        .is(201);
    let path = place.path("v1", "configmaps", "cm");
    let answered = place.kube.delete(&path, &json!({})).await.ok();
    assert_eq!(
        answered["kind"], "ConfigMap",
        "the object itself is answered while it is held"
    );
    let ending = place.kube.get(&path).await.is(200);
    assert!(ending["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(
        ending["metadata"]["finalizers"],
        json!(["example.org/held"])
    );
    place
        .kube
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
    place.kube.gone(&path, SOON).await;
}

pub async fn foreground_deletion_waits_for_the_pods(place: Place) {
    let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec()}}});
    let path = place.path("apps/v1", "deployments", "web");
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    place
        .kube
        .until(&path, SOON, "an available pod", |d| {
            d["status"]["availableReplicas"] == 1
        })
        .await;
    place
        .kube
        .delete(&path, &json!({"propagationPolicy": "Foreground"}))
        .await
        .ok();
    if let Some(ending) = place.read(&path).await {
        assert_eq!(
            ending["metadata"]["finalizers"],
            json!(["foregroundDeletion"])
        );
        assert!(ending["metadata"]["deletionTimestamp"].is_string());
    }
    place.kube.gone(&path, SOON).await;
    for (version, plural) in [("apps/v1", "replicasets"), ("v1", "pods")] {
        let left = place.kube.get(&place.list(version, plural)).await.is(200);
        assert_eq!(left["items"], json!([]), "{plural}");
    }
}

pub async fn a_namespace_takes_with_it_what_it_holds(place: Place) {
    let name = format!("n-{}", place.suffix);
    let path = format!("/api/v1/namespaces/{name}");
    place.remove_at_end(&path);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let made = place
        .kube
        .post("/api/v1/namespaces", &namespace)
        .await
        .is(201);
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        json!(name)
    );
    let inside = format!("{path}/configmaps");
    place.kube.post(&inside, &config_map("cm")).await.is(201);
    let root = format!("{inside}/kube-root-ca.crt");
    place
        .kube
        .until(&root, SOON, "what every namespace gets", |_| true)
        .await;
    place.kube.delete(&path, &json!({})).await.ok();
    place.kube.gone(&path, SOON).await;
    assert_eq!(place.kube.get(&format!("{inside}/cm")).await.status, 404);
}

pub async fn nothing_is_made_in_a_namespace_that_ends(place: Place) {
    let name = format!("n-{}", place.suffix);
    let path = format!("/api/v1/namespaces/{name}");
    place.remove_at_end(&path);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    place
        .kube
        .post("/api/v1/namespaces", &namespace)
        .await
        .is(201);
    let inside = format!("{path}/configmaps");
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.org/held"]);
    place.kube.post(&inside, &held).await.is(201);
    place.kube.delete(&path, &json!({})).await.ok();
    let refused = place.kube.post(&inside, &config_map("late")).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (403, "Forbidden"),
        "{:#}",
        refused.body
    );
    assert!(
        refused.message().contains("because it is being terminated"),
        "{}",
        refused.message()
    );
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    place
        .kube
        .until(&path, SOON, "a condition that names the finalizer", |n| {
            let conditions = n["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            conditions.iter().any(|c| {
                c["type"] == "NamespaceFinalizersRemaining"
                    && c["status"] == "True"
                    && c["message"]
                        .as_str()
                        .is_some_and(|m| m.contains("example.org/held in 1 resource instances"))
            })
        })
        .await;
    place
        .kube
        .merge(
            &format!("{inside}/held"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await
        .ok();
    place.kube.gone(&path, SOON).await;
}

pub async fn a_definition_takes_its_custom_resources_with_it(place: Place) {
    let definition = DEFINITION.path(&place, "");
    place.remove_at_end(&definition);
    place
        .kube
        .apply(&definition, "ours", false, &DEFINITION.manifest(&place, ""))
        .await
        .is(201);
    let path = place.path(&widget_version(&place), "widgets", "w");
    let made = cairn_tests::until::until(SOON, "the custom resource to be made", || async {
        let answer = place
            .kube
            .apply(&path, "ours", false, &widget(&place, "w"))
            .await;
        if answer.status == 201 {
            Ok(answer.body)
        } else {
            Err((answer.status, answer.body))
        }
    })
    .await;
    assert_eq!(made["spec"]["size"], 1);
    place.kube.delete(&definition, &json!({})).await.ok();
    place.kube.gone(&definition, SOON).await;
    place.kube.gone(&path, SOON).await;
}

pub async fn claims_of_a_stateful_set_outlive_it_and_carry_no_owner(place: Place) {
    let mut spec = pod_spec();
    spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let manifest = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "db", "labels": {"ours": "yes"}},
        "spec": {"replicas": 1, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db", "ours": "yes"}}, "spec": spec},
            "volumeClaimTemplates": [{"metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                    "resources": {"requests": {"storage": "1Mi"}}}}]}});
    let path = place.path("apps/v1", "statefulsets", "db");
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    let claim = place.path("v1", "persistentvolumeclaims", "data-db-0");
    let found = place.kube.until(&claim, SOON, "the claim", |_| true).await;
    assert_eq!(found["metadata"].get("ownerReferences"), None);
    assert_eq!(
        found["metadata"]["labels"],
        json!({"app": "db"}),
        "the selector's labels and no other"
    );
    place
        .kube
        .delete(&path, &json!({"propagationPolicy": "Foreground"}))
        .await
        .ok();
    place.kube.gone(&path, SOON).await;
    let left = place.kube.get(&claim).await.is(200);
    assert_eq!(left["metadata"].get("deletionTimestamp"), None);
}
