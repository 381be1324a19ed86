use super::fixture::{DEPLOYMENT, csar};
use crate::ErrorKind::{DefFiles, Limit, Manifest, Yaml};

/// Text of a small object.
fn object(kind: &str, name: &str) -> String {
    format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n")
}

const OTHER: &str = "Files/kubernetes/other.yaml";

#[test]
fn manifests_come_in_order_of_path_and_document() {
    let package = csar()
        .with("Files/kubernetes/a/z.yml", object("Secret", "s"))
        .with(
            OTHER,
            format!(
                "---\n# none\n---\n{}---\n{}",
                object("ConfigMap", "c"),
                object("Service", "v")
            ),
        )
        .with(
            "Files/kubernetes/b.json",
            r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}"#,
        )
        .with("Files/kubernetes/README.md", "not a manifest")
        .with("Files/elsewhere/x.yaml", "no: manifest")
        .package();
    let found = package.manifests(None).unwrap();
    let titles: Vec<_> = found
        .iter()
        .map(|m| (m.title(), m.document, m.line))
        .collect();
    assert_eq!(
        titles,
        [
            ("Secret/s".to_owned(), 0, 1),
            ("Pod/p".to_owned(), 0, 1),
            ("ConfigMap/c".to_owned(), 1, 4),
            ("Service/v".to_owned(), 2, 9),
            ("Deployment/web".to_owned(), 0, 1),
        ]
    );
}

#[test]
fn a_list_is_taken_apart_and_an_empty_namespace_dropped() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, namespace: ''}\n\
                - {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}}\n";
    let package = csar().with(OTHER, list).package();
    let found = &package.manifests_by_file[OTHER];
    assert_eq!(
        (found[0].namespace(), found[1].namespace()),
        (None, Some("ns"))
    );
    assert!(found[0].value.pointer("/metadata/namespace").is_none());
    assert_eq!((found[0].line, found[1].line), (4, 7));
    assert!(package.manifests(None).is_ok());
}

#[test]
fn numbers_are_read_as_kubernetes_reads_them() {
    let text = object("Secret", "s") + "mode: 0644\nflag: yes\n";
    let package = csar().with(OTHER, text).package();
    let value = &package.manifests_by_file[OTHER][0].value;
    assert_eq!(
        (&value["mode"], &value["flag"]),
        (&420.into(), &true.into())
    );
}

#[test]
fn what_an_object_must_have_is_demanded_with_file_document_and_line() {
    let after = |text: &str| format!("{}---\n{text}", object("Pod", "first"));
    for (text, words) in [
        (
            "kind: Pod\nmetadata: {name: a}\n",
            "6: document 2: apiVersion is missing",
        ),
        (
            "apiVersion: v1\nmetadata: {name: a}\n",
            "6: document 2: kind is missing",
        ),
        (
            "apiVersion: v1\nkind: ''\nmetadata: {name: a}\n",
            "7: document 2: kind is empty",
        ),
        (
            "apiVersion: v1\nkind: Pod\n",
            "6: document 2: metadata.name is missing",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n",
            "9: document 2: metadata.name is missing",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 12}\n",
            "8: document 2: metadata.name must be a string (quote it)",
        ),
        (
            "apiVersion: 1\nkind: Pod\n",
            "6: document 2: apiVersion must be a string (quote it)",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: [b]}\n",
            "8: document 2: metadata.namespace must be a string (quote it)",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: a-\n",
            "9: document 2: metadata.generateName is not taken: an object must have the same name each time it is made; give it a metadata.name",
        ),
        (
            "- a\n",
            "6: document 2: a Kubernetes manifest must be a mapping",
        ),
        (
            "hello\n",
            "6: document 2: a Kubernetes manifest must be a mapping",
        ),
    ] {
        csar()
            .with(OTHER, after(text))
            .is_refused(Manifest, &format!("{OTHER}:{words}"));
    }
}

