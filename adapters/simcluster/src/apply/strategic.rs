//! Strategic merge patches, as kubectl sends them for built-in kinds.

use serde_json::Value;

use super::schema::{Merge, merge_rule};
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, ApiResult};

/// Applies the patch to `target`.
///
/// # Errors
/// 400 when a list item lacks its merge key.
pub(crate) fn patch(kind: &Kind, target: &mut Value, patch: &Value) -> ApiResult<()> {
    patch_map(kind, &mut Vec::new(), target, patch)
}

fn patch_map(
    kind: &Kind,
    names: &mut Vec<String>,
    target: &mut Value,
    patch: &Value,
) -> ApiResult<()> {
    let Some(members) = patch.as_object() else {
        return Err(ApiError::bad_request(
            "a strategic merge patch must be an object",
        ));
    };
    match json::text(patch, "/$patch") {
        "replace" => {
            let mut whole = patch.clone();
            json::remove(&mut whole, "/$patch");
            *target = whole;
            return Ok(());
        }
        "delete" => {
            *target = Value::Object(serde_json::Map::new());
            return Ok(());
        }
        _ => {}
    }
    let before = target.clone();
    if let Some(keys) = json::at(patch, "/$retainKeys").as_array() {
        json::as_map(target).retain(|field, _| keys.iter().any(|k| k == field.as_str()));
    }
    for (field, value) in members {
        if let Some(primitive) = field.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            json::list_mut(target, &format!("/{}", json::escape(primitive)))
                .retain(|item| !gone.contains(item));
        } else if !field.starts_with('$') {
            names.push(field.clone());
            patch_field(kind, names, target, field, value)?;
            names.pop();
        }
    }
    reorder(kind, names, &before, target, patch);
    Ok(())
}

fn patch_field(
    kind: &Kind,
    names: &mut Vec<String>,
    target: &mut Value,
    field: &str,
    value: &Value,
) -> ApiResult<()> {
    let target = json::as_map(target);
    if value.is_null() {
        target.remove(field);
        return Ok(());
    }
    let rule = {
        let path: Vec<&str> = names.iter().map(String::as_str).collect();
        merge_rule(kind, &path, value)
    };
    let here = target.entry(field.to_owned()).or_insert(Value::Null);
    match (rule, value) {
        // Maps that apply takes as one value are merged here: only lists differ by strategy.
        (_, Value::Object(_)) => patch_map(kind, names, here, value),
        (Merge::ListMap(keys), Value::Array(items)) => {
            let key = keys.first().cloned().unwrap_or_default();
            patch_items(kind, names, &key, here, items)
        }
        (Merge::Set, Value::Array(items)) => {
            let have = json::list_mut(here, "");
            for item in items.iter().filter(|item| !item.is_object()) {
                if !have.contains(item) {
                    have.push(item.clone());
                }
            }
            Ok(())
        }
        _ => {
            here.clone_from(value);
            Ok(())
        }
    }
}

fn patch_items(
    kind: &Kind,
    names: &mut Vec<String>,
    key: &str,
    target: &mut Value,
    items: &[Value],
) -> ApiResult<()> {
    if items
        .iter()
        .any(|item| json::text(item, "/$patch") == "replace")
    {
        let rest = items
            .iter()
            .filter(|item| item.get("$patch").is_none())
            .cloned();
        *target = rest.collect();
        return Ok(());
    }
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    for item in items {
        let wanted = item.get(key).ok_or_else(|| {
            ApiError::bad_request(format!(
                "map: {item} does not contain declared merge key: {key}"
            ))
        })?;
        let have = json::list_mut(target, "");
        let index = have.iter().position(|h| h.get(key) == Some(wanted));
        match (index, json::text(item, "/$patch")) {
            (Some(index), "delete") => {
                have.remove(index);
            }
            (None, "delete") => {}
            (Some(index), _) => patch_map(kind, names, &mut have[index], item)?,
            (None, _) => {
                have.push(Value::Object(serde_json::Map::new()));
                let last = have.len() - 1;
                patch_map(kind, names, &mut have[last], item)?;
            }
        }
    }
    Ok(())
}

/// Brings merged lists into order: items of the patch in the order of `$setElementOrder` (or of
/// the patch), the others where they stood before among them.
fn reorder(kind: &Kind, names: &[String], before: &Value, target: &mut Value, patch: &Value) {
    for (field, value) in patch.as_object().into_iter().flatten() {
        let (field, explicit) = match field.strip_prefix("$setElementOrder/") {
            Some(field) => (field, true),
            None => (field.as_str(), false),
        };
        let ordered = patch.get(format!("$setElementOrder/{field}")).is_some();
        let (Some(order), Some(Value::Array(items))) = (value.as_array(), target.get_mut(field))
        else {
            continue;
        };
        let mut full: Vec<&str> = names.iter().map(String::as_str).collect();
        full.push(field);
        let key = match merge_rule(kind, &full, &Value::Array(Vec::new())) {
            Merge::ListMap(keys) => keys.first().cloned(),
            Merge::Set => None,
            Merge::Granular | Merge::Atomic => continue,
        };
        if ordered && !explicit {
            continue;
        }
        let identity = |item: &Value| {
            key.as_ref()
                .map_or(item.clone(), |k| item[k.as_str()].clone())
        };
        let order: Vec<Value> = order.iter().map(identity).collect();
        let was: Vec<Value> = json::list(before, &format!("/{}", json::escape(field)))
            .iter()
            .map(identity)
            .collect();
        *items = interleave(std::mem::take(items), &order, &was, identity);
    }
}

fn interleave(
    items: Vec<Value>,
    order: &[Value],
    was: &[Value],
    identity: impl Fn(&Value) -> Value,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|o| *o == identity(item));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = items
        .into_iter()
        .partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.reverse();
    let mut merged = Vec::new();
    for item in named {
        // What stood before this item stays before it; a new item goes first.
        while let (Some(own), Some(other)) = (place(was, &item), others.last()) {
            if place(was, other).is_none_or(|other| other > own) {
                break;
            }
            merged.extend(others.pop());
        }
        merged.push(item);
    }
    merged.extend(others.into_iter().rev());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use serde_json::json;

    fn patched(mut target: Value, changes: &Value) -> Value {
        patch(
            &Kinds::built_in().get("deployments.apps"),
            &mut target,
            changes,
        )
        .unwrap();
        target
    }

    #[test]
    fn containers_merge_by_name() {
        let target = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}}});
        let changes = json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "b", "image": "b:2"}]}}}});
        assert_eq!(
            patched(target, &changes)["spec"]["template"]["spec"]["containers"],
            json!([{"name": "b", "image": "b:2"}, {"name": "a", "image": "a:1"}])
        );
    }

    #[test]
    fn directives_delete_items_and_null_deletes_fields() {
        let target = json!({"metadata": {"labels": {"x": "1", "y": "2"}},
            "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}});
        let changes = json!({"metadata": {"labels": {"x": null}},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}});
        assert_eq!(
            patched(target, &changes),
            json!({"metadata": {"labels": {"y": "2"}},
                "spec": {"template": {"spec": {"containers": [{"name": "b"}]}}}})
        );
    }
}
