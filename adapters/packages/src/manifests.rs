//! Kubernetes manifests of a package.

use std::collections::BTreeMap;
use std::fmt;

use cairn_domain::object::let_job_stay;
use cairn_domain::ports;
use cairn_domain::vnfd::Vnfd;
use serde_json::Value;

use crate::error::{ErrorKind, PackageError, quoted};
use crate::source::Source;
use crate::vnfd;
use crate::yaml::{Kind, Node};

/// Folder whose manifests are taken where a request names none.
pub(crate) const FOLDER: &str = "Files/kubernetes/";

/// One Kubernetes object of a package, as its author wrote it; but no Job removes itself.
///
/// `Debug` shows where it stands and what it is, never its content: it may be a Secret.
#[derive(Clone, PartialEq)]
pub struct Manifest {
    /// Path in the package.
    pub file: String,
    /// Which document of the file, from 0 and with the empty ones; the items of a `List` share it.
    pub document: usize,
    /// Line in the file at which the object begins, counted from 1.
    pub line: usize,
    /// The object; a mapping with `apiVersion`, `kind` and (but for reviews) `metadata.name`.
    pub value: Value,
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Manifest({} at {}:{})",
            self.title(),
            self.file,
            self.line
        )
    }
}

impl Manifest {
    /// `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    /// `kind`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// `metadata.name`; empty for a review that has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`, where the manifest gives one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        Some(self.text("/metadata/namespace")).filter(|namespace| !namespace.is_empty())
    }

    /// `Kind/name`, for people.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind(), self.name())
    }

    /// Whether this is a workload that a VDU can be matched to: it makes pods.
    #[must_use]
    pub fn is_workload(&self) -> bool {
        const KINDS: [&str; 8] = [
            "CronJob",
            "DaemonSet",
            "Deployment",
            "Job",
            "Pod",
            "ReplicaSet",
            "ReplicationController",
            "StatefulSet",
        ];
        KINDS.contains(&self.kind()) || self.value.pointer("/spec/template/spec").is_some()
    }

    /// Whether this is a workload whose number of pods is set.
    fn is_scaled(&self) -> bool {
        const KINDS: [&str; 4] = [
            "Deployment",
            "ReplicaSet",
            "ReplicationController",
            "StatefulSet",
        ];
        KINDS.contains(&self.kind())
    }

    fn text(&self, pointer: &str) -> &str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Where it stands, as `file:line`.
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    fn refused(&self, why: &str) -> PackageError {
        let (document, title) = (self.document + 1, quoted(&self.title()));
        let message = format!("document {document}: {title} {why}");
        PackageError::new(ErrorKind::Manifest, message)
            .in_file(&self.file)
            .at_line(self.line)
    }

    /// What tells objects apart: API group, kind, namespace, name. The version is no part of it.
    fn identity(&self) -> (String, String, String, String) {
        let group = self
            .api_version()
            .split_once('/')
            .map_or("", |(group, _)| group);
        let namespace = self.namespace().unwrap_or_default();
        let parts = [group, self.kind(), namespace, self.name()];
        let [group, kind, namespace, name] = parts.map(str::to_owned);
        (group, kind, namespace, name)
    }
}

/// Whether a path is that of a manifest, by its ending.
pub(crate) fn is_manifest(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    ["yaml", "yml", "json"]
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known))
}

/// The objects of one file, in the order in which they stand there.
///
/// # Errors
/// [`ErrorKind::Yaml`], [`ErrorKind::Limit`] or [`ErrorKind::Manifest`], with file and line.
pub(crate) fn read(file: &str, source: &Source<'_>) -> Result<Vec<Manifest>, PackageError> {
    let mut manifests = Vec::new();
    for (document, found) in parsed(file, source)?.iter().enumerate() {
        let Some(node) = found else {
            continue;
        };
        let place = Place { file, document };
        match list_items(node) {
            Some(items) => {
                for item in items {
                    manifests.push(place.manifest(item)?);
                }
            }
            None => manifests.push(place.manifest(node)?),
        }
    }
    Ok(manifests)
}

fn parsed(file: &str, source: &Source<'_>) -> Result<Vec<Option<Node>>, PackageError> {
    if !file.to_ascii_lowercase().ends_with(".json") {
        return source.documents(file, false);
    }
    let value: Value = serde_json::from_str(source.text(file)?).map_err(|e| {
        PackageError::new(ErrorKind::Manifest, "broken JSON")
            .in_file(file)
            .at_line(e.line())
    })?;
    source.spend(count(&value), file)?;
    Ok(vec![Some(of_json(value))])
}

/// Values within a value, itself included.
fn count(value: &Value) -> usize {
    let within: usize = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    1 + within
}

/// JSON as a node; its lines are not known, so errors name the first.
fn of_json(value: Value) -> Node {
    let kind = match value {
        Value::Array(items) => Kind::Sequence(items.into_iter().map(of_json).collect()),
        Value::Object(members) => Kind::Mapping(
            members
                .into_iter()
                .map(|(key, v)| (key, of_json(v)))
                .collect(),
        ),
        Value::String(text) => Kind::Scalar {
            text: text.clone(),
            value: Value::String(text),
        },
        scalar => Kind::Scalar {
            text: scalar.to_string(),
            value: scalar,
        },
    };
    Node { line: 1, kind }
}

