//! `cairn package build` and `cairn package push`.

use super::client::Client;
use super::log_to_stderr;
use crate::cli::{PackageCommand, PackageFlags};
use anyhow::{Context, bail};
use reqwest::Method;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How long onboarding may take altogether.
const ONBOARDING: Duration = Duration::from_mins(1);
/// Between two looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// Builds or pushes.
///
/// # Errors
///
/// What is wrong with the package, by file and line, or what the server answered.
pub async fn run(flags: PackageFlags) -> anyhow::Result<ExitCode> {
    log_to_stderr("warn");
    match flags.command {
        PackageCommand::Build { dir, output } => build(&dir, &output)?,
        PackageCommand::Push { csar, server } => println!("{}", push(&csar, &server).await?),
    }
    Ok(ExitCode::SUCCESS)
}

fn build(dir: &Path, output: &Path) -> anyhow::Result<()> {
    let csar = cairn_packages::build(dir).with_context(|| dir.display().to_string())?;
    std::fs::write(output, &csar).with_context(|| output.display().to_string())?;
    println!("{} ({} bytes)", output.display(), csar.len());
    Ok(())
}

/// Onboards a CSAR; the vnfdId.
///
/// # Errors
///
/// What the server refused, in its words.
pub async fn push(csar: &Path, server: &str) -> anyhow::Result<String> {
    let bytes = std::fs::read(csar).with_context(|| csar.display().to_string())?;
    push_bytes(bytes, server).await
}

/// The same for a CSAR in memory.
///
/// # Errors
///
/// What the server refused, in its words.
pub async fn push_bytes(bytes: Vec<u8>, server: &str) -> anyhow::Result<String> {
    let client = Client::of(server).context("--server")?;
    let packages = ["vnfpkgm", "v2", "vnf_packages"];
    let created = client
        .json(Method::POST, &packages, &json!({}))
        .await?
        .success()?
        .body;
    let id = created["id"]
        .as_str()
        .context("the server gave the package no id")?;
    let [api, version, collection] = packages;
    let package = [api, version, collection, id];
    client
        .put_zip(&[api, version, collection, id, "package_content"], bytes)
        .await?
        .success()?;
    let onboarding = tokio::time::timeout(ONBOARDING, onboarded(&client, &package));
    onboarding
        .await
        .with_context(|| format!("not onboarded within {} s", ONBOARDING.as_secs()))?
}

async fn onboarded(client: &Client, package: &[&str]) -> anyhow::Result<String> {
    loop {
        let info = client.get(package, None).await?.success()?.body;
        match info["onboardingState"].as_str() {
            Some("ONBOARDED") => {
                let id = info["vnfdId"]
                    .as_str()
                    .context("the package has no vnfdId")?;
                return Ok(id.to_owned());
            }
            Some("ERROR") => {
                let why = info["onboardingFailureDetails"]["detail"].as_str();
                bail!(
                    "the package was refused: {}",
                    why.unwrap_or("no reason was given")
                );
            }
            Some(_) | None => tokio::time::sleep(LOOK).await,
        }
    }
}
