//! Sets of field paths and their `FieldsV1` form.
//!
//! A path element is kept as `FieldsV1` writes it: `f:name`, `k:{"name":"web"}`, `v:"value"`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::schema::{Merge, is_atomic_item, item_key, merge_rule, set_key};
use crate::kinds::Kind;

pub(crate) type Path = Vec<String>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(pub BTreeSet<Path>);

impl FieldSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, path: &[String]) -> bool {
        self.0.contains(path)
    }

    /// Whether the set has `path` or anything below it.
    pub fn reaches(&self, path: &[String]) -> bool {
        self.0
            .range(path.to_vec()..)
            .next()
            .is_some_and(|found| found.starts_with(path))
    }

    /// Removes `path` and everything below it.
    pub fn remove_tree(&mut self, path: &[String]) {
        self.0.retain(|p| !p.starts_with(path));
    }

    pub fn from_fields_v1(fields: &Value) -> Self {
        let mut set = BTreeSet::new();
        read(fields, &mut Vec::new(), &mut set);
        Self(set)
    }

    pub fn to_fields_v1(&self) -> Value {
        let mut root = Value::Object(Map::new());
        for path in &self.0 {
            let mut here = &mut root;
            for element in path {
                here = crate::json::as_map(here)
                    .entry(element.clone())
                    .or_insert_with(|| json!({}));
            }
        }
        mark_members(&mut root, &mut Vec::new(), self);
        root
    }
}

/// Writes the "." of nodes that are members themselves and have members below.
fn mark_members(node: &mut Value, path: &mut Path, set: &FieldSet) {
    let Some(members) = node.as_object_mut() else {
        return;
    };
    if !members.is_empty() && !path.is_empty() && set.contains(path) {
        members.insert(".".to_owned(), json!({}));
    }
    for (element, below) in members.iter_mut().filter(|(element, _)| *element != ".") {
        path.push(element.clone());
        mark_members(below, path, set);
        path.pop();
    }
}

fn read(node: &Value, path: &mut Path, set: &mut BTreeSet<Path>) {
    let Some(members) = node.as_object() else {
        return;
    };
    if members.is_empty() && !path.is_empty() {
        set.insert(path.clone());
    }
    for (element, below) in members {
        if element == "." {
            set.insert(path.clone());
            continue;
        }
        path.push(element.clone());
        read(below, path, set);
        path.pop();
    }
}

/// One value found while walking an object.
pub(crate) struct Visit<'a> {
    pub path: &'a [String],
    pub value: &'a Value,
    /// A leaf is owned by its value; a container only by its existence.
    pub leaf: bool,
}

/// Walks an object in the steps of its merge rules, containers before what they hold.
pub(crate) fn walk(kind: &Kind, object: &Value, visit: &mut dyn FnMut(Visit<'_>)) {
    let mut walker = Walker {
        kind,
        path: Vec::new(),
        names: Vec::new(),
        visit,
    };
    for (field, value) in object.as_object().into_iter().flatten() {
        if field == "apiVersion" || field == "kind" {
            continue;
        }
        walker.field(field, value);
    }
}

struct Walker<'a, 'b> {
    kind: &'a Kind,
    path: Path,
    names: Vec<String>,
    visit: &'b mut dyn FnMut(Visit<'_>),
}

impl Walker<'_, '_> {
    fn field(&mut self, field: &str, value: &Value) {
        self.path.push(format!("f:{field}"));
        self.names.push(field.to_owned());
        if !is_server_owned(&self.path) {
            self.value(value);
        }
        self.names.pop();
        self.path.pop();
    }

    fn value(&mut self, value: &Value) {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let rule = merge_rule(self.kind, &names, value);
        match (rule, value) {
            (Merge::Granular, Value::Object(members)) => {
                self.report(value, members.is_empty());
                for (field, below) in members {
                    self.field(field, below);
                }
            }
            (Merge::ListMap(keys), Value::Array(items)) => {
                self.report(value, items.is_empty());
                for item in items {
                    self.item(item_key(&keys, item), item);
                }
            }
            (Merge::Set, Value::Array(items)) => {
                self.report(value, items.is_empty());
                for item in items {
                    self.path.push(set_key(item));
                    self.report(item, true);
                    self.path.pop();
                }
            }
            _ => self.report(value, true),
        }
    }

    fn item(&mut self, key: String, item: &Value) {
        self.path.push(key);
        // References are one value each, although their list merges.
        if is_atomic_item(&self.names) {
            self.report(item, true);
            self.path.pop();
            return;
        }
        self.report(item, false);
        for (field, below) in item.as_object().into_iter().flatten() {
            self.field(field, below);
        }
        self.path.pop();
    }

    fn report(&mut self, value: &Value, leaf: bool) {
        (self.visit)(Visit {
            path: &self.path,
            value,
            leaf,
        });
    }
}

/// Metadata that has no owner: the server writes it.
fn is_server_owned(path: &[String]) -> bool {
    let [first, second] = path else { return false };
    first == "f:metadata"
        && matches!(
            second.as_str(),
            "f:name"
                | "f:namespace"
                | "f:uid"
                | "f:resourceVersion"
                | "f:generation"
                | "f:creationTimestamp"
                | "f:deletionTimestamp"
                | "f:deletionGracePeriodSeconds"
                | "f:managedFields"
                | "f:selfLink"
        )
}

