//! Hooks of packages: Jobs beside an operation, each item once, whatever happens in between (seed case A8).

mod unmet;

use crate::operations::{instantiate, nothing_left};
use cairn_tests::client::SOON;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::Place;
use cairn_tests::until::until;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The Job of a hook, the same for the simulated and the real cluster. Item `worker-3` fails until there is a
/// `ConfigMap` named `mended`; `edge-…`, the name of the VIM, is part of each result.
fn join(vim: &str) -> Value {
    let result = json!({"joined": "$(CAIRN_HOOK_ITEM)", "registerVim": {
        "vimId": vim, "interfaceInfo": {"endpoint": "https://edge.test:6443"},
        "accessFrom": {"secret": "edge"}}})
    .to_string();
    let script = format!(
        "if [ \"$CAIRN_HOOK_ITEM\" = worker-3 ] && [ ! -e /mended/now ]; then \
         echo \"no route to $CAIRN_HOOK_ITEM\" > /dev/termination-log; exit 1; fi; \
         echo '{}' > /dev/termination-log",
        result.replace("$(CAIRN_HOOK_ITEM)", "a worker")
    );
    job(
        &script,
        &json!({
            "simcluster.cairn.dev/crash": "always",
            "simcluster.cairn.dev/crash-where": "CAIRN_HOOK_ITEM=worker-3",
            "simcluster.cairn.dev/crash-until": "mended",
            "simcluster.cairn.dev/crash-message": "no route to $(CAIRN_HOOK_ITEM)",
            "simcluster.cairn.dev/termination-message": result,
        }),
    )
}

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
fn leaves(message: &str) -> Job {
    Job(job(
        &format!("echo '{message}' > /dev/termination-log"),
        &json!({"simcluster.cairn.dev/termination-message": message}),
    ))
}

struct Job(Value);

fn web() -> PackageBuilder {
    package().config_map("settings").deployment("web", 1)
}

/// A cluster in a VNF: three workers join at the end, and the cluster is registered as a VIM.
fn cluster_in_a_vnf(vim: &str) -> PackageBuilder {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge"},
        "stringData": {"bearer_token": "planted-token"}});
    web().manifest(secret).hook(
        "instantiate_end",
        join(vim),
        "{items: [worker-1, worker-2, worker-3], register_vim: true, result: termination-message}",
    )
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

fn vim_of(world: &World) -> String {
    format!("edge-{}", world.place().suffix)
}

/// A8: two of three workers are installed and the VIM is there already when the hook fails on the third. The retry
/// installs the third alone and uses the VIM.
pub async fn the_third_worker_fails(world: World) {
    let vim = vim_of(&world);
    let known = json!({"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://edge.test:6443/"}, "accessInfo": {"bearer_token": "before"}});
    world.post("/cairn/v1/vims", &known).await.is(201);
    let vnfd = world.onboard(&cluster_in_a_vnf(&vim)).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert_eq!(halted["point"], 5, "{halted:#}");
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("item worker-3") && said.contains("no route to worker-3"),
        "{said}"
    );
    let before = jobs(&world).await;
    assert_eq!(before.len(), 3);

    mend(&world).await;
    let remove = step_of(&halted, "remove-hook-jobs");
    world
        .faults(&json!([{"at": {"step": remove, "edge": "before"}, "action": "hold"}]))
        .await;
    world.steer(&op, "retry").await.is(202);
    world
        .op_until(&op, "the hooks to be done", |seen| {
            seen["plan"][remove]["state"] == "started"
        })
        .await;
    let after = jobs(&world).await;
    for (item, same) in [("worker-1", true), ("worker-2", true), ("worker-3", false)] {
        assert_eq!(before[item] == after[item], same, "{item}");
    }
    world.faults(&json!([])).await;
    let done = world.ends(&op, "COMPLETED").await;
    assert_eq!(
        begun(&world, &id, &op).await,
        counts([
            ("instantiate_end, worker-1", 1),
            ("instantiate_end, worker-2", 1),
            ("instantiate_end, worker-3", 2),
        ])
    );
    assert!(jobs_made(&world).is_none_or(|made| made == 4));
    let register = step_of(&done, "register-vim");
    let told = outcome(&world, &id, &op, register).await;
    assert_eq!(told["used"], json!([vim, vim, vim]), "{told:#}");
    let shown = world.get(&format!("/cairn/v1/vims/{vim}")).await.is(200);
    assert_eq!(
        shown["extra"],
        Value::Null,
        "it is not this operation's: {shown:#}"
    );
    assert!(jobs(&world).await.is_empty(), "finished Jobs are removed");
    let instance = world.instance(&id).await.to_string();
    assert!(!instance.contains("cairn-hook"), "{instance}");
    ends_clean(&world, &id, &vim).await;
}

