//! What breaks, and how it is undone or goes on.

use super::acts::{create, detail, tell_instance, word};
use super::{Plot, short};
use crate::commands::demo::world::World;
use anyhow::{Context, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};

const QUOTA: &str = "no-more-pods";
const FRONTEND: &str = "frontend";

/// A scale out that a quota blocks is rolled back.
pub(super) async fn quota(world: &World, plot: &mut Plot) -> anyhow::Result<()> {
    let narrator = &world.narrator;
    narrator.section("SCALE out against a quota; then rollback");
    let before = world
        .replicas(FRONTEND)
        .context("there is no Deployment/frontend")?;
    let pods = world
        .objects(&plot.instance)
        .iter()
        .filter(|o| o.starts_with("Pod/"))
        .count();
    let made = world.cluster.create("site-admin", resource_quota(pods))?;
    narrator.fact(&format!(
        "the site's administrator made ResourceQuota/{QUOTA}: pods {}; Deployment/frontend has {before} replicas",
        word(&made["spec"]["hard"], "pods")
    ));
    let op = scale_out(world, &plot.instance).await?;
    let failed = world.settled(&op, "FAILED_TEMP").await?;
    narrator.fact(&format!("FAILED_TEMP: {}", detail(&failed)));
    ensure!(
        detail(&failed).contains(QUOTA),
        "the cause should name the quota"
    );

    let answer = world.handle(&op, "rollback").await?;
    narrator.fact(&format!("rollback of SCALE {}: {answer}", short(&op)));
    world.settled(&op, "ROLLED_BACK").await?;
    let events = world.events(&plot.instance, &op).await?;
    let restored = event(&events, "ReplicasRestored")?;
    narrator.fact(&format!(
        "ReplicasRestored: {}/{} {} → {}",
        word(&restored["resource"], "kind"),
        word(&restored["resource"], "name"),
        restored["from"],
        restored["to"]
    ));
    event(&events, "RollbackVerified")?;
    narrator.fact("RollbackVerified: the server compared the cluster with what was before");
    let after = world
        .replicas(FRONTEND)
        .context("there is no Deployment/frontend")?;
    narrator.fact(&format!(
        "SCALE {} ROLLED_BACK; the cluster, asked: {after} replicas",
        short(&op)
    ));
    ensure!(
        after == before && restored["to"] == before,
        "{before} replicas should be restored"
    );
    world
        .cluster
        .delete(("v1", "ResourceQuota"), ("default", QUOTA))?;
    narrator.fact("the administrator removed the quota");
    plot.told.push((
        op,
        vec![
            "STARTING",
            "PROCESSING",
            "FAILED_TEMP",
            "ROLLING_BACK",
            "ROLLED_BACK",
        ],
    ));
    Ok(())
}

fn resource_quota(pods: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": QUOTA, "namespace": "default"},
        "spec": {"hard": {"pods": pods.to_string()}},
    })
}

async fn scale_out(world: &World, instance: &str) -> anyhow::Result<String> {
    let body = json!({"type": "SCALE_OUT", "aspectId": "frontend_aspect"});
    let op = world.begin(instance, "scale", &body).await?;
    world.narrator.fact(&format!(
        "SCALE {} accepted: frontend_aspect one level out",
        short(&op)
    ));
    Ok(op)
}

/// The data of an event that must have happened.
fn event<'a>(events: &'a [Value], name: &str) -> anyhow::Result<&'a Value> {
    let found = events.iter().find(|event| event["type"] == name);
    found
        .map(|event| &event["data"])
        .with_context(|| format!("the history should hold {name}"))
}

