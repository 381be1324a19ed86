//! The demo.

use crate::harness::{Process, free_address, program, until};
use std::net::TcpStream;

#[test]
fn each_step_of_the_demo_comes_out_as_told_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let output = program()
        .args(["demo", "--once"])
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for told in [
        "ONBOARDED, ENABLED",
        "FAILED_TEMP 401",
        "MODIFY_INFO",
        "exceeded quota no-more-pods",
        "ReplicasRestored: Deployment/frontend 3 → 2",
        "RollbackVerified",
        "media-gateway:9",
        "nothing is left",
        "SIGKILL",
        "notification: SCALE",
        "→ ROLLED_BACK",
        "each step came out as told",
    ] {
        assert!(said.contains(told), "{told} is missing in:\n{said}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "left in the temporary folder"
    );
}

#[test]
fn without_once_it_stays_up_until_it_is_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let address = free_address();
    let mut command = program();
    command
        .args(["demo", "--listen", &address.to_string()])
        .env("TMPDIR", &temporary);
    let mut demo = Process::start(command, folder.path());
    until("the invitation", || {
        assert!(!demo.is_over(), "{}", demo.said());
        demo.said().contains("until Ctrl-C").then_some(())
    });
    assert!(
        TcpStream::connect(address).is_ok(),
        "it should still answer"
    );
    let said = demo.said();
    assert!(
        said.contains(&format!("curl http://{address}/vnfpkgm/v2/vnf_packages")),
        "{said}"
    );
    demo.signal("TERM");
    assert_eq!(demo.ended().code(), Some(0));
    assert!(
        TcpStream::connect(address).is_err(),
        "the server should have ended"
    );
    assert_eq!(
        std::fs::read_dir(&temporary).unwrap().count(),
        0,
        "left in the temporary folder"
    );
}

#[test]
fn a_port_in_use_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut demo = program();
    demo.args(["demo", "--once", "--listen", &address])
        .env("TMPDIR", folder.path());
    let output = demo.output().unwrap();
    let said = crate::harness::failed(&["demo"], &output);
    assert!(
        said.contains("--listen") && said.contains(&address),
        "{said}"
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "left in the temporary folder"
    );
}
