//! What pods do, and what the cluster says when they do not.

use cairn_tests::kinds::{job_spec, pod_spec};
use cairn_tests::place::Place;
use cairn_tests::until::until;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_mins(1);

fn deployment(replicas: u32, spec: &Value, annotations: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}, "annotations": annotations},
                "spec": spec}}})
}

async fn make(place: &Place, replicas: u32, spec: &Value, annotations: &Value) -> String {
    let path = place.path("apps/v1", "deployments", "web");
    let manifest = deployment(replicas, spec, annotations);
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    path
}

async fn available(place: &Place, replicas: u32) -> Value {
    let path = make(place, replicas, &pod_spec(), &json!({})).await;
    place
        .kube
        .until(&path, SOON, "available pods", |d| {
            d["status"]["availableReplicas"] == replicas
        })
        .await
}

async fn pods(place: &Place) -> Vec<Value> {
    let list = format!("{}?labelSelector=app%3Dweb", place.list("v1", "pods"));
    place.kube.get(&list).await.is(200)["items"]
        .as_array()
        .expect("items")
        .clone()
}

pub async fn a_deployment_becomes_available_and_its_pods_are_owned_by_its_replica_set(
    place: Place,
) {
    let ready = available(&place, 2).await;
    assert_eq!(
        ready["status"]["observedGeneration"],
        ready["metadata"]["generation"]
    );
    assert_eq!(ready["status"]["updatedReplicas"], 2);
    let sets = place
        .kube
        .get(&place.list("apps/v1", "replicasets"))
        .await
        .is(200);
    let set = &sets["items"][0];
    assert_eq!(
        set["metadata"]["ownerReferences"][0]["uid"],
        ready["metadata"]["uid"]
    );
    assert_eq!(set["metadata"]["ownerReferences"][0]["controller"], true);
    let pods = pods(&place).await;
    assert_eq!(pods.len(), 2);
    for pod in pods {
        assert_eq!(
            pod["metadata"]["ownerReferences"][0]["uid"],
            set["metadata"]["uid"]
        );
        let name = pod["metadata"]["name"].as_str().expect("a name");
        assert!(
            name.starts_with(set["metadata"]["name"].as_str().expect("a name")),
            "{name}"
        );
    }
}

async fn budget(place: &Place, least: u32) {
    let manifest = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}});
    let path = place.path("policy/v1", "poddisruptionbudgets", "keep");
    place
        .kube
        .apply(&path, "ours", false, &manifest)
        .await
        .is(201);
    place
        .kube
        .until(&path, SOON, "the budget to be counted", |b| {
            b["status"]["currentHealthy"] == 2 && b["status"]["observedGeneration"] == 1
        })
        .await;
}

async fn evict(place: &Place, pod: &Value) -> cairn_tests::answer::Answer {
    let name = pod["metadata"]["name"].as_str().expect("a name");
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": name, "namespace": place.namespace},
        "deleteOptions": {"preconditions": {"uid": pod["metadata"]["uid"]}}});
    place
        .kube
        .post(
            &format!("{}/eviction", place.path("v1", "pods", name)),
            &body,
        )
        .await
}

pub async fn an_eviction_against_a_budget_is_429_and_names_it(place: Place) {
    available(&place, 2).await;
    budget(&place, 2).await;
    let refused = evict(&place, &pods(&place).await[0]).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (429, "TooManyRequests"),
        "{:#}",
        refused.body
    );
    assert!(
        refused.message().contains("disruption budget"),
        "{}",
        refused.message()
    );
    let cause = &refused.body["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert!(
        cause["message"].as_str().expect("a text").contains("keep"),
        "{cause}"
    );
}

pub async fn an_eviction_that_a_budget_allows_is_201(place: Place) {
    available(&place, 2).await;
    budget(&place, 1).await;
    let victim = pods(&place).await[0].clone();
    evict(&place, &victim).await.is(201);
    let name = victim["metadata"]["name"].as_str().expect("a name");
    place.kube.gone(&place.path("v1", "pods", name), SOON).await;
    until(SOON, "another pod in its place", || async {
        let pods = pods(&place).await;
        if pods.len() == 2 {
            Ok(())
        } else {
            Err(pods.len())
        }
    })
    .await;
}

