//! Every command explains itself, and every flag is run by some test.

use crate::harness::succeeds;

/// Tests that run flags.
const TESTS: &str = concat!(
    include_str!("demo.rs"),
    include_str!("harness.rs"),
    include_str!("history.rs"),
    include_str!("package.rs"),
    include_str!("serve.rs"),
    include_str!("settings.rs"),
);

fn commands(command: &clap::Command, path: &[String], all: &mut Vec<(Vec<String>, Vec<String>)>) {
    let flags = command.get_arguments().filter_map(|arg| arg.get_long());
    let flags = flags.filter(|flag| *flag != "help" && *flag != "version");
    all.push((
        path.to_vec(),
        flags.map(|flag| format!("--{flag}")).collect(),
    ));
    for inner in command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help")
    {
        let path = [path, &[inner.get_name().to_owned()]].concat();
        commands(inner, &path, all);
    }
}

fn all() -> Vec<(Vec<String>, Vec<String>)> {
    let mut all = Vec::new();
    commands(&cairn::command_line(), &[], &mut all);
    all
}

#[test]
fn every_command_explains_itself_and_its_flags() {
    let all = all();
    assert_eq!(
        all.len(),
        9,
        "cairn, its six commands and the two of package"
    );
    for (path, flags) in all {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = succeeds(&args);
        for flag in flags {
            assert!(
                help.contains(&flag),
                "{args:?} does not explain {flag}:\n{help}"
            );
        }
    }
}

#[test]
fn every_flag_is_run_by_a_test() {
    for (path, flags) in all() {
        for flag in flags {
            let quoted = format!("\"{flag}\"");
            assert!(
                TESTS.contains(&quoted),
                "no test runs cairn {} {flag}",
                path.join(" ")
            );
        }
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(
        succeeds(&["--version"]),
        format!("cairn {}\n", env!("CARGO_PKG_VERSION"))
    );
}
