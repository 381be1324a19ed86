//! What the controllers make of workloads.

use std::time::Duration;

use serde_json::{Value, json};

use crate::conversation::{Cluster, DEPLOYMENTS, SOON, deployment, waits_for};

async fn with(annotations: &Value) -> Cluster {
    let cluster = Cluster::ready().await;
    cluster
        .post(DEPLOYMENTS, &deployment("web", 1, "web:1", annotations))
        .await;
    cluster
}

async fn until_pod(cluster: &Cluster, check: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    cluster
        .until(|sim| {
            let pods = sim.list("v1", "Pod", "default");
            if let Some(pod) = pods.into_iter().find(|pod| check(pod)) {
                found = pod;
            }
            !found.is_null()
        })
        .await;
    found
}

#[tokio::test]
async fn a_rollout_never_goes_below_what_must_be_available() {
    let cluster = Cluster::ready().await;
    cluster
        .post(DEPLOYMENTS, &deployment("web", 4, "web:1", &json!({})))
        .await;
    cluster.available("web", 4).await;
    let path = format!("{DEPLOYMENTS}/web");
    let image = json!({"spec": {"template": {"spec": {"containers":
        [{"name": "main", "image": "web:2"}]}}}});
    cluster.merge(&path, &image).await;
    cluster
        .until(|sim| {
            let found = sim.get("apps/v1", "Deployment", "default", "web").unwrap();
            let available = found["status"]["availableReplicas"].as_i64().unwrap_or(0);
            assert!(available >= 3, "only {available} were available");
            let total = found["status"]["replicas"].as_i64().unwrap_or(0);
            assert!(total <= 5, "{total} pods at once");
            found["status"]["observedGeneration"] == found["metadata"]["generation"]
                && found["status"]["updatedReplicas"] == 4
                && total == 4
                && available == 4
        })
        .await;
    let found = cluster.get(&path).await.body;
    assert_eq!(
        found["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
}

#[tokio::test]
async fn an_image_that_is_not_there_ends_in_back_off() {
    let cluster = with(&json!({"simcluster.cairn.dev/pull": "fail"})).await;
    until_pod(&cluster, |pod| waits_for(pod) == "ErrImagePull").await;
    let pod = until_pod(&cluster, |pod| waits_for(pod) == "ImagePullBackOff").await;
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert!(waiting["message"].as_str().unwrap().contains("not found"));
}

#[tokio::test]
async fn a_container_that_crashes_twice_runs_then() {
    let cluster = with(&json!({"simcluster.cairn.dev/crash": "2"})).await;
    let pod = until_pod(&cluster, |pod| waits_for(pod) == "CrashLoopBackOff").await;
    assert_eq!(
        pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"],
        1
    );
    cluster.available("web", 1).await;
    assert_eq!(
        cluster.pods()[0]["status"]["containerStatuses"][0]["restartCount"],
        2
    );
}

#[tokio::test]
async fn a_pod_that_never_becomes_ready_ends_in_a_deadline() {
    let cluster = Cluster::ready().await;
    let never = json!({"simcluster.cairn.dev/ready-after": "never"});
    let mut object = deployment("web", 1, "web:1", &never);
    object["spec"]["progressDeadlineSeconds"] = json!(1);
    cluster.post(DEPLOYMENTS, &object).await;
    cluster
        .until(|sim| {
            let found = sim.get("apps/v1", "Deployment", "default", "web").unwrap();
            found["status"]["conditions"]
                .as_array()
                .is_some_and(|conditions| {
                    conditions
                        .iter()
                        .any(|c| c["reason"] == "ProgressDeadlineExceeded")
                })
        })
        .await;
}

#[tokio::test]
async fn a_quota_stops_pods_and_says_so_until_it_is_raised() {
    let cluster = Cluster::ready().await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"pods": 1}}});
    cluster.post(quotas, &quota).await;
    cluster
        .post(DEPLOYMENTS, &deployment("web", 2, "web:1", &json!({})))
        .await;
    cluster
        .until(|sim| {
            let found = sim.get("apps/v1", "Deployment", "default", "web").unwrap();
            found["status"]["conditions"]
                .as_array()
                .is_some_and(|conditions| {
                    conditions.iter().any(|c| {
                        c["type"] == "ReplicaFailure"
                        && c["message"].as_str().unwrap().ends_with(
                            "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1",
                        )
                    })
                })
        })
        .await;
    let events = cluster.sim.list("v1", "Event", "default");
    assert!(events.iter().any(|event| event["reason"] == "FailedCreate"));
    cluster
        .merge(
            &format!("{quotas}/few"),
            &json!({"spec": {"hard": {"pods": "5"}}}),
        )
        .await;
    cluster.available("web", 2).await;
}

