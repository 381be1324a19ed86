//! Flags win over environment, environment over the settings file.

use crate::harness::{Process, Server, fails, free_address, program};
use std::fs;
use std::path::Path;

fn start(folder: &Path, environment: &[(&str, String)], flags: &[&str]) -> Process {
    let mut command = program();
    command.arg("serve").args(flags);
    command.envs(
        environment
            .iter()
            .map(|(name, value)| (*name, value.as_str())),
    );
    Process::start(command, folder)
}

#[test]
fn the_narrowest_setting_wins() {
    let folder = tempfile::tempdir().unwrap();
    let [in_file, in_environment, by_flag] = [free_address(), free_address(), free_address()];
    let file = folder.path().join("cairn.toml");
    let data = folder.path().join("data");
    let text = format!(
        "listen = \"{in_file}\"\ndata = \"{}\"\nsimulated = true\nlenient = true\nclock = [\"blocked=1s\"]\n",
        data.display()
    );
    fs::write(&file, text).unwrap();
    let config = file.display().to_string();

    // Lenient comes from the file each time: the others say nothing about it.
    let server = Server::ready(start(folder.path(), &[], &["--config", &config]), in_file);
    assert_eq!(server.bare_status("vnflcm/v2/vnf_instances"), 200);
    drop(server);
    let environment = [
        ("CAIRN_CONFIG", config.clone()),
        ("CAIRN_LISTEN", in_environment.to_string()),
    ];
    let server = Server::ready(start(folder.path(), &environment, &[]), in_environment);
    assert_eq!(server.bare_status("vnflcm/v2/vnf_instances"), 200);
    drop(server);
    let mut environment = environment.to_vec();
    environment.push(("CAIRN_CLOCK", "blocked=1s, infrastructure=2m".to_owned()));
    let flags = ["--listen", &by_flag.to_string()];
    let server = Server::ready(start(folder.path(), &environment, &flags), by_flag);
    assert_eq!(server.bare_status("vnflcm/v2/vnf_instances"), 200);
}

#[test]
fn a_wrong_setting_is_named_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cairn.toml");
    fs::write(&file, "lisen = \"127.0.0.1:1\"\n").unwrap();
    let config = file.display().to_string();
    let data = folder.path().join("data").display().to_string();
    let listen = free_address().to_string();
    let missing = folder.path().join("missing.toml").display().to_string();
    for (flags, named) in [
        (vec!["--config", &config], "lisen"),
        (vec!["--config", &missing], "does not exist"),
        (vec!["--listen", "0.0.0.0:8080"], "loopback"),
        (vec!["--clock", "hope=1s"], "hope"),
        (vec!["--clock", "blocked=soon"], "soon"),
        (
            vec!["--listen", &listen, "--public-url", "nowhere"],
            "--public-url",
        ),
        (
            vec!["--listen", &listen, "--kubeconfig", &missing],
            "--kubeconfig",
        ),
        // The settings file is there, but it is no kubeconfig.
        (
            vec!["--listen", &listen, "--kubeconfig", &config],
            "--kubeconfig",
        ),
    ] {
        let said = fails(&[&["serve", "--data", &data], flags.as_slice()].concat());
        assert!(said.contains(named), "{flags:?}: {said}");
    }
    let mut wrong = program();
    wrong
        .args(["serve", "--simulated", "--data", &data])
        .env("CAIRN_CLOCK", "blocked=1s,hope=2s");
    let said = crate::harness::failed(&["serve"], &wrong.output().unwrap());
    assert!(said.contains("hope"), "{said}");
    assert!(!folder.path().join("data").exists());
}
