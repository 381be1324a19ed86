//! The binary: settings, wiring, command line, demo.
//!
//! This is the one place that knows every crate. It decides nothing about VNFs; start reading at [`cli`],
//! then [`wiring`].

pub mod cli;
pub mod commands;
pub mod configured;
pub mod edge;
pub mod metrics;
pub mod package_port;
pub mod settings;
pub mod wiring;

use clap::CommandFactory;
use cli::{Cli, Command};
use std::process::ExitCode;

/// Runs one command to its end and says by the exit code how it went.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    speak_tls();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(failed) => {
            eprintln!("cairn: the runtime cannot start: {failed}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(dispatch(cli));
    // Tasks that still hold a call are not waited for: whatever they did is in the journal.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    match result {
        Ok(code) => code,
        Err(failed) => {
            eprintln!("cairn: {failed:#}");
            ExitCode::FAILURE
        }
    }
}

/// Chooses how TLS is spoken; before anything is reached by HTTP. Whoever was faster chose the same.
pub fn speak_tls() {
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    if provider.install_default().is_err() {
        tracing::debug!("a TLS provider is installed already");
    }
}

async fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Serve(flags) => commands::serve::run(flags).await,
        Command::Demo(flags) => commands::demo::run(flags).await,
        Command::Simcluster(flags) => commands::simcluster::run(flags).await,
        Command::History(flags) => commands::history::run(flags).await,
        Command::Rebuild(flags) => commands::rebuild::run(flags).await,
        Command::Package(flags) => commands::package::run(flags).await,
    }
}

/// The command line as it is defined, for the test that runs every flag.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}
