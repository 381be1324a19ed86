//! What is left to show: whether everything was told, the history, and where to go on.

use super::{Plot, short};
use crate::cli::StoreFlags;
use crate::commands::demo::world::World;
use crate::commands::history::{Account, table};
use anyhow::{Context, ensure};
use cairn_domain::ids::VnfInstanceId;

/// Every state that was entered was told once and in order, across the kill.
pub(super) async fn notifications(world: &World, plot: &Plot) -> anyhow::Result<()> {
    world
        .narrator
        .section("What the NFVO was told, operation by operation");
    for (op, wanted) in &plot.told {
        let heard = world
            .until(
                &format!("{} notifications of {}", wanted.len(), short(op)),
                async || {
                    let heard = heard(world, op);
                    Ok((heard.len() >= wanted.len()).then_some(heard))
                },
            )
            .await
            .with_context(|| format!("heard of {}: {}", short(op), heard(world, op).join(", ")))?;
        ensure!(
            heard == *wanted,
            "{} should be told as {wanted:?}, it was {heard:?}",
            short(op)
        );
        let operation = operation(world, op);
        world
            .narrator
            .fact(&format!("{operation} {}: {}", short(op), heard.join(", ")));
    }
    world
        .narrator
        .fact("each state once and in order, across the kill");
    Ok(())
}

fn operation(world: &World, op: &str) -> String {
    let all = world.inbox.all();
    let one = all
        .iter()
        .find(|notification| notification["vnfLcmOpOccId"] == op);
    one.and_then(|n| n["operation"].as_str())
        .unwrap_or("?")
        .to_owned()
}

fn heard(world: &World, op: &str) -> Vec<String> {
    let all = world.inbox.all();
    let of = all
        .iter()
        .filter(|notification| notification["vnfLcmOpOccId"] == op);
    of.map(|n| n["operationState"].as_str().unwrap_or("?").to_owned())
        .collect()
}

/// All that happened to the first instance, read from the database beside the running server.
pub(super) async fn history(world: &World, plot: &Plot) -> anyhow::Result<()> {
    world
        .narrator
        .section("The whole history, as `cairn history` reads it from the database");
    let data = world.folder.path().join("data");
    let database = format!("sqlite:{}", data.join("cairn.db").display());
    let flags = StoreFlags {
        database: Some(database),
        data: Some(data),
        ..StoreFlags::default()
    };
    let id = VnfInstanceId::parse(plot.instance.as_str())?;
    let account = Account::from_database(&flags, &id, None).await?;
    world.narrator.block(&table(&account));
    let asked = Account::from_server(&world.server.url(), &id, None).await?;
    ensure!(
        asked == account,
        "the server should tell the same history as the database"
    );
    world.narrator.fact(&format!(
        "asked over HTTP, the server tells the same {} events",
        asked.events.len()
    ));
    Ok(())
}

/// Where to go on by hand.
pub fn invite(world: &World) {
    let url = world.server.url();
    let folder = world.folder.path().display();
    world.narrator.section("Now you: it stays up until Ctrl-C");
    world.narrator.block(&format!(
        "the server: {url}\n\
         curl -H 'Version: 2.0.0' {url}/vnflcm/v2/vnf_instances\n\
         curl -H 'Version: 2.0.0' {url}/vnflcm/v2/vnf_lcm_op_occs\n\
         curl {url}/vnfpkgm/v2/vnf_packages\n\
         I=$(curl -s -H 'Version: 2.0.0' {url}/vnflcm/v2/vnf_instances | grep -o '\"id\":\"[^\"]*' | head -1 | cut -d'\"' -f4)\n\
         curl -i -X POST -H 'Version: 2.0.0' -H 'Content-Type: application/json' \
         -d '{{\"type\":\"SCALE_IN\",\"aspectId\":\"frontend_aspect\"}}' {url}/vnflcm/v2/vnf_instances/$I/scale\n\
         curl {url}/cairn/v1/vnf_instances/$I/history\n\
         cairn history $I --server {url}\n\
         kubectl --kubeconfig {folder}/kubeconfig get all"
    ));
}
