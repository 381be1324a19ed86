//! Hooks: what the VNFD may declare, and how it is read.

use super::fixture::{Csar, VNFD, csar};
use crate::ErrorKind::{Descriptor, Manifest, Unsupported};
use cairn_domain::hook::{Items, Moment, ResultFrom};

const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: join}\nspec:\n  template:\n    spec:\n      \
                   restartPolicy: Never\n      containers: [{name: c, image: i}]\n";
const FILE: &str = "Files/hooks/join.yaml";

/// The package with this interface at its VNF, and a Job for it.
fn with(interface: &str) -> Csar {
    let node = format!("type: test.VNF\n      interfaces:\n        Vnflcm:\n          {interface}");
    csar()
        .replacing(VNFD, "type: test.VNF", &node)
        .with(FILE, JOB)
}

fn one(inputs: &str) -> Csar {
    with(&format!(
        "instantiate_end: {{implementation: ../Files/hooks/join.yaml, inputs: {inputs}}}"
    ))
}

#[test]
fn a_hook_is_read_with_its_job_and_its_inputs() {
    let package = one(
        "{items: [one, two], parallel: true, clock: 30s, result: termination-message, register_vim: true}",
    )
    .package();
    let [hook] = package.vnfd.hooks.as_slice() else {
        panic!("one hook: {:?}", package.vnfd.hooks);
    };
    assert_eq!(
        (hook.name.as_str(), hook.operation.as_str(), hook.moment),
        ("instantiate_end", "instantiate", Moment::End)
    );
    assert_eq!(hook.file, FILE);
    assert_eq!(hook.items, Items::Listed(vec!["one".into(), "two".into()]));
    assert_eq!((hook.parallel, hook.clock_ms), (true, Some(30_000)));
    assert_eq!(hook.result, ResultFrom::TerminationMessage);
    assert!(hook.register_vim);
    assert_eq!(hook.job["metadata"]["name"], "join");
}

#[test]
fn names_are_those_of_sol001_and_the_file_may_be_an_artifact() {
    let package = with(
        "scale_start: join\n          scale_to_level_rollback_end: Files/hooks/join.yaml\n          \
         change_current_package_start: {implementation: {primary: join}}\n          \
         heal_start: {implementation: join, inputs: {items: {per: vnfc, vdu: WEB}, result: {secret: out}}}\n      \
         artifacts: {join: {type: x, file: ../Files/hooks/join.yaml}}",
    );
    let hooks = package.package().vnfd.hooks;
    let read: Vec<_> = hooks
        .iter()
        .map(|hook| (hook.operation.as_str(), hook.moment))
        .collect();
    assert_eq!(
        read,
        [
            ("change_vnfpkg", Moment::Start),
            ("heal", Moment::Start),
            ("scale", Moment::Start),
            ("scale_to_level", Moment::RollbackEnd),
        ]
    );
    assert_eq!(
        hooks[1].items,
        Items::PerVnfc {
            vdu: Some("WEB".into())
        }
    );
    assert_eq!(hooks[1].result, ResultFrom::Secret("out".into()));
}

#[test]
fn the_job_of_a_hook_is_no_object_of_the_vnf() {
    let file = "Files/kubernetes/join.yaml";
    let package = with("terminate_start: Files/kubernetes/join.yaml")
        .with(file, JOB)
        .package();
    assert!(!package.manifests_by_file.contains_key(file));
    assert_eq!(package.manifests(None).unwrap().len(), 1);
    let refused = package.manifests(Some(&[file.to_owned()])).unwrap_err();
    assert!(
        refused
            .message
            .ends_with("is the Job of a hook, no object of the VNF")
    );
}

