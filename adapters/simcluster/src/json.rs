//! Short ways through `serde_json::Value`, by JSON pointer.
//!
//! Objects of any kind, custom resources included, live in the store as plain JSON; typed structs
//! would drop what they do not know, and the real server keeps it.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// The value at `pointer`, or JSON null.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&NULL)
}

/// The string at `pointer`, or the empty string.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or("")
}

/// The integer at `pointer`, or `default`.
pub(crate) fn int(value: &Value, pointer: &str, default: i64) -> i64 {
    at(value, pointer).as_i64().unwrap_or(default)
}

/// The boolean at `pointer`, or false.
pub(crate) fn flag(value: &Value, pointer: &str) -> bool {
    at(value, pointer).as_bool().unwrap_or(false)
}

/// The members of the list at `pointer`; an absent list is empty.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// The entries of the map at `pointer`, if there is one.
pub(crate) fn map<'a>(value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    at(value, pointer).as_object()
}

/// Whether something other than null stands at `pointer`.
pub(crate) fn has(value: &Value, pointer: &str) -> bool {
    !at(value, pointer).is_null()
}

/// Sets `pointer`, making the maps on the way. Numbers in the pointer index existing lists.
pub(crate) fn set(value: &mut Value, pointer: &str, new: impl Into<Value>) {
    let mut here = value;
    for part in pointer.split('/').skip(1) {
        let key = unescape(part);
        here = if here.is_array() {
            let index = key.parse::<usize>().unwrap_or(0);
            match here.get_mut(index) {
                Some(member) => member,
                None => return,
            }
        } else {
            as_map(here).entry(key).or_insert(Value::Null)
        };
    }
    *here = new.into();
}

/// Sets `pointer` only where nothing (or null) stands.
pub(crate) fn set_default(value: &mut Value, pointer: &str, new: impl Into<Value>) {
    if !has(value, pointer) {
        set(value, pointer, new);
    }
}

/// Removes what stands at `pointer` and returns it.
pub(crate) fn remove(value: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, last) = pointer.rsplit_once('/')?;
    let parent = value.pointer_mut(parent)?;
    parent.as_object_mut()?.remove(&unescape(last))
}

/// The value as a map; anything else is replaced by an empty one.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// The list at `pointer` for changing; made when absent.
pub(crate) fn list_mut<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Vec<Value> {
    if !at(value, pointer).is_array() {
        set(value, pointer, Value::Array(Vec::new()));
    }
    value
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .expect("a list was put there just above")
}

/// Escapes a map key for use in a pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Drops null members of maps, as Go's decoder does: a null is a field that was not given.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Drops empty labels and annotations wherever metadata stands, as Go's encoder does.
pub(crate) fn drop_empty_metadata(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                metadata.retain(|field, v| {
                    let droppable = field == "labels" || field == "annotations";
                    !(droppable && v.as_object().is_some_and(Map::is_empty))
                });
            }
            members.values_mut().for_each(drop_empty_metadata);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty_metadata),
        _ => {}
    }
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    has(object, "/metadata/deletionTimestamp")
}

/// The annotation of that name, if it is set.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    map(object, "/metadata/annotations")?.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn set_makes_the_maps_on_the_way_and_remove_takes_the_leaf() {
        let mut value = json!({});
        set(&mut value, "/metadata/annotations/a~1b", "c");
        assert_eq!(value, json!({"metadata": {"annotations": {"a/b": "c"}}}));
        assert_eq!(
            remove(&mut value, "/metadata/annotations/a~1b"),
            Some(json!("c"))
        );
        assert_eq!(value, json!({"metadata": {"annotations": {}}}));
    }
}
