//! The CNF that is measured: five objects, as small as they can be.

use anyhow::Context;
use serde_json::{Value, json};
use std::fs;

/// The manifests: two workloads with a service each, and their configuration.
pub fn manifests() -> Vec<Value> {
    let workload = |name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                        "name": "main", "image": "cairn.test/pause:1", "imagePullPolicy": "IfNotPresent"
                    }]}
                }
            }
        })
    };
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}
        })
    };
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"a": "b"}
    });
    vec![
        config,
        service("front"),
        service("back"),
        workload("front"),
        workload("back"),
    ]
}

/// The CSAR.
pub fn csar() -> anyhow::Result<Vec<u8>> {
    of(&manifests())
}

/// The same with pods that never get ready on the simulated cluster.
pub fn never_ready() -> anyhow::Result<Vec<u8>> {
    let mut manifests = manifests();
    for workload in &mut manifests[3..] {
        workload["spec"]["template"]["metadata"]["annotations"] =
            json!({"simcluster.cairn.dev/ready-after": "never"});
    }
    of(&manifests)
}

fn of(manifests: &[Value]) -> anyhow::Result<Vec<u8>> {
    let dir = tempfile::tempdir()?;
    let root = dir.path();
    for folder in ["TOSCA-Metadata", "Definitions", "Files/kubernetes"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(
        root.join("TOSCA-Metadata/TOSCA.meta"),
        "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: Cairn\nEntry-Definitions: Definitions/vnfd.yaml\nETSI-Entry-Manifest: bench.mf\n",
    )?;
    fs::write(root.join("bench.mf"), MANIFEST)?;
    fs::write(root.join("Definitions/vnfd.yaml"), VNFD)?;
    for (place, manifest) in manifests.iter().enumerate() {
        fs::write(
            root.join(format!("Files/kubernetes/{place}.json")),
            manifest.to_string(),
        )?;
    }
    cairn_packages::build(root).context("the package of the benchmarks")
}

const MANIFEST: &str = "metadata:\n  vnf_product_name: Bench\n  vnf_provider_id: Cairn\n  vnf_package_version: 1.0\n  vnf_release_date_time: 2026-01-01T00:00:00+00:00\n";

const VNFD: &str = r"tosca_definitions_version: tosca_simple_yaml_1_2
topology_template:
  substitution_mappings:
    node_type: cairn.Bench
    properties:
      flavour_id: simple
  node_templates:
    VNF:
      type: cairn.Bench
      properties:
        flavour_description: simple
    Front:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: front
        description: front
        vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}
    Back:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: back
        description: back
        vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}
node_types:
  cairn.Bench:
    derived_from: tosca.nodes.nfv.VNF
    properties:
      descriptor_id: {type: string, default: 0b5cbe6c-51a5-4d7c-8f4e-5c3c6a1f0c11}
      descriptor_version: {type: string, default: '1.0'}
      provider: {type: string, default: Cairn}
      product_name: {type: string, default: Bench}
      software_version: {type: string, default: '1.0'}
      vnfm_info: {type: list, entry_schema: {type: string}, default: [Cairn]}
      flavour_id: {type: string, default: simple}
      flavour_description: {type: string, default: simple}
";
