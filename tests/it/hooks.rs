//! Hooks of packages: Jobs beside an operation, each item once, whatever happens in between (seed case A8).

mod left;
mod moments;
mod results;
mod unmet;
mod vims;

pub use vims::{all_is_done_when_it_fails, the_third_worker_fails};

use crate::operations::instantiate;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A Job that runs a script, or on the simulated cluster does what its annotations say.
pub fn job(script: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hook"},
        "spec": {"backoffLimit": 0, "ttlSecondsAfterFinished": 0, "template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                "volumes": [{"name": "mended", "configMap": {"name": "mended", "optional": true}}],
                "containers": [{"name": "main", "image": "cairn.test/sh:1", "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", script],
                    "volumeMounts": [{"name": "mended", "mountPath": "/mended"}]}]}}}})
}

/// A Job that runs until it is removed.
fn endless() -> Value {
    job(
        "sleep 3600 & wait",
        &json!({"simcluster.cairn.dev/exit-after": "never"}),
    )
}

/// A Job that fails until there is a `ConfigMap` named `mended`.
fn broken() -> Value {
    job(
        "[ -e /mended/now ] || { echo 'no licence'; exit 1; }",
        &json!({"simcluster.cairn.dev/crash": "always", "simcluster.cairn.dev/crash-until": "mended",
            "simcluster.cairn.dev/crash-message": "no licence"}),
    )
}

/// A Job that succeeds and leaves this.
fn leaves(message: &str) -> Value {
    job(
        &format!("echo '{message}' > /dev/termination-log"),
        &json!({"simcluster.cairn.dev/termination-message": message}),
    )
}

fn web() -> PackageBuilder {
    package().config_map("settings").deployment("web", 1)
}

/// An instantiate of a package that halts: its instance, the operation, and how it halted.
async fn halts(world: &World, package: &PackageBuilder) -> (String, String, Value) {
    let vnfd = world.onboard(package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    (id, op, halted)
}

async fn mend(world: &World) {
    let place = world.place();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mended"},
        "data": {"now": "yes"}});
    place
        .kube
        .post(&place.list("v1", "configmaps"), &body)
        .await
        .is(201);
}

async fn unmend(world: &World) {
    let place = world.place();
    let path = place.path("v1", "configmaps", "mended");
    place.kube.delete(&path, &json!({})).await.is(200);
}

/// The Jobs of hooks in the namespace: UIDs by item or, without one, by hook.
async fn jobs(world: &World) -> BTreeMap<String, String> {
    let place = world.place();
    let listed = place
        .kube
        .get(&place.list("batch/v1", "jobs"))
        .await
        .is(200);
    let of = |job: &Value| {
        let metadata = &job["metadata"];
        let item = metadata["annotations"]["cairn.dev/hook-item"].as_str();
        let hook = metadata["labels"]["cairn.dev/hook"].as_str();
        let name = item.or(hook).expect("a Job of a hook").to_owned();
        (name, metadata["uid"].as_str().expect("a uid").to_owned())
    };
    let items = listed["items"].as_array().expect("items");
    items.iter().map(of).collect()
}

/// How often the step of each item was begun.
async fn begun(world: &World, instance: &str, op: &str) -> BTreeMap<String, usize> {
    let plan = world.op(op).await["plan"]
        .as_array()
        .expect("a plan")
        .clone();
    let mut counted = BTreeMap::new();
    for event in world.history(instance).await {
        if event["type"] != "StepStarted" || event["vnfLcmOpOccId"] != op {
            continue;
        }
        let index =
            usize::try_from(event["data"]["step"].as_u64().expect("an index")).expect("small");
        let object = plan[index]["object"].as_str().expect("a text");
        if plan[index]["kind"] == "run-hook" {
            let (_, name) = object.split_once(" (").expect("the hook in brackets");
            *counted
                .entry(name.trim_end_matches(')').to_owned())
                .or_default() += 1;
        }
    }
    counted
}

fn counts<const N: usize>(pairs: [(&str, usize); N]) -> BTreeMap<String, usize> {
    pairs.into_iter().map(|(k, n)| (k.to_owned(), n)).collect()
}

/// How many Jobs were made, where the simulated cluster counts them.
fn jobs_made(world: &World) -> Option<usize> {
    let sim = world.place().sim.as_ref()?;
    let made = sim.requests().into_iter().filter(|request| {
        request.status == 201 && request.path.contains("/jobs/") && request.is_effect()
    });
    Some(made.count())
}

/// The index of the first step of a kind.
fn step_of(op: &Value, kind: &str) -> usize {
    let plan = op["plan"].as_array().expect("a plan");
    let found = plan.iter().position(|step| step["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {plan:#?}"))
}

/// What came of a step, the last time.
async fn outcome(world: &World, instance: &str, op: &str, step: usize) -> Value {
    let history = world.history(instance).await;
    let found = history.iter().rev().find(|event| {
        event["type"] == "StepSucceeded"
            && event["vnfLcmOpOccId"] == op
            && event["data"]["step"] == step
    });
    found.expect("the step succeeded")["data"]["outcome"].clone()
}