/// The items of a `List`, which `kubectl` takes apart too.
fn list_items(node: &Node) -> Option<&[Node]> {
    let kind = node.get("kind")?.text()?;
    let is_core = node.get("apiVersion")?.text()? == "v1";
    if kind == "List" && is_core {
        node.get("items")?.sequence()
    } else {
        None
    }
}

#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    document: usize,
}

impl Place<'_> {
    fn manifest(self, node: &Node) -> Result<Manifest, PackageError> {
        if node.mapping().is_none() {
            return Err(self.wrong(node, "a Kubernetes manifest must be a mapping"));
        }
        let api_version = self.demanded(node, node, &["apiVersion"])?;
        self.demanded(node, node, &["kind"])?;
        let metadata = node.get("metadata");
        if let Some(generated) = metadata.and_then(|m| m.get("generateName")) {
            let message = "metadata.generateName is not taken: an object must have the same name \
                           each time it is made; give it a metadata.name";
            return Err(self.wrong(generated, message));
        }
        let named = metadata.is_some_and(|m| m.get("name").is_some());
        if named || !is_review(api_version) {
            self.demanded(node, metadata.unwrap_or(node), &["metadata", "name"])?;
        }
        if let Some(namespace) = metadata.and_then(|m| m.get("namespace")) {
            self.string(namespace, "metadata.namespace")?;
        }
        let mut value = node.to_json();
        drop_empty_namespace(&mut value);
        let_job_stay(&mut value);
        Ok(Manifest {
            file: self.file.to_owned(),
            document: self.document,
            line: node.line,
            value,
        })
    }

    /// The text at `path`, which must be there and be a string; `near` is where it is missed.
    fn demanded<'n>(
        self,
        node: &'n Node,
        near: &Node,
        path: &[&str],
    ) -> Result<&'n str, PackageError> {
        let name = path.join(".");
        let Some(found) = node.at(path) else {
            return Err(self.wrong(near, format!("{name} is missing")));
        };
        let text = self.string(found, &name)?;
        if text.is_empty() {
            return Err(self.wrong(found, format!("{name} is empty")));
        }
        Ok(text)
    }

    fn string<'n>(self, node: &'n Node, name: &str) -> Result<&'n str, PackageError> {
        match &node.kind {
            Kind::Scalar {
                text,
                value: Value::String(_),
            } => Ok(text),
            Kind::Scalar { .. } | Kind::Sequence(_) | Kind::Mapping(_) => {
                Err(self.wrong(node, format!("{name} must be a string (quote it)")))
            }
        }
    }

    fn wrong(self, node: &Node, message: impl Into<String>) -> PackageError {
        let message = format!("document {}: {}", self.document + 1, message.into());
        PackageError::new(ErrorKind::Manifest, message)
            .in_file(self.file)
            .at_line(node.line)
    }
}

/// Questions to the API server rather than objects; they are posted once and need no name.
fn is_review(api_version: &str) -> bool {
    let group = api_version.split('/').next().unwrap_or_default();
    matches!(group, "authorization.k8s.io" | "authentication.k8s.io")
}

/// `namespace: ""` and a null mean "where the VNF goes", as for `kubectl`.
fn drop_empty_namespace(value: &mut Value) {
    let Some(metadata) = value
        .pointer_mut("/metadata")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let empty = |namespace: &Value| namespace.is_null() || namespace.as_str() == Some("");
    if metadata.get("namespace").is_some_and(empty) {
        metadata.remove("namespace");
    }
}

/// Refuses what cannot be made together: two manifests of one object, for which of them is meant cannot be known; and
/// two workloads of one VDU, for only one of them would be counted, scaled and healed.
///
/// # Errors
/// [`ErrorKind::Manifest`] naming the object or the VDU, and both places.
pub(crate) fn check_together(manifests: &[Manifest], vnfd: &Vnfd) -> Result<(), PackageError> {
    check_distinct(manifests)?;
    check_one_for_each_vdu(manifests, vnfd)
}

fn check_distinct(manifests: &[Manifest]) -> Result<(), PackageError> {
    let mut seen: BTreeMap<_, &Manifest> = BTreeMap::new();
    for manifest in manifests {
        if manifest.name().is_empty() {
            continue;
        }
        if let Some(first) = seen.insert(manifest.identity(), manifest) {
            let why = format!(
                "is in the package twice; the other one is {}",
                first.place()
            );
            return Err(manifest.refused(&why));
        }
    }
    Ok(())
}

fn check_one_for_each_vdu(manifests: &[Manifest], vnfd: &Vnfd) -> Result<(), PackageError> {
    for (_, vdu, workload) in vnfd::workload_names(vnfd) {
        let mut of_vdu = manifests
            .iter()
            .filter(|manifest| manifest.is_scaled() && manifest.name() == workload);
        if let (Some(first), Some(second)) = (of_vdu.next(), of_vdu.next()) {
            let why = format!(
                "is a second workload of VDU {}; a VDU is one workload, and the other one is {} in {}",
                quoted(vdu),
                quoted(&first.title()),
                first.place()
            );
            return Err(second.refused(&why));
        }
    }
    Ok(())
}

impl From<Manifest> for ports::Manifest {
    fn from(manifest: Manifest) -> Self {
        let Manifest {
            file,
            document,
            line: _,
            value,
        } = manifest;
        Self {
            file,
            document,
            value,
        }
    }
}
