use std::collections::BTreeMap;

use cairn_domain::waits::WaitClass;
use serde_json::{Value, json};

use super::fixture::{Csar, DEPLOYMENT, META, VNFD, alias_bomb, csar};
use crate::ErrorKind::{Descriptor, Limit, Unsupported, Yaml};
use crate::{Limits, Package};

/// A VNFD in four files: types of ETSI, the VNF's type, and two flavours.
fn in_files() -> Csar {
    let flavour = |id: &str, vdu: &str| {
        format!(
            "tosca_definitions_version: tosca_simple_yaml_1_2\nimports: [{{file: types.yaml}}, top.yaml]\n\
             topology_template:\n  substitution_mappings:\n    node_type: test.VNF\n    properties: {{flavour_id: {id}}}\n\
             \x20 node_templates:\n    VNF: {{type: test.VNF, properties: {{flavour_description: The {id} one}}}}\n\
             \x20   {vdu}:\n      type: test.Vdu\n      properties:\n        name: {{get_input: workload}}\n\
             \x20       vdu_profile: {{min_number_of_instances: 2, max_number_of_instances: 2}}\n\
             \x20 inputs: {{workload: {{type: string, default: web}}}}\n"
        )
    };
    csar()
        .replacing(META, "Definitions/vnfd.yaml", "Definitions/top.yaml")
        .without(VNFD)
        .with(
            "Definitions/top.yaml",
            "tosca_definitions_version: tosca_simple_yaml_1_2\nimports:\n  - types.yaml\n  - large: df_large.yaml\n  - file: df_small.yaml\n\
             topology_template:\n  inputs: {flavour: {type: string}}\n  node_templates:\n    VNF:\n      type: test.VNF\n\
             \x20     properties: {flavour_id: {get_input: flavour}, provider: Given}\n",
        )
        .with(
            "Definitions/types.yaml",
            "imports: [etsi/etsi_nfv_sol001_vnfd_types.yaml, 'https://example.com/etsi_nfv_sol001_common_types.yaml']\n\
             node_types:\n  test.Vdu: {derived_from: tosca.nodes.nfv.Vdu.Compute}\n  test.Base:\n    derived_from: tosca.nodes.nfv.VNF\n\
             \x20   properties:\n      descriptor_id: {type: string, constraints: [{valid_values: [the-id]}]}\n\
             \x20     product_name: {type: string, default: Web}\n      flavour_id: {type: string, default: small}\n\
             \x20 test.VNF:\n    derived_from: test.Base\n    properties:\n      descriptor_version: {type: string, default: 1.10}\n\
             \x20     provider: {type: string, default: Defaulted}\n      software_version: {type: string, default: 0x10}\n",
        )
        .with(
            "Definitions/etsi/etsi_nfv_sol001_vnfd_types.yaml",
            "node_types:\n  tosca.nodes.nfv.VNF: {}\n  tosca.nodes.nfv.VNF: {}\n",
        )
        .with("Definitions/df_small.yaml", flavour("small", "WEB"))
        .with("Definitions/df_large.yaml", flavour("large", "BIGWEB"))
}

#[test]
fn one_file_is_a_vnfd_of_one_flavour() {
    let package = csar().package();
    let vnfd = &package.vnfd;
    assert_eq!(vnfd.vnfd_id, "11111111-2222-3333-4444-555555555555");
    assert_eq!(
        (
            vnfd.software_version.as_str(),
            vnfd.descriptor_version.as_str()
        ),
        ("1.0", "2.0")
    );
    assert_eq!(vnfd.default_flavour, "simple");
    let flavour = vnfd.flavour("simple").unwrap();
    assert_eq!(flavour.levels_of(None).unwrap().replicas["WEB"], 1);
    assert_eq!(flavour.levels_of(Some("large")).unwrap().replicas["WEB"], 3);
    assert!(package.has_single_file_vnfd());
    assert!(package.vnfd_yaml().starts_with("tosca_definitions_version"));
}

