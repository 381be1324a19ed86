//! `cairn serve`.

mod accept;

use super::{asked_to_end, log_to_stderr};
use crate::cli::ServeFlags;
use crate::edge::SystemClock;
use crate::settings::Settings;
use crate::wiring::{Before, Options, Parts, default_vim, open};
use anyhow::{Context, anyhow};
use cairn_api_types::PublicUrl;
use cairn_engine::supervised::spawn;
use futures::future::{join_all, select_all};
use std::process::ExitCode;
use std::sync::Arc;
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
    let vim = default_vim(&settings);
    if let Some(vim) = &vim {
        let checked = vim.cluster.check().await;
        checked.map_err(|error| anyhow!("--kubeconfig: {error}"))?;
    }
    let opened = open(&settings.store).await?;
    let options = Options {
        public_url,
        crash: Box::new(|| std::process::abort()),
        calls: cairn_kubernetes::Settings::default(),
        clock: Arc::new(SystemClock),
        before: Before::default(),
    };
    let parts = Parts::wire(&settings, opened, vim, options).await?;
    serve(parts, listener).await?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(parts: Parts, listener: TcpListener) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let router = parts.router();
    let address = listener.local_addr()?;
    let mut tasks = parts.start(&stop);
    tracing::info!(%address, "ready");
    let ends = stop.clone();
    tasks.push(spawn("http", async move {
        if let Err(error) = accept::accept(listener, router, ends).await {
            tracing::error!(%error, "the HTTP server failed");
        }
    }));
    // None of them ends before it is asked to. Without its runner, or whatever else died, the process would look
    // alive and leave operations stuck: it ends instead, and what it worked on goes on from its journal.
    let died = tokio::select! {
        asked = asked_to_end() => asked.map(|()| None)?,
        (_, index, _) = select_all(tasks.iter_mut()) => Some(index),
    };
    if let Some(index) = died {
        // Its end was seen; a handle is asked once only.
        drop(tasks.swap_remove(index));
    } else {
        tracing::info!("asked to end");
    }
    stop.cancel();
    match tokio::time::timeout(GRACE, join_all(tasks)).await {
        Ok(all) if all.iter().all(|one| matches!(one, Ok(Some(())))) => {}
        Ok(_) => tracing::warn!("not every part of the server ended well"),
        Err(_) => tracing::warn!("some connections did not end in time"),
    }
    if died.is_some() {
        anyhow::bail!("a part of the server ended by itself (the log says why); start it again");
    }
    tracing::info!("ended");
    Ok(())
}
