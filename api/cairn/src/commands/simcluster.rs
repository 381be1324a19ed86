//! `cairn simcluster`: the simulated cluster as a process of its own.

use super::{asked_to_end, log_to_stderr};
use crate::cli::SimclusterFlags;
use crate::edge::RandomIds;
use anyhow::Context;
use cairn_domain::ports::Ids;
use cairn_simcluster::{SimCluster, SimOptions, SimTls};
use std::process::ExitCode;
use tokio::net::TcpListener;

/// Serves the simulated cluster until SIGTERM or SIGINT.
///
/// # Errors
///
/// What keeps it from starting.
pub async fn run(flags: SimclusterFlags) -> anyhow::Result<ExitCode> {
    log_to_stderr("info");
    let listener = TcpListener::bind(flags.listen)
        .await
        .with_context(|| format!("--listen {}", flags.listen))?;
    let address = listener.local_addr()?;
    let tls = SimTls::generate(address.ip())?;
    let options = SimOptions {
        bearer_token: Some(RandomIds.fresh()),
        ..SimOptions::default()
    };
    let cluster = SimCluster::new(options);
    if let Some(file) = &flags.write_kubeconfig {
        write_secret(file, &cluster.kubeconfig(address, &tls))
            .with_context(|| format!("--write-kubeconfig {}", file.display()))?;
    }
    tracing::info!(%address, "the simulated cluster answers");
    tokio::select! {
        served = cluster.serve(listener, &tls) => served?,
        asked = asked_to_end() => asked?,
    }
    cluster.stop();
    Ok(ExitCode::SUCCESS)
}

/// The file holds a token: it is for its owner alone, and appears whole.
pub(crate) fn write_secret(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| std::path::Path::new("."));
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(text.as_bytes())?;
    whole.persist(file).map_err(|e| e.error)?;
    Ok(())
}
