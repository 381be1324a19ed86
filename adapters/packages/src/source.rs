//! The files of one package, read as YAML within one budget.

use std::cell::Cell;

use crate::archive::{Files, Limits};
use crate::error::{ErrorKind, PackageError};
use crate::meta;
use crate::yaml::{self, Node};

/// Files and how much of their budget is spent: many files of a size that is taken must not be
/// together what one is not.
pub(crate) struct Source<'a> {
    pub(crate) files: &'a Files,
    limits: &'a Limits,
    nodes_spent: Cell<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(files: &'a Files, limits: &'a Limits) -> Self {
        Self {
            files,
            limits,
            nodes_spent: Cell::new(0),
        }
    }

    /// The text of a file that is there.
    ///
    /// # Errors
    /// Not UTF-8, or too large.
    pub(crate) fn text(&self, file: &str) -> Result<&'a str, PackageError> {
        let text = meta::text(self.files, file)?.unwrap_or_default();
        if text.len() <= self.limits.yaml_bytes {
            return Ok(text);
        }
        let most = self.limits.yaml_bytes;
        let message = format!("YAML files of more than {most} bytes are not taken");
        Err(PackageError::new(ErrorKind::Limit, message).in_file(file))
    }

    /// Counts nodes that were made without [`Source::documents`].
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when the budget is spent.
    pub(crate) fn spend(&self, nodes: usize, file: &str) -> Result<(), PackageError> {
        let spent = self.nodes_spent.get().saturating_add(nodes);
        self.nodes_spent.set(spent);
        if spent <= self.limits.yaml_nodes {
            return Ok(());
        }
        let most = self.limits.yaml_nodes;
        let message = format!("the YAML and JSON of the package have more than {most} nodes");
        Err(PackageError::new(ErrorKind::Limit, message).in_file(file))
    }

    /// The YAML documents of a file, empty ones as `None`. With `repeated_keys`, the last of two
    /// equal keys holds; else they are refused.
    ///
    /// # Errors
    /// What [`Source::text`] says, broken YAML, or a spent budget.
    pub(crate) fn documents(
        &self,
        file: &str,
        repeated_keys: bool,
    ) -> Result<Vec<Option<Node>>, PackageError> {
        let how = yaml::Options {
            nodes: self.limits.yaml_nodes,
            spent: &self.nodes_spent,
            repeated_keys,
        };
        yaml::documents(self.text(file)?, file, how)
    }
}
