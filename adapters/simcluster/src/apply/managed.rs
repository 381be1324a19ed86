//! `metadata.managedFields`: the record of which manager owns which fields.

use serde_json::{Value, json};

use super::field_set::{FieldSet, claimed, compare};
use crate::json;
use crate::kinds::Kind;

/// One entry; manager, operation, subresource and version together tell entries apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub manager: String,
    pub operation: &'static str,
    pub api_version: String,
    pub subresource: String,
    pub time: String,
    pub fields: FieldSet,
}

pub(crate) const APPLY: &str = "Apply";
pub(crate) const UPDATE: &str = "Update";

impl Entry {
    pub fn is(&self, manager: &str, operation: &str, subresource: &str) -> bool {
        self.manager == manager && self.operation == operation && self.subresource == subresource
    }

    fn from_json(entry: &Value) -> Self {
        Self {
            manager: json::text(entry, "/manager").to_owned(),
            operation: if json::text(entry, "/operation") == APPLY {
                APPLY
            } else {
                UPDATE
            },
            api_version: json::text(entry, "/apiVersion").to_owned(),
            subresource: json::text(entry, "/subresource").to_owned(),
            time: json::text(entry, "/time").to_owned(),
            fields: FieldSet::from_fields_v1(json::at(entry, "/fieldsV1")),
        }
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_fields_v1(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }
}

pub(crate) fn read(object: &Value) -> Vec<Entry> {
    json::list(object, "/metadata/managedFields")
        .iter()
        .map(Entry::from_json)
        .collect()
}

pub(crate) fn write(object: &mut Value, entries: &[Entry]) {
    let mut kept: Vec<&Entry> = entries.iter().filter(|e| !e.fields.is_empty()).collect();
    kept.sort_by_key(|e| {
        (
            e.operation,
            &e.time,
            &e.manager,
            &e.api_version,
            &e.subresource,
        )
    });
    let entries: Vec<Value> = kept.into_iter().map(Entry::to_json).collect();
    if entries.is_empty() {
        json::remove(object, "/metadata/managedFields");
    } else {
        json::set(object, "/metadata/managedFields", entries);
    }
}

/// Who writes, through which door, and when.
#[derive(Debug, Clone)]
pub(crate) struct Writer<'a> {
    pub manager: &'a str,
    pub subresource: &'a str,
    pub now: &'a str,
}

/// Records a create, update or patch: what it changed is the writer's, and nobody else's.
///
/// `after` may bring a list of its own (a client resets it with an empty one); else the list of
/// `before` goes on.
pub(crate) fn record_update(kind: &Kind, before: &Value, after: &mut Value, writer: &Writer<'_>) {
    let brought = json::at(after, "/metadata/managedFields")
        .as_array()
        .cloned();
    let mut entries = match brought.as_deref() {
        Some([]) => Vec::new(),
        Some([only]) if *only == json!({}) => Vec::new(),
        Some(_) => read(after),
        None => read(before),
    };
    let difference = compare(kind, before, after);
    let mut own = FieldSet::default();
    for path in difference.written() {
        for entry in &mut entries {
            entry.fields.0.remove(path);
        }
        own.0.insert(path.clone());
    }
    for path in &difference.removed.0 {
        for entry in &mut entries {
            entry.fields.remove_tree(path);
        }
    }
    add_to_own(kind, &mut entries, own, writer);
    write(after, &entries);
}

fn add_to_own(kind: &Kind, entries: &mut Vec<Entry>, own: FieldSet, writer: &Writer<'_>) {
    if own.is_empty() {
        return;
    }
    let mine = entries.iter_mut().find(|e| {
        e.is(writer.manager, UPDATE, writer.subresource) && e.api_version == kind.api_version()
    });
    if let Some(entry) = mine {
        entry.fields.0.extend(own.0);
        writer.now.clone_into(&mut entry.time);
    } else {
        entries.push(Entry {
            manager: writer.manager.to_owned(),
            operation: UPDATE,
            api_version: kind.api_version(),
            subresource: writer.subresource.to_owned(),
            time: writer.now.to_owned(),
            fields: own,
        });
    }
}

/// Gives `manager` an Apply entry for exactly `config`, or takes the entry away when that is empty.
pub(crate) fn set_apply_entry(
    kind: &Kind,
    entries: &mut Vec<Entry>,
    config: &Value,
    writer: &Writer<'_>,
) {
    let fields = claimed(kind, config);
    let mine = entries
        .iter_mut()
        .find(|e| e.is(writer.manager, APPLY, writer.subresource));
    if let Some(entry) = mine {
        if entry.fields != fields {
            writer.now.clone_into(&mut entry.time);
        }
        entry.fields = fields;
        entry.api_version = kind.api_version();
        return;
    }
    entries.push(Entry {
        manager: writer.manager.to_owned(),
        operation: APPLY,
        api_version: kind.api_version(),
        subresource: writer.subresource.to_owned(),
        time: writer.now.to_owned(),
        fields,
    });
}
