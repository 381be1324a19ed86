//! Settings of `serve`: file, then environment, then flags.

use crate::cli::{ServeFlags, StoreFlags};
use anyhow::{Context, bail};
use cairn_domain::clocks::Clocks;
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings as they were given, before defaults that depend on others.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    database: Option<String>,
    data: Option<PathBuf>,
    key_file: Option<PathBuf>,
    listen: Option<SocketAddr>,
    kubeconfig: Option<PathBuf>,
    #[serde(default)]
    simulated: bool,
    public_url: Option<String>,
    #[serde(default)]
    enable_faults: bool,
    #[serde(default)]
    allow_private_callbacks: bool,
    #[serde(default)]
    lenient: bool,
    #[serde(default)]
    clock: OneOrMany,
}

/// A list, or the same as one text with commas: the environment has no lists.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    fn all(self) -> Vec<String> {
        match self {
            Self::One(text) => text.split(',').map(|one| one.trim().to_owned()).collect(),
            Self::Many(all) => all,
        }
    }
}

/// Where the database and the key lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// `sqlite:PATH` or `postgres://…`.
    pub database: String,
    /// Folder for the key and caches.
    pub data: PathBuf,
    /// The key's file, where one was named.
    pub key_file: Option<PathBuf>,
}

/// Settings of `serve`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the database lies.
    pub store: Store,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Kubeconfig of the default VIM.
    pub kubeconfig: Option<PathBuf>,
    /// The default VIM is a simulated cluster.
    pub simulated: bool,
    /// Base of all links; absent: the address that is listened on.
    pub public_url: Option<String>,
    /// `/cairn/v1/faults` exists.
    pub enable_faults: bool,
    /// Callbacks may go to private addresses.
    pub allow_private_callbacks: bool,
    /// A request without `Version` is 2.0.0.
    pub lenient: bool,
    /// Clocks by class.
    pub clocks: Clocks,
}

const NAMES: [&str; 11] = [
    "database",
    "data",
    "key_file",
    "listen",
    "kubeconfig",
    "simulated",
    "public_url",
    "enable_faults",
    "allow_private_callbacks",
    "lenient",
    "clock",
];

fn figment(store: &StoreFlags) -> anyhow::Result<Figment> {
    let mut figment = Figment::new();
    if let Some(file) = &store.config {
        if !file.exists() {
            bail!("the settings file {} does not exist", file.display());
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    Ok(figment.merge(Env::prefixed("CAIRN_").only(&NAMES)))
}

impl Settings {
    /// Puts the settings together and checks them.
    ///
    /// # Errors
    ///
    /// What is unknown, unreadable or not allowed, with what to do.
    pub fn of(flags: &ServeFlags) -> anyhow::Result<Self> {
        let given: Given = figment(&flags.store)?
            .merge(Serialized::defaults(flags))
            .extract()
            .context("settings")?;
        let listen = given
            .listen
            .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080)));
        if !listen.ip().is_loopback() {
            bail!(
                "--listen {listen}: without authentication only loopback addresses are listened on; put a proxy that authenticates in front of 127.0.0.1"
            );
        }
        if given.simulated && given.kubeconfig.is_some() {
            bail!("--simulated and --kubeconfig exclude each other");
        }
        Ok(Self {
            store: store(given.database, given.data, given.key_file),
            listen,
            kubeconfig: given.kubeconfig,
            simulated: given.simulated,
            public_url: given.public_url,
            enable_faults: given.enable_faults,
            allow_private_callbacks: given.allow_private_callbacks,
            lenient: given.lenient,
            clocks: clocks(&given.clock.all())?,
        })
    }
}

impl Store {
    /// The part of the settings that every command has.
    ///
    /// # Errors
    ///
    /// What is unknown or unreadable.
    pub fn of(flags: &StoreFlags) -> anyhow::Result<Self> {
        let given: Given = figment(flags)?
            .merge(Serialized::defaults(flags))
            .extract()
            .context("settings")?;
        Ok(store(given.database, given.data, given.key_file))
    }
}

fn store(database: Option<String>, data: Option<PathBuf>, key_file: Option<PathBuf>) -> Store {
    let data = data.unwrap_or_else(|| PathBuf::from("cairn-data"));
    let database =
        database.unwrap_or_else(|| format!("sqlite:{}", data.join("cairn.db").display()));
    Store {
        database,
        data,
        key_file,
    }
}

fn clocks(given: &[String]) -> anyhow::Result<Clocks> {
    let mut clocks = Clocks::default();
    for one in given {
        let (class, duration) = one
            .split_once('=')
            .with_context(|| format!("--clock {one}: write CLASS=DURATION"))?;
        clocks
            .set(class, duration)
            .with_context(|| format!("--clock {one}"))?;
    }
    Ok(clocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_listened_on_without_authentication() {
        let flags = ServeFlags {
            listen: Some("0.0.0.0:8080".parse().unwrap()),
            ..ServeFlags::default()
        };
        let refused = Settings::of(&flags).unwrap_err().to_string();
        assert!(refused.contains("only loopback"), "{refused}");
    }

    #[test]
    fn the_database_lies_in_the_data_folder_unless_named() {
        let flags = ServeFlags::default();
        assert_eq!(
            Settings::of(&flags).unwrap().store.database,
            "sqlite:cairn-data/cairn.db"
        );
    }

    #[test]
    fn a_clock_needs_a_class_and_a_duration() {
        for bad in ["blocked", "blocked=soon", "hope=1s"] {
            let flags = ServeFlags {
                clock: vec![bad.into()],
                ..ServeFlags::default()
            };
            assert!(Settings::of(&flags).is_err(), "{bad}");
        }
    }
}
