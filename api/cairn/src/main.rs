//! The `cairn` program. All of it is in the library, so that tests can start it in process.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cairn::run(cairn::cli::Cli::parse())
}