#[test]
fn a_review_needs_no_name() {
    let review = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec: {}\n";
    let twice = format!("{review}---\n{review}");
    assert_eq!(
        csar()
            .with(OTHER, twice)
            .package()
            .manifests(None)
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn broken_yaml_and_json_are_refused_with_the_line() {
    let error = csar().with(OTHER, "a: 1\nb: [1\nc: 2\n").refused();
    assert_eq!((error.kind, error.file.as_deref()), (Yaml, Some(OTHER)));
    assert!(error.line.is_some_and(|line| line > 1), "{error}");
    csar()
        .with("Files/kubernetes/a.json", "{\n\"a\": }")
        .is_refused(Manifest, "Files/kubernetes/a.json:2: broken JSON");
    let error = csar().with(OTHER, "a: x\na: y\n").refused();
    assert_eq!(
        error.to_string(),
        format!("{OTHER}:2: the key \"a\" stands twice in this mapping")
    );
    let large = "#".repeat(5 * 1024 * 1024);
    let error = csar().with(OTHER, large).refused();
    assert_eq!(error.kind, Limit, "{error}");
}

#[test]
fn an_object_that_is_there_twice_is_refused_when_it_is_to_be_made() {
    let package = csar()
        .with(
            "Files/kubernetes/z.yaml",
            "# a\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: web}\n",
        )
        .package();
    let error = package.manifests(None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Files/kubernetes/z.yaml:2: document 1: \"Deployment/web\" is in the package twice; \
         the other one is Files/kubernetes/web.yaml:1"
    );
    assert!(package.manifests(Some(&[DEPLOYMENT.to_owned()])).is_ok());
}

#[test]
fn a_second_workload_of_a_vdu_is_refused_when_it_is_to_be_made() {
    let twin = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\n";
    let package = csar().with("Files/kubernetes/z.yaml", twin).package();
    let error = package.manifests(None).unwrap_err().to_string();
    for says in [
        "z.yaml:1",
        "StatefulSet/web",
        "Deployment/web",
        "one workload",
    ] {
        assert!(error.contains(says), "{error}");
    }
    assert!(package.manifests(Some(&[DEPLOYMENT.to_owned()])).is_ok());
    // What makes no pods of the VDU may have its name.
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec: {ttlSecondsAfterFinished: 1}\n";
    let package = csar().with("Files/kubernetes/z.yaml", job).package();
    let found = package.manifests(None).unwrap();
    let job = found.iter().find(|one| one.kind() == "Job").unwrap();
    assert_eq!(job.value["spec"], serde_json::json!({}));
}

#[test]
fn what_one_file_holds_twice_is_refused_at_onboarding() {
    let twice = object("ConfigMap", "c") + "---\n" + &object("ConfigMap", "c");
    let first = twice.lines().position(|line| line == "---").unwrap() + 2;
    csar().with(OTHER, twice).is_refused(
        Manifest,
        &format!(
            "{OTHER}:{first}: document 2: \"ConfigMap/c\" is in the package twice; the other one is {OTHER}:1"
        ),
    );
    csar()
        .appending(
            DEPLOYMENT,
            "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\n",
        )
        .is_refused(
            Manifest,
            &format!(
                "{DEPLOYMENT}:7: document 2: \"StatefulSet/web\" is a second workload of VDU \"WEB\"; \
                 a VDU is one workload, and the other one is \"Deployment/web\" in {DEPLOYMENT}:1"
            ),
        );
}

#[test]
fn a_request_may_list_any_file_in_any_order() {
    let package = csar()
        .with(OTHER, object("ConfigMap", "c"))
        .with("Files/new/x.yaml", object("Service", "v"))
        .with("Files/new/bad.yaml", "a: 1\n")
        .package();
    let list = |files: &[&str]| {
        let files: Vec<_> = files.iter().map(|f| (*f).to_owned()).collect();
        let found = package.manifests(Some(&files))?;
        Ok::<Vec<String>, crate::PackageError>(found.iter().map(crate::Manifest::title).collect())
    };
    assert_eq!(
        list(&["Files/new/x.yaml", "./Files/kubernetes/web.yaml"]).unwrap(),
        ["Service/v", "Deployment/web"]
    );
    assert_eq!(list(&[]).unwrap(), Vec::<String>::new());
    for (entry, why) in [
        (
            "http://example.com/a.yaml",
            "is not fetched; put the manifest into the package",
        ),
        (
            "Files/absent.yaml",
            "is not in the package; manifests: Files/kubernetes/other.yaml, Files/kubernetes/web.yaml, Files/new/bad.yaml, Files/new/x.yaml",
        ),
        (
            "../Files/x.yaml",
            "is not in the package; manifests: Files/kubernetes/other.yaml, Files/kubernetes/web.yaml, Files/new/bad.yaml, Files/new/x.yaml",
        ),
    ] {
        let error = list(&[DEPLOYMENT, entry]).unwrap_err();
        let words = format!("lcm-kubernetes-def-files[1]: \"{entry}\" {why}");
        assert_eq!((error.to_string(), error.kind), (words, DefFiles));
    }
    let error = list(&["Files/new/bad.yaml"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Files/new/bad.yaml:1: document 1: apiVersion is missing"
    );
}

#[test]
fn debug_output_shows_no_content() {
    let secret = object("Secret", "s") + "stringData: {password: hunter2}\n";
    let package = csar().with(OTHER, secret).package();
    let shown = format!("{package:?} {:?}", package.manifests(None).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(
        shown.contains("Manifest(Secret/s at Files/kubernetes/other.yaml:1)"),
        "{shown}"
    );
}
