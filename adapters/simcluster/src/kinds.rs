//! The kinds that the server knows: the built-in ones and those that CRDs add.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::json;

/// Where a kind keeps what its scale subresource shows (JSON pointers).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    /// A path to a selector in its text form; `None` means that `spec.selector` is one.
    pub selector: Option<String>,
}

/// One kind in one served version.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "the flags and names are those of a discovery entry"
)]
pub(crate) struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub namespaced: bool,
    /// Reviews and bindings can be created and nothing else.
    pub create_only: bool,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    /// Shown by `kubectl get all`.
    pub in_all: bool,
    /// The `openAPIV3Schema` of a custom resource.
    pub schema: Option<Arc<Value>>,
    pub printer_columns: Vec<Value>,
}

impl Kind {
    /// The key under which objects are stored; one for all versions of a kind.
    pub fn storage(&self) -> String {
        self.qualified()
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub fn is(&self, qualified: &str) -> bool {
        self.group.is_empty() && self.plural == qualified
            || qualified
                .split_once('.')
                .is_some_and(|(plural, group)| self.plural == plural && self.group == group)
    }

    pub fn is_custom(&self) -> bool {
        self.schema.is_some()
    }

    /// Kinds whose `metadata.generation` counts changes of the spec.
    pub fn counts_generations(&self) -> bool {
        if self.is_custom() {
            return true;
        }
        match self.group.as_str() {
            "apps" => self.plural != "controllerrevisions",
            "batch"
            | "scheduling.k8s.io"
            | "networking.k8s.io"
            | "policy"
            | "apiextensions.k8s.io"
            | "admissionregistration.k8s.io" => true,
            "" => matches!(
                self.plural.as_str(),
                "replicationcontrollers" | "pods" | "podtemplates"
            ),
            _ => false,
        }
    }

    /// Verbs in discovery's order.
    pub fn verbs(&self) -> &'static [&'static str] {
        if self.create_only {
            &["create"]
        } else {
            &[
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ]
        }
    }
}

/// group, version, Kind, plural, short names, flags: n namespaced, c create-only, s status, a "all", r scale
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const AUTHORIZATION: &str = "authorization.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

const BUILT_IN: &[Row] = &[
    ("", "v1", "Binding", "bindings", "", "nc"),
    ("", "v1", "ConfigMap", "configmaps", "cm", "n"),
    ("", "v1", "Endpoints", "endpoints", "ep", "n"),
    ("", "v1", "Event", "events", "ev", "n"),
    ("", "v1", "LimitRange", "limitranges", "limits", "n"),
    ("", "v1", "Namespace", "namespaces", "ns", "s"),
    ("", "v1", "Node", "nodes", "no", "s"),
    ("", "v1", "PersistentVolume", "persistentvolumes", "pv", "s"),
    (
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "pvc",
        "ns",
    ),
    ("", "v1", "Pod", "pods", "po", "nsa"),
    ("", "v1", "PodTemplate", "podtemplates", "", "n"),
    (
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        "rc",
        "nsar",
    ),
    ("", "v1", "ResourceQuota", "resourcequotas", "quota", "ns"),
    ("", "v1", "Secret", "secrets", "", "n"),
    ("", "v1", "Service", "services", "svc", "nsa"),
    ("", "v1", "ServiceAccount", "serviceaccounts", "sa", "n"),
    (
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        "",
        "n",
    ),
    ("apps", "v1", "DaemonSet", "daemonsets", "ds", "nsa"),
    ("apps", "v1", "Deployment", "deployments", "deploy", "nsar"),
    ("apps", "v1", "ReplicaSet", "replicasets", "rs", "nsar"),
    ("apps", "v1", "StatefulSet", "statefulsets", "sts", "nsar"),
    (
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        "nsa",
    ),
    (
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        "nsa",
    ),
    ("batch", "v1", "CronJob", "cronjobs", "cj", "nsa"),
    ("batch", "v1", "Job", "jobs", "", "nsa"),
    ("coordination.k8s.io", "v1", "Lease", "leases", "", "n"),
    (
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        "",
        "n",
    ),
    (
        "networking.k8s.io",
        "v1",
        "Ingress",
        "ingresses",
        "ing",
        "ns",
    ),
    (
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        "netpol",
        "n",
    ),
    (
        "networking.k8s.io",
        "v1",
        "IngressClass",
        "ingressclasses",
        "",
        "",
    ),
    (
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        "ns",
    ),
    (RBAC, "v1", "Role", "roles", "", "n"),
    (RBAC, "v1", "RoleBinding", "rolebindings", "", "n"),
    (RBAC, "v1", "ClusterRole", "clusterroles", "", ""),
    (
        RBAC,
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "",
        "",
    ),
    (
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        "pc",
        "",
    ),
    (
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        "sc",
        "",
    ),
    (
        "storage.k8s.io",
        "v1",
        "VolumeAttachment",
        "volumeattachments",
        "",
        "s",
    ),
    (
        "apiregistration.k8s.io",
        "v1",
        "APIService",
        "apiservices",
        "",
        "s",
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd",
        "s",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "",
        "",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "",
        "",
    ),
    (
        "authentication.k8s.io",
        "v1",
        "TokenReview",
        "tokenreviews",
        "",
        "c",
    ),
    (
        "authentication.k8s.io",
        "v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
        "",
        "c",
    ),
    (
        AUTHORIZATION,
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "",
        "nc",
    ),
    (
        AUTHORIZATION,
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "",
        "c",
    ),
    (
        AUTHORIZATION,
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "",
        "c",
    ),
    (
        AUTHORIZATION,
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
        "",
        "c",
    ),
];

