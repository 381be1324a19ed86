//! Who may import whom: the table of the design, read off `cargo metadata`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Our crates and what of ours each may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("cairn-domain", &[]),
    ("cairn-db", &[]),
    ("cairn-simcluster", &[]),
    ("cairn-event-store", &["cairn-domain", "cairn-db"]),
    ("cairn-projections", &["cairn-domain", "cairn-db"]),
    ("cairn-engine", &["cairn-domain"]),
    ("cairn-kubernetes", &["cairn-domain"]),
    ("cairn-packages", &["cairn-domain"]),
    ("cairn-webhooks", &["cairn-domain", "cairn-api-types"]),
    ("cairn-api-types", &["cairn-domain"]),
    (
        "cairn-http",
        &["cairn-domain", "cairn-projections", "cairn-api-types"],
    ),
];

/// What a pure crate must never reach for.
const IMPURE: &[&str] = &[
    "tokio",
    "sqlx",
    "axum",
    "hyper",
    "kube",
    "k8s-openapi",
    "reqwest",
    "tracing",
    "rand",
    "futures",
    "tempfile",
];

/// What few crates alone may use, and which.
const ONLY_IN: &[(&str, &[&str])] = &[
    (
        "sqlx",
        &["cairn-db", "cairn-event-store", "cairn-projections"],
    ),
    ("kube", &["cairn-kubernetes"]),
    ("reqwest", &["cairn-webhooks", "cairn"]),
    ("cqrs-es", &["cairn-domain", "cairn-event-store"]),
];

/// The binary, which knows every crate, the tests and the benchmarks.
const EVERYTHING: &[&str] = &["cairn", "cairn-tests", "cairn-bench"];

fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            // What only a crate's own tests use is no edge of the house.
            let imported = package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter();
            let imported = imported.filter(|d| d["kind"] != "dev");
            let names = imported.map(|d| text(&d["name"])).collect();
            (text(&package["name"]), names)
        })
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn no_crate_imports_what_it_may_not() {
    let imports = imports();
    let ours: BTreeSet<_> = imports.keys().cloned().collect();
    let mut wrong = Vec::new();
    for (name, imported) in &imports {
        if EVERYTHING.contains(&name.as_str()) {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(row, _)| row == name) else {
            wrong.push(format!("{name} stands in no row of the table"));
            continue;
        };
        let edges = imported
            .intersection(&ours)
            .filter(|to| !allowed.contains(&to.as_str()));
        wrong.extend(edges.map(|to| format!("{name} imports {to}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_row_of_the_table_is_a_crate() {
    let imports = imports();
    let rows = MAY_IMPORT
        .iter()
        .map(|(name, _)| *name)
        .chain(EVERYTHING.iter().copied());
    let missing: Vec<_> = rows.filter(|name| !imports.contains_key(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_domain_does_no_input_and_no_output() {
    let imports = imports();
    let impure = imports["cairn-domain"]
        .iter()
        .filter(|name| IMPURE.contains(&name.as_str()));
    assert_eq!(impure.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn each_outside_system_is_known_to_its_own_crates_only() {
    let mut wrong = Vec::new();
    for (name, imported) in imports() {
        if name == "cairn-tests" || name == "cairn-bench" {
            continue;
        }
        for (library, users) in ONLY_IN {
            if imported.contains(*library) && !users.contains(&name.as_str()) {
                wrong.push(format!("{name} uses {library}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
