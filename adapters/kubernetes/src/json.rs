//! Reading JSON objects of a cluster. Every function is total: what is absent reads as empty.

use serde_json::Value;

/// The text at a JSON pointer, empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number at a JSON pointer.
pub(crate) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// The number at a JSON pointer as a count; absent and negative are 0.
pub(crate) fn count(value: &Value, pointer: &str) -> u32 {
    number(value, pointer)
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(0)
}

/// The entries of the list at a JSON pointer.
pub(crate) fn entries<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Whether the value at a JSON pointer is `true`.
pub(crate) fn truth(value: &Value, pointer: &str) -> bool {
    value
        .pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// A label of the object.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// An annotation of the object.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(key)?.as_str()
}

/// Whether the object carries a deletion timestamp.
pub(crate) fn deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The status condition of this type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    entries(object, "/status/conditions")
        .iter()
        .find(|c| c["type"] == kind)
}

/// Whether the status condition of this type is `True`.
pub(crate) fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|c| c["status"] == "True")
}

/// The member of an object, made where it is absent. A value that is no object becomes one.
pub(crate) fn member<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    value
        .as_object_mut()
        .expect("it was made an object just now")
        .entry(name)
        .or_insert(Value::Null)
}

/// Takes a member out of an object.
pub(crate) fn remove(value: &mut Value, pointer: &str, member: &str) {
    if let Some(object) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        object.remove(member);
    }
}
