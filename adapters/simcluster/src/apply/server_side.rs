//! One server-side apply: merge, remove what its manager no longer names, find conflicts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::field_set::{FieldSet, Path, claimed, compare, display};
use super::managed::{self, APPLY, Entry, UPDATE, Writer};
use super::merge::{merge, remove_path};
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult, Cause};

/// The object after `config` was applied to `live`.
///
/// # Errors
/// 409 with one cause per field when other managers own fields that would change, unless `force`.
pub(crate) fn apply(
    kind: &Kind,
    live: &Value,
    config: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> ApiResult<Value> {
    let mut entries = managed::read(live);
    let last = entries
        .iter()
        .find(|e| e.is(writer.manager, APPLY, writer.subresource))
        .map(|e| e.fields.clone())
        .unwrap_or_default();
    let mut merged = live.clone();
    json::remove(&mut merged, "/metadata/managedFields");
    merge(kind, &mut merged, config);
    prune(kind, &mut merged, config, &last, &entries, writer);

    let difference = compare(kind, live, &merged);
    let conflicts = find_conflicts(
        &entries,
        &difference.written().cloned().collect::<Vec<_>>(),
        writer,
    );
    if !conflicts.is_empty() && !force {
        return Err(conflict_error(&conflicts));
    }
    for (index, path) in conflicts.iter().map(|c| (c.entry_index, &c.path)) {
        entries[index].fields.0.remove(path);
    }
    for path in &difference.removed.0 {
        for entry in &mut entries {
            entry.fields.remove_tree(path);
        }
    }
    managed::set_apply_entry(kind, &mut entries, config, writer);
    managed::write(&mut merged, &entries);
    Ok(merged)
}

/// Removes fields of the last apply that this one leaves out and nobody else owns.
fn prune(
    kind: &Kind,
    merged: &mut Value,
    config: &Value,
    last: &FieldSet,
    entries: &[Entry],
    writer: &Writer<'_>,
) {
    let now = claimed(kind, config);
    let kept_by_others = |path: &Path| {
        entries
            .iter()
            .filter(|e| !e.is(writer.manager, APPLY, writer.subresource))
            .any(|e| e.fields.reaches(path))
    };
    // Containers come before what they hold, so a whole list item goes in one piece.
    for path in last
        .0
        .iter()
        .filter(|path| !now.reaches(path) && !kept_by_others(path))
    {
        remove_path(merged, path);
    }
}

struct Conflict {
    entry_index: usize,
    who: String,
    path: Path,
}

fn find_conflicts(entries: &[Entry], written: &[Path], writer: &Writer<'_>) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for (entry_index, entry) in entries.iter().enumerate() {
        if entry.is(writer.manager, APPLY, writer.subresource) {
            continue;
        }
        for path in written.iter().filter(|path| entry.fields.contains(path)) {
            conflicts.push(Conflict {
                entry_index,
                who: who(entry),
                path: path.clone(),
            });
        }
    }
    conflicts
}

fn who(entry: &Entry) -> String {
    let mut who = format!("\"{}\"", entry.manager);
    if !entry.subresource.is_empty() {
        who = format!("{who} with subresource \"{}\"", entry.subresource);
    }
    if entry.operation == UPDATE {
        who = format!("{who} using {}", entry.api_version);
    }
    who
}

fn conflict_error(conflicts: &[Conflict]) -> ApiError {
    let message = match conflicts {
        [one] => {
            format!(
                "Apply failed with 1 conflict: conflict with {}: {}",
                one.who,
                display(&one.path)
            )
        }
        many => {
            let mut by_manager: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for conflict in many {
                let line = format!("- {}", display(&conflict.path));
                by_manager.entry(&conflict.who).or_default().push(line);
            }
            let parts: Vec<String> = by_manager
                .into_iter()
                .map(|(who, lines)| format!("conflicts with {who}:\n{}", lines.join("\n")))
                .collect();
            format!(
                "Apply failed with {} conflicts: {}",
                many.len(),
                parts.join("\n")
            )
        }
    };
    let causes: Vec<Cause> = conflicts
        .iter()
        .map(|c| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", c.who),
            field: display(&c.path),
        })
        .collect();
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = json!({});
    error.with_causes(&causes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    fn by(manager: &str) -> Writer<'_> {
        Writer {
            manager,
            subresource: "",
            now: "2026-01-01T00:00:00Z",
        }
    }

    fn deployment(replicas: i64, image: &str) -> Value {
        json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas, "template": {"spec": {
            "containers": [{"name": "web", "image": image}]}}}})
    }

    fn apply_to(live: &Value, config: &Value, who: &str, force: bool) -> ApiResult<Value> {
        apply(
            &Kinds::built_in().get("deployments.apps"),
            live,
            config,
            &by(who),
            force,
        )
    }

    #[test]
    fn changing_a_field_of_another_manager_is_a_conflict_that_names_it() {
        let live = apply_to(&json!({}), &deployment(1, "web:1"), "a", false).unwrap();
        let refused = apply_to(&live, &deployment(2, "web:1"), "b", false).unwrap_err();
        assert_eq!(refused.code, 409);
        assert_eq!(
            refused.message,
            "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas"
        );
        assert_eq!(
            refused.details["causes"][0]["reason"],
            "FieldManagerConflict"
        );
    }

    #[test]
    fn force_takes_the_field_over() {
        let live = apply_to(&json!({}), &deployment(1, "web:1"), "a", false).unwrap();
        let taken = apply_to(&live, &deployment(2, "web:1"), "b", true).unwrap();
        assert_eq!(taken["spec"]["replicas"], 2);
        let again = apply_to(&taken, &deployment(1, "web:1"), "a", false).unwrap_err();
        assert!(
            again.message.contains("conflict with \"b\""),
            "{}",
            again.message
        );
    }

    #[test]
    fn the_same_value_is_shared_and_survives_one_of_its_owners() {
        let live = apply_to(&json!({}), &deployment(1, "web:1"), "a", false).unwrap();
        let shared = apply_to(&live, &deployment(1, "web:1"), "b", false).unwrap();
        let left = apply_to(&shared, &json!({"metadata": {"name": "web"}}), "a", false).unwrap();
        assert_eq!(left["spec"]["replicas"], 1);
        let gone = apply_to(&left, &json!({"metadata": {"name": "web"}}), "b", false).unwrap();
        assert!(gone.get("spec").is_none(), "{gone}");
    }

    #[test]
    fn a_field_set_by_an_update_conflicts_with_its_version() {
        let kind = Kinds::built_in().get("deployments.apps");
        let live = apply_to(&json!({}), &deployment(1, "web:1"), "a", false).unwrap();
        let mut edited = live.clone();
        edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
        managed::record_update(&kind, &live, &mut edited, &by("kubectl-set"));
        let refused = apply_to(&edited, &deployment(1, "web:3"), "a", false).unwrap_err();
        assert_eq!(
            refused.message,
            "Apply failed with 1 conflict: conflict with \"kubectl-set\" using apps/v1: \
             .spec.template.spec.containers[name=\"web\"].image"
        );
    }

    #[test]
    fn an_item_no_longer_applied_goes_with_its_defaults() {
        let two = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "web", "image": "web:1"}, {"name": "side", "image": "side:1"}]}}}});
        let mut live = apply_to(&json!({}), &two, "a", false).unwrap();
        live["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"] = json!("Always");
        let one = apply_to(&live, &deployment(1, "web:1"), "a", false).unwrap();
        let containers = one["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap();
        assert_eq!(containers.len(), 1, "{one}");
    }
}
