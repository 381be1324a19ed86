//! Jobs of hooks that fail, run on or run too long: what is done about them, and what is left.

use super::{broken, endless, halts, job, jobs, leaves, mend, unmend, web};
use crate::clusters::on_both_clusters;
use crate::operations::{instantiate, nothing_left};
use cairn_tests::world::World;
use serde_json::{Value, json};

async fn start_hook_fails(world: World) {
    let (id, op, halted) = halts(&world, &web().hook("instantiate_start", broken(), "{}")).await;
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
        .hook("instantiate_rollback_start", leaves(""), "{}")
        .hook(
            "instantiate_rollback_end",
            leaves(r#"{"cleaned": true}"#),
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

/// A hook of a rollback fails, and the rollback is given up: its Job is on record, and goes with the next terminate.
async fn rollback_hook_given_up(world: World) {
    let package = web().hook("instantiate_end", broken(), "{}").hook(
        "instantiate_rollback_start",
        broken(),
        "{}",
    );
    let (id, op, _) = halts(&world, &package).await;
    world.steer(&op, "rollback").await.is(202);
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("exit code 1") && said.contains("no licence"),
        "{said}"
    );
    let hooks: Vec<String> = jobs(&world).await.into_keys().collect();
    assert_eq!(hooks, ["instantiate_end", "instantiate_rollback_start"]);

    world.steer(&op, "fail").await.is(200);
    let instance = world.instance(&id).await;
    let left = instance["leftovers"].as_array().expect("leftovers").iter();
    let named: Vec<&str> = left
        .filter_map(Value::as_str)
        .filter(|left| left.starts_with("Job/cairn-hook-"))
        .collect();
    assert_eq!(named.len(), 2, "{instance:#}");
    let path = format!("/vnflcm/v2/vnf_instances/{id}");
    let refused = world.delete(&path).await;
    assert_eq!(refused.status, 409);
    for job in named {
        assert!(refused.detail().contains(job), "{job}: {:#}", refused.body);
    }
    let forceful = json!({"terminationType": "FORCEFUL"});
    world.complete(&id, "terminate", &forceful).await;
    assert!(jobs(&world).await.is_empty());
    nothing_left(&world).await;
    world.delete(&path).await.is(204);
}

on_both_clusters! {
    start_hook_fails: a_failed_start_hook_leaves_the_vnf_untouched_and_its_job_to_the_next,
        a_failed_start_hook_is_told_in_the_words_of_its_pod_on_the_real_cluster;
    cancelled_in_a_hook: a_cancelled_hook_goes_on_and_a_rollback_removes_its_job,
        a_cancelled_hook_goes_on_and_a_rollback_removes_its_job_on_the_real_cluster;
    rollback_hook_given_up: the_job_of_a_rollback_hook_that_was_given_up_goes_with_the_terminate,
        the_job_of_a_rollback_hook_that_was_given_up_goes_with_the_terminate_on_the_real_cluster;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_takes_longer_than_its_clock_halts_the_operation() {
    let world = World::simple().await;
    let package = web().hook("instantiate_start", endless(), "{clock: 500ms}");
    let (_, op, halted) = halts(&world, &package).await;
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
    halts(&world, &package).await;
}
