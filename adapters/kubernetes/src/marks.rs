//! The marks by which Cairn knows what is its own (section "Writing" of the design).

use crate::json;
use cairn_domain::ports::Scope;
use serde_json::Value;

/// Label that names the VNF instance; on objects and on pod templates.
pub(crate) const INSTANCE: &str = "cairn.dev/vnf-instance-id";
/// Annotation that names the operation that wrote last; on objects only, as it would start a rollout on templates.
pub(crate) const OPERATION: &str = "cairn.dev/operation-id";
/// Annotation with the digest of the package; on objects only.
pub(crate) const PACKAGE: &str = "cairn.dev/package-digest";
/// Annotation on a claim that names the operation that removed its `StatefulSet`.
pub(crate) const REMOVED_BY: &str = "cairn.dev/removed-by";
/// Annotation on a claim that names the `StatefulSet` whose template made it.
pub(crate) const STATEFUL_SET: &str = "cairn.dev/stateful-set";
/// Annotation on a volume that holds the UID of the claim that is being removed.
pub(crate) const CLAIM: &str = "cairn.dev/removed-claim";
/// Prefix of all our annotations.
pub(crate) const PREFIX: &str = "cairn.dev/";
/// Annotation that the Deployment controller counts its revisions in.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";

/// Name under which this instance's fields are managed.
pub(crate) fn manager(scope: &Scope) -> String {
    format!("cairn-{}", scope.instance)
}

/// Whether an object carries the label of the scope's instance.
pub(crate) fn labelled(scope: &Scope, object: &Value) -> bool {
    json::label(object, INSTANCE) == Some(scope.instance.as_str())
}

/// Whether an object is recorded as this instance's by its UID, or was written by a recorded operation of it.
pub(crate) fn written_by_us(scope: &Scope, object: &Value) -> bool {
    labelled(scope, object)
        && (scope
            .recorded_uids
            .iter()
            .any(|known| known.0 == json::uid(object))
            || json::annotation(object, OPERATION).is_some_and(|id| {
                id == scope.operation.as_str()
                    || scope
                        .known_operations
                        .iter()
                        .any(|known| known.as_str() == id)
            }))
}

/// Whether an object is ours: our label, and the recorded UID or an operation of ours.
pub(crate) fn ours(scope: &Scope, object: &Value, recorded: Option<&str>) -> bool {
    labelled(scope, object) && recorded == Some(json::uid(object)) || written_by_us(scope, object)
}

/// Who an object belongs to, in words.
pub(crate) fn owner(object: &Value) -> String {
    if let Some(instance) = json::label(object, INSTANCE) {
        return format!("VNF instance {instance}");
    }
    let mut managers: Vec<&str> = json::entries(object, "/metadata/managedFields")
        .iter()
        .map(|entry| json::text(entry, "/manager"))
        .filter(|manager| !manager.is_empty())
        .collect();
    managers.dedup();
    match managers.as_slice() {
        [] => "somebody else".to_owned(),
        some => format!("somebody else (written by {})", some.join(", ")),
    }
}
