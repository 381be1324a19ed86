//! One module per command.

pub mod client;
pub mod demo;
pub mod history;
pub mod package;
pub mod rebuild;
pub mod serve;
pub mod simcluster;

use std::sync::Once;
use tracing_subscriber::EnvFilter;

/// Logs to standard error; `CAIRN_LOG` sets what, as `RUST_LOG` would.
pub fn log_to_stderr(default: &str) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let filter =
            EnvFilter::try_from_env("CAIRN_LOG").unwrap_or_else(|_| EnvFilter::new(default));
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .init();
    });
}

/// Resolves when the process is asked to end.
///
/// # Errors
///
/// When signals cannot be listened for.
pub async fn asked_to_end() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