#[test]
fn imports_types_defaults_and_several_flavours_are_put_together() {
    let package = in_files().package();
    let vnfd = &package.vnfd;
    assert_eq!(vnfd.vnfd_id, "the-id");
    assert_eq!(
        (vnfd.provider.as_str(), vnfd.product_name.as_str()),
        ("Given", "Web")
    );
    assert_eq!(
        (
            vnfd.software_version.as_str(),
            vnfd.descriptor_version.as_str()
        ),
        ("0x10", "1.10")
    );
    assert_eq!(vnfd.default_flavour, "small");
    let flavours: Vec<_> = vnfd
        .flavours
        .values()
        .map(|f| (&*f.id, &*f.description))
        .collect();
    assert_eq!(
        flavours,
        [("large", "The large one"), ("small", "The small one")]
    );
    let large = vnfd.flavour("large").unwrap();
    assert_eq!(large.vdus["BIGWEB"].name, "web");
    assert_eq!(large.replicas_at(&BTreeMap::new())["BIGWEB"], 2);
    assert!(!package.has_single_file_vnfd());
    assert_eq!(package.entry_definitions(), "Definitions/top.yaml");
}

#[test]
fn the_vnfd_is_served_as_a_zip_of_all_its_files() {
    let package = in_files().package();
    let zip = package.vnfd_zip().unwrap();
    assert_eq!(zip, package.vnfd_zip().unwrap());
    let archive = zip::ZipArchive::new(std::io::Cursor::new(zip)).unwrap();
    let names: Vec<_> = archive
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            META,
            "Definitions/df_large.yaml",
            "Definitions/df_small.yaml",
            "Definitions/etsi/etsi_nfv_sol001_vnfd_types.yaml",
            "Definitions/top.yaml",
            "Definitions/types.yaml",
            "vnf.mf"
        ]
    );
}

#[test]
fn a_missing_import_and_one_from_elsewhere_are_refused() {
    in_files().without("Definitions/df_small.yaml").is_refused(
        Descriptor,
        "Definitions/top.yaml:5: imports \"df_small.yaml\", which is not in the package",
    );
    let top = "Definitions/top.yaml";
    in_files()
        .replacing(top, "- types.yaml", "- ../../types.yaml")
        .is_refused(
            Descriptor,
            "Definitions/top.yaml:3: imports \"../../types.yaml\", which is not in the package",
        );
    in_files()
        .replacing(top, "types.yaml", "http://example.com/types.yaml")
        .is_refused(
            Descriptor,
            "Definitions/top.yaml:3: \"http://example.com/types.yaml\" is not fetched; \
         put the file into the package",
        );
}

#[test]
fn what_is_no_vnfd_is_refused() {
    csar().with(VNFD, "a: 1\n").is_refused(
        Descriptor,
        "Definitions/vnfd.yaml: no VNFD: no node template here or in the imports has a type that \
         comes from tosca.nodes.nfv.VNF",
    );
    csar()
        .with(VNFD, "")
        .is_refused(Descriptor, "Definitions/vnfd.yaml: is empty");
    csar().with(VNFD, "- a\n").is_refused(
        Descriptor,
        "Definitions/vnfd.yaml:1: a TOSCA file must be a YAML mapping",
    );
    csar().with(VNFD, "a: 1\n---\nb: 2\n").is_refused(
        Descriptor,
        "Definitions/vnfd.yaml: a TOSCA file must hold one YAML document",
    );
}

#[test]
fn a_vnf_without_an_attribute_that_it_must_have_is_refused() {
    csar().replacing(VNFD, "        descriptor_id: 11111111-2222-3333-4444-555555555555\n", "").is_refused(
        Descriptor,
        "Definitions/vnfd.yaml:8: the VNF has no descriptor_id: neither its node template nor its \
         type \"test.VNF\" gives one",
    );
    let long = "x".repeat(256);
    let error = csar()
        .replacing(VNFD, "provider: Test", &format!("provider: {long}"))
        .refused();
    assert!(
        error.message.ends_with("is longer than 255 bytes"),
        "{error}"
    );
}

