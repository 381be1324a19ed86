//! The journal matrix of the tests, timed: processes that end at each call, and at all pairs of calls.

use crate::report::{Good, Report};
use anyhow::{Context as _, ensure};
use std::process::Command;
use std::time::Instant;

/// How long all single ends may take on two cores, in seconds.
const SINGLES_S: f64 = 60.0;
/// How long all pairs may take on two cores, in seconds.
const PAIRS_S: f64 = 600.0;

fn cargo_test() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([
        "test",
        "--quiet",
        "--release",
        "-p",
        "cairn-tests",
        "--test",
        "it",
    ]);
    cargo
}

/// Runs the matrix as it is released, after a build that does not count.
pub fn measure(all_pairs: bool) -> anyhow::Result<Report> {
    let built = cargo_test().arg("--no-run").status().context("cargo")?;
    ensure!(built.success(), "the tests do not build");
    let mut matrix = cargo_test();
    matrix.args(["--", "journal::matrix"]);
    if all_pairs {
        matrix.env("CAIRN_TEST_ALL_PAIRS", "1");
    }
    let started = Instant::now();
    let ran = matrix.output().context("cargo")?;
    let seconds = started.elapsed().as_secs_f64();
    let told = String::from_utf8_lossy(&ran.stdout);
    ensure!(ran.status.success(), "the matrix does not hold: {told}");
    let (name, limit) = if all_pairs {
        ("journal, all pairs, of 600 s", PAIRS_S)
    } else {
        ("journal, single ends, of 60 s", SINGLES_S)
    };
    Ok(Report {
        name,
        figures: format!("{seconds:.1} s"),
        ratio: seconds / limit,
        limit: 1.0,
        good: Good::AtMost,
    })
}
