//! The documents say what the code says: tables of waits and events, dependencies, flags, links.

use crate::walkthroughs::built;
use cairn_domain::operation::{ErrorPoint, OperationState};
use cairn_domain::vnf_instance::Provisioning;
use cairn_domain::waits::{OTHERWISE, Phase, Row, TABLE};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags of other programs that the documents name.
const FLAGS_OF_OTHERS: &[&str] = &[
    // cargo
    "--all",
    "--all-targets",
    "--check",
    "--release",
    "--workspace",
    // curl
    "--retry",
    "--retry-connrefused",
    "--retry-delay",
    // kubectl
    "--duration",
    "--for",
    "--image",
    "--namespace",
    // tests/run, tests/cluster/up
    "--all-pairs",
    "--dir",
    "--without-cluster",
    // helm, which is not run yet
    "--include-crds",
    "--skip-tests",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests lie in the repository")
        .to_owned()
}

/// A file of the repository.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every document of the repository, from its root.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root(), &mut found);
    assert!(found.len() > 10, "{found:?}");
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    for entry in entries {
        let path = entry.expect("an entry can be read").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(
                path.strip_prefix(root())
                    .expect("below the root")
                    .to_owned(),
            );
        }
    }
}

/// First cells of the rows of the tables in a document, without their back-ticks.
fn first_cells(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .map(|(cell, _)| cell.trim_matches('`').to_owned())
        .collect()
}

fn clock(row: &Row) -> String {
    match row.clock_ms {
        0 => "at once".to_owned(),
        ms if ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms => format!("{} s", ms / 1000),
    }
}

fn documented(row: &Row) -> String {
    let source = if row.source.is_empty() {
        "any"
    } else {
        row.source
    };
    let reason = if row.reason.is_empty() {
        "anything else"
    } else {
        row.reason
    };
    let when = match row.phase {
        Some(Phase::Checks) => "checks",
        Some(Phase::Work) => "work",
        None => "",
    };
    format!(
        "| {source} | {reason} | {} | {when} | {} | {} |",
        row.says,
        row.class,
        clock(row)
    )
}

#[test]
fn the_table_of_waits_is_documented_row_by_row() {
    let text = read("docs/waits.md");
    let (_, table) = text
        .split_once("|---|---|---|---|---|---|---|\n")
        .expect("the table has seven columns");
    let rows = TABLE.iter().chain([&OTHERWISE]).map(documented);
    for (row, line) in rows.zip(table.lines().chain(std::iter::repeat("(the table ends)"))) {
        assert!(
            line.starts_with(&row),
            "docs/waits.md should say\n{row} …\nand says\n{line}"
        );
    }
    let lines = table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .count();
    assert_eq!(
        lines,
        TABLE.len() + 1,
        "docs/waits.md has rows that the table has not"
    );
}

/// Names of events: what `fn name` answers.
fn events() -> BTreeSet<String> {
    let files = [
        "domain/src/vnf_instance/event.rs",
        "domain/src/lcm_op_occ/event.rs",
        "domain/src/subscription.rs",
    ];
    let mut names = BTreeSet::new();
    for file in files {
        let text = read(file);
        let (_, body) = text
            .split_once("fn name(")
            .unwrap_or_else(|| panic!("{file} has no fn name"));
        let body = body.split("\n    }\n").next().unwrap_or_default();
        let arms = body
            .lines()
            .filter_map(|line| line.split_once("=> \"")?.1.split_once('"'));
        names.extend(arms.map(|(name, _)| name.to_owned()));
    }
    assert!(names.len() > 40, "{names:?}");
    names
}

#[test]
fn every_event_is_documented_and_no_other() {
    let cells = first_cells(&read("docs/events.md"));
    let events = events();
    let missing: Vec<_> = events.difference(&cells).collect();
    assert!(missing.is_empty(), "docs/events.md lacks {missing:?}");
    let is_event = |cell: &&String| cell.starts_with(char::is_uppercase);
    let unknown: Vec<_> = cells.difference(&events).filter(is_event).collect();
    assert!(
        unknown.is_empty(),
        "docs/events.md has {unknown:?}, which no aggregate has"
    );
}

#[test]
fn every_dependency_has_its_reason_and_no_other() {
    let manifest = read("Cargo.toml");
    let (_, table) = manifest
        .split_once("[workspace.dependencies]\n")
        .expect("the manifest has the table");
    let table = table.split("\n[").next().unwrap_or_default();
    let named: BTreeSet<String> = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.contains("path = "))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name.trim().to_owned())
        .collect();
    let mut documented = first_cells(&read("docs/dependencies.md"));
    assert!(documented.remove("crate"), "the table has a head");
    assert_eq!(named, documented, "Cargo.toml and docs/dependencies.md");
}

#[test]
fn every_state_is_documented() {
    let text = read("docs/operations.md");
    let cells = first_cells(&text);
    let operations = OperationState::ALL.into_iter().map(OperationState::as_str);
    for state in operations.chain(Provisioning::ALL.into_iter().map(Provisioning::as_str)) {
        assert!(
            cells.contains(state),
            "docs/operations.md lacks the state {state}"
        );
    }
    for point in ErrorPoint::ALL {
        let row = format!("| {} | ", point.number());
        assert!(
            text.contains(&row),
            "docs/operations.md lacks error point {}",
            point.number()
        );
    }
}

