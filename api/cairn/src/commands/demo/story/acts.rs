//! From an empty server to a running VNF.

use super::{Plot, short};
use crate::commands::demo::packages::{DemoPackage, MEDIA, SIGNALLING};
use crate::commands::demo::world::World;
use crate::commands::package;
use anyhow::{Context, ensure};
use reqwest::Method;
use serde_json::{Value, json};

/// What there is before anything happens.
pub(super) fn scene(world: &World) -> anyhow::Result<()> {
    let narrator = &world.narrator;
    let server = &world.server;
    let pid = server.pid().context("the server has no process id")?;
    narrator.section("The scene");
    narrator.block(
        "Every line below was read from an answer, an event or the cluster, at the time it shows.\n\
         Indented further: notifications, as the NFVO receives them.",
    );
    narrator.fact(&format!(
        "the VNF manager: {} (process {pid}, SQLite)",
        server.url()
    ));
    narrator.fact(&format!(
        "a simulated Kubernetes: {} (held by this process)",
        world.endpoint
    ));
    narrator.fact(&format!("all files: {}", world.folder.path().display()));
    Ok(())
}

/// Two packages, and an NFVO that wants to be told of everything.
pub(super) async fn onboarding(world: &World, plot: &mut Plot) -> anyhow::Result<()> {
    world
        .narrator
        .section("Onboarding two VNF packages, and a subscription of the NFVO");
    plot.signalling = onboard(world, &SIGNALLING).await?;
    plot.media = onboard(world, &MEDIA).await?;
    let body = json!({"callbackUri": world.inbox.address});
    let made = world
        .send(Method::POST, &["vnflcm", "v2", "subscriptions"], &body)
        .await?;
    let id = made.made()?;
    let callback = made.body["callbackUri"]
        .as_str()
        .context("a subscription without callback")?;
    world.narrator.fact(&format!(
        "subscription {}: notifications go to {callback}",
        short(&id)
    ));
    Ok(())
}

async fn onboard(world: &World, demo: &DemoPackage) -> anyhow::Result<String> {
    let csar = demo.csar(world.folder.path())?;
    let size = csar.len();
    let vnfd_id = package::push_bytes(csar, &world.server.url()).await?;
    let all = world.get(&["vnfpkgm", "v2", "vnf_packages"]).await?;
    let found = all
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["vnfdId"] == vnfd_id.as_str());
    let found = found.with_context(|| format!("package {vnfd_id} is not listed"))?;
    let said = |name: &str| word(found, name);
    world.narrator.fact(&format!(
        "\"{}\" {} of {} ({size} bytes): {}, {}",
        said("vnfProductName"),
        said("vnfSoftwareVersion"),
        said("vnfProvider"),
        said("onboardingState"),
        said("operationalState")
    ));
    ensure!(said("onboardingState") == "ONBOARDED" && said("operationalState") == "ENABLED");
    Ok(vnfd_id)
}

/// Instantiate fails on a wrong token, PATCH mends it, retry completes.
pub(super) async fn wrong_token(world: &World, plot: &mut Plot) -> anyhow::Result<()> {
    let narrator = &world.narrator;
    narrator.section("INSTANTIATE with a wrong VIM token; then PATCH and retry");
    let instance = create(world, &plot.signalling, "signalling-1").await?;
    plot.instance.clone_from(&instance);
    let body = json!({"flavourId": "standard", "vimConnectionInfo": {"site": vim(world, "not-the-token")}});
    let op = world.begin(&instance, "instantiate", &body).await?;
    narrator.fact(&format!(
        "INSTANTIATE {} accepted, with a token that is not the cluster's",
        short(&op)
    ));

    let failed = world.settled(&op, "FAILED_TEMP").await?;
    narrator.fact(&format!(
        "FAILED_TEMP {}: {}",
        failed["error"]["status"],
        detail(&failed)
    ));
    ensure!(failed["error"]["status"] == 401, "the cause should be 401");
    let there = world.objects(&instance);
    ensure!(
        there.is_empty(),
        "the cluster should hold nothing, it holds {}",
        there.join(", ")
    );
    narrator.fact("the cluster, asked: none of its objects was touched");

    let patch = json!({"vimConnectionInfo": {"site": vim(world, &world.token)}});
    let resource = ["vnflcm", "v2", "vnf_instances", &instance];
    let modify = world.send(Method::PATCH, &resource, &patch).await?.made()?;
    let modified = world.settled(&modify, "COMPLETED").await?;
    narrator.fact(&format!(
        "PATCH vimConnectionInfo: {} {} {}",
        word(&modified, "operation"),
        short(&modify),
        word(&modified, "operationState")
    ));

    let answer = world.handle(&op, "retry").await?;
    narrator.fact(&format!("retry of INSTANTIATE {}: {answer}", short(&op)));
    let completed = world.settled(&op, "COMPLETED").await?;
    narrator.fact(&format!(
        "INSTANTIATE {} {}",
        short(&op),
        word(&completed, "operationState")
    ));
    tell_instance(world, &instance).await?;
    plot.told.push((
        op,
        vec![
            "STARTING",
            "PROCESSING",
            "FAILED_TEMP",
            "PROCESSING",
            "COMPLETED",
        ],
    ));
    plot.told.push((modify, vec!["PROCESSING", "COMPLETED"]));
    Ok(())
}

/// Creates an identifier; its id.
pub(super) async fn create(world: &World, vnfd_id: &str, name: &str) -> anyhow::Result<String> {
    let body = json!({"vnfdId": vnfd_id, "vnfInstanceName": name});
    let made = world
        .send(Method::POST, &["vnflcm", "v2", "vnf_instances"], &body)
        .await?;
    let id = word(&made.body, "id");
    let state = word(&made.body, "instantiationState");
    world
        .narrator
        .fact(&format!("VNF instance \"{name}\" {}: {state}", short(&id)));
    ensure!(state == "NOT_INSTANTIATED");
    Ok(id)
}

/// The instance in a line; it must be INSTANTIATED.
pub(super) async fn tell_instance(world: &World, id: &str) -> anyhow::Result<Value> {
    let instance = world.instance(id).await?;
    let info = &instance["instantiatedVnfInfo"];
    let vnfcs = info["vnfcResourceInfo"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names: Vec<String> = vnfcs.iter().map(|vnfc| word(vnfc, "id")).collect();
    let level = &info["scaleStatus"][0]["scaleLevel"];
    let state = word(&instance, "instantiationState");
    world.narrator.fact(&format!(
        "the instance: {state}, frontend_aspect at level {level}, VNFCs {}",
        names.join(", ")
    ));
    ensure!(state == "INSTANTIATED");
    Ok(instance)
}

fn vim(world: &World, token: &str) -> Value {
    json!({
        "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": world.endpoint, "ssl_ca_cert": world.ca},
        "accessInfo": {"bearer_token": token},
    })
}

/// The error's words.
pub(super) fn detail(op: &Value) -> String {
    word(&op["error"], "detail")
}

/// A text member.
pub(super) fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or("?").to_owned()
}
