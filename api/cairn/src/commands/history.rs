//! `cairn history`: all that happened to a VNF instance, and how it looked at any moment.
//!
//! It is read from the database (no key, no running server) or from a server; both give the same [`Account`],
//! and only that is printed, so both ways print the same bytes.

mod account;
mod event;
mod layout;
mod operation;
mod snapshot;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

pub use account::Account;
pub use layout::table;

use super::log_to_stderr;
use crate::cli::{HistoryFlags, Output};
use anyhow::Context;
use cairn_domain::ids::VnfInstanceId;
use cairn_domain::time::Timestamp;
use std::io::Write;
use std::process::ExitCode;

/// Prints the history.
///
/// # Errors
///
/// A malformed id or time, an absent database, an unreachable server, an instance that never was.
pub async fn run(flags: HistoryFlags) -> anyhow::Result<ExitCode> {
    log_to_stderr("warn");
    let id = VnfInstanceId::parse(flags.instance.as_str())?;
    let at = flags
        .at
        .as_deref()
        .map(Timestamp::parse)
        .transpose()
        .context("--at")?;
    let account = match &flags.server {
        Some(server) => Account::from_server(server, &id, at).await?,
        None => Account::from_database(&flags.store, &id, at).await?,
    };
    let text = match flags.output {
        Output::Table => table(&account),
        Output::Json => account.json()?,
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A reader that has seen enough, such as `head`, is no error.
fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(closed) if closed.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}
