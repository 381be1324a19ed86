//! The merge of an applied configuration into the live object, and the removal of single paths.

use serde_json::Value;

use super::schema::{Merge, is_atomic_item, item_key, merge_rule, set_key};
use crate::json;
use crate::kinds::Kind;

/// Writes `config` into `live` by the merge rules of the kind.
pub(crate) fn merge(kind: &Kind, live: &mut Value, config: &Value) {
    merge_value(kind, &mut Vec::new(), live, config);
}

fn merge_value(kind: &Kind, names: &mut Vec<String>, live: &mut Value, config: &Value) {
    let rule = {
        let path: Vec<&str> = names.iter().map(String::as_str).collect();
        if path.is_empty() {
            Merge::Granular
        } else {
            merge_rule(kind, &path, config)
        }
    };
    match (rule, config) {
        (Merge::Granular, Value::Object(members)) => {
            let live = json::as_map(live);
            for (field, value) in members {
                names.push(field.clone());
                merge_value(
                    kind,
                    names,
                    live.entry(field.clone()).or_insert(Value::Null),
                    value,
                );
                names.pop();
            }
        }
        (Merge::ListMap(keys), Value::Array(items)) => {
            merge_items(kind, names, &keys, as_list(live), items);
        }
        (Merge::Set, Value::Array(items)) => {
            let live = as_list(live);
            for item in items {
                if !live.contains(item) {
                    live.push(item.clone());
                }
            }
        }
        _ => live.clone_from(config),
    }
}

fn merge_items(
    kind: &Kind,
    names: &mut Vec<String>,
    keys: &[String],
    live: &mut Vec<Value>,
    items: &[Value],
) {
    for item in items {
        let key = item_key(keys, item);
        let index = live
            .iter()
            .position(|have| item_key(keys, have) == key)
            .unwrap_or_else(|| {
                live.push(Value::Object(serde_json::Map::new()));
                live.len() - 1
            });
        if is_atomic_item(names) {
            live[index] = item.clone();
            continue;
        }
        for (field, value) in item.as_object().into_iter().flatten() {
            let target = json::as_map(&mut live[index])
                .entry(field.clone())
                .or_insert(Value::Null);
            names.push(field.clone());
            merge_value(kind, names, target, value);
            names.pop();
        }
    }
}

fn as_list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("made a list just above")
}

/// Removes what stands at `path`, and the containers that this leaves empty.
pub(crate) fn remove_path(object: &mut Value, path: &[String]) {
    let Some((element, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        remove_element(object, element);
        return;
    }
    let Some(below) = step(object, element) else {
        return;
    };
    remove_path(below, rest);
    let emptied = below.as_object().is_some_and(serde_json::Map::is_empty)
        || below.as_array().is_some_and(Vec::is_empty);
    if emptied {
        remove_element(object, element);
    }
}

fn remove_element(object: &mut Value, element: &str) {
    match element.split_once(':') {
        Some(("f", name)) => {
            if let Some(members) = object.as_object_mut() {
                members.remove(name);
            }
        }
        Some(("v", _)) => {
            if let Some(items) = object.as_array_mut() {
                items.retain(|item| set_key(item) != element);
            }
        }
        _ => {
            if let Some(items) = object.as_array_mut() {
                items.retain(|item| !has_key(item, element));
            }
        }
    }
}

fn step<'a>(object: &'a mut Value, element: &str) -> Option<&'a mut Value> {
    match element.split_once(':')? {
        ("f", name) => object.get_mut(name),
        ("k", _) => object
            .as_array_mut()?
            .iter_mut()
            .find(|item| has_key(item, element)),
        _ => None,
    }
}

/// Whether a list item is the one that the element `k:{…}` names.
fn has_key(item: &Value, element: &str) -> bool {
    let keys: Value = element
        .split_once(':')
        .and_then(|(_, keys)| serde_json::from_str(keys).ok())
        .unwrap_or(Value::Null);
    keys.as_object().is_some_and(|keys| {
        let names: Vec<String> = keys.keys().cloned().collect();
        item_key(&names, item) == element
    })
}