/// The set that an applied configuration claims: leaves and list items, no bare containers.
pub(crate) fn claimed(kind: &Kind, config: &Value) -> FieldSet {
    let mut set = BTreeSet::new();
    walk(kind, config, &mut |visit| {
        let is_item = visit.path.last().is_some_and(|e| e.starts_with("k:"));
        if visit.leaf || is_item {
            set.insert(visit.path.to_vec());
        }
    });
    FieldSet(set)
}

/// What differs between two states of an object.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Difference {
    /// Added or modified.
    pub fn written(&self) -> impl Iterator<Item = &Path> {
        self.added.0.iter().chain(&self.modified.0)
    }
}

pub(crate) fn compare(kind: &Kind, before: &Value, after: &Value) -> Difference {
    let collect = |object: &Value| {
        let mut found = std::collections::BTreeMap::new();
        walk(kind, object, &mut |visit| {
            let value = visit.leaf.then(|| visit.value.clone());
            found.insert(visit.path.to_vec(), value);
        });
        found
    };
    let (old, new) = (collect(before), collect(after));
    let mut difference = Difference::default();
    for (path, value) in &new {
        match old.get(path) {
            None if is_struct(kind, path) => {}
            None if is_empty_service_name(path, value.as_ref()) => {}
            None => {
                difference.added.0.insert(path.clone());
            }
            Some(was) if value.is_some() && was != value => {
                difference.modified.0.insert(path.clone());
            }
            Some(_) => {}
        }
    }
    let gone = old.into_keys().filter(|path| !new.contains_key(path));
    difference.removed.0.extend(gone);
    difference
}

/// Parts that are always there on a real server, so nobody owns their existence: Go's structs and
/// fields that are written even when empty.
fn is_struct(kind: &Kind, path: &[String]) -> bool {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    if kind.is_custom() {
        return names == ["f:metadata"];
    }
    if kind.kind == "ReplicationController" && names.starts_with(&["f:spec", "f:template"]) {
        return false;
    }
    let (last, above) = names
        .split_last()
        .map_or(("", &[][..]), |(last, above)| (*last, above));
    match (above, last) {
        ([], "f:template") => kind.kind == "PodTemplate",
        (["f:status"], "f:conditions") => kind.kind == "CustomResourceDefinition",
        ([], _) => matches!(last, "f:metadata" | "f:spec" | "f:status"),
        (["f:status"], _) => matches!(last, "f:loadBalancer" | "f:acceptedNames"),
        ([.., "f:template" | "f:jobTemplate"], _) => matches!(last, "f:metadata" | "f:spec"),
        ([.., "f:spec"], _) => STRUCTS_OF_SPECS.contains(&last),
        _ => false,
    }
}

/// A stateful set's `serviceName` is written even when it is empty.
fn is_empty_service_name(path: &[String], value: Option<&Value>) -> bool {
    path.last().is_some_and(|last| last == "f:serviceName") && value == Some(&json!(""))
}

/// What specs of any kind always have.
const STRUCTS_OF_SPECS: &[&str] = &[
    "f:containers",
    "f:jobTemplate",
    "f:names",
    "f:podSelector",
    "f:resources",
    "f:scaleTargetRef",
    "f:source",
    "f:strategy",
    "f:template",
    "f:updateStrategy",
];

/// A path as conflicts name it: `.spec.containers[name="web"].image`.
pub(crate) fn display(path: &[String]) -> String {
    let mut text = String::new();
    for element in path {
        match element.split_once(':') {
            Some(("f", name)) => {
                text.push('.');
                text.push_str(name);
            }
            Some(("k", keys)) => {
                let keys: Value = serde_json::from_str(keys).unwrap_or(Value::Null);
                let pairs: Vec<String> = keys
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                text.extend(["[", &pairs.join(","), "]"]);
            }
            Some((_, value)) => text.extend(["[=", value, "]"]),
            None => text.push_str(element),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn claims_name_list_items_by_their_key() {
        let kinds = Kinds::built_in();
        let config = json!({"spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]}}}});
        let set = claimed(&kinds.get("deployments.apps"), &config);
        let fields = set.to_fields_v1();
        assert_eq!(
            fields,
            json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}, "f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}
            }}}}}}})
        );
        assert_eq!(FieldSet::from_fields_v1(&fields), set);
    }

    #[test]
    fn paths_are_shown_as_conflicts_show_them() {
        let path: Path = ["f:spec", "f:containers", "k:{\"name\":\"web\"}", "f:image"]
            .map(str::to_owned)
            .into();
        assert_eq!(display(&path), ".spec.containers[name=\"web\"].image");
    }

    #[test]
    fn comparison_tells_added_modified_and_removed_apart() {
        let kinds = Kinds::built_in();
        let before = json!({"data": {"a": "1", "b": "2"}});
        let after = json!({"data": {"a": "3", "c": "4"}});
        let difference = compare(&kinds.get("configmaps"), &before, &after);
        let shown = |set: &FieldSet| set.0.iter().map(|p| display(p)).collect::<Vec<_>>();
        assert_eq!(shown(&difference.added), [".data.c"]);
        assert_eq!(shown(&difference.modified), [".data.a"]);
        assert_eq!(shown(&difference.removed), [".data.b"]);
    }
}
