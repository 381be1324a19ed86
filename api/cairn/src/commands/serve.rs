//! `cairn serve`.

mod accept;

use super::{asked_to_end, log_to_stderr};
use crate::cli::ServeFlags;
use crate::settings::Settings;
use crate::wiring::{Options, Parts, default_vim, open};
use anyhow::Context;
use cairn_api_types::PublicUrl;
use cairn_engine::supervised::spawn;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long everything gets to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(4);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
///
/// What keeps it from starting, with what to do.
pub async fn run(flags: ServeFlags) -> anyhow::Result<ExitCode> {
    log_to_stderr("info");
    let settings = Settings::of(&flags)?;
    // The port first: a second server must not take a database over before it fails.
    let listener = TcpListener::bind(settings.listen).await.with_context(|| {
        format!(
            "--listen {}: is another server running there?",
            settings.listen
        )
    })?;
    let address = listener.local_addr()?;
    let public_url = settings
        .public_url
        .clone()
        .unwrap_or_else(|| format!("http://{address}"));
    let public_url = PublicUrl::parse(&public_url).context("--public-url")?;
    let opened = open(&settings.store).await?;
    let options = Options {
        public_url,
        crash: Box::new(|| std::process::abort()),
    };
    let parts = Parts::wire(&settings, opened, default_vim(&settings), options).await?;
    serve(parts, listener).await?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(parts: Parts, listener: TcpListener) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let router = parts.router();
    let address = listener.local_addr()?;
    let tasks = parts.start(&stop);
    tracing::info!(%address, "ready");
    let ends = stop.clone();
    let server = spawn("http", accept::accept(listener, router, ends));
    asked_to_end().await?;
    tracing::info!("asked to end");
    stop.cancel();
    let all = async {
        futures::future::join_all(tasks).await;
        server.await
    };
    match tokio::time::timeout(GRACE, all).await {
        Ok(Ok(Some(ended))) => ended.context("the HTTP server")?,
        Ok(Ok(None) | Err(_)) => anyhow::bail!("the HTTP server ended by panic"),
        Err(_) => tracing::warn!("some connections did not end in time"),
    }
    tracing::info!("ended");
    Ok(())
}
