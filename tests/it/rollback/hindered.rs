//! What a rollback finds in its way, made by others since: namespaces that go, quotas, finalizers, admission policies.

use super::{
    FORCEFUL, colour, deployed, failed, failed_instantiate, failed_terminate, roll_back, says,
};
use crate::clusters::{on_both_clusters, real};
use crate::operations::replicas;
use cairn_simcluster::{Fault, FaultAction, RequestMatch, When};
use cairn_tests::client::SOON;
use cairn_tests::package::package;
use cairn_tests::until::until;
use cairn_tests::world::World;
use serde_json::{Value, json};

async fn namespace_on_its_way_out(world: World) {
    let (id, op) =
        failed_instantiate(&world, &package().config_map("a").deployment("web", 1), 4).await;
    let namespace = format!("/api/v1/namespaces/{}", world.place().namespace);
    world.place().kube.delete(&namespace, &json!({})).await.ok();
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(
        world.instance(&id).await["provisioning"]["state"],
        "AVAILABLE"
    );
}

/// What was deleted cannot be made again in a namespace that goes: it is said, and can be given up.
async fn namespace_gone_under_a_terminate(world: World) {
    let clocks = "{progressing: 3s, blocked: 1s, infrastructure: 1s, unclassified: 1s}";
    let id = deployed(&world, &package().clocks(clocks).config_map("a")).await;
    let op = failed_terminate(&world, &id).await;
    let namespace = format!("/api/v1/namespaces/{}", world.place().namespace);
    // Held by a finalizer of somebody else, it stays Terminating.
    let holder = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "holder", "finalizers": ["example.com/hold"]}});
    let kube = &world.place().kube;
    kube.post(&world.place().list("v1", "configmaps"), &holder)
        .await
        .is(201);
    kube.delete(&namespace, &json!({})).await.ok();
    let halted = roll_back(&world, &op, "FAILED_TEMP").await;
    says(&halted, &["being terminated"]);
    let undo = halted["undo"].as_array().expect("a list");
    assert!(
        undo.iter().any(|step| step["state"] != "done"),
        "{halted:#}"
    );
    let free = json!({"metadata": {"finalizers": null}});
    kube.merge(&world.place().path("v1", "configmaps", "holder"), &free)
        .await
        .is(200);
    world.steer(&op, "fail").await.is(200);
    let body = json!({"terminationType": FORCEFUL});
    world.complete(&id, "terminate", &body).await;
}

async fn smaller_quota(world: World) {
    // A ReplicaSet that was refused asks again after pauses that double: the last before 15 s have passed comes at 10.2 s,
    // the next at 20.5 s, well within a second clock of this length.
    let clocks = "{progressing: 90s, blocked: 15s, infrastructure: 1s, unclassified: 1s}";
    let wanted = package().clocks(clocks).deployment("web", 2);
    let id = deployed(&world, &wanted).await;
    let body = json!({"type": "SCALE_OUT", "aspectId": "web_aspect", "numberOfSteps": 2});
    world.complete(&id, "scale", &body).await;
    let body = json!({"type": "SCALE_IN", "aspectId": "web_aspect", "numberOfSteps": 2});
    let op = failed(&world, &id, "scale", &body, 5).await;
    let kube = &world.place().kube;
    let path = world.place().path("v1", "resourcequotas", "smaller");
    let quota = |pods: u32| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "smaller"},
            "spec": {"hard": {"pods": pods.to_string()}}})
    };
    kube.post(&world.place().list("v1", "resourcequotas"), &quota(2))
        .await
        .is(201);
    let counted = |q: &Value| q["status"]["used"]["pods"] == "2";
    kube.until(&path, SOON, "to count", counted).await;
    let halted = roll_back(&world, &op, "FAILED_TEMP").await;
    says(&halted, &["smaller", "pods"]);
    kube.merge(&path, &json!({"spec": {"hard": {"pods": "10"}}}))
        .await
        .is(200);
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(replicas(&world, "deployments", "web").await, 4);
    let levels = world.instance(&id).await;
    assert_eq!(crate::operations::level(&levels, "web_aspect"), 2);
    assert_eq!(crate::operations::vnfcs(&levels).len(), 4);
}

