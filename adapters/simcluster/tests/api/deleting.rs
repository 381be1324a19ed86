//! Deletion: propagation, finalizers, preconditions, namespaces, eviction.

use serde_json::{Value, json};

use crate::conversation::{Cluster, DEPLOYMENTS, MAPS, deployment, map};

async fn with_pods(number: i64) -> Cluster {
    let cluster = Cluster::ready().await;
    cluster
        .post(DEPLOYMENTS, &deployment("web", number, "web:1", &json!({})))
        .await;
    cluster.available("web", number).await;
    cluster
}

#[tokio::test]
async fn foreground_takes_the_dependents_first() {
    let cluster = with_pods(2).await;
    let answer = cluster
        .delete(&format!("{DEPLOYMENTS}/web"), "Foreground")
        .await;
    assert_eq!(
        answer.body["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    cluster
        .until(|sim| {
            let gone = sim.get("apps/v1", "Deployment", "default", "web").is_none();
            let rest = sim.list("v1", "Pod", "default").len()
                + sim.list("apps/v1", "ReplicaSet", "default").len();
            assert!(!gone || rest == 0, "the owner went before its dependents");
            gone
        })
        .await;
}

#[tokio::test]
async fn background_takes_the_dependents_after() {
    let cluster = with_pods(2).await;
    let answer = cluster
        .delete(&format!("{DEPLOYMENTS}/web"), "Background")
        .await;
    assert_eq!(answer.body["status"], "Success");
    cluster
        .until(|sim| sim.list("v1", "Pod", "default").is_empty())
        .await;
}

#[tokio::test]
async fn orphans_stay_without_an_owner() {
    let cluster = with_pods(1).await;
    cluster
        .delete(&format!("{DEPLOYMENTS}/web"), "Orphan")
        .await;
    cluster
        .until(|sim| sim.get("apps/v1", "Deployment", "default", "web").is_none())
        .await;
    let sets = cluster.sim.list("apps/v1", "ReplicaSet", "default");
    assert_eq!(sets.len(), 1);
    assert!(sets[0]["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn a_job_deleted_without_a_word_leaves_its_pods() {
    let cluster = Cluster::ready().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "job:1"}]}}}});
    cluster.post(jobs, &job).await;
    cluster
        .until(|sim| sim.list("v1", "Pod", "default").len() == 1)
        .await;
    cluster
        .send("DELETE", &format!("{jobs}/once"), "", &Value::Null)
        .await;
    cluster
        .until(|sim| sim.get("batch/v1", "Job", "default", "once").is_none())
        .await;
    assert_eq!(cluster.pods().len(), 1);
}

#[tokio::test]
async fn a_wrong_uid_deletes_nothing() {
    let cluster = Cluster::ready().await;
    cluster.post(MAPS, &map("a", &json!({}))).await;
    let body = json!({"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}});
    let path = format!("{MAPS}/a");
    assert_eq!(
        cluster
            .send("DELETE", &path, "application/json", &body)
            .await
            .code,
        409
    );
    assert_eq!(cluster.get(&path).await.code, 200);
}

#[tokio::test]
async fn a_finalizer_holds_its_object_and_the_namespace_that_ends() {
    let cluster = Cluster::ready().await;
    cluster
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "tmp"}}))
        .await;
    let mut held = map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    cluster
        .post("/api/v1/namespaces/tmp/configmaps", &held)
        .await;
    cluster.delete("/api/v1/namespaces/tmp", "Background").await;
    cluster
        .until(|sim| {
            let found = sim.get("v1", "Namespace", "", "tmp").expect("it is held");
            found["status"]["conditions"]
                .as_array()
                .is_some_and(|conditions| {
                    conditions.iter().any(|c| {
                        c["type"] == "NamespaceFinalizersRemaining"
                            && c["status"] == "True"
                            && c["message"]
                                .as_str()
                                .unwrap()
                                .contains("example.org/hold in 1 resource")
                    })
                })
        })
        .await;
    let refused = cluster
        .post("/api/v1/namespaces/tmp/configmaps", &map("b", &json!({})))
        .await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    let free = json!({"metadata": {"finalizers": null}});
    cluster
        .merge("/api/v1/namespaces/tmp/configmaps/held", &free)
        .await;
    cluster
        .until(|sim| sim.get("v1", "Namespace", "", "tmp").is_none())
        .await;
}

#[tokio::test]
async fn a_budget_that_is_used_up_forbids_eviction() {
    let cluster = with_pods(1).await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    cluster
        .post(
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            &budget,
        )
        .await;
    cluster
        .until(|sim| {
            sim.get("policy/v1", "PodDisruptionBudget", "default", "keep")
                .is_some_and(|b| b["status"]["currentHealthy"] == 1)
        })
        .await;
    let pods = cluster.pods();
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let refused = cluster.post(&path, &eviction).await;
    assert_eq!(refused.code, 429);
    assert_eq!(
        refused.body["details"]["causes"][0]["message"],
        "The disruption budget keep needs 1 healthy pods and has 1 currently"
    );
    cluster
        .merge(
            &format!("{DEPLOYMENTS}/web/scale"),
            &json!({"spec": {"replicas": 2}}),
        )
        .await;
    cluster
        .until(|sim| {
            sim.get("policy/v1", "PodDisruptionBudget", "default", "keep")
                .is_some_and(|b| b["status"]["disruptionsAllowed"] == 1)
        })
        .await;
    assert_eq!(cluster.post(&path, &eviction).await.code, 201);
}
