//! `history` and `rebuild`: what is read from the database, with and without a server.

use crate::harness::{Server, cairn, fails, free_address, succeeds};
use reqwest::Method;
use serde_json::{Value, json};

#[test]
fn database_and_server_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let mut server = Server::start(folder.path(), &["--simulated"]);
    let id = server.instantiated(folder.path());
    let history = server
        .get(&format!("cairn/v1/vnf_instances/{id}/history"))
        .body;
    let events = history["events"].as_array().unwrap();
    let middle = events[events.len() / 2]["recordedAt"].as_str().unwrap();

    let mut printed = Vec::new();
    for more in [
        vec!["--output", "table"],
        vec!["--output", "json"],
        vec!["--at", middle, "--output", "table"],
        vec!["--at", middle, "--output", "json"],
    ] {
        let with = |source: &[&str]| succeeds(&[&["history", &id], source, &more].concat());
        let (offline, online) = (with(&["--data", &data]), with(&["--server", &server.url]));
        assert_eq!(offline, online, "{more:?}");
        printed.push((more, offline));
    }
    let whole: Value = serde_json::from_str(&printed[1].1).unwrap();
    assert_eq!(whole["events"], history["events"]);
    assert!(printed[0].1.contains("→ COMPLETED"), "{}", printed[0].1);
    assert!(
        printed[2].1.contains("DEPLOYING → ACTIVE"),
        "{}",
        printed[2].1
    );
    let then: Value = serde_json::from_str(&printed[3].1).unwrap();
    assert_eq!(then["vnfInstance"]["provisioning"]["state"], "DEPLOYING");
    assert!(then["events"].as_array().unwrap().len() < events.len());

    server.process.signal("TERM");
    assert_eq!(server.process.ended().code(), Some(0));
    std::fs::remove_file(folder.path().join("data/cairn.key")).unwrap();
    for (more, before) in printed {
        let without = succeeds(&[&["history", &id, "--data", &data], more.as_slice()].concat());
        assert_eq!(without, before, "without server and key, {more:?}");
    }
}

#[test]
fn what_never_was_is_told_from_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let server = Server::start(folder.path(), &["--simulated"]);
    let id = server.instantiated(folder.path());
    let database = format!("sqlite:{data}/cairn.db");
    for source in [["--database", &database], ["--server", &server.url]] {
        let said = fails(&[&["history", "nobody"], source.as_slice()].concat());
        assert!(said.contains("there is no VNF instance nobody"), "{said}");
        let early = "2020-01-01T00:00:00+02:00";
        let said = fails(&[&["history", &id, "--at", early], source.as_slice()].concat());
        assert!(
            said.contains("did not exist at 2019-12-31T22:00:00.000Z"),
            "{said}"
        );
        let said = fails(&[&["history", &id, "--at", "yesterday"], source.as_slice()].concat());
        assert!(
            said.contains("--at") && said.contains("yesterday"),
            "{said}"
        );
        let said = fails(&[&["history", "a/b"], source.as_slice()].concat());
        assert!(said.contains("a/b"), "{said}");
    }
}

#[test]
fn a_deleted_instance_keeps_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let server = Server::start(folder.path(), &["--simulated"]);
    let id = server.instantiated(folder.path());
    let path = format!("vnflcm/v2/vnf_instances/{id}");
    let body = json!({"terminationType": "FORCEFUL"});
    let terminate = format!("{path}/terminate");
    let op = server
        .send(Method::POST, &terminate, &body)
        .success()
        .unwrap()
        .made()
        .unwrap();
    server.settled(&op, "COMPLETED");
    server.delete(&path).success().unwrap();
    let late = ["history", &id, "--at", "2999-01-01T00:00:00Z"];
    let offline = succeeds(&[late.as_slice(), &["--data", &data]].concat());
    assert!(offline.contains("deleted by anonymous"), "{offline}");
    assert!(offline.contains("deleted by then"), "{offline}");
    let online = succeeds(&[late.as_slice(), &["--server", &server.url]].concat());
    assert_eq!(online, offline);
}

#[test]
fn an_absent_database_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    for command in [
        vec!["history", "one", "--data", &data],
        vec!["rebuild", "--data", &data],
    ] {
        let said = fails(&command);
        assert!(
            said.contains("--database") && said.contains("does not exist"),
            "{said}"
        );
    }
    assert!(!folder.path().join("data").exists());
    let server = format!("http://{}", free_address());
    let said = fails(&["history", "one", "--server", &server]);
    assert!(said.contains(&server), "{said}");
}

#[test]
fn server_and_database_exclude_each_other() {
    let both = cairn(&[
        "history",
        "one",
        "--server",
        "http://127.0.0.1:1",
        "--database",
        "sqlite:x",
    ]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn read_models_are_made_again_while_nobody_owns_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let mut server = Server::start(folder.path(), &["--simulated"]);
    let id = server.instantiated(folder.path());
    let path = format!("cairn/v1/vnf_instances/{id}");
    let before = server.get(&path).body;
    let said = fails(&["rebuild", "--data", &data]);
    assert!(said.contains("another cairn process"), "{said}");
    server.process.signal("TERM");
    assert_eq!(server.process.ended().code(), Some(0));

    let said = succeeds(&["rebuild", "--data", &data]);
    assert!(said.contains("up to position"), "{said}");
    let server = Server::start(folder.path(), &["--simulated"]);
    let after = server.get(&path).body;
    let without_links = |mut instance: Value| {
        instance.as_object_mut().unwrap().remove("_links");
        instance
    };
    assert_eq!(without_links(after), without_links(before));
}