/// The names in quotation marks that begin so.
fn quoted(text: &str, beginning: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    text.split('"')
        .filter(|part| part.starts_with(beginning) && part.chars().all(is_part))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_metric_and_every_parameter_of_ours_is_documented() {
    let text = read("docs/operations.md");
    let metrics = quoted(&read("api/cairn/src/metrics.rs"), "cairn_");
    let parameters = quoted(&read("domain/src/request.rs"), "cairn.");
    assert!(
        !metrics.is_empty() && parameters.len() > 3,
        "{metrics:?} {parameters:?}"
    );
    for name in metrics
        .iter()
        .chain(&parameters)
        .filter(|name| *name != "cairn.")
    {
        assert!(
            text.contains(&format!("`{name}")),
            "docs/operations.md lacks {name}"
        );
    }
}

/// Names of field cases that concern operations, rollback, waiting, the API server and the store.
const FIELD_CASES: &[u16] = &[
    1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, // operations that are stuck
    17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30, 32, // rollback
    33, 34, 36, 37, 38, 40, 41, 42, 44, 45, 46, 48, 49, 50, 52, // waiting
    74, 76, 77, 78, 80, 81, 82, 84, 85, 86, // the API server
    128, 129, 130, 132, 133, 134, 136, 137, 138, 140, 141, 142, // the store
];

/// Tests that a text names: in back-ticks, of four words at least.
fn tests_named(text: &str) -> BTreeSet<String> {
    let is_test = |name: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(plain) && name.matches('_').count() >= 3
    };
    let odd = text.split('`').skip(1).step_by(2);
    odd.filter(is_test).map(str::to_owned).collect()
}

/// Every name in the code that could be a test's.
fn names_in_code() -> BTreeSet<String> {
    fn collect(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                collect(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("code is text");
                let code = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                names.extend(code.flat_map(|line| {
                    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                        .filter(|word| word.matches('_').count() >= 3)
                        .map(str::to_owned)
                }));
            }
        }
    }
    let mut names = BTreeSet::new();
    for room in ["adapters", "api", "domain", "projections", "tests"] {
        collect(&root().join(room), &mut names);
    }
    names
}

#[test]
fn every_test_that_a_document_names_exists() {
    let code = names_in_code();
    for (document, at_least) in [("docs/field-cases.md", 80), ("docs/guarantees.md", 40)] {
        let named = tests_named(&read(document));
        assert!(named.len() > at_least, "{document} names {}", named.len());
        let missing: Vec<_> = named.difference(&code).collect();
        assert!(missing.is_empty(), "{document} names {missing:?}");
    }
}

#[test]
fn every_field_case_has_a_test_or_a_reason() {
    let text = read("docs/field-cases.md");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    for case in FIELD_CASES {
        let beginning = format!("| {case} | ");
        let found: Vec<_> = rows
            .iter()
            .filter(|row| row.starts_with(&beginning))
            .collect();
        assert_eq!(found.len(), 1, "case {case}");
        assert!(
            !tests_named(found[0]).is_empty(),
            "case {case} names no test"
        );
    }
}

/// Everything in a text that looks like a long flag.
fn flags(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-';
    text.split(|c: char| !is_part(c))
        .filter(|word| word.starts_with("--") && word.len() > 3 && !word.ends_with('-'))
        .filter(|word| word.as_bytes()[2] != b'-')
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_document_names_a_flag_that_does_not_exist() {
    let program = built().join("cairn");
    let mut known: BTreeSet<String> = FLAGS_OF_OTHERS
        .iter()
        .map(|&flag| flag.to_owned())
        .collect();
    let commands: [&[&str]; 9] = [
        &[],
        &["serve"],
        &["demo"],
        &["simcluster"],
        &["history"],
        &["rebuild"],
        &["package"],
        &["package", "build"],
        &["package", "push"],
    ];
    for command in commands {
        let output = Command::new(&program)
            .args(command)
            .arg("--help")
            .output()
            .expect("cairn runs");
        assert!(output.status.success(), "cairn {command:?} --help");
        known.extend(flags(&String::from_utf8_lossy(&output.stdout)));
    }
    for document in documents() {
        let unknown: Vec<_> = flags(&read(&document))
            .difference(&known)
            .cloned()
            .collect();
        assert!(
            unknown.is_empty(),
            "{} names {unknown:?}",
            document.display()
        );
    }
}

/// Where a document links to: the texts in `](…)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(' ', "-");
            heading
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect()
        })
        .collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    for document in documents() {
        let text = read(&document);
        let folder = document.parent().expect("a file lies in a folder");
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, anchor) = link
                .split_once('#')
                .map_or((link, None), |(file, at)| (file, Some(at)));
            let target = if file.is_empty() {
                document.clone()
            } else {
                folder.join(file)
            };
            assert!(
                root().join(&target).exists(),
                "{} links to {link}",
                document.display()
            );
            if let Some(anchor) = anchor {
                let found = anchors(&read(&target));
                assert!(
                    found.contains(anchor),
                    "{} links to {link}; there are {found:?}",
                    document.display()
                );
            }
        }
    }
}