#[test]
fn a_vnfd_without_flavour_or_with_one_twice_is_refused() {
    let bare = "topology_template:\n  node_templates:\n    VNF: {type: tosca.nodes.nfv.VNF}\n";
    let words = csar().with(VNFD, bare).refused().to_string();
    assert!(
        words.starts_with("Definitions/vnfd.yaml: the VNFD has no deployment flavour: "),
        "{words}"
    );
    in_files()
        .replacing(
            "Definitions/df_large.yaml",
            "flavour_id: large",
            "flavour_id: small",
        )
        .is_refused(
            Descriptor,
            "Definitions/df_small.yaml: the flavour \"small\" is defined twice",
        );
}

#[test]
fn broken_yaml_and_alias_bombs_in_the_vnfd_are_refused_with_the_line() {
    let error = csar().appending(VNFD, "  bad: [1, 2\n").refused();
    assert_eq!(error.kind, Yaml);
    assert!(
        error.to_string().starts_with("Definitions/vnfd.yaml:"),
        "{error}"
    );
    assert!(error.line.is_some_and(|line| line >= 45), "{error}");

    csar().with(VNFD, alias_bomb()).is_refused(
        Limit,
        "Definitions/vnfd.yaml:6: the YAML of the package has more than 500000 nodes \
         (aliases count as what they stand for)",
    );
}

#[test]
fn imports_that_run_in_circles_end() {
    csar()
        .replacing(VNFD, "node_types:\n", "imports: [vnfd.yaml]\nnode_types:\n")
        .package();
    let circle = "tosca.nodes.nfv.VNF\n  a: {derived_from: b}\n  b: {derived_from: a}\n";
    csar()
        .replacing(VNFD, "tosca.nodes.nfv.VNF\n", circle)
        .package();
}

#[test]
fn a_vdu_without_workload_is_refused_with_both_names() {
    csar().replacing(DEPLOYMENT, "name: web", "name: wep").is_refused(
        Descriptor,
        "VDU \"WEB\" of flavour \"simple\" has no workload: no manifest has metadata.name \"web\"; \
         workloads: wep",
    );
    csar().replacing(DEPLOYMENT, "kind: Deployment", "kind: ConfigMap").is_refused(
        Descriptor,
        "VDU \"WEB\" of flavour \"simple\" has no workload: no manifest has metadata.name \"web\"; \
         workloads: none",
    );
}

/// What is changed in the VNFD, and what is said of it.
const MISFITS: [(&str, &str, &str); 13] = [
    (
        "max_scale_level: 3",
        "max_scale_level: many",
        "30: max_scale_level must be a whole number, 0 or more",
    ),
    (
        "max_scale_level: 3\n",
        "\n",
        "29: scaling aspect \"web_aspect\" has no max_scale_level",
    ),
    (
        "step_deltas: [one]",
        "step_deltas: [two]",
        "25: scaling aspect \"web_aspect\" steps by \"two\", which VDU \"WEB\" does not define",
    ),
    (
        "step_deltas: [one]",
        "step_deltas: [one, one]",
        "25: scaling aspect \"web_aspect\" has 2 step_deltas for 3 levels; give one for all or one for each",
    ),
    (
        "aspect: web_aspect",
        "aspect: other",
        "40: aspect: \"other\" is not in the VNFD; allowed: web_aspect",
    ),
    (
        "initial_delta: {number_of_instances: 1}",
        "initial_delta: {number_of_instances: -1}",
        "35: number_of_instances must be a whole number, 0 or more",
    ),
    (
        "initial_delta: {number_of_instances: 1}",
        "initial_delta: {}",
        "35: VduInitialDelta: number_of_instances is missing",
    ),
    (
        "initial_delta: {number_of_instances: 1}",
        "other: 1",
        "33: VduInitialDelta has no initial_delta",
    ),
    (
        "scale_level: 2",
        "scale_level: 4",
        "49: instantiation level \"large\": scale_info: level 4 of scaling aspect \"web_aspect\" is out of range; allowed: 0 to 3",
    ),
    (
        "default_level: small",
        "default_level: tiny",
        "45: default_level: instantiationLevelId: \"tiny\" is not in the VNFD; allowed: large, small",
    ),
    (
        "targets: [WEB]",
        "targets: [WEP]",
        "36: VduInitialDelta targets \"WEP\", which is no VDU of flavour \"simple\"; its VDUs: WEB",
    ),
    (
        "targets: [WEB]",
        "targets: []",
        "33: VduInitialDelta has no targets",
    ),
    (
        "min_number_of_instances: 1",
        "min_number_of_instances: 5",
        "17: VDU \"WEB\": min_number_of_instances 5 is above max_number_of_instances 4",
    ),
];