async fn finalizer_hangs(world: World) {
    let clocks = "{progressing: 90s, blocked: 60s, infrastructure: 1s, unclassified: 1s}";
    let wanted = package()
        .clocks(clocks)
        .config_map("held")
        .config_map("free");
    let (id, op) = failed_instantiate(&world, &wanted, 4).await;
    let kube = &world.place().kube;
    let held = world.place().path("v1", "configmaps", "held");
    kube.merge(
        &held,
        &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    )
    .await
    .is(200);
    world.steer(&op, "rollback").await.is(202);
    let waiting = world
        .op_until(&op, "to wait", |seen| {
            seen["waits"].as_array().is_some_and(|waits| {
                waits.iter().any(|wait| {
                    wait["reason"] == "Finalizers" && wait["object"] == "ConfigMap/held"
                })
            })
        })
        .await;
    let wait = &waiting["waits"][0];
    assert!(
        wait["message"].to_string().contains("example.com/hold"),
        "{wait:#}"
    );
    assert!(
        wait["until"].is_string() && wait["since"].is_string(),
        "{wait:#}"
    );
    world.cancel(&op, "GRACEFUL").await.is(202);
    let halted = world.ends(&op, "FAILED_TEMP").await;
    says(&halted, &["example.com/hold"]);
    kube.merge(&held, &json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(world.place().read(&held).await, None);
    assert_eq!(
        world.instance(&id).await["provisioning"]["state"],
        "AVAILABLE"
    );
}

/// A namespace that the operation made stays when others moved in.
async fn shared_namespace(world: World) {
    let shared = format!("made-{}", world.place().suffix);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shared}});
    let inside = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "ours", "namespace": shared}, "data": {"a": "b"}});
    let path = format!("/api/v1/namespaces/{shared}");
    world.place().remove_at_end(&path);
    let (_, op) =
        failed_instantiate(&world, &package().manifest(namespace).manifest(inside), 4).await;
    let kube = &world.place().kube;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}});
    kube.post(&format!("{path}/configmaps"), &theirs)
        .await
        .is(201);
    let undone = roll_back(&world, &op, "ROLLED_BACK").await;
    let residue = undone["residue"].to_string();
    assert!(
        residue.contains(&format!("Namespace/{shared}")) && residue.contains("theirs"),
        "{residue}"
    );
    kube.get(&format!("{path}/configmaps/theirs")).await.is(200);
    let ours = kube.get(&format!("{path}/configmaps/ours")).await;
    assert_eq!(ours.status, 404);
    let left = kube.get(&path).await.is(200);
    assert_eq!(left["metadata"].get("deletionTimestamp"), None);
}

on_both_clusters! {
    namespace_on_its_way_out: a_namespace_that_is_being_deleted_does_not_stop_a_rollback,
        a_namespace_that_is_being_deleted_does_not_stop_a_rollback_on_the_real_cluster;
    namespace_gone_under_a_terminate: nothing_is_made_again_in_a_namespace_that_goes,
        nothing_is_made_again_in_a_namespace_that_goes_on_the_real_cluster;
    smaller_quota: a_quota_that_got_smaller_is_named_and_the_rollback_goes_on_when_it_is_raised,
        a_quota_that_got_smaller_is_named_and_the_rollback_goes_on_when_it_is_raised_on_the_real_cluster;
    finalizer_hangs: a_finalizer_that_hangs_is_named_and_can_be_cancelled,
        a_finalizer_that_hangs_is_named_and_can_be_cancelled_on_the_real_cluster;
    shared_namespace: a_namespace_in_which_others_live_is_left_as_residue,
        a_namespace_in_which_others_live_is_left_as_residue_on_the_real_cluster;
}

