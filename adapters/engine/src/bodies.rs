//! Bodies of objects: inline, or in the blob store.

use async_trait::async_trait;
use cairn_domain::object::{Body, Digest, belongs_in_blob};
use cairn_domain::ports::{Blobs, Bodies, PortError, PortResult};
use serde_json::Value;
use std::sync::Arc;

/// Reads bodies from the blob store.
pub struct StoredBodies(pub Arc<dyn Blobs>);

#[async_trait]
impl Bodies for StoredBodies {
    async fn json(&self, body: &Body) -> PortResult<Value> {
        match body {
            Body::Inline(value) => Ok(value.clone()),
            Body::Blob(digest) => {
                let bytes = self.0.get(digest).await?;
                serde_json::from_slice(&bytes)
                    .map_err(|e| PortError::Corrupt(format!("blob {} is not JSON: {e}", digest.0)))
            }
        }
    }
}

/// Collects what must be written with a plan: bodies that do not belong into events.
pub struct Keeper<'a> {
    blobs: &'a dyn Blobs,
    kept: Vec<(Digest, Vec<u8>)>,
}

impl<'a> Keeper<'a> {
    /// An empty one.
    pub fn new(blobs: &'a dyn Blobs) -> Self {
        Self {
            blobs,
            kept: Vec::new(),
        }
    }

    /// Keeps a body inline or as a blob.
    pub fn keep(&mut self, value: &Value) -> Body {
        if !belongs_in_blob(value) {
            return Body::Inline(value.clone());
        }
        let bytes = value.to_string().into_bytes();
        let digest = self.blobs.name(&bytes);
        if !self.kept.iter().any(|(known, _)| *known == digest) {
            self.kept.push((digest.clone(), bytes));
        }
        Body::Blob(digest)
    }

    /// What is to be written.
    #[must_use]
    pub fn into_blobs(self) -> Vec<(Digest, Vec<u8>)> {
        self.kept
    }
}