#[test]
fn policies_that_do_not_fit_are_refused_with_the_line() {
    for (from, to, words) in MISFITS {
        let words = format!("Definitions/vnfd.yaml:{words}");
        csar()
            .replacing(VNFD, from, to)
            .is_refused(Descriptor, &words);
    }
}

#[test]
fn charts_hooks_and_scripts_are_refused_by_name() {
    let says = "holds what this version does not run (Helm charts, scripts, hooks other than Kubernetes Jobs at the VNF): ";
    for (path, what) in [
        ("Files/kubernetes/web-1.0.0.tgz", "Helm chart"),
        ("Files/charts/web/Chart.yaml", "Helm chart"),
        ("Scripts/upgrade.py", "script"),
        ("UserData/user_data.txt", "script"),
        ("Files/run.sh", "script"),
    ] {
        csar()
            .with(path, "x")
            .is_refused(Unsupported, &format!("{says}{what} {path}"));
    }
    let hook = "type: test.VNF\n      interfaces:\n        Vnflcm:\n          instantiate_start: {implementation: boot}\n          \
                instantiate_end: []\n          heal_end: {description: nothing}\n          terminate: {implementation: {primary: bye.bash}}\n      \
                artifacts: {boot: {type: x, file: ../boot.lua}}";
    csar().replacing(VNFD, "type: test.VNF", hook).is_refused(
        Unsupported,
        &format!(
            "Definitions/vnfd.yaml:11: {says}hook instantiate_start of VNF, implemented by \
             ../boot.lua; operation terminate of VNF, implemented by bye.bash"
        ),
    );
    let mut many = csar();
    for n in 0..10 {
        many = many.with(&format!("Scripts/{n}"), "");
    }
    assert!(
        many.refused()
            .message
            .ends_with("script Scripts/7; and 2 more")
    );
}

#[test]
fn attributes_come_from_data_types_and_properties() {
    let typed = "derived_from: tosca.nodes.nfv.VNF\n    properties:\n      modifiable_attributes: {type: test.Modifiable}\n\
                 data_types:\n  test.Modifiable:\n    properties:\n      metadata: {type: test.Metadata}\n      extensions: {type: map, default: {a: 1}}\n\
                 \x20 test.Metadata:\n    derived_from: test.Base\n    properties:\n      site: {type: string, default: nowhere}\n\
                 \x20 test.Base:\n    properties:\n      shelf: {type: integer, default: 3}\n";
    let given = "provider: Test\n        modifiable_attributes: {metadata: {site: here, later: {get_input: x}}}\n        \
                 configurable_properties: {is_autoscale_enabled: false}";
    let vnfd = csar()
        .replacing(VNFD, "derived_from: tosca.nodes.nfv.VNF\n", typed)
        .replacing(VNFD, "provider: Test", given)
        .package()
        .vnfd;
    assert_eq!(
        Value::Object(vnfd.metadata),
        json!({"site": "here", "shelf": 3})
    );
    assert_eq!(Value::Object(vnfd.extensions), json!({"a": 1}));
    assert_eq!(
        Value::Object(vnfd.vnf_configurable_properties),
        json!({"is_autoscale_enabled": false})
    );
}

