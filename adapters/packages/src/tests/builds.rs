use std::fs;
use std::path::{Path, PathBuf};

use super::fixture::{META, csar};
use crate::{ErrorKind, Limits, Package, build};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

/// The fixture as a folder.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let package = csar().package();
    let mut paths = vec![META, "vnf.mf", "Definitions/vnfd.yaml"];
    paths.extend(
        package
            .artifacts
            .iter()
            .map(|artifact| artifact.path.as_str()),
    );
    for path in paths {
        let target = dir.path().join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, package.artifact(path).unwrap()).unwrap();
    }
    dir
}

#[test]
fn the_signalling_example_is_a_package() {
    let bytes = build(&example("signalling")).unwrap();
    let package = Package::read(&bytes, &Limits::default()).unwrap();
    let vnfd = &package.vnfd;
    assert_eq!(vnfd.vnfd_id, "6f1d3c52-8a0e-4b57-9a53-0d2f4e7c1a10");
    assert_eq!(
        (vnfd.product_name.as_str(), vnfd.default_flavour.as_str()),
        ("Signalling", "standard")
    );
    assert_eq!(vnfd.sensitive, ["subscriberPin"]);
    assert_eq!(
        serde_json::to_string(&vnfd.metadata).unwrap(),
        r#"{"site":"unassigned"}"#
    );
    let flavour = vnfd.flavour("standard").unwrap();
    assert_eq!(flavour.description, "Front ends that scale, and one store");
    let replicas = |level: Option<&str>| {
        let target = flavour.levels_of(level).unwrap();
        // What the levels state is what the deltas add up to.
        assert_eq!(target.replicas, flavour.replicas_at(&target.levels));
        (target.replicas["FRONTEND"], target.replicas["STORE"])
    };
    assert_eq!(replicas(None), (2, 1));
    assert_eq!(replicas(Some("small")), (1, 1));
    assert_eq!(replicas(Some("large")), (4, 1));
    let titles: Vec<_> = package
        .manifests(None)
        .unwrap()
        .iter()
        .map(crate::Manifest::title)
        .collect();
    assert_eq!(
        titles,
        [
            "ConfigMap/signalling-config",
            "Secret/signalling-credentials",
            "Service/store",
            "StatefulSet/store",
            "Service/frontend",
            "Deployment/frontend"
        ]
    );
}

#[test]
fn the_custom_resource_example_is_a_package() {
    let bytes = build(&example("custom-resource")).unwrap();
    let package = Package::read(&bytes, &Limits::default()).unwrap();
    assert_eq!(
        package.vnfd.flavour("default").unwrap().aspects["router_aspect"].max_scale_level,
        2
    );
    let titles: Vec<_> = package
        .manifests(None)
        .unwrap()
        .iter()
        .map(crate::Manifest::title)
        .collect();
    assert_eq!(
        titles,
        [
            "CustomResourceDefinition/signallingroutes.router.example.com",
            "SignallingRoute/default-route",
            "Deployment/router"
        ]
    );
}

#[test]
fn the_same_folder_gives_the_same_bytes_with_every_hash() {
    let dir = folder();
    let bytes = build(dir.path()).unwrap();
    assert_eq!(bytes, build(dir.path()).unwrap());
    let package = Package::read(&bytes, &Limits::default()).unwrap();
    let manifest = std::str::from_utf8(package.artifact("vnf.mf").unwrap()).unwrap();
    assert!(manifest.starts_with("metadata:\n  vnf_product_name: Web\n\nSource: Definitions/"));
    let sources: Vec<_> = manifest
        .lines()
        .filter_map(|l| l.strip_prefix("Source: "))
        .collect();
    assert_eq!(
        sources,
        ["Definitions/vnfd.yaml", "Files/kubernetes/web.yaml", META]
    );
    assert_eq!(package.digest.len(), 64);
}

#[test]
fn hashes_and_signatures_that_are_there_are_replaced() {
    let dir = folder();
    let first = build(dir.path()).unwrap();
    let stale = "metadata:\n  vnf_product_name: Web\n\nSource: gone\nAlgorithm: MD5\nHash: 00\n\n-----BEGIN CMS-----\nx\n";
    fs::write(dir.path().join("vnf.mf"), stale).unwrap();
    assert_eq!(build(dir.path()).unwrap(), first);

    let meta = dir.path().join(META);
    let text = fs::read_to_string(&meta).unwrap();
    let block =
        "\nName: Files/kubernetes/web.yaml\nContent-Type: x\nAlgorithm: SHA-512\nHash: 00\n";
    fs::write(&meta, text + block).unwrap();
    assert!(build(dir.path()).is_ok());
}

#[test]
fn hidden_files_are_left_out_and_links_refused() {
    let dir = folder();
    let first = build(dir.path()).unwrap();
    fs::write(dir.path().join(".notes"), "x").unwrap();
    assert_eq!(build(dir.path()).unwrap(), first);
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("Files/link")).unwrap();
    let error = build(dir.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Files/link: symbolic links and special files are not taken"
    );
}

#[test]
fn a_folder_is_checked_as_onboarding_would() {
    let dir = folder();
    fs::remove_file(dir.path().join("vnf.mf")).unwrap();
    assert_eq!(
        build(dir.path()).unwrap_err().to_string(),
        "TOSCA-Metadata/TOSCA.meta:5: ETSI-Entry-Manifest names \"vnf.mf\", which is not in the package"
    );
    let error = build(&dir.path().join("absent")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(
        error.to_string().starts_with("the folder cannot be read: "),
        "{error}"
    );
    let empty = tempfile::tempdir().unwrap();
    let words = build(empty.path()).unwrap_err().to_string();
    assert_eq!(words, "the package has no TOSCA-Metadata/TOSCA.meta");
}
