//! Hooks that cannot run: what they need comes too late, or where they ran is gone.

use super::{begun, halts, job, jobs, leaves, web};
use crate::clusters::on_both_clusters;
use crate::operations::{instantiate, nothing_left};
use cairn_tests::client::SOON;
use cairn_tests::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A Job that needs a `ConfigMap` of the package.
fn configured() -> Value {
    let mut job = job("true", &json!({}));
    let volume = &mut job["spec"]["template"]["spec"]["volumes"][0]["configMap"];
    *volume = json!({"name": "settings"});
    job
}

async fn needs_what_comes_later(world: World) {
    let package = web().hook("instantiate_start", configured(), "{}");
    let (_, op, halted) = halts(&world, &package).await;
    assert_eq!(halted["point"], 2, "{halted:#}");
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("hook instantiate_start runs before the objects of the package are made")
            && said.contains("ConfigMap/settings"),
        "{said}"
    );
    assert_eq!(jobs(&world).await, BTreeMap::new());
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    nothing_left(&world).await;
    // It may when all is there.
    let package = web().hook("instantiate_end", configured(), "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
}

async fn namespace_goes(world: World) {
    let package = web()
        .hook("terminate_start", leaves(""), "{items: {per: vnfc}}")
        .hook("terminate_end", leaves(""), "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let place = world.place();
    let namespace = format!("/api/v1/namespaces/{}", place.namespace);
    place.kube.delete(&namespace, &json!({})).await.ok();
    place.kube.gone(&namespace, SOON).await;
    let gently = json!({"terminationType": "GRACEFUL"});
    let done = world.complete(&id, "terminate", &gently).await;
    let why = format!("not run, as namespace {} does not exist", place.namespace);
    assert_eq!(
        done["residue"],
        json!([
            format!("hook terminate_end: {why}"),
            format!("hook terminate_start: {why}")
        ])
    );
    let op = done["id"].as_str().expect("an id");
    assert_eq!(begun(&world, &id, op).await, BTreeMap::new());
    world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
        .is(204);
}

on_both_clusters! {
    needs_what_comes_later:
        a_start_hook_that_needs_what_the_package_makes_is_refused_early,
        a_start_hook_that_needs_what_the_package_makes_is_refused_early_on_the_real_cluster;
    namespace_goes:
        a_vnf_with_terminate_hooks_ends_also_when_its_namespace_is_gone,
        a_vnf_with_terminate_hooks_ends_also_when_its_namespace_is_gone_on_the_real_cluster;
}
