//! Who owns which field, from `metadata.managedFields`.
//!
//! Field sets are walked as JSON: members `f:name`, list entries `k:{keys}`, set values `v:value`, and `.`
//! for the thing itself. What has another form is left alone.

use crate::json;
use serde_json::Value;

/// The field set of this manager's own applies.
pub(crate) fn applied_by<'a>(live: &'a Value, manager: &str) -> Option<&'a Value> {
    json::entries(live, "/metadata/managedFields")
        .iter()
        .find(|entry| is_apply_of(entry, manager))
        .and_then(|entry| entry.get("fieldsV1"))
}

fn is_apply_of(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager
        && entry["operation"] == "Apply"
        && json::text(entry, "/subresource").is_empty()
}

/// Whether this manager's applies own `spec.replicas`.
pub(crate) fn owns_replicas(live: &Value, manager: &str) -> bool {
    applied_by(live, manager).is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
}

/// Whether somebody else wrote the object itself (not one of its subresources).
pub(crate) fn written_by_others(live: &Value, manager: &str) -> bool {
    json::entries(live, "/metadata/managedFields")
        .iter()
        .any(|entry| entry["manager"] != manager && json::text(entry, "/subresource").is_empty())
}

/// Takes out what only other managers own, unless `keep` has it too.
pub(crate) fn without_foreign(object: &mut Value, manager: &str, keep: Option<&Value>) {
    let ours = applied_by(object, manager).cloned();
    let others: Vec<Value> = json::entries(object, "/metadata/managedFields")
        .iter()
        .filter(|entry| !is_apply_of(entry, manager))
        .filter_map(|entry| entry.get("fieldsV1").cloned())
        .collect();
    for theirs in &others {
        prune(object, theirs, ours.as_ref(), keep);
    }
}

fn prune(value: &mut Value, theirs: &Value, ours: Option<&Value>, keep: Option<&Value>) {
    let Some(fields) = theirs.as_object() else {
        return;
    };
    for (key, theirs) in fields {
        let ours = ours.and_then(|fields| fields.get(key));
        if let Some(name) = key.strip_prefix("f:") {
            let keep = keep.and_then(|keep| keep.get(name));
            prune_member(value, name, theirs, ours, keep);
        } else if let Some(keys) = key.strip_prefix("k:") {
            let Ok(keys) = serde_json::from_str::<Value>(keys) else {
                continue;
            };
            let keep = keep
                .and_then(Value::as_array)
                .and_then(|all| all.iter().find(|e| matches(e, &keys)));
            prune_entry(value, &keys, theirs, ours, keep);
        } else if let Some(text) = key.strip_prefix("v:") {
            let Ok(element) = serde_json::from_str::<Value>(text) else {
                continue;
            };
            let kept = keep
                .and_then(Value::as_array)
                .is_some_and(|all| all.contains(&element));
            if ours.is_none()
                && !kept
                && let Some(elements) = value.as_array_mut()
            {
                elements.retain(|known| *known != element);
            }
        }
    }
}

fn prune_member(
    value: &mut Value,
    name: &str,
    theirs: &Value,
    ours: Option<&Value>,
    keep: Option<&Value>,
) {
    let Some(members) = value.as_object_mut() else {
        return;
    };
    let Some(member) = members.get_mut(name) else {
        return;
    };
    if is_theirs_whole(theirs) && ours.is_none() && keep.is_none() {
        members.remove(name);
        return;
    }
    prune(member, theirs, ours, keep);
    if is_empty(member) && ours.is_none() && keep.is_none() {
        members.remove(name);
    }
}

fn prune_entry(
    value: &mut Value,
    keys: &Value,
    theirs: &Value,
    ours: Option<&Value>,
    keep: Option<&Value>,
) {
    let Some(entries) = value.as_array_mut() else {
        return;
    };
    let Some(index) = entries.iter().position(|entry| matches(entry, keys)) else {
        return;
    };
    if is_theirs_whole(theirs) && ours.is_none() && keep.is_none() {
        entries.remove(index);
        return;
    }
    prune(&mut entries[index], theirs, ours, keep);
}

/// Whether they own the thing itself: a leaf, or a map or entry with its `.`.
fn is_theirs_whole(theirs: &Value) -> bool {
    theirs
        .as_object()
        .is_none_or(|fields| fields.is_empty() || fields.contains_key("."))
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

fn matches(entry: &Value, keys: &Value) -> bool {
    keys.as_object().is_some_and(|keys| {
        keys.iter()
            .all(|(name, value)| entry.get(name) == Some(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment() -> Value {
        json!({
            "metadata": {
                "labels": {"ours": "1", "theirs": "2"},
                "managedFields": [
                    {"manager": "cairn-a", "operation": "Apply", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:ours": {}}},
                        "f:spec": {"f:template": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}}}}}
                    }},
                    {"manager": "kubectl", "operation": "Update", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:theirs": {}}},
                        "f:spec": {"f:replicas": {}, "f:template": {"f:containers": {
                            "k:{\"name\":\"web\"}": {"f:image": {}},
                            "k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}, "f:image": {}}
                        }}}
                    }}
                ]
            },
            "spec": {"replicas": 3, "template": {"containers": [
                {"name": "web", "image": "b", "tty": false},
                {"name": "sidecar", "image": "c", "tty": false}
            ]}}
        })
    }

    #[test]
    fn what_only_others_own_is_left_out() {
        let mut object = deployment();
        without_foreign(&mut object, "cairn-a", None);
        assert_eq!(object["metadata"]["labels"], json!({"ours": "1"}));
        assert_eq!(
            object["spec"],
            json!({"template": {"containers": [{"name": "web", "tty": false}]}})
        );
    }

    #[test]
    fn what_is_about_to_be_overwritten_is_kept() {
        let mut object = deployment();
        let manifest =
            json!({"spec": {"template": {"containers": [{"name": "web", "image": "d"}]}}});
        without_foreign(&mut object, "cairn-a", Some(&manifest));
        assert_eq!(object["spec"]["template"]["containers"][0]["image"], "b");
    }

    #[test]
    fn replicas_belong_to_whose_apply_owns_them() {
        let mut object = deployment();
        assert!(!owns_replicas(&object, "cairn-a"));
        object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:replicas"] = json!({});
        assert!(owns_replicas(&object, "cairn-a"));
        assert!(!owns_replicas(&object, "cairn-b"));
    }
}