pub async fn an_eviction_with_another_uid_is_409(place: Place) {
    available(&place, 1).await;
    let mut victim = pods(&place).await[0].clone();
    victim["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    let refused = evict(&place, &victim).await;
    assert_eq!(
        (refused.status, refused.reason()),
        (409, "Conflict"),
        "{:#}",
        refused.body
    );
    let left = pods(&place).await;
    assert_eq!(left[0]["metadata"].get("deletionTimestamp"), None);
}

pub async fn a_quota_keeps_pods_from_being_made_and_the_reason_says_so(place: Place) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-more-pods"},
        "spec": {"hard": {"pods": "1"}}});
    let path = place.path("v1", "resourcequotas", "no-more-pods");
    place.kube.apply(&path, "ours", false, &quota).await.is(201);
    place
        .kube
        .until(&path, SOON, "the quota to be counted", |q| {
            q["status"]["used"]["pods"] == "0"
        })
        .await;
    let path = make(&place, 2, &pod_spec(), &json!({})).await;
    let failed = place
        .kube
        .until(&path, SOON, "ReplicaFailure", |d| {
            condition(d, "ReplicaFailure").is_some_and(|c| c["status"] == "True")
        })
        .await;
    let why = condition(&failed, "ReplicaFailure")
        .expect("the condition")
        .clone();
    assert_eq!(why["reason"], "FailedCreate");
    let message = why["message"].as_str().expect("a text");
    assert!(
        message.contains(
            "exceeded quota: no-more-pods, requested: pods=1, used: pods=1, limited: pods=1"
        ),
        "{message}"
    );
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec()});
    let refused = place
        .kube
        .apply(&place.path("v1", "pods", "p"), "ours", false, &pod)
        .await;
    assert_eq!(
        (refused.status, refused.reason()),
        (403, "Forbidden"),
        "{:#}",
        refused.body
    );
    assert!(
        refused.message().contains("exceeded quota"),
        "{}",
        refused.message()
    );
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|c| c["type"] == kind)
}

async fn waiting(place: &Place, reasons: &[&str]) -> Value {
    until(
        SOON,
        &format!("a container that waits: {reasons:?}"),
        || async {
            let pods = pods(place).await;
            let waiting = pods.iter().find_map(|pod| {
                let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
                reasons
                    .iter()
                    .any(|reason| waiting["reason"] == *reason)
                    .then(|| waiting.clone())
            });
            waiting.ok_or_else(|| {
                pods.iter()
                    .map(|pod| pod["status"].clone())
                    .collect::<Vec<_>>()
            })
        },
    )
    .await
}

fn with_image(image: &str) -> Value {
    let mut spec = pod_spec();
    spec["containers"][0]["image"] = json!(image);
    spec
}

pub async fn an_image_that_cannot_be_had_is_told_by_the_container(place: Place) {
    // The simulated cluster has every image unless it is told otherwise.
    let told = json!({"simcluster.cairn.dev/pull": "fail"});
    make(&place, 1, &with_image("cairn.test/none-such:1"), &told).await;
    let waiting = waiting(&place, &["ImagePullBackOff"]).await;
    let message = waiting["message"].as_str().expect("a text");
    assert!(message.contains("cairn.test/none-such:1"), "{message}");
}

pub async fn a_container_that_ends_with_an_error_backs_off(place: Place) {
    let told = json!({"simcluster.cairn.dev/crash": "always"});
    make(&place, 1, &with_image("cairn.test/crash:1"), &told).await;
    let waiting = waiting(&place, &["CrashLoopBackOff"]).await;
    let message = waiting["message"].as_str().expect("a text");
    assert!(message.contains("restarting failed container"), "{message}");
    let pod = pods(&place).await.remove(0);
    let status = &pod["status"]["containerStatuses"][0];
    assert!(status["restartCount"].as_u64().expect("a number") >= 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
}

pub async fn a_bad_image_name_is_told_by_the_container(place: Place) {
    make(&place, 1, &with_image("Not An Image"), &json!({})).await;
    let waiting = waiting(&place, &["InvalidImageName"]).await;
    assert!(
        waiting["message"]
            .as_str()
            .expect("a text")
            .contains("Not An Image"),
        "{waiting}"
    );
}

pub async fn a_pod_that_fits_nowhere_is_unschedulable(place: Place) {
    let mut spec = pod_spec();
    spec["nodeSelector"] = json!({"none": "such"});
    make(&place, 1, &spec, &json!({})).await;
    let pod = until(SOON, "Unschedulable", || async {
        let pods = pods(&place).await;
        pods.into_iter()
            .find(|pod| {
                condition(pod, "PodScheduled").is_some_and(|c| c["reason"] == "Unschedulable")
            })
            .ok_or("no such pod")
    })
    .await;
    let why = condition(&pod, "PodScheduled").expect("the condition");
    assert_eq!(why["status"], "False");
    let message = why["message"].as_str().expect("a text");
    assert!(
        message.contains("nodes are available") && message.contains("node affinity/selector"),
        "{message}"
    );
}

pub async fn a_failed_job_is_not_begun_again_by_an_apply(place: Place) {
    let mut spec = job_spec();
    spec["containers"][0]["image"] = json!("cairn.test/crash:1");
    let told = json!({"simcluster.cairn.dev/crash": "always"});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": told}, "spec": spec}}});
    let path = place.path("batch/v1", "jobs", "j");
    place.kube.apply(&path, "ours", false, &job).await.is(201);
    let failed = |j: &Value| condition(j, "Failed").is_some_and(|c| c["status"] == "True");
    let before = place.kube.until(&path, SOON, "Failed", failed).await;
    let why = condition(&before, "Failed").expect("the condition");
    assert_eq!(why["reason"], "BackoffLimitExceeded");
    let after = place.kube.apply(&path, "ours", false, &job).await.is(200);
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    assert!(failed(&after));
}

pub async fn a_job_that_succeeds_is_complete(place: Place) {
    let told = json!({"simcluster.cairn.dev/ready-after": "0ms"});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"metadata": {"annotations": told}, "spec": job_spec()}}});
    let path = place.path("batch/v1", "jobs", "j");
    place.kube.apply(&path, "ours", false, &job).await.is(201);
    let complete = |j: &Value| condition(j, "Complete").is_some_and(|c| c["status"] == "True");
    let done = place.kube.until(&path, SOON, "Complete", complete).await;
    assert_eq!(done["status"]["succeeded"], 1);
}

