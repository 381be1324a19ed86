//! `cairn rebuild`: drops the read models and makes them again from the events.

use super::log_to_stderr;
use crate::cli::StoreFlags;
use crate::settings::Store;
use anyhow::Context;
use cairn_db::{Database, DbOptions};
use cairn_event_store::EventStore;
use cairn_projections::Projections;
use std::process::ExitCode;

/// Rebuilds; needs no key.
///
/// # Errors
///
/// What is absent or wrong, with what to do.
pub async fn run(flags: StoreFlags) -> anyhow::Result<ExitCode> {
    log_to_stderr("warn");
    let store = Store::of(&flags)?;
    let options = DbOptions {
        create: false,
        ..DbOptions::default()
    };
    let database = Database::connect(&store.database, options)
        .await
        .context("--database")?;
    let _lock = database.lock_owner().context("--database")?;
    let events = EventStore::without_key(database.clone());
    let projections = Projections::open(database, events).await?;
    let position = projections.rebuild().await?;
    println!("rebuilt the read models up to position {position}");
    Ok(ExitCode::SUCCESS)
}
