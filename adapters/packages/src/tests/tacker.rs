//! A package as it is made for `OpenStack` Tacker's v2 API: lower-level templates, manifests of which
//! a request lists some, hashes in TOSCA.meta, levels that disagree with initial deltas.

use std::collections::BTreeMap;

use super::fixture::{Csar, META, empty};
use crate::digest::Algorithm;

const TOP: &str = include_str!("tacker/top.yaml");
const TYPES: &str = include_str!("tacker/types.yaml");
const SIMPLE: &str = include_str!("tacker/df_simple.yaml");

fn workload(kind: &str, name: &str) -> String {
    format!("apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: {name}\nspec: {{replicas: 1}}\n")
}

fn package() -> Csar {
    let files = [
        (
            "Files/kubernetes/deployment.yaml",
            workload("Deployment", "vdu1"),
        ),
        (
            "Files/kubernetes/deployment_broken.yaml",
            workload("Deployment", "vdu1"),
        ),
        (
            "Files/kubernetes/replicaset.yaml",
            workload("ReplicaSet", "vdu2"),
        ),
        (
            "Files/new_kubernetes/statefulset.yaml",
            workload("StatefulSet", "vdu3"),
        ),
    ];
    let mut meta = "TOSCA-Meta-File-Version: 1.0\nCreated-by: dummy_user\nCSAR-Version: 1.1\n\
                    Entry-Definitions: Definitions/top.vnfd.yaml\nETSI-Entry-Manifest: sample.mf\n"
        .to_owned();
    let mut csar = empty().with("sample.mf", "");
    for (path, text) in files {
        let hash = Algorithm::Sha256.hex(text.as_bytes());
        meta = format!(
            "{meta}\nName: {path}\nContent-Type: test-data\nAlgorithm: SHA-256\nHash: {hash}\n"
        );
        csar = csar.with(path, text);
    }
    csar.with(META, meta)
        .with("Definitions/top.vnfd.yaml", TOP)
        .with("Definitions/types.yaml", TYPES)
        .with("Definitions/df_simple.yaml", SIMPLE)
        .with(
            "Definitions/etsi_nfv_sol001_common_types.yaml",
            "data_types: {}\n",
        )
        .with(
            "Definitions/etsi_nfv_sol001_vnfd_types.yaml",
            "node_types: {}\n",
        )
}

#[test]
fn it_is_taken_and_its_listed_manifests_are_made() {
    let package = package().package();
    assert_eq!(package.vnfd.vnfd_id, "c0ffee00-1111-4222-8333-444455556666");
    assert_eq!(package.vnfd.vnfm_info, ["Tacker"]);
    let listed = [
        "Files/new_kubernetes/statefulset.yaml".to_owned(),
        "Files/kubernetes/deployment.yaml".to_owned(),
    ];
    let found = package.manifests(Some(&listed)).unwrap();
    let titles: Vec<_> = found.iter().map(crate::Manifest::title).collect();
    assert_eq!(titles, ["StatefulSet/vdu3", "Deployment/vdu1"]);
    // Without a list both deployments of one name would be made.
    assert!(
        package
            .manifests(None)
            .unwrap_err()
            .message
            .contains("\"Deployment/vdu1\" is in the package twice")
    );
}

#[test]
fn its_levels_hold_where_the_initial_delta_disagrees() {
    let package = package().package();
    let flavour = package.vnfd.flavour("simple").unwrap();
    let start = flavour.levels_of(None).unwrap();
    assert_eq!(
        start.levels,
        BTreeMap::from([("steps".into(), 0), ("vdu1_aspect".into(), 1)])
    );
    assert_eq!((start.replicas["VDU1"], start.replicas["VDU2"]), (2, 1));
    // Initial delta 2 and a step of 1 would make three at level 1, where the level says two.
    let out = flavour.scaled(&start.levels, "vdu1_aspect", 1).unwrap();
    assert_eq!(out.replicas["VDU1"], 3);
    assert_eq!(
        flavour.levels_of(Some("largest")).unwrap().replicas["VDU1"],
        3
    );
}

#[test]
fn its_non_uniform_steps_add_what_each_names() {
    let package = package().package();
    let flavour = package.vnfd.flavour("simple").unwrap();
    let count = |level| flavour.replicas_at(&BTreeMap::from([("steps".to_owned(), level)]))["VDU2"];
    assert_eq!([0, 1, 2, 3].map(count), [1, 2, 5, 7]);
}

#[test]
fn a_vdu_without_numbers_is_left_to_its_manifest() {
    let package = package().package();
    let flavour = package.vnfd.flavour("simple").unwrap();
    assert_eq!(flavour.vdus["VDU3"].initial_delta, None);
    assert!(
        !flavour
            .levels_of(None)
            .unwrap()
            .replicas
            .contains_key("VDU3")
    );
}
