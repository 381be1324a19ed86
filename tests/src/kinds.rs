//! Every kind of the table of seed case B, each with a manifest that any cluster takes.

use crate::place::{Place, list_path};
use serde_json::{Value, json};

/// A kind and how an object of it looks.
#[derive(Clone, Copy)]
pub struct Kind {
    /// `v1`, or `apps/v1`.
    pub api_version: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// Its plural.
    pub plural: &'static str,
    /// Whether it lives in a namespace.
    pub namespaced: bool,
    fields: fn(&str, &str) -> Value,
}

impl Kind {
    /// A manifest; kinds in no namespace get the test's suffix into their name.
    #[must_use]
    pub fn manifest(&self, place: &Place, name: &str) -> Value {
        let mut manifest = (self.fields)(&place.suffix, &place.namespace);
        manifest["apiVersion"] = json!(self.api_version);
        manifest["kind"] = json!(self.kind);
        manifest["metadata"]["name"] = json!(self.name(place, name));
        if self.namespaced {
            manifest["metadata"]["namespace"] = json!(place.namespace);
        }
        manifest
    }

    /// The name under which [`Kind::manifest`] makes it.
    #[must_use]
    pub fn name(&self, place: &Place, name: &str) -> String {
        match (self.kind, self.namespaced) {
            // The name of an APIService is that of what it serves.
            ("APIService", _) => format!("v1.t{}.example.org", place.suffix),
            ("CustomResourceDefinition", _) => format!("widgets.t{}.example.org", place.suffix),
            (_, true) => name.to_owned(),
            (_, false) => format!("{name}-{}", place.suffix),
        }
    }

    /// The path of the kind.
    #[must_use]
    pub fn list(&self, place: &Place) -> String {
        list_path(
            self.api_version,
            self.plural,
            self.namespaced.then_some(&place.namespace),
        )
    }

    /// The path of an object.
    #[must_use]
    pub fn path(&self, place: &Place, name: &str) -> String {
        format!("{}/{}", self.list(place), self.name(place, name))
    }
}

/// A container that runs until it is asked to end.
#[must_use]
pub fn pod_spec() -> Value {
    json!({"terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "cairn.test/pause:1", "imagePullPolicy": "IfNotPresent"}]})
}

/// A container that does its work and ends.
#[must_use]
pub fn job_spec() -> Value {
    json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "cairn.test/job:1", "imagePullPolicy": "IfNotPresent"}]})
}

fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": pod_spec()})
}

fn selector(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

fn workload(app: &str) -> Value {
    json!({"spec": {"replicas": 1, "selector": selector(app), "template": template(app)}})
}

fn rule() -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}])
}

fn role(kind: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "view"})
}

fn subject(namespace: &str) -> Value {
    json!([{"kind": "ServiceAccount", "name": "default", "namespace": namespace}])
}

const fn namespaced(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    fields: fn(&str, &str) -> Value,
) -> Kind {
    Kind {
        api_version,
        kind,
        plural,
        namespaced: true,
        fields,
    }
}