/// A8 as it was reported: the failure is at error point 6, when everything was done already.
pub async fn all_is_done_when_it_fails(world: World) {
    let vim = vim_of(&world);
    let vnfd = world.onboard(&cluster_in_a_vnf(&vim)).await;
    let id = world.create(&vnfd).await;
    mend(&world).await;
    let fault = json!([{"at": {"errorPoint": 6}, "action": "fail", "times": 2}]);
    world.faults(&fault).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    for _ in 0..2 {
        world.ends(&op, "FAILED_TEMP").await;
        world.steer(&op, "retry").await.is(202);
    }
    let done = world.ends(&op, "COMPLETED").await;
    let workers = [1, 2, 3].map(|n| format!("instantiate_end, worker-{n}"));
    let once = workers.iter().map(|name| (name.clone(), 1)).collect();
    assert_eq!(begun(&world, &id, &op).await, once);
    assert!(jobs_made(&world).is_none_or(|made| made == 3));
    let told = outcome(&world, &id, &op, step_of(&done, "register-vim")).await;
    assert_eq!(told["registered"], json!([vim, vim, vim]), "{told:#}");
    let shown = world.get(&format!("/cairn/v1/vims/{vim}")).await.is(200);
    assert_eq!(shown["extra"]["registeredBy"], op.as_str());
    assert!(!shown.to_string().contains("planted-token"));
    let history = json!(world.history(&id).await).to_string();
    assert!(!history.contains("planted-token"));
    ends_clean(&world, &id, &vim).await;
}

/// Nothing of the VNF is left after its terminate; the VIM stays until it is taken off.
async fn ends_clean(world: &World, id: &str, vim: &str) {
    unmend(world).await;
    let forceful = json!({"terminationType": "FORCEFUL"});
    world.complete(id, "terminate", &forceful).await;
    assert!(jobs(world).await.is_empty());
    world.delete(&format!("/cairn/v1/vims/{vim}")).await.is(204);
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

async fn start_hook_fails(world: World) {
    let vnfd = world
        .onboard(&web().hook("instantiate_start", broken(), "{}"))
        .await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert_eq!(halted["point"], 2, "{halted:#}");
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("exit code 1") && said.contains("no licence"),
        "{said}"
    );
    let place = world.place();
    let web = place.path("apps/v1", "deployments", "web");
    assert_eq!(place.read(&web).await, None, "nothing was written yet");

    // Given up, its Job is what is left; the next instantiate removes it.
    world.steer(&op, "fail").await.is(200);
    let left = world.instance(&id).await["leftovers"].to_string();
    assert!(left.contains("Job/cairn-hook-"), "{left}");
    let refused = world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await;
    assert!(
        refused.is(409)["detail"]
            .to_string()
            .contains("Job/cairn-hook-")
    );
    mend(&world).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    assert!(jobs(&world).await.is_empty());
    unmend(&world).await;
    let forceful = json!({"terminationType": "FORCEFUL"});
    world.complete(&id, "terminate", &forceful).await;
    nothing_left(&world).await;
    assert!(jobs(&world).await.is_empty());
}

