//! `serve` and `simcluster`.

use crate::harness::{Process, Server, fails, free_address, program, until};
use cairn_db::{Database, DbOptions};
use reqwest::Method;
use serde_json::json;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// Refuses to start in `folder/data`, saying this.
#[track_caller]
fn refuses(folder: &Path, flags: &[&str]) -> String {
    let data = folder.join("data").display().to_string();
    let listen = free_address().to_string();
    fails(
        &[
            &["serve", "--simulated", "--data", &data, "--listen", &listen],
            flags,
        ]
        .concat(),
    )
}

/// Starts a server, and ends it again.
fn leave_a_database(folder: &Path) {
    let mut server = Server::start(folder, &["--simulated"]);
    server.process.signal("TERM");
    assert_eq!(server.process.ended().code(), Some(0));
}

#[test]
fn a_port_in_use_is_told_and_the_database_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = fails(&[
        "serve",
        "--simulated",
        "--data",
        &data,
        "--listen",
        &address,
    ]);
    assert!(
        said.contains("--listen") && said.contains(&address),
        "{said}"
    );
    assert!(!folder.path().join("data").exists());
}

#[test]
fn a_second_server_on_the_same_file_is_refused_while_the_first_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--simulated"]);
    let said = refuses(folder.path(), &[]);
    assert!(said.contains("another cairn process"), "{said}");
    assert_eq!(server.get("readyz").status, 200);
}

#[test]
fn a_wrong_or_lost_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    leave_a_database(folder.path());
    let other = folder.path().join("other.key");
    fs::write(&other, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    let other = other.display().to_string();
    let said = refuses(folder.path(), &["--key-file", &other]);
    assert!(said.contains("--key-file"), "{said}");

    let key = folder.path().join("data/cairn.key");
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let said = refuses(folder.path(), &[]);
    assert!(said.contains("--key-file"), "{said}");
    assert!(
        !key.exists(),
        "a new key must not be made for an old database"
    );

    fs::write(&key, kept).unwrap();
    assert_eq!(
        Server::start(folder.path(), &["--simulated"])
            .get("readyz")
            .status,
        200
    );
}

#[test]
fn a_database_server_that_cannot_be_used_is_told_without_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("cairn.key");
    fs::write(&key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    let key = key.display().to_string();
    let nobody = free_address();
    let mut rows = vec![(
        format!("postgres://cairn:hush-password@{nobody}/cairn"),
        "cannot be reached",
    )];
    // Where PostgreSQL is left out on purpose, the database's own tests are too.
    if let Ok(url) = std::env::var("CAIRN_TEST_POSTGRES") {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (login, place) = rest.rsplit_once('@').unwrap();
        let (user, _) = login.split_once(':').unwrap_or((login, ""));
        let (host, _) = place.split_once('/').unwrap();
        rows.push((
            format!("{scheme}://{user}:hush-password@{place}"),
            "refuses the user or the password",
        ));
        rows.push((
            format!("{scheme}://{login}@{host}/none_such"),
            "does not exist",
        ));
    }
    for (database, told) in rows {
        for said in [
            refuses(
                folder.path(),
                &["--key-file", &key, "--database", &database],
            ),
            fails(&["history", "one", "--database", &database]),
        ] {
            assert!(
                said.contains("--database") && said.contains(told),
                "{told}: {said}"
            );
            assert!(!said.contains("hush-password"), "{said}");
        }
    }
    let file = folder.path().join("letter.txt");
    fs::write(&file, "no database at all, but a letter\n").unwrap();
    let said = refuses(
        folder.path(),
        &["--database", &format!("sqlite:{}", file.display())],
    );
    assert!(said.contains("not a SQLite database"), "{said}");
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("no database")
    );
}

#[test]
fn a_database_of_a_newer_cairn_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    leave_a_database(folder.path());
    let database = format!("sqlite:{}", folder.path().join("data/cairn.db").display());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let opened = Database::connect(&database, DbOptions::default())
            .await
            .unwrap();
        let newer =
            "INSERT INTO schema_migrations (version, name, applied_at) VALUES (999, 'later', 0)";
        opened.execute(newer, Vec::new()).await.unwrap();
        opened.close().await;
    });
    let said = refuses(folder.path(), &["--database", &database]);
    assert!(said.contains("schema 999"), "{said}");
    let said = fails(&["history", "one", "--database", &database]);
    assert!(said.contains("schema 999"), "{said}");
}

