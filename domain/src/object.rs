//! Objects of a cluster, as plans and journals name them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A Kubernetes object: kind, place and name. The name always comes from instance and package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `apiVersion`, such as `apps/v1`.
    pub api_version: String,
    /// `kind`, such as `Deployment`.
    pub kind: String,
    /// The namespace; absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectRef {
    /// Group of the `apiVersion`, empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// Whether `other` is the same object, whatever version of its group it is named by.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.group() == other.group()
            && self.kind == other.kind
            && self.namespace == other.namespace
            && self.name == other.name
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// `metadata.uid` of an object: two objects of one name differ in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(pub String);

/// Keyed digest (HMAC-SHA-256, hex) of a body kept in the blob store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

/// Bodies above this many bytes are kept as blobs.
pub const INLINE_LIMIT: usize = 16 * 1024;

/// A manifest or a recorded state: in the event, or in the blob store under its digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// The JSON itself.
    Inline(Value),
    /// Where to find it.
    Blob(Digest),
}

/// Whether a body must be kept out of events: Secrets by kind, large ones by size.
#[must_use]
pub fn belongs_in_blob(body: &Value) -> bool {
    body["kind"] == "Secret" || body.to_string().len() > INLINE_LIMIT
}

/// Takes out of the manifest of a Job what would let it remove itself (`ttlSecondsAfterFinished`): it could be gone
/// before its end was seen, and would be made and run again.
pub fn let_job_stay(manifest: &mut Value) {
    if manifest["kind"] != "Job" {
        return;
    }
    if let Some(spec) = manifest.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("ttlSecondsAfterFinished");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_and_large_bodies_stay_out_of_events() {
        assert!(belongs_in_blob(&json!({"kind": "Secret", "data": {}})));
        assert!(belongs_in_blob(
            &json!({"kind": "ConfigMap", "data": {"a": "x".repeat(INLINE_LIMIT)}})
        ));
        assert!(!belongs_in_blob(
            &json!({"kind": "ConfigMap", "data": {"a": "x"}})
        ));
    }

    #[test]
    fn a_job_does_not_remove_itself_and_nothing_else_is_changed() {
        let with = |kind: &str, rest: Value| json!({"kind": kind, "spec": rest});
        let mut job = with(
            "Job",
            json!({"ttlSecondsAfterFinished": 1, "backoffLimit": 2}),
        );
        let_job_stay(&mut job);
        assert_eq!(job, with("Job", json!({"backoffLimit": 2})));
        let other = with("Example", json!({"ttlSecondsAfterFinished": 1}));
        let mut same = other.clone();
        let_job_stay(&mut same);
        assert_eq!(same, other);
    }

    #[test]
    fn an_object_is_the_same_in_every_version_of_its_group() {
        let at = |api_version: &str| ObjectRef {
            api_version: api_version.into(),
            kind: "HorizontalPodAutoscaler".into(),
            namespace: Some("a".into()),
            name: "h".into(),
        };
        assert!(at("autoscaling/v1").is(&at("autoscaling/v2")));
        assert!(!at("autoscaling/v1").is(&at("other/v1")));
    }
}
