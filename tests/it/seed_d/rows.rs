//! What may stand in the way of an instantiate, row by row.

use cairn_tests::package::{PackageBuilder, package};
use serde_json::{Value, json};

/// An object's apiVersion, plural and manifest.
pub type Before = (&'static str, &'static str, Value);

/// What stands in the way of an instantiate, and what must be said of it.
pub struct Row {
    pub name: &'static str,
    pub package: fn() -> PackageBuilder,
    /// Made in the namespace before.
    pub before: Option<fn() -> Before>,
    pub reasons: &'static [&'static str],
    pub classes: &'static [&'static str],
    /// Words of the error.
    pub says: &'static [&'static str],
    /// The simulated cluster cannot show it.
    pub only_real: bool,
}

fn with_image(image: &str) -> PackageBuilder {
    let image = image.to_owned();
    package().deployment("web", 1).last(move |manifest| {
        let container = &mut manifest["spec"]["template"]["spec"]["containers"][0];
        container["image"] = json!(image);
        container
            .as_object_mut()
            .expect("a container")
            .remove("readinessProbe");
    })
}

fn quota() -> Before {
    let body = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-more-pods"},
        "spec": {"hard": {"pods": "1"}}});
    ("v1", "resourcequotas", body)
}

/// Annotations speak to the simulated cluster, images to the real one.
pub const ROWS: &[Row] = &[
    Row {
        name: "quota",
        package: || package().deployment("web", 2),
        before: Some(quota),
        reasons: &["FailedCreate", "QuotaExceeded"],
        classes: &["blocked"],
        says: &["no-more-pods", "pods"],
        only_real: false,
    },
    Row {
        name: "image",
        package: || {
            with_pods(
                json!({"simcluster.cairn.dev/pull": "fail"}),
                "cairn.test/none-such:1",
            )
        },
        before: None,
        reasons: &["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"],
        classes: &["blocked", "infrastructure"],
        says: &["cairn.test/none-such:1"],
        only_real: false,
    },
    Row {
        name: "crash loop",
        // With its readiness probe: without one a container that crashes counts as ready while it starts.
        package: || {
            package().deployment("web", 1).last(|manifest| {
                let template = &mut manifest["spec"]["template"];
                template["metadata"]["annotations"] =
                    json!({"simcluster.cairn.dev/crash": "always"});
                template["spec"]["containers"][0]["image"] = json!("cairn.test/crash:1");
            })
        },
        before: None,
        reasons: &["CrashLoopBackOff", "Error"],
        classes: &["infrastructure"],
        says: &["Pod/web-"],
        only_real: false,
    },
    Row {
        name: "unschedulable",
        package: || {
            package().deployment("web", 1).last(|manifest| {
                manifest["spec"]["template"]["spec"]["nodeSelector"] = json!({"none": "such"});
            })
        },
        before: None,
        reasons: &["Unschedulable"],
        classes: &["infrastructure"],
        says: &["nodes are available"],
        only_real: false,
    },
    Row {
        name: "invalid image name",
        package: || with_image("Not An Image"),
        before: None,
        reasons: &["InvalidImageName"],
        classes: &["permanent"],
        says: &["Not An Image"],
        only_real: false,
    },
    Row {
        name: "image that must not be pulled",
        package: || {
            with_pods(
                json!({"simcluster.cairn.dev/pull": "never"}),
                "cairn.test/none-such:1",
            )
            .last(|manifest| {
                manifest["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] =
                    json!("Never");
            })
        },
        before: None,
        reasons: &["ErrImageNeverPull"],
        classes: &["permanent"],
        says: &["cairn.test/none-such:1"],
        only_real: false,
    },
    // Field case 36: with nothing that must be available, nothing that is must not count as done.
    Row {
        name: "image, none of whose pods must be available",
        package: || {
            with_pods(
                json!({"simcluster.cairn.dev/pull": "fail"}),
                "cairn.test/none-such:1",
            )
            .last(|manifest| {
                manifest["spec"]["strategy"] = json!({"type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0}});
            })
        },
        before: None,
        reasons: &["ErrImagePull", "ImagePullBackOff"],
        classes: &["blocked", "infrastructure"],
        says: &["cairn.test/none-such:1"],
        only_real: false,
    },
    // Field case 40: only the condition of a Job counts.
    Row {
        name: "job without a try left",
        package: || {
            package()
                // Its container has ended for a while before the Job has failed.
                .clocks("{progressing: 90s, blocked: 1s, infrastructure: 60s, unclassified: 1s}")
                .manifest(job(0))
        },
        before: None,
        reasons: &["Failed"],
        classes: &["permanent"],
        says: &["Job/work", "BackoffLimitExceeded"],
        only_real: false,
    },
    Row {
        name: "pod of its own that failed",
        package: || {
            package()
                // Its container has ended for a while before the pod has.
                .clocks("{progressing: 90s, blocked: 1s, infrastructure: 60s, unclassified: 1s}")
                .manifest(json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "once", "annotations": {"simcluster.cairn.dev/crash": "always"}},
                "spec": {"restartPolicy": "Never", "containers": [crashing()]}}))
        },
        before: None,
        reasons: &["Failed"],
        classes: &["permanent"],
        says: &["Pod/once"],
        only_real: false,
    },
    Row {
        name: "key that a ConfigMap lacks",
        package: || {
            package()
                .config_map("settings")
                .deployment("web", 1)
                .last(|manifest| {
                    manifest["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "X",
                        "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "none"}}}]);
                })
        },
        before: None,
        reasons: &["CreateContainerConfigError"],
        classes: &["blocked"],
        says: &["none"],
        only_real: false,
    },
    Row {
        name: "volume that is nowhere on the node",
        package: || {
            package().deployment("web", 1).last(|manifest| {
                let pod = &mut manifest["spec"]["template"]["spec"];
                pod["volumes"] =
                    json!([{"name": "v", "hostPath": {"path": "/none/such", "type": "Directory"}}]);
                pod["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
            })
        },
        before: None,
        reasons: &["FailedMount"],
        classes: &["infrastructure"],
        says: &["/none/such"],
        only_real: true,
    },
    // Field cases 34 and 37: a claim is judged through the pod that would bind it.
    Row {
        name: "claim larger than any volume",
        package: || {
            package()
                .manifest(claim("data", Some("manual"), "500Gi"))
                .deployment("web", 1)
                .last(|manifest| {
                    let pod = &mut manifest["spec"]["template"]["spec"];
                    pod["volumes"] =
                        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
                    pod["containers"][0]["volumeMounts"] =
                        json!([{"name": "v", "mountPath": "/v"}]);
                })
        },
        before: None,
        reasons: &["Unschedulable"],
        classes: &["infrastructure"],
        says: &["persistent volumes to bind"],
        only_real: false,
    },
    Row {
        name: "claim without a class that nothing fits",
        package: || package().manifest(claim("data", None, "500Gi")),
        before: None,
        reasons: &["Unbound"],
        classes: &["infrastructure"],
        says: &["PersistentVolumeClaim/data"],
        only_real: false,
    },
    Row {
        name: "storage above the quota",
        package: || package().manifest(claim("data", Some("manual"), "2Gi")),
        before: Some(|| {
            let body = json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "little-storage"}, "spec": {"hard": {"requests.storage": "1Gi"}}});
            ("v1", "resourcequotas", body)
        }),
        reasons: &["QuotaExceeded"],
        classes: &["blocked"],
        says: &["little-storage", "requests.storage"],
        only_real: true,
    },
    // Field case 38.
    Row {
        name: "load balancer that nobody makes",
        package: || {
            package().service("web").last(|manifest| {
                manifest["spec"]["type"] = json!("LoadBalancer");
            })
        },
        before: None,
        reasons: &["NoAddress"],
        classes: &["infrastructure"],
        says: &["Service/web"],
        only_real: false,
    },
];

fn with_pods(annotations: Value, image: &str) -> PackageBuilder {
    with_image(image).last(move |manifest| {
        manifest["spec"]["template"]["metadata"]["annotations"] = annotations;
    })
}

/// A claim of this class, of the default one, or of none where it is an empty text.
pub fn claim(name: &str, class: Option<&str>, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"storageClassName": class.unwrap_or_default(), "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}})
}

/// With a probe that never succeeds: without one it counts as ready for the moment it runs.
fn crashing() -> Value {
    json!({"name": "main", "image": "cairn.test/crash:1", "imagePullPolicy": "IfNotPresent",
        "readinessProbe": {"exec": {"command": ["false"]}}})
}

/// A Job whose container crashes, with so many further tries; how often is an annotation's business.
pub fn job(backoff_limit: u32) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"},
        "spec": {"backoffLimit": backoff_limit, "template": {
            "metadata": {"annotations": {"simcluster.cairn.dev/crash": "always"}},
            "spec": {"restartPolicy": "Never", "containers": [crashing()]}}}})
}