/// A Job whose container says why it ends, by its termination message or its last line, and ends badly for item `b`
/// until there is a `ConfigMap` named `mended`.
fn telling_job(item: &str) -> Value {
    let script = "[ \"$ITEM\" != b ] || [ -e /mended/now ] || { echo 'no licence'; exit 1; }; \
                  echo '{\"item\": \"'$ITEM'\"}' > /dev/termination-log";
    let told = json!({
        "simcluster.cairn.dev/crash": "always",
        "simcluster.cairn.dev/crash-where": "ITEM=b",
        "simcluster.cairn.dev/crash-until": "mended",
        "simcluster.cairn.dev/crash-message": "no licence\n",
        "simcluster.cairn.dev/termination-message": "{\"item\": \"$(ITEM)\"}\n",
    });
    let mut spec = job_spec();
    spec["volumes"] =
        json!([{"name": "mended", "configMap": {"name": "mended", "optional": true}}]);
    spec["containers"][0] = json!({"name": "main", "image": "cairn.test/sh:1",
        "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [{"name": "ITEM", "value": item}],
        "volumeMounts": [{"name": "mended", "mountPath": "/mended"}]});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": format!("j-{item}")},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": told}, "spec": spec}}})
}

async fn ended(place: &Place, item: &str, kind: &str) -> Value {
    let path = place.path("batch/v1", "jobs", &format!("j-{item}"));
    place
        .kube
        .apply(&path, "ours", false, &telling_job(item))
        .await
        .is(201);
    let holds = |j: &Value| condition(j, kind).is_some_and(|c| c["status"] == "True");
    let job = place.kube.until(&path, SOON, kind, holds).await;
    let pods = place.kube.get(&place.list("v1", "pods")).await.is(200);
    let uid = &job["metadata"]["uid"];
    let items = pods["items"].as_array().expect("items");
    let pod = items
        .iter()
        .find(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *uid);
    pod.expect("the pod of an ended Job stays")["status"]["containerStatuses"][0]["state"]["terminated"]
        .clone()
}

/// What hooks rely on: the pod of an ended Job stays, with the last words of its container.
pub async fn the_pod_of_a_job_keeps_its_last_words(place: Place) {
    let well = ended(&place, "a", "Complete").await;
    assert_eq!(well["exitCode"], 0);
    assert_eq!(well["message"], "{\"item\": \"a\"}\n");
    let badly = ended(&place, "b", "Failed").await;
    assert_eq!(badly["exitCode"], 1);
    assert_eq!(badly["message"], "no licence\n");
    // Mended, removed and made again under its name it ends well.
    let mended = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mended"},
        "data": {"now": "yes"}});
    place
        .kube
        .post(&place.list("v1", "configmaps"), &mended)
        .await
        .is(201);
    let path = place.path("batch/v1", "jobs", "j-b");
    let foreground = json!({"propagationPolicy": "Foreground"});
    place.kube.delete(&path, &foreground).await.is(200);
    until(SOON, "the Job to be gone", || async {
        match place.read(&path).await {
            None => Ok(()),
            Some(job) => Err(job),
        }
    })
    .await;
    let again = ended(&place, "b", "Complete").await;
    assert_eq!(again["message"], "{\"item\": \"b\"}\n");
}
