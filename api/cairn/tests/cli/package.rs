//! `package build` and `package push`.

use crate::harness::{Server, example, fails, succeeds};

#[test]
fn the_examples_are_built_the_same_each_time_and_onboarded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--simulated"]);
    for (name, vnfd_id) in [
        ("signalling", "6f1d3c52-8a0e-4b57-9a53-0d2f4e7c1a10"),
        ("custom-resource", "b0a4c9de-53c7-4a6e-8f0e-7f5c2d90e3b1"),
    ] {
        let csar = example(folder.path(), name);
        let bytes = std::fs::read(&csar).unwrap();
        example(folder.path(), name);
        assert_eq!(std::fs::read(&csar).unwrap(), bytes, "{name}");
        let pushed = succeeds(&["package", "push", &csar, "--server", &server.url]);
        assert_eq!(pushed, format!("{vnfd_id}\n"));
    }
}

#[test]
fn what_is_no_package_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let refused = fails(&[
        "package",
        "build",
        &path("empty"),
        "--output",
        &path("x.csar"),
    ]);
    assert!(refused.contains("TOSCA"), "{refused}");
    assert!(!folder.path().join("x.csar").exists());

    let server = Server::start(folder.path(), &["--simulated"]);
    std::fs::write(folder.path().join("text.csar"), "no zip").unwrap();
    let refused = fails(&[
        "package",
        "push",
        &path("text.csar"),
        "--server",
        &server.url,
    ]);
    assert!(
        refused.contains("refused") && refused.contains("zip"),
        "{refused}"
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let csar = example(folder.path(), "signalling");
    let address = crate::harness::free_address().to_string();
    let refused = fails(&[
        "package",
        "push",
        &csar,
        "--server",
        &format!("http://{address}"),
    ]);
    assert!(refused.contains(&address), "{refused}");
    let refused = fails(&["package", "push", &csar, "--server", "nowhere"]);
    assert!(refused.contains("nowhere is no address"), "{refused}");
}