/// Cancelled while a hook runs: the Job goes on; a rollback removes it, after its own hooks.
async fn cancelled_in_a_hook(world: World) {
    let package = web()
        .hook("instantiate_end", endless(), "{}")
        .hook("instantiate_rollback_start", leaves("").0, "{}")
        .hook(
            "instantiate_rollback_end",
            leaves(r#"{"cleaned": true}"#).0,
            "{items: {per: vdu}}",
        );
    let vnfd = world.onboard(&package).await;
    for mode in ["GRACEFUL", "FORCEFUL"] {
        let id = world.create(&vnfd).await;
        let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
        let waiting = |seen: &Value| {
            let waits = seen["waits"].as_array().expect("waits");
            waits.iter().any(|wait| wait["reason"] == "HookRunning")
        };
        world.op_until(&op, "the hook to run", waiting).await;
        world.cancel(&op, mode).await.is(202);
        let halted = world.ends(&op, "FAILED_TEMP").await;
        assert_eq!(halted["point"], 5);
        let running = jobs(&world).await;
        assert_eq!(running.len(), 1, "the Job is left: {running:?}");
        // A retry goes on with the same Job.
        world.steer(&op, "retry").await.is(202);
        world.op_until(&op, "the hook to run", waiting).await;
        assert_eq!(jobs(&world).await, running);
        world.cancel(&op, mode).await.is(202);
        world.ends(&op, "FAILED_TEMP").await;
        world.steer(&op, "rollback").await.is(202);
        let undone = world.ends(&op, "ROLLED_BACK").await;
        let undo = undone["undo"].as_array().expect("a list");
        let kinds: Vec<&str> = undo
            .iter()
            .filter_map(|step| step["kind"].as_str())
            .collect();
        assert_eq!(kinds[0], "run-hook", "{undo:#?}");
        assert_eq!(kinds[kinds.len() - 2..], ["run-hook", "remove-hook-jobs"]);
        assert!(jobs(&world).await.is_empty());
        nothing_left(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_start_hook_leaves_the_vnf_untouched_and_its_job_to_the_next() {
    start_hook_fails(World::simple().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_start_hook_is_told_in_the_words_of_its_pod_on_the_real_cluster() {
    let Some(world) = real().await else { return };
    start_hook_fails(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_hook_goes_on_and_a_rollback_removes_its_job() {
    cancelled_in_a_hook(World::simple().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_hook_goes_on_and_a_rollback_removes_its_job_on_the_real_cluster() {
    let Some(world) = real().await else { return };
    cancelled_in_a_hook(world).await;
}

/// A Cairn on SQLite beside the real cluster.
pub async fn real() -> Option<World> {
    let ground = Ground::new(Kind::Sqlite, Place::real().await?).await?;
    Some(World::on(ground).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_takes_longer_than_its_clock_halts_the_operation() {
    let world = World::simple().await;
    let package = web().hook("instantiate_start", endless(), "{clock: 500ms}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("HookRunning") && said.contains("waited"),
        "{said}"
    );
    assert_eq!(jobs(&world).await.len(), 1);
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    assert!(jobs(&world).await.is_empty());
}

/// Its pods come and go, so that what is in the way changes all the time; none of that is progress.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_whose_pods_fail_again_and_again_ends_with_its_clock() {
    let world = World::simple().await;
    let mut failing = job("", &json!({"simcluster.cairn.dev/crash": "always"}));
    failing["spec"]["backoffLimit"] = json!(1000);
    let package = web().hook("instantiate_start", failing, "{clock: 2s}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world.ends(&op, "FAILED_TEMP").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_result_is_told_and_what_is_one_is_in_the_history_without_secrets() {
    let world = World::simple().await;
    for (left, inputs, why) in [
        ("done", "{}", "is no JSON"),
        ("[1]", "{}", "must be a JSON object"),
        (
            "",
            "{result: termination-message}",
            "no termination message",
        ),
        (
            r#"{"registerVim": {"vimId": "x", "accessFrom": {"secret": "s"}}}"#,
            "{}",
            "does not declare register_vim",
        ),
    ] {
        let package = web().hook("instantiate_start", leaves(left).0, inputs);
        let vnfd = world.onboard(&package).await;
        let id = world.create(&vnfd).await;
        let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
        let halted = world.ends(&op, "FAILED_TEMP").await;
        let said = halted["error"]["detail"].as_str().expect("a detail");
        assert!(said.contains(why), "{left}: {said}");
        assert_eq!(halted["error"]["status"], 422);
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
    }
    let well = r#"{"nodes": 3, "join_token": "planted"}"#;
    let package = web().hook("instantiate_start", leaves(well).0, "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let done = world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let op = done["id"].as_str().expect("an id");
    let told = outcome(&world, &id, op, step_of(&done, "run-hook")).await;
    assert_eq!(told["result"], json!({"nodes": 3}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_a_hook_promises_is_waited_for_and_reaches_no_event() {
    let world = World::simple().await;
    let package = web().hook(
        "instantiate_start",
        leaves("").0,
        "{result: {secret: made}}",
    );
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    world
        .op_until(&op, "to wait for the Secret", |seen| {
            let waits = seen["waits"].as_array().expect("waits");
            waits.iter().any(|wait| wait["object"] == "Secret/made")
        })
        .await;
    let place = world.place();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"},
        "stringData": {"password": "planted"}});
    place
        .kube
        .post(&place.list("v1", "secrets"), &secret)
        .await
        .is(201);
    world.ends(&op, "COMPLETED").await;
    assert!(
        !json!(world.history(&id).await)
            .to_string()
            .contains("planted")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vim_at_another_endpoint_is_a_conflict_that_names_both() {
    let world = World::simple().await;
    let vim = vim_of(&world);
    let known = json!({"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://other.test:6443"}, "accessInfo": {"bearer_token": "t"}});
    world.post("/cairn/v1/vims", &known).await.is(201);
    mend(&world).await;
    let vnfd = world.onboard(&cluster_in_a_vnf(&vim)).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("https://other.test:6443") && said.contains("https://edge.test:6443"),
        "{said}"
    );
    assert_eq!(halted["error"]["status"], 409);
    // The other one taken off, a retry registers; a rollback takes only its own off again.
    world.delete(&format!("/cairn/v1/vims/{vim}")).await.is(204);
    world
        .faults(&json!([{"at": {"errorPoint": 6}, "action": "fail"}]))
        .await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "FAILED_TEMP").await;
    world.get(&format!("/cairn/v1/vims/{vim}")).await.is(200);
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    world.get(&format!("/cairn/v1/vims/{vim}")).await.is(404);
    assert!(jobs(&world).await.is_empty());
}

/// A crash before and after each effect of an instantiate with hooks: every item runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_crash_runs_a_hook_twice() {
    let ground = Ground::simple().await;
    let world = World::on(ground.clone()).await;
    mend(&world).await;
    let vim = vim_of(&world);
    let package = cluster_in_a_vnf(&vim).hook("instantiate_start", leaves("").0, "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let begin = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let steps = world.ends(&begin, "COMPLETED").await["plan"]
        .as_array()
        .expect("a plan")
        .len();
    ends_clean(&world, &id, &vim).await;
    let mut ground = world.end().await;
    for step in 0..steps {
        for edge in ["before", "after"] {
            let mut world = World::on(ground).await;
            mend(&world).await;
            let made = jobs_made(&world).expect("it is simulated");
            let id = world.create(&vnfd).await;
            world
                .faults(&json!([{"at": {"step": step, "edge": edge}, "action": "crash"}]))
                .await;
            let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
            world.crash().await;
            ground = world.kill();
            world = World::on(ground).await;
            let done = world.ends(&op, "COMPLETED").await;
            assert_eq!(done["tries"].as_array().expect("tries").len(), 1);
            assert_eq!(
                jobs_made(&world).expect("it is simulated") - made,
                4,
                "step {step} {edge}"
            );
            ends_clean(&world, &id, &vim).await;
            ground = world.end().await;
        }
    }
}

/// Hooks of the other operations run where they belong, and leave nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_has_its_hooks() {
    let world = World::simple().await;
    let mut package = web();
    for name in ["scale", "scale_to_level", "heal", "terminate"] {
        package = package
            .hook(
                &format!("{name}_start"),
                leaves("").0,
                "{items: {per: vnfc, vdu: WEB}}",
            )
            .hook(
                &format!("{name}_end"),
                leaves("").0,
                "{items: [a, b], parallel: true}",
            );
    }
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    let to = json!({"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 0}]});
    let forceful = json!({"terminationType": "FORCEFUL"});
    for (operation, body, vnfcs) in [
        ("scale", &out, 1),
        ("scale_to_level", &to, 2),
        ("heal", &json!({}), 1),
        ("terminate", &forceful, 1),
    ] {
        let done = world.complete(&id, operation, body).await;
        let op = done["id"].as_str().expect("an id");
        let counted = begun(&world, &id, op).await;
        let of = |ending: &str| {
            let name = format!("{operation}{ending}, ");
            counted.keys().filter(|key| key.starts_with(&name)).count()
        };
        assert_eq!(
            (of("_start"), of("_end")),
            (vnfcs, 2),
            "{operation}: {counted:?}"
        );
        assert!(jobs(&world).await.is_empty(), "{operation}");
    }
    until(SOON, "the pods of hooks to be gone", || async {
        let pods = world
            .place()
            .sim()
            .list("v1", "Pod", &world.place().namespace);
        if pods.is_empty() { Ok(()) } else { Err(pods) }
    })
    .await;
}