/// Every write of `ConfigMap`s is refused by a policy that came meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admission_policy_that_changed_is_told_in_its_words_and_the_rollback_goes_on() {
    let world = World::simple().await;
    let id = deployed(&world, &package().config_map("a")).await;
    let op = failed_terminate(&world, &id).await;
    let policy = FaultAction::Answer {
        status: 403,
        message: "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'no-maps' with binding 'all' denied request: no maps here".into(),
        retry_after: None,
        when: When::Before,
    };
    let writes = RequestMatch::method("PATCH").resource("configmaps");
    world.place().sim().inject(Fault::always(writes, policy));
    let halted = roll_back(&world, &op, "FAILED_TEMP").await;
    says(&halted, &["no maps here"]);
    world.place().sim().clear_faults();
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(colour(&world, "a").await, "blue");
}

/// Whether the policy counts now, asked with a dry-run.
async fn policy_counts(world: &World, counts: bool) {
    let maps = world.place().list("v1", "configmaps");
    let any = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asking"}});
    until(SOON, "the policy to count or not", || async {
        let answer = world
            .place()
            .kube
            .post(&format!("{maps}?dryRun=All"), &any)
            .await;
        if (answer.status != 201) == counts {
            Ok(())
        } else {
            Err(answer.body)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admission_policy_that_changed_is_told_in_its_words_on_the_real_cluster() {
    let Some(world) = real().await else { return };
    let (place, kube) = (world.place(), &world.place().kube);
    let id = deployed(&world, &package().config_map("a")).await;
    let op = failed_terminate(&world, &id).await;
    let root = "/apis/admissionregistration.k8s.io/v1";
    let name = format!("no-maps-{}", place.suffix);
    let version = "admissionregistration.k8s.io/v1";
    let policy = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [{"apiGroups": [""],
            "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "false", "message": "no maps here"}]}});
    let binding = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels":
                {"kubernetes.io/metadata.name": place.namespace}}}}});
    let (policies, bindings) = (
        format!("{root}/validatingadmissionpolicies"),
        format!("{root}/validatingadmissionpolicybindings"),
    );
    for (path, body) in [(&policies, &policy), (&bindings, &binding)] {
        place.remove_at_end(format!("{path}/{name}"));
        kube.post(path, body).await.is(201);
    }
    policy_counts(&world, true).await;
    let halted = roll_back(&world, &op, "FAILED_TEMP").await;
    says(&halted, &["AdmissionRefused", "no maps here"]);
    kube.delete(&format!("{bindings}/{name}"), &json!({}))
        .await
        .ok();
    policy_counts(&world, false).await;
    roll_back(&world, &op, "ROLLED_BACK").await;
    assert_eq!(colour(&world, "a").await, "blue");
}

/// A claim that a pod of somebody else uses is held by Kubernetes itself; that is told, and nothing is forced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_others_use_is_never_forced_away() {
    let world = World::simple().await;
    let clocks = "{progressing: 2s, blocked: 1s, infrastructure: 1s, unclassified: 1s}";
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
            "resources": {"requests": {"storage": "1Mi"}}}});
    let (_, op) = failed_instantiate(&world, &package().clocks(clocks).manifest(claim), 4).await;
    let path = world.place().path("v1", "persistentvolumeclaims", "data");
    // As of a pod that uses it.
    let in_use =
        json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection", "example.com/in-use"]}});
    world.place().kube.merge(&path, &in_use).await.is(200);
    let halted = roll_back(&world, &op, "FAILED_TEMP").await;
    says(
        &halted,
        &["PersistentVolumeClaim/data", "example.com/in-use"],
    );
    assert!(world.place().read(&path).await.is_some());
    world
        .place()
        .kube
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .is(200);
    roll_back(&world, &op, "ROLLED_BACK").await;
}
