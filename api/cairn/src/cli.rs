//! The command line. Flags win over environment (`CAIRN_…`), environment over the settings file.

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Cairn: a VNF manager for containerised network functions on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "cairn", version, about)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve SOL003 and the operators' API.
    Serve(ServeFlags),
    /// Tell the story of Cairn on a simulated cluster, step by step; then stay up for curl.
    Demo(DemoFlags),
    /// Run the simulated cluster as a process of its own.
    Simcluster(SimclusterFlags),
    /// Show all that happened to a VNF instance, and how it looked at any moment.
    History(HistoryFlags),
    /// Drop the read models and make them again from the events.
    Rebuild(StoreFlags),
    /// Build or push a VNF package.
    Package(PackageFlags),
}

/// Where the database lies.
#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct StoreFlags {
    /// `sqlite:PATH` or `postgres://…`; default: `sqlite:DATA/cairn.db`.
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Folder for the database, the key and caches; default: `cairn-data`.
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// File with the key for secrets: 32 random bytes in base64; default with SQLite: `DATA/cairn.key`.
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Settings file (TOML) with the same names as the flags.
    #[arg(long, value_name = "FILE", env = "CAIRN_CONFIG")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
}

/// Flags of `serve`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a flag without a value is a bool"
)]
#[derive(Clone, Debug, Default, Args, Serialize)]
pub struct ServeFlags {
    /// Where the database lies.
    #[command(flatten)]
    #[serde(flatten)]
    pub store: StoreFlags,
    /// Address to listen on; loopback only, as long as there is no authentication. Default: 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Kubeconfig of the default VIM.
    #[arg(long, value_name = "FILE", conflicts_with = "simulated")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    /// Use a simulated cluster in this process's memory as the default VIM.
    #[arg(long)]
    #[serde(skip_serializing_if = "is_false")]
    pub simulated: bool,
    /// Base of all links, as clients reach this server; default: `http://LISTEN`.
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// Let tests inject faults under /cairn/v1/faults.
    #[arg(long)]
    #[serde(skip_serializing_if = "is_false")]
    pub enable_faults: bool,
    /// Let subscriptions call back to private addresses.
    #[arg(long)]
    #[serde(skip_serializing_if = "is_false")]
    pub allow_private_callbacks: bool,
    /// Take a request without Version header as 2.0.0.
    #[arg(long)]
    #[serde(skip_serializing_if = "is_false")]
    pub lenient: bool,
    /// How long to wait by class, such as blocked=30s; may be repeated.
    #[arg(long, value_name = "CLASS=DURATION")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clock: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over by reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Flags of `demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoFlags {
    /// Leave at the end: 0 if each step came out as told, 1 otherwise.
    #[arg(long)]
    pub once: bool,
    /// Address to listen on; default: a free port of 127.0.0.1.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
}

/// Flags of `simcluster`.
#[derive(Clone, Debug, Args)]
pub struct SimclusterFlags {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    pub listen: SocketAddr,
    /// Write a kubeconfig to this file once the port answers.
    #[arg(long, value_name = "FILE")]
    pub write_kubeconfig: Option<PathBuf>,
}

/// How `history` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A line per event, to be read.
    #[default]
    Table,
    /// As `/cairn/v1` answers.
    Json,
}

/// Flags of `history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryFlags {
    /// Id of the VNF instance.
    pub instance: String,
    /// Only events up to this time (RFC 3339), then the instance as it was.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// Ask this server instead of reading the database.
    #[arg(long, value_name = "URL", conflicts_with_all = ["database", "data"])]
    pub server: Option<String>,
    /// Where the database lies.
    #[command(flatten)]
    pub store: StoreFlags,
}

/// Flags of `package`.
#[derive(Clone, Debug, Args)]
pub struct PackageFlags {
    /// What to do with a package.
    #[command(subcommand)]
    pub command: PackageCommand,
}

/// The commands of `package`.
#[derive(Clone, Debug, Subcommand)]
pub enum PackageCommand {
    /// Make a CSAR of a folder: compute the hashes and check it as onboarding would.
    Build {
        /// Folder that holds what the CSAR is to hold.
        dir: PathBuf,
        /// File to write.
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Onboard a CSAR and print its vnfdId.
    Push {
        /// The CSAR.
        csar: PathBuf,
        /// Server to onboard it to.
        #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
        server: String,
    },
}
