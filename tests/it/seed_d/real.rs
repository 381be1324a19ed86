//! Obstacles that only a real cluster can show.

use super::waits;
use crate::clusters::real;
use crate::operations::instantiate;
use cairn_tests::client::SOON;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::until::until;
use cairn_tests::world::World;
use serde_json::{Value, json};

const LONG: &str = "{progressing: 90s, blocked: 60s, infrastructure: 60s, unclassified: 60s}";

async fn make(world: &World, path: &str, body: &Value) {
    let name = body["metadata"]["name"].as_str().expect("a name");
    world.place().remove_at_end(format!("{path}/{name}"));
    world.place().kube.post(path, body).await.is(201);
}

/// Begins an instantiate and awaits that it waits for this reason.
async fn waiting(world: &World, package: &PackageBuilder, reason: &str) -> (String, Value) {
    let vnfd = world.onboard(package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    let seen = world
        .op_until(&op, &format!("to wait for {reason}"), |seen| {
            let waits = seen["waits"].as_array().cloned().unwrap_or_default();
            waits.iter().any(|wait| wait["reason"] == reason)
        })
        .await;
    let waits = seen["waits"].as_array().expect("waits");
    let wait = waits.iter().find(|wait| wait["reason"] == reason);
    (op, wait.expect("it was there").clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_a_policy_refuses_end_the_try_at_once() {
    let Some(world) = real().await else { return };
    let name = format!("no-pods-{}", world.place().suffix);
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "false", "message": "no pods here"}]}});
    make(&world, policies, &policy).await;
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": world.place().namespace}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}}});
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    make(&world, bindings, &binding).await;
    // It is heard by the API server a moment after it was made.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "try-"},
        "spec": {"containers": [{"name": "main", "image": "cairn.test/pause:1"}]}});
    let pods = world.place().list("v1", "pods") + "?dryRun=All";
    until(SOON, "the policy to hold", || async {
        let answer = world.place().kube.post(&pods, &pod).await;
        if answer.message().contains("no pods here") {
            Ok(())
        } else {
            Err(answer.status)
        }
    })
    .await;

    let vnfd = world
        .onboard(&package().clocks(LONG).deployment("web", 1))
        .await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("no pods here") && detail.contains("Deployment/web"),
        "{detail}"
    );
    assert!(!detail.contains("waited"), "it ended early: {detail}");
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_nobody_answers_is_waited_on_until_it_is_gone() {
    let Some(world) = real().await else { return };
    let name = format!("nobody-{}", world.place().suffix);
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": world.place().namespace}});
    let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"name": "nobody.example.org", "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 2, "namespaceSelector": here,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "clientConfig": {"service": {"namespace": world.place().namespace, "name": "nobody"}}}]});
    make(&world, hooks, &hook).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "try-"},
        "spec": {"containers": [{"name": "main", "image": "cairn.test/pause:1"}]}});
    let pods = world.place().list("v1", "pods") + "?dryRun=All";
    until(SOON, "the webhook to be called", || async {
        let answer = world.place().kube.post(&pods, &pod).await;
        if answer.message().contains("nobody.example.org") {
            Ok(())
        } else {
            Err(answer.status)
        }
    })
    .await;

    let package = package().clocks(LONG).deployment("web", 1);
    let (op, wait) = waiting(&world, &package, "FailedCreate").await;
    assert_eq!(wait["class"], "infrastructure", "{wait:#}");
    assert!(
        wait["message"]
            .to_string()
            .contains("failed calling webhook"),
        "{wait:#}"
    );
    world
        .place()
        .kube
        .delete(&format!("{hooks}/{name}"), &json!({}))
        .await
        .ok();
    world.ends(&op, "COMPLETED").await;
}

/// A node without a kubelet, which no other test's pods are put on. What is put there by name stays as it is.
async fn lonely_node(world: &World, ready: &str) -> String {
    let name = format!("lonely-{}", world.place().suffix);
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {"taints": [{"key": "cairn.test/lonely", "effect": "NoSchedule"}]}});
    make(world, "/api/v1/nodes", &node).await;
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady",
        "message": "container runtime network not ready: cni plugin not initialized"}]}});
    let path = format!("/api/v1/nodes/{name}/status");
    world.place().kube.merge(&path, &status).await.is(200);
    name
}

fn on_node(name: &str) -> PackageBuilder {
    let name = name.to_owned();
    package()
        .clocks(LONG)
        .deployment("web", 1)
        .last(move |manifest| {
            manifest["spec"]["template"]["spec"]["nodeName"] = json!(name);
        })
}

/// Ends an operation whose pods no kubelet takes away: that is done by hand, as the operator of such a node does.
async fn back_by_hand(world: &World, op: &str) {
    world.cancel(op, "GRACEFUL").await.is(202);
    world.ends(op, "FAILED_TEMP").await;
    world.steer(op, "rollback").await.is(202);
    let pods = world.place().list("v1", "pods");
    let ended = until(SOON, "the rollback to end", || async {
        let listed = world.place().kube.get(&pods).await.is(200);
        for pod in listed["items"].as_array().into_iter().flatten() {
            if pod["metadata"].get("deletionTimestamp").is_some() {
                let name = pod["metadata"]["name"].as_str().expect("a name");
                let path = world.place().path("v1", "pods", name);
                world
                    .place()
                    .kube
                    .delete(&path, &json!({"gracePeriodSeconds": 0}))
                    .await;
            }
        }
        let seen = world.op(op).await;
        if seen["operationState"] == "ROLLING_BACK" {
            Err(seen)
        } else {
            Ok(seen)
        }
    })
    .await;
    assert_eq!(ended["operationState"], "ROLLED_BACK", "{ended:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_not_ready_is_named_as_the_root() {
    let Some(world) = real().await else { return };
    let node = lonely_node(&world, "False").await;
    let (op, wait) = waiting(&world, &on_node(&node), "NodeNotReady").await;
    assert_eq!(wait["class"], "infrastructure", "{wait:#}");
    let message = wait["message"].as_str().expect("a message");
    assert!(
        message.contains(&node) && message.contains("cni plugin not initialized"),
        "{message}"
    );
    assert!(wait["object"].to_string().contains("Pod/web-"), "{wait:#}");
    back_by_hand(&world, &op).await;
}

/// Field case 144: what the network plugin says reaches the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_words_of_a_network_plugin_are_told() {
    let Some(world) = real().await else { return };
    let node = lonely_node(&world, "True").await;
    let vnfd = world.onboard(&on_node(&node)).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let pods = world.place().list("v1", "pods");
    let listed = world
        .place()
        .kube
        .until(&pods, SOON, "a pod", |list| list["items"][0].is_object())
        .await;
    let pod = &listed["items"][0]["metadata"];
    let namespace = &world.place().namespace;
    let said =
        "Failed to create pod sandbox: plugin type=\"macvlan\" failed (add): Link not found: eth99";
    let event = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "sandbox", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod["name"], "uid": pod["uid"]},
        "type": "Warning", "reason": "FailedCreatePodSandBox", "message": said,
        "lastTimestamp": pod["creationTimestamp"], "source": {"component": "kubelet"}});
    world
        .place()
        .kube
        .post(&world.place().list("v1", "events"), &event)
        .await
        .is(201);
    world
        .op_until(&op, "to say so", |seen| {
            seen["waits"].to_string().contains("eth99")
        })
        .await;
    let told = waits(&world, &id).await;
    assert!(
        told.iter()
            .any(|wait| wait["reason"] == "FailedCreatePodSandBox"
                && wait["class"] == "infrastructure"),
        "{told:#?}"
    );
    back_by_hand(&world, &op).await;
}
