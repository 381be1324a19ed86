//! The shapes in which objects are shown: whole, as metadata, or as rows for kubectl.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::SimClock;
use crate::json;
use crate::kinds::Kind;

mod convert;
mod rows;

pub(crate) use convert::to_version;

/// What a client asked to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    Metadata,
    /// Rows that carry metadata, or whole objects.
    Table {
        whole: bool,
    },
}

impl Shape {
    /// Reads the Accept header; the first form that is known counts.
    pub fn asked(accept: &str, include: &str) -> Self {
        for part in accept.split(',') {
            if part.contains("as=Table") {
                return Self::Table {
                    whole: include == "Object",
                };
            }
            if part.contains("as=PartialObjectMetadata") {
                return Self::Metadata;
            }
            if part.trim().starts_with("application/json") {
                break;
            }
        }
        Self::Whole
    }

    /// One object, as an answer or in a watch.
    pub fn one(self, clock: &SimClock, kind: &Kind, object: &Value) -> Value {
        match self {
            Self::Whole => convert::to_version(kind, object),
            Self::Metadata => metadata_only(object),
            Self::Table { whole } => {
                let version = json::at(object, "/metadata/resourceVersion").clone();
                table(
                    clock,
                    kind,
                    &json!({"resourceVersion": version}),
                    [object],
                    whole,
                )
            }
        }
    }

    /// A list of objects.
    pub fn list(
        self,
        clock: &SimClock,
        kind: &Kind,
        metadata: &Value,
        objects: &[Arc<Value>],
    ) -> Value {
        match self {
            Self::Whole => {
                let items: Vec<Value> = objects
                    .iter()
                    .map(|object| list_item(kind, object))
                    .collect();
                json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
                    "metadata": metadata, "items": items})
            }
            Self::Metadata => {
                let items: Vec<Value> =
                    objects.iter().map(|object| metadata_only(object)).collect();
                json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata, "items": items})
            }
            Self::Table { whole } => table(
                clock,
                kind,
                metadata,
                objects.iter().map(AsRef::as_ref),
                whole,
            ),
        }
    }
}

/// Items of lists of built-in kinds do not say what they are; the list does.
fn list_item(kind: &Kind, object: &Value) -> Value {
    let mut item = convert::to_version(kind, object);
    if !kind.is_custom() {
        json::as_map(&mut item).retain(|field, _| field != "kind" && field != "apiVersion");
    }
    item
}

fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": json::at(object, "/metadata")})
}

fn table<'a>(
    clock: &SimClock,
    kind: &Kind,
    metadata: &Value,
    objects: impl IntoIterator<Item = &'a Value>,
    whole: bool,
) -> Value {
    let columns: Vec<Value> = rows::columns(kind)
        .into_iter()
        .map(|name| {
            let format = if name == "Name" { "name" } else { "" };
            json!({"name": name, "type": "string", "format": format, "description": name,
                "priority": 0})
        })
        .collect();
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let shown = if whole {
                convert::to_version(kind, object)
            } else {
                metadata_only(object)
            };
            json!({"cells": rows::cells(clock, kind, object), "object": shown})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows})
}