const fn clustered(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    fields: fn(&str, &str) -> Value,
) -> Kind {
    Kind {
        api_version,
        kind,
        plural,
        namespaced: false,
        fields,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The kinds that can be made, read and deleted.
pub const KINDS: &[Kind] = &[
    namespaced(
        "v1",
        "ConfigMap",
        "configmaps",
        |_, _| json!({"data": {"a": "1"}}),
    ),
    namespaced(
        "v1",
        "Endpoints",
        "endpoints",
        |_, _| json!({"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}),
    ),
    namespaced(
        "v1",
        "LimitRange",
        "limitranges",
        |_, _| json!({"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}),
    ),
    namespaced(
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        |_, _| {
            json!({"spec": {"storageClassName": "manual", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Mi"}}}})
        },
    ),
    namespaced("v1", "Pod", "pods", |_, _| json!({"spec": pod_spec()})),
    namespaced(
        "v1",
        "PodTemplate",
        "podtemplates",
        |_, _| json!({"template": template("pt")}),
    ),
    namespaced(
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        |_, _| json!({"spec": {"replicas": 1, "selector": {"app": "rc"}, "template": template("rc")}}),
    ),
    namespaced(
        "v1",
        "ResourceQuota",
        "resourcequotas",
        |_, _| json!({"spec": {"hard": {"pods": "50"}}}),
    ),
    namespaced(
        "v1",
        "Secret",
        "secrets",
        |_, _| json!({"data": {"a": "Yg=="}}),
    ),
    namespaced(
        "v1",
        "Service",
        "services",
        |_, _| json!({"spec": {"ports": [{"port": 80}]}}),
    ),
    namespaced("v1", "ServiceAccount", "serviceaccounts", |_, _| json!({})),
    clustered("v1", "Namespace", "namespaces", |_, _| json!({})),
    clustered(
        "v1",
        "Node",
        "nodes",
        |_, _| json!({"spec": {"unschedulable": true}}),
    ),
    clustered("v1", "PersistentVolume", "persistentvolumes", |_, _| {
        json!({"spec": {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "none-such",
            "hostPath": {"path": "/tmp/none-such"}}})
    }),
    namespaced(
        "apps/v1",
        "ControllerRevision",
        "controllerrevisions",
        |_, _| json!({"revision": 1, "data": {"a": "1"}}),
    ),
    namespaced(
        "apps/v1",
        "DaemonSet",
        "daemonsets",
        |_, _| json!({"spec": {"selector": selector("ds"), "template": template("ds")}}),
    ),
    namespaced("apps/v1", "Deployment", "deployments", |_, _| {
        workload("deploy")
    }),
    namespaced("apps/v1", "ReplicaSet", "replicasets", |_, _| {
        workload("rs")
    }),
    namespaced("apps/v1", "StatefulSet", "statefulsets", |_, _| {
        let mut workload = workload("sts");
        workload["spec"]["serviceName"] = json!("none");
        workload
    }),
    namespaced(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        |_, _| {
            json!({"spec": {"maxReplicas": 3, "minReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none-such"}}})
        },
    ),
    namespaced(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        |_, _| {
            json!({"spec": {"maxReplicas": 3, "minReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none-such"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]}})
        },
    ),
    namespaced(
        "batch/v1",
        "CronJob",
        "cronjobs",
        |_, _| json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": job_spec()}}}}}),
    ),
    namespaced(
        "batch/v1",
        "Job",
        "jobs",
        |_, _| json!({"spec": {"backoffLimit": 0, "template": {"spec": job_spec()}}}),
    ),
    namespaced(
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        |_, _| json!({"spec": {"holderIdentity": "me", "leaseDurationSeconds": 30}}),
    ),
    namespaced(
        "networking.k8s.io/v1",
        "Ingress",
        "ingresses",
        |_, _| json!({"spec": {"defaultBackend": {"service": {"name": "none-such", "port": {"number": 80}}}}}),
    ),
    namespaced(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        |_, _| json!({"spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}}),
    ),
    clustered(
        "networking.k8s.io/v1",
        "IngressClass",
        "ingressclasses",
        |suffix, _| json!({"spec": {"controller": format!("example.org/c{suffix}")}}),
    ),
    namespaced(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        |_, _| json!({"spec": {"minAvailable": 0, "selector": selector("none-such")}}),
    ),
    namespaced(RBAC, "Role", "roles", |_, _| json!({"rules": rule()})),
    namespaced(
        RBAC,
        "RoleBinding",
        "rolebindings",
        |_, namespace| json!({"roleRef": role("ClusterRole"), "subjects": subject(namespace)}),
    ),
    clustered(
        RBAC,
        "ClusterRole",
        "clusterroles",
        |_, _| json!({"rules": rule()}),
    ),
    clustered(
        RBAC,
        "ClusterRoleBinding",
        "clusterrolebindings",
        |_, namespace| json!({"roleRef": role("ClusterRole"), "subjects": subject(namespace)}),
    ),
    clustered(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
        |_, _| json!({"value": 7}),
    ),
    clustered(
        "storage.k8s.io/v1",
        "StorageClass",
        "storageclasses",
        |_, _| json!({"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}),
    ),
    clustered(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "volumeattachments",
        |_, _| {
            json!({"spec": {"attacher": "none-such.example.org", "nodeName": "none-such",
            "source": {"persistentVolumeName": "none-such"}}})
        },
    ),
    clustered(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        |suffix, namespace| {
            json!({"spec": {"group": format!("t{suffix}.example.org"), "version": "v1",
            "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
            "service": {"name": "none-such", "namespace": namespace}}})
        },
    ),
];

/// A definition of a custom resource `Widget` in a group of the test's own.
pub const DEFINITION: Kind = clustered(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    |suffix, _| {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        json!({"spec": {"group": format!("t{suffix}.example.org"), "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})
    },
);

/// `apiVersion` of the custom resource that [`DEFINITION`] makes.
#[must_use]
pub fn widget_version(place: &Place) -> String {
    format!("t{}.example.org/v1", place.suffix)
}

/// A custom resource of [`DEFINITION`].
#[must_use]
pub fn widget(place: &Place, name: &str) -> Value {
    json!({"apiVersion": widget_version(place), "kind": "Widget",
        "metadata": {"name": name, "namespace": place.namespace}, "spec": {"size": 1}})
}

/// What can only be created: its apiVersion, plural, whether it is namespaced, and a manifest.
#[must_use]
pub fn reviews(place: &Place) -> Vec<(&'static str, &'static str, bool, Value)> {
    let access = json!({"verb": "get", "resource": "configmaps", "namespace": place.namespace});
    let subject = json!({"resourceAttributes": access.clone(), "user": "somebody"});
    let made = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec});
    let v = "authorization.k8s.io/v1";
    let mut local = made(v, "LocalSubjectAccessReview", subject.clone());
    local["metadata"]["namespace"] = json!(place.namespace);
    let own = json!({"resourceAttributes": access});
    let rules = json!({"namespace": place.namespace});
    let t = "authentication.k8s.io/v1";
    vec![
        (v, "localsubjectaccessreviews", true, local),
        (
            v,
            "selfsubjectaccessreviews",
            false,
            made(v, "SelfSubjectAccessReview", own),
        ),
        (
            v,
            "selfsubjectrulesreviews",
            false,
            made(v, "SelfSubjectRulesReview", rules),
        ),
        (
            v,
            "subjectaccessreviews",
            false,
            made(v, "SubjectAccessReview", subject),
        ),
        (
            t,
            "tokenreviews",
            false,
            made(t, "TokenReview", json!({"token": "none"})),
        ),
    ]
}