fn built_in(row: &Row) -> Kind {
    let (group, version, kind, plural, short, flags) = *row;
    Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: short
            .split(' ')
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect(),
        namespaced: flags.contains('n'),
        create_only: flags.contains('c'),
        has_status: flags.contains('s'),
        scale: flags.contains('r').then(|| ScalePaths {
            spec_replicas: "/spec/replicas".to_owned(),
            status_replicas: "/status/replicas".to_owned(),
            selector: None,
        }),
        in_all: flags.contains('a'),
        schema: None,
        printer_columns: Vec::new(),
    }
}

/// All kinds served at the moment. Cheap to clone parts of: kinds are shared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinds {
    /// By group, then in the order in which versions are preferred.
    kinds: Vec<Arc<Kind>>,
    by_path: BTreeMap<(String, String, String), Arc<Kind>>,
}

impl Kinds {
    pub fn built_in() -> Self {
        let mut kinds = Self::default();
        for row in BUILT_IN {
            kinds.add(built_in(row));
        }
        kinds
    }

    fn add(&mut self, kind: Kind) {
        let kind = Arc::new(kind);
        let key = (
            kind.group.clone(),
            kind.version.clone(),
            kind.plural.clone(),
        );
        self.by_path.insert(key, Arc::clone(&kind));
        self.kinds.push(kind);
    }

    pub fn all(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    pub fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
            .cloned()
    }

    /// Whether any kind of this version of a group is served.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.kinds
            .iter()
            .any(|kind| kind.group == group && kind.version == version)
    }

    /// The preferred version of a kind, by its qualified plural (`deployments.apps`).
    pub fn get(&self, qualified: &str) -> Arc<Kind> {
        self.find(qualified)
            .expect("the caller names a kind that is served")
    }

    pub fn find(&self, qualified: &str) -> Option<Arc<Kind>> {
        self.kinds.iter().find(|k| k.is(qualified)).cloned()
    }

    /// The kind with this `apiVersion` and `kind`.
    pub fn by_gvk(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.kinds
            .iter()
            .find(|k| k.kind == kind && k.api_version() == api_version)
            .cloned()
    }

    /// Serves the versions of a CRD from now on, in place of what it served before.
    pub fn register_crd(&mut self, crd: &Value) {
        self.remove_crd(crd);
        for version in json::list(crd, "/spec/versions") {
            if json::flag(version, "/served") {
                self.add(custom(crd, version));
            }
        }
    }

    pub fn remove_crd(&mut self, crd: &Value) {
        let group = json::text(crd, "/spec/group");
        let plural = json::text(crd, "/spec/names/plural");
        let gone = |k: &Kind| k.is_custom() && k.group == group && k.plural == plural;
        self.kinds.retain(|k| !gone(k));
        self.by_path.retain(|_, k| !gone(k));
    }
}

fn custom(crd: &Value, version: &Value) -> Kind {
    let names = json::at(crd, "/spec/names");
    let strings = |pointer: &str| -> Vec<String> {
        json::list(names, pointer)
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let pointer = |path: &str| path.replace('.', "/");
    let kind = json::text(names, "/kind");
    let singular = json::text(names, "/singular");
    Kind {
        group: json::text(crd, "/spec/group").to_owned(),
        version: json::text(version, "/name").to_owned(),
        kind: kind.to_owned(),
        plural: json::text(names, "/plural").to_owned(),
        singular: if singular.is_empty() {
            kind.to_lowercase()
        } else {
            singular.to_owned()
        },
        short_names: strings("/shortNames"),
        namespaced: json::text(crd, "/spec/scope") == "Namespaced",
        create_only: false,
        has_status: json::has(version, "/subresources/status"),
        scale: json::has(version, "/subresources/scale").then(|| {
            let scale = json::at(version, "/subresources/scale");
            let selector = json::text(scale, "/labelSelectorPath");
            ScalePaths {
                spec_replicas: pointer(json::text(scale, "/specReplicasPath")),
                status_replicas: pointer(json::text(scale, "/statusReplicasPath")),
                selector: (!selector.is_empty()).then(|| pointer(selector)),
            }
        }),
        in_all: strings("/categories").iter().any(|c| c == "all"),
        schema: Some(Arc::new(
            json::at(version, "/schema/openAPIV3Schema").clone(),
        )),
        printer_columns: json::list(version, "/additionalPrinterColumns").to_vec(),
    }
}