/// An instance whose image cannot be pulled is rolled back, and nothing of it is left.
pub(super) async fn image(world: &World, plot: &mut Plot) -> anyhow::Result<()> {
    let narrator = &world.narrator;
    narrator.section("INSTANTIATE of a VNF whose image cannot be pulled; then rollback");
    let instance = create(world, &plot.media, "media-1").await?;
    let op = world
        .begin(&instance, "instantiate", &json!({"flavourId": "standard"}))
        .await?;
    narrator.fact(&format!("INSTANTIATE {} accepted", short(&op)));
    let failed = world.settled(&op, "FAILED_TEMP").await?;
    narrator.fact(&format!("FAILED_TEMP: {}", detail(&failed)));
    ensure!(
        detail(&failed).contains("media-gateway"),
        "the cause should name the image"
    );
    let made = world.objects(&instance);
    ensure!(
        !made.is_empty(),
        "the cluster should hold objects of the instance"
    );
    narrator.fact(&format!("the cluster, asked: {}", made.join(", ")));

    let answer = world.handle(&op, "rollback").await?;
    narrator.fact(&format!("rollback of INSTANTIATE {}: {answer}", short(&op)));
    world.settled(&op, "ROLLED_BACK").await?;
    let left = world.objects(&instance);
    ensure!(
        left.is_empty(),
        "nothing should be left, but there is {}",
        left.join(", ")
    );
    let state = word(&world.instance(&instance).await?, "instantiationState");
    ensure!(
        state == "NOT_INSTANTIATED",
        "the instance should be NOT_INSTANTIATED, it is {state}"
    );
    narrator.fact(&format!(
        "INSTANTIATE {} ROLLED_BACK, the instance {state}; the cluster, asked: nothing is left",
        short(&op)
    ));
    plot.told.push((
        op,
        vec![
            "STARTING",
            "PROCESSING",
            "FAILED_TEMP",
            "ROLLING_BACK",
            "ROLLED_BACK",
        ],
    ));
    Ok(())
}

/// The server dies in the middle of an operation and goes on after its start.
pub(super) async fn kill(world: &mut World, plot: &mut Plot) -> anyhow::Result<()> {
    world
        .narrator
        .section("SCALE out with kill -9 of the server in the middle");
    let before = world
        .replicas(FRONTEND)
        .context("there is no Deployment/frontend")?;
    // The moment with the most to lose: the cluster has changed, the journal does not know yet.
    let hold =
        json!([{"operation": "SCALE", "at": {"step": 0, "edge": "after"}, "action": "hold"}]);
    world
        .send(Method::PUT, &["cairn", "v1", "faults"], &hold)
        .await?;
    world
        .narrator
        .fact("fault set: hold SCALE after its first change of the cluster");
    let op = scale_out(world, &plot.instance).await?;
    let step = in_the_middle(world, &op, before).await?;
    let replicas = world
        .replicas(FRONTEND)
        .context("there is no Deployment/frontend")?;
    world.narrator.fact(&format!(
        "the cluster has {replicas} replicas, the journal says \"{step}\": nobody noted the result"
    ));

    let old = world.server.pid().context("the server has no process id")?;
    let ended = world.server.kill().await?;
    world.narrator.fact(&format!("kill -9 {old}: {ended}"));
    if world.instance(&plot.instance).await.is_ok() {
        bail!("the server should not answer any more");
    }
    world.server.start_again().await?;
    let new = world.server.pid().context("the server has no process id")?;
    world.narrator.fact(&format!(
        "started again: process {new}; nothing is asked of it but to look"
    ));

    world.settled(&op, "COMPLETED").await?;
    world
        .narrator
        .fact(&format!("SCALE {} COMPLETED", short(&op)));
    let instance = tell_instance(world, &plot.instance).await?;
    let level = &instance["instantiatedVnfInfo"]["scaleStatus"][0]["scaleLevel"];
    ensure!(
        level == 1,
        "frontend_aspect should be at level 1, it is at {level}"
    );
    let after = world.replicas(FRONTEND);
    ensure!(
        after == Some(before + 1),
        "the cluster should have {} replicas",
        before + 1
    );
    plot.told
        .push((op, vec!["STARTING", "PROCESSING", "COMPLETED"]));
    Ok(())
}

/// Waits until the effect of the first step is in the cluster while the journal has only its intent.
async fn in_the_middle(world: &World, op: &str, before: u64) -> anyhow::Result<String> {
    let path = ["cairn", "v1", "vnf_lcm_op_occs", op];
    world
        .until(
            "the cluster scaled and the step noted as started",
            async || {
                let journal = world.get(&path).await?;
                let step = &journal["plan"][0];
                let scaled = world.replicas(FRONTEND) == Some(before + 1);
                ensure!(
                    journal["operationState"] != "COMPLETED",
                    "the operation ended before it could be held"
                );
                let told = format!(
                    "{} {}: {}",
                    word(step, "kind"),
                    word(step, "object"),
                    word(step, "state")
                );
                Ok((scaled && step["state"] == "started").then_some(told))
            },
        )
        .await
}
