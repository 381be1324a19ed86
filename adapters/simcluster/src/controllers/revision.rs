//! Controller revisions: the templates that stateful sets and daemon sets have had.

use serde_json::{Value, json};

use super::Pass;
use super::act::{MANAGER, controller_reference, controller_uid, short_hash};
use crate::json;
use crate::kinds::Kind;

const REVISIONS: &str = "controllerrevisions.apps";
/// The label by which a pod says which template it was made from.
pub(super) const LABEL: &str = "controller-revision-hash";

/// The name of the current template's revision; the object is made when it is not there.
pub(super) fn current(pass: &mut Pass<'_>, kind: &Kind, owner: &Value) -> String {
    let template = json::at(owner, "/spec/template");
    let hash = short_hash(&template.to_string());
    let name = format!("{}-{hash}", json::name(owner));
    let namespace = json::namespace(owner);
    let highest = highest(pass, owner);
    let revisions = pass.state.kinds.get(REVISIONS);
    match pass.state.get(REVISIONS, namespace, &name) {
        Some(found) if json::int(&found, "/revision", 0) < highest => {
            pass.change(&revisions, &found, MANAGER, |r| {
                json::set(r, "/revision", highest + 1);
            });
        }
        Some(_) => {}
        None => {
            let mut labels = json::at(owner, "/spec/selector/matchLabels").clone();
            let label = if kind.kind == "DaemonSet" {
                LABEL
            } else {
                "controller.kubernetes.io/hash"
            };
            json::set(&mut labels, &format!("/{}", json::escape(label)), hash);
            let mut template = template.clone();
            json::set(&mut template, "/$patch", "replace");
            let object = json!({
                "metadata": {"name": name, "labels": labels,
                    "ownerReferences": [controller_reference(kind, owner)]},
                "data": {"spec": {"template": template}},
                "revision": highest + 1,
            });
            if let Err(error) = pass.state.create_as(MANAGER, &revisions, namespace, object) {
                tracing::debug!(error = error.message, "a controller revision was refused");
            }
        }
    }
    name
}

fn highest(pass: &Pass<'_>, owner: &Value) -> i64 {
    pass.state
        .store
        .list(REVISIONS, json::namespace(owner))
        .filter(|revision| controller_uid(revision) == json::uid(owner))
        .map(|revision| json::int(revision, "/revision", 0))
        .max()
        .unwrap_or(0)
}

/// The template that a revision holds.
pub(super) fn template(pass: &Pass<'_>, owner: &Value, name: &str) -> Option<Value> {
    let revision = pass.state.get(REVISIONS, json::namespace(owner), name)?;
    let mut template = revision.pointer("/data/spec/template").cloned()?;
    json::remove(&mut template, "/$patch");
    Some(template)
}

/// The name of the revision that a pod was made from.
pub(super) fn of(pod: &Value) -> &str {
    json::map(pod, "/metadata/labels")
        .and_then(|labels| labels.get(LABEL)?.as_str())
        .unwrap_or("")
}