#[test]
fn sensitive_names_and_clocks_are_found_where_a_vnfd_may_hold_them() {
    for (from, to) in [
        (
            "node_types:\n",
            "metadata: {cairn.sensitive: 'pin, imsi', cairn.clocks: '{\"blocked\": \"2s\"}'}\nnode_types:\n",
        ),
        (
            "node_types:\n",
            "cairn.sensitive: [pin, imsi]\ncairn.clocks: {blocked: 2s}\nnode_types:\n",
        ),
        (
            "provider: Test",
            "provider: Test\n        cairn.sensitive: [pin, imsi]\n        cairn.clocks: {blocked: 2}",
        ),
        (
            "type: test.VNF\n",
            "type: test.VNF\n      metadata: {cairn.sensitive: '[pin, imsi]', cairn.clocks: {blocked: 2000ms}}\n",
        ),
    ] {
        let vnfd = csar().replacing(VNFD, from, to).package().vnfd;
        assert_eq!(vnfd.sensitive, ["imsi", "pin"], "{to}");
        assert_eq!(vnfd.clocks.of(WaitClass::Blocked), Some(2000), "{to}");
    }
    let error = csar().replacing(
        VNFD,
        "node_types:\n",
        "cairn.clocks: {soon: 2s}\nnode_types:\n",
    );
    assert!(
        error
            .refused()
            .to_string()
            .starts_with("Definitions/vnfd.yaml:2: ")
    );
    let error = csar().replacing(
        VNFD,
        "node_types:\n",
        "cairn.sensitive: {a: b}\nnode_types:\n",
    );
    error.is_refused(
        Descriptor,
        "Definitions/vnfd.yaml:2: cairn.sensitive must be a list of names",
    );
}

#[test]
fn policies_that_multiply_are_refused() {
    let names = |count: usize| -> Vec<String> { (0..count).map(|n| format!("n{n}")).collect() };
    let deltas = |count: usize| {
        let each = names(count).join(": {number_of_instances: 1}, ");
        format!(
            "          deltas: {{one: {{number_of_instances: 1}}, {each}: {{number_of_instances: 1}}}}\n          other:\n"
        )
    };
    csar()
        .replacing(VNFD, "          deltas:\n", &deltas(300))
        .is_refused(
            Descriptor,
            "Definitions/vnfd.yaml:41: VduScalingAspectDeltas has 301 deltas; at most 200 are taken",
        );
    let vdus = names(150)
        .iter()
        .map(|name| {
            format!(
                "    {name}: {{type: tosca.nodes.nfv.Vdu.Compute, properties: {{name: web}}}}\n"
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let many = csar().replacing(VNFD, "  policies:\n", &format!("{vdus}  policies:\n"));
    many.package();
    let targets = format!("targets: [{}]", names(150).join(", "));
    many.replacing(VNFD, "targets: [WEB]", &targets)
        .replacing(VNFD, "          deltas:\n", &deltas(150))
        .is_refused(
            Descriptor,
            "Definitions/vnfd.yaml:188: a flavour with 22650 deltas; at most 10000 are taken",
        );
}

#[test]
fn files_that_are_small_alone_share_one_budget() {
    let limits = Limits {
        yaml_nodes: 1_000,
        ..Limits::default()
    };
    let items = format!("[{}]", vec!["1"; 300].join(", "));
    let object = |name: &str| {
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"X\", \"metadata\": {{\"name\": \"{name}\"}}, \"items\": {items}}}"
        )
    };
    let bytes = csar()
        .with("Files/kubernetes/a.yaml", object("a"))
        .with("Files/kubernetes/b.json", object("b"))
        .with("Files/kubernetes/c.json", object("c"))
        .bytes();
    let error = Package::read(&bytes, &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Files/kubernetes/c.json: the YAML and JSON of the package have more than 1000 nodes"
    );
}