#[test]
fn sigterm_ends_it_with_0_within_5_s_even_at_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &["--simulated", "--enable-faults"]);
    let id = server.instantiated(folder.path());
    let hold = json!([{"at": {"errorPoint": 3}, "action": "hold"}]);
    server
        .send(Method::PUT, "cairn/v1/faults", &hold)
        .success()
        .unwrap();
    let path = format!("vnflcm/v2/vnf_instances/{id}/scale");
    let body = json!({"type": "SCALE_OUT", "aspectId": "frontend_aspect"});
    let op = server
        .send(Method::POST, &path, &body)
        .success()
        .unwrap()
        .made()
        .unwrap();
    until("the operation is held", || {
        let op = server.get(&format!("cairn/v1/vnf_lcm_op_occs/{op}")).body;
        (op["point"] == 3).then_some(())
    });
    let asked = Instant::now();
    server.process.signal("TERM");
    assert_eq!(
        server.process.ended().code(),
        Some(0),
        "{}",
        server.process.said()
    );
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    assert!(server.is_gone());
}

#[test]
fn what_only_a_flag_allows_is_refused_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Server::start(folder.path(), &["--simulated"]);
    assert_eq!(plain.bare_status("vnflcm/v2/vnf_instances"), 400);
    assert_eq!(plain.get("cairn/v1/faults").status, 404);
    drop(plain);
    let flags = [
        "--simulated",
        "--lenient",
        "--enable-faults",
        "--public-url",
        "https://gateway/vnfm/",
    ];
    let server = Server::start(folder.path(), &flags);
    assert_eq!(server.bare_status("vnflcm/v2/vnf_instances"), 200);
    assert_eq!(server.get("cairn/v1/faults").status, 200);
    let id = server.instantiated(folder.path());
    let instance = server.get(&format!("vnflcm/v2/vnf_instances/{id}")).body;
    let link = format!("https://gateway/vnfm/vnflcm/v2/vnf_instances/{id}");
    assert_eq!(instance["_links"]["self"]["href"], link);
}

#[test]
fn private_callbacks_are_called_only_when_allowed() {
    let folder = tempfile::tempdir().unwrap();
    // A private address of this very machine answers at once that nobody listens; where it has none, the
    // attempt runs into its time-out. Either way the refusal is not about the address any more.
    let body = json!({"callbackUri": "http://10.255.255.254:9/notifications"});
    let refusal = |flags: &[&str]| {
        let server = Server::start(folder.path(), flags);
        let answer = server.send(Method::POST, "vnflcm/v2/subscriptions", &body);
        assert_eq!(answer.status, 422, "{}", answer.body);
        answer.body["detail"].as_str().unwrap().to_owned()
    };
    let without = refusal(&["--simulated"]);
    let with = refusal(&["--simulated", "--allow-private-callbacks"]);
    assert!(without.contains("private"), "{without}");
    assert!(!with.contains("private"), "{with}");
}

#[test]
fn a_cluster_in_a_process_of_its_own_is_reached_by_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = program();
    command.args([
        "simcluster",
        "--listen",
        &free_address().to_string(),
        "--write-kubeconfig",
    ]);
    let mut cluster = Process::start(
        {
            command.arg(&kubeconfig);
            command
        },
        folder.path(),
    );
    until("the kubeconfig", || {
        assert!(!cluster.is_over(), "{}", cluster.said());
        kubeconfig.exists().then_some(())
    });
    let file = kubeconfig.display().to_string();
    let mut server = Server::start(
        folder.path(),
        &["--kubeconfig", &file, "--clock", "progressing=5m"],
    );
    server.instantiated(folder.path());
    server.process.signal("INT");
    assert_eq!(server.process.ended().code(), Some(0));
    cluster.signal("TERM");
    assert_eq!(cluster.ended().code(), Some(0));
}