#[tokio::test]
async fn a_missing_reference_and_a_missing_node_are_named() {
    let cluster = Cluster::ready().await;
    let mut object = deployment("cfg", 1, "web:1", &json!({}));
    object["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "nope"}}]);
    cluster.post(DEPLOYMENTS, &object).await;
    let mut object = deployment("sel", 1, "web:1", &json!({}));
    object["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "where"});
    cluster.post(DEPLOYMENTS, &object).await;
    until_pod(&cluster, |pod| {
        waits_for(pod) == "CreateContainerConfigError"
    })
    .await;
    let pod = until_pod(&cluster, |pod| {
        pod["status"]["conditions"][0]["reason"] == "Unschedulable"
    })
    .await;
    assert!(
        pod["status"]["conditions"][0]["message"]
            .as_str()
            .unwrap()
            .starts_with("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity")
    );
}

#[tokio::test]
async fn a_stateful_set_makes_its_pods_and_claims_in_order() {
    let cluster = Cluster::ready().await;
    cluster
        .post(
            "/apis/storage.k8s.io/v1/storageclasses",
            &json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": "sim"}, "provisioner": "simcluster.cairn.dev/provisioner",
                "volumeBindingMode": "WaitForFirstConsumer"}),
        )
        .await;
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "main", "image": "db:1"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "storageClassName": "sim", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}]}});
    cluster
        .post("/apis/apps/v1/namespaces/default/statefulsets", &set)
        .await;
    cluster
        .until(|sim| {
            let found = sim.get("apps/v1", "StatefulSet", "default", "db").unwrap();
            let second = sim.get("v1", "Pod", "default", "db-1").is_some();
            let first = sim.get("v1", "Pod", "default", "db-0");
            assert!(
                !second || first.is_some(),
                "the second pod came before the first"
            );
            found["status"]["readyReplicas"] == 2
        })
        .await;
    for name in ["data-db-0", "data-db-1"] {
        let claim = cluster
            .sim
            .get("v1", "PersistentVolumeClaim", "default", name)
            .unwrap();
        assert_eq!(claim["status"]["phase"], "Bound");
        assert!(claim["metadata"].get("ownerReferences").is_none());
    }
    cluster
        .delete(
            "/apis/apps/v1/namespaces/default/statefulsets/db",
            "Foreground",
        )
        .await;
    cluster
        .until(|sim| sim.list("v1", "Pod", "default").is_empty())
        .await;
    assert_eq!(
        cluster
            .sim
            .list("v1", "PersistentVolumeClaim", "default")
            .len(),
        2
    );
}

#[tokio::test]
async fn a_job_completes_or_fails_by_its_limit() {
    let cluster = Cluster::ready().await;
    let job = |name: &str, annotations: Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 1, "template": {"metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "job:1"}]}}}})
    };
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let message = json!({"simcluster.cairn.dev/termination-message": "{\"ok\":true}"});
    cluster.post(jobs, &job("good", message)).await;
    cluster
        .post(
            jobs,
            &job("bad", json!({"simcluster.cairn.dev/crash": "always"})),
        )
        .await;
    cluster
        .post(
            jobs,
            &job("late", json!({"simcluster.cairn.dev/crash": "1"})),
        )
        .await;
    let is = |sim: &cairn_simcluster::SimCluster, name: &str, condition: &str| {
        sim.get("batch/v1", "Job", "default", name).unwrap()["status"]["conditions"]
            .as_array()
            .is_some_and(|c| {
                c.iter()
                    .any(|c| c["type"] == condition && c["status"] == "True")
            })
    };
    cluster
        .until(|sim| {
            is(sim, "good", "Complete") && is(sim, "bad", "Failed") && is(sim, "late", "Complete")
        })
        .await;
    let ended = cluster.pods().into_iter().find(|pod| {
        pod["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("good-")
    });
    let state = &ended.unwrap()["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(state["message"], "{\"ok\":true}");
}

#[tokio::test]
async fn endpoints_follow_the_ready_pods() {
    let cluster = with(&json!({})).await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    cluster
        .post("/api/v1/namespaces/default/services", &service)
        .await;
    cluster
        .until(|sim| {
            sim.get("v1", "Endpoints", "default", "web")
                .is_some_and(|e| e["subsets"][0]["addresses"][0]["ip"].is_string())
        })
        .await;
    cluster
        .merge(
            &format!("{DEPLOYMENTS}/web/scale"),
            &json!({"spec": {"replicas": 0}}),
        )
        .await;
    cluster
        .until(|sim| {
            sim.get("v1", "Endpoints", "default", "web")
                .is_some_and(|e| e["subsets"].is_null())
        })
        .await;
}

#[tokio::test]
async fn a_cluster_comes_to_rest() {
    let cluster = with(&json!({})).await;
    cluster.available("web", 1).await;
    let rest = tokio::time::timeout(SOON, async {
        loop {
            let now = cluster.sim.resource_version();
            let quiet = Duration::from_millis(150);
            if cluster
                .sim
                .wait_until(quiet, |sim| sim.resource_version() != now)
                .await
                .is_err()
            {
                return;
            }
        }
    });
    rest.await.expect("the controllers write for ever");
}
