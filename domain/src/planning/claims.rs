//! Volumes of a `StatefulSet` that is made anew. The claims that its templates made outlive it without an owner, and
//! Kubernetes gives them to the pods of the same names again, whatever the new template says. The plan tells which
//! stay, so that no volume is forgotten.

use crate::lcm_op_occ::plan::PreState;
use crate::object::{Body, ObjectRef};
use crate::ports::Surveyed;
use serde_json::Value;

/// What stays of the old one, as `Kind/name: why`.
pub(super) fn kept_of_old(found: &Surveyed, manifest: &Value) -> Vec<String> {
    let Some(old) = set_before(found) else {
        return Vec::new();
    };
    let why = |template: &str| {
        if templates(manifest).any(|new| new == template) {
            "are kept and used again as they are"
        } else {
            "are kept; it is made anew without this claim template"
        }
    };
    templates(old)
        .map(|template| kept(&found.object, template, why(template)))
        .collect()
}

/// What stays of the new one where it is undone. Claims that both name are those of the old one.
pub(super) fn kept_of_new(found: &Surveyed, manifest: &Value) -> Vec<String> {
    let Some(old) = set_before(found) else {
        return Vec::new();
    };
    templates(manifest)
        .filter(|new| !templates(old).any(|template| template == *new))
        .map(|new| {
            let why = "are kept where any were made; it was made again without this claim template";
            kept(&found.object, new, why)
        })
        .collect()
}

/// Whether Kubernetes removes the volumes of the set with it: nothing would bring back what is in them.
pub(super) fn go_with_it(found: &Surveyed) -> bool {
    set_before(found).is_some_and(|set| {
        set["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
            && templates(set).next().is_some()
    })
}

fn set_before(found: &Surveyed) -> Option<&Value> {
    let is_set = found.object.kind == "StatefulSet" && found.object.group() == "apps";
    match &found.pre {
        PreState::Ours {
            body: Body::Inline(body),
            ..
        } if is_set => Some(body),
        PreState::Ours { .. } | PreState::Absent | PreState::Foreign { .. } => None,
    }
}

/// The names of its claim templates.
fn templates(set: &Value) -> impl Iterator<Item = &str> {
    let templates = set["spec"]["volumeClaimTemplates"].as_array();
    let templates = templates.into_iter().flatten();
    templates.filter_map(|template| template["metadata"]["name"].as_str())
}

fn kept(set: &ObjectRef, template: &str, why: &str) -> String {
    format!(
        "PersistentVolumeClaim/{template}-{}-*: volumes of {set} {why}",
        set.name
    )
}