#[test]
fn inputs_that_mean_nothing_are_refused_by_name_and_line() {
    for (inputs, why) in [
        (
            "{item: [a]}",
            "item is not known; inputs are items, parallel, clock, result, register_vim",
        ),
        ("{items: []}", "items must be 1 to 256"),
        ("{items: [a, a]}", "items names \"a\" twice"),
        (
            "{items: {per: pod}}",
            "items must be a list of texts, {per: vdu} or {per: vnfc}",
        ),
        (
            "{items: {per: vnfc}}",
            "items {per: vnfc} cannot be used with instantiate: no VNFC exists when its plan is made; use {per: vdu}",
        ),
        (
            "{clock: soon}",
            "clock must be a duration such as 30s, 5m or 1h, at most 7 days",
        ),
        ("{parallel: maybe}", "parallel must be true or false"),
        (
            "{result: logs}",
            "result must be termination-message or {secret: NAME}",
        ),
        (
            "{items: {per: vnfc, vdu: WEBB}}",
            "items names the VDU \"WEBB\", which the VNFD does not have; it has WEB",
        ),
        (
            "{items: {per: vnfc, vdu: [WEB]}}",
            "items names the VDU \"\", which the VNFD does not have; it has WEB",
        ),
        (
            "{items: {per: vnfc, vnf: WEB}}",
            "items has the member \"vnf\", which is not known; here it may have per and vdu",
        ),
        (
            "{items: {per: vdu, vdu: WEB}}",
            "items has the member \"vdu\", which is not known; here it may have per",
        ),
        (
            "{result: {secret: s, key: k}}",
            "result has the member \"key\", which is not known; here it may have secret",
        ),
        (
            "{result: {secret: s}, register_vim: true}",
            "register_vim needs a termination message as result, and a hook that is none of a rollback",
        ),
    ] {
        one(inputs).is_refused(
            Descriptor,
            &format!("{VNFD}:11: hook instantiate_end: input {why}"),
        );
    }
}

#[test]
fn what_is_no_job_is_refused_with_its_file() {
    let says = |why: &str| format!("{FILE}:1: hook instantiate_end: {why}");
    for (from, to, why) in [
        (
            "kind: Job",
            "kind: Pod",
            "the object must be a Job of batch/v1",
        ),
        (
            "{name: join}",
            "{name: join, namespace: a}",
            "the Job must not name a namespace: it runs where the VNF goes",
        ),
        (
            "{name: join}",
            "{name: Join_1}",
            "metadata.name must be at most 63 lower-case letters, digits and hyphens",
        ),
        (
            "restartPolicy: Never",
            "restartPolicy: Always",
            "spec.template.spec.restartPolicy must be Never or OnFailure",
        ),
        (
            "[{name: c, image: i}]",
            "[]",
            "spec.template.spec.containers is missing or empty",
        ),
        (
            "spec:\n  template:",
            "spec:\n  suspend: true\n  template:",
            "spec.suspend is true: the Job would never run",
        ),
    ] {
        one("{}")
            .replacing(FILE, from, to)
            .is_refused(Manifest, &says(why));
    }
    one("{}")
        .appending(
            FILE,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
        )
        .is_refused(
            Manifest,
            &format!("{FILE}: hook instantiate_end: the file must hold one object, a Job"),
        );
    one("{}").without(FILE).is_refused(
        Descriptor,
        &format!(
            "{VNFD}:11: hook instantiate_end is implemented by \"../Files/hooks/join.yaml\", which is not in the package"
        ),
    );
    let generated = one("{}")
        .replacing(FILE, "{name: join}", "{generateName: join-}")
        .refused();
    assert!(
        generated.message.contains("generateName is not taken"),
        "{generated}"
    );
}

#[test]
fn hooks_that_are_not_run_are_refused_by_name() {
    let says = "holds what this version does not run (Helm charts, scripts, hooks other than Kubernetes Jobs at the VNF): ";
    for (interface, what) in [
        (
            "instantiate_start: boot.py",
            "hook instantiate_start of VNF, implemented by boot.py",
        ),
        (
            "modify_information_start: Files/hooks/join.yaml",
            "hook modify_information_start of VNF, implemented by Files/hooks/join.yaml",
        ),
    ] {
        with(interface).is_refused(Unsupported, &format!("{VNFD}:11: {says}{what}"));
    }
}
