//! YAML with the line of every node, within bounds.
//!
//! The nodes are composed here from the parser's events, for three reasons: an error in the meaning
//! of a descriptor must name its line; a package comes from outside, so the nodes that aliases
//! multiply are counted *before* they are made; and Kubernetes reads its manifests by YAML 1.1
//! (`defaultMode: 0644` is octal there), while parsers in Rust follow 1.2.

mod compose;
mod scalar;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{ErrorKind, PackageError};

pub(crate) use compose::{Options, documents};

/// A node and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `text` as written (after unquoting), `value` by YAML 1.1.
    Scalar {
        text: String,
        value: Value,
    },
    Sequence(Vec<Node>),
    Mapping(BTreeMap<String, Node>),
}

/// Nodes nest no deeper than this, aliases included; what walks them may recurse.
pub(crate) const MAX_DEPTH: usize = 100;

impl Node {
    /// The member of a mapping; `None` for anything else, and for a null member.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.mapping()?.get(key).filter(|node| !node.is_null())
    }

    /// Walks down a path of members.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn mapping(&self) -> Option<&BTreeMap<String, Node>> {
        match &self.kind {
            Kind::Mapping(members) => Some(members),
            Kind::Scalar { .. } | Kind::Sequence(_) => None,
        }
    }

    pub(crate) fn sequence(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::Sequence(items) => Some(items),
            Kind::Scalar { .. } | Kind::Mapping(_) => None,
        }
    }

    /// The text of a scalar as it was written: `1.0` stays `1.0`.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar {
                value: Value::Null, ..
            }
            | Kind::Sequence(_)
            | Kind::Mapping(_) => None,
            Kind::Scalar { text, .. } => Some(text),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(
            &self.kind,
            Kind::Scalar {
                value: Value::Null,
                ..
            }
        )
    }

    /// Members of a mapping, or none.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.mapping().into_iter().flatten()
    }

    /// Items of a sequence, or the node itself if it is a scalar.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Sequence(items) => items,
            Kind::Scalar { .. } if !self.is_null() => std::slice::from_ref(self),
            Kind::Scalar { .. } | Kind::Mapping(_) => &[],
        }
    }

    /// The node as JSON, scalars by YAML 1.1.
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar { value, .. } => value.clone(),
            Kind::Sequence(items) => items.iter().map(Node::to_json).collect(),
            Kind::Mapping(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, node)| (key.clone(), node.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// An error that names this node's line.
    pub(crate) fn error(&self, file: &str, message: impl Into<String>) -> PackageError {
        PackageError::new(ErrorKind::Descriptor, message)
            .in_file(file)
            .at_line(self.line)
    }
}

#[cfg(test)]
mod tests;
