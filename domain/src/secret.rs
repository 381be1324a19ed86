//! Secrets: how they leave a request before it becomes an event, and how reading leaves them out.
//!
//! A secret member of a body is replaced by `{"$secret": REF}`; the text itself goes to the vault.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// Name of the member that marks a reference to the vault.
const MARK: &str = "$secret";

/// Where a secret lies in the vault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretRef(pub String);

/// A secret text. `Debug` and `Display` show nothing of it; it is not serialisable.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text out of sight.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that must send it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret on its way into the vault, under the reference that the body now holds.
pub type SealedSecret = (SecretRef, Secret);

/// Replaces every member whose name `is_secret` accepts by a reference, at any depth, and returns the secrets.
///
/// A secret that is not a text is kept as its JSON text. A member that already is a reference is refused
/// its meaning: it is sealed as the text it is, so that a request cannot point at somebody else's secret.
pub fn seal(
    body: &mut Value,
    is_secret: &dyn Fn(&str) -> bool,
    fresh: &mut dyn FnMut() -> SecretRef,
) -> Vec<SealedSecret> {
    let mut sealed = Vec::new();
    seal_into(body, is_secret, fresh, &mut sealed);
    sealed
}

fn seal_into(
    body: &mut Value,
    is_secret: &dyn Fn(&str) -> bool,
    fresh: &mut dyn FnMut() -> SecretRef,
    sealed: &mut Vec<SealedSecret>,
) {
    match body {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if (is_secret(name) || name == MARK) && !member.is_null() {
                    sealed.push(seal_one(member, fresh));
                } else {
                    seal_into(member, is_secret, fresh, sealed);
                }
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                seal_into(entry, is_secret, fresh, sealed);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn seal_one(member: &mut Value, fresh: &mut dyn FnMut() -> SecretRef) -> SealedSecret {
    let reference = fresh();
    let hidden = std::mem::replace(member, json!({ MARK: reference.0 }));
    let text = match hidden {
        Value::String(text) => text,
        other => other.to_string(),
    };
    (reference, Secret::new(text))
}

/// The reference that a member is, if it is one.
#[must_use]
pub fn reference(member: &Value) -> Option<SecretRef> {
    let members = member.as_object()?;
    match members.get(MARK) {
        Some(Value::String(reference)) if members.len() == 1 => Some(SecretRef(reference.clone())),
        _ => None,
    }
}

/// All references inside a body.
#[must_use]
pub fn references(body: &Value) -> Vec<SecretRef> {
    if let Some(found) = reference(body) {
        return vec![found];
    }
    match body {
        Value::Object(members) => members.values().flat_map(references).collect(),
        Value::Array(entries) => entries.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The body without its secret members, for every answer that a user reads.
#[must_use]
pub fn without_secrets(body: &Value) -> Value {
    match body {
        Value::Object(members) => Value::Object(members_without_secrets(members)),
        Value::Array(entries) => Value::Array(
            entries
                .iter()
                .filter(|e| reference(e).is_none())
                .map(without_secrets)
                .collect(),
        ),
        other => other.clone(),
    }
}

/// The members without the secret ones.
#[must_use]
pub fn members_without_secrets(members: &Map<String, Value>) -> Map<String, Value> {
    members
        .iter()
        .filter(|(_, member)| reference(member).is_none())
        .map(|(name, member)| (name.clone(), without_secrets(member)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> impl FnMut() -> SecretRef {
        let mut n = 0;
        move || {
            n += 1;
            SecretRef(format!("s{n}"))
        }
    }

    #[test]
    fn secret_members_leave_the_body_at_any_depth() {
        let mut body = json!({"a": {"password": "p1"}, "list": [{"password": 7}], "user": "u"});
        let sealed = seal(&mut body, &|name| name == "password", &mut counter());
        assert_eq!(sealed.len(), 2);
        assert_eq!(sealed[0].1.reveal(), "p1");
        assert_eq!(sealed[1].1.reveal(), "7");
        assert!(!body.to_string().contains("p1"));
        assert_eq!(references(&body).len(), 2);
        assert_eq!(
            without_secrets(&body),
            json!({"a": {}, "list": [{}], "user": "u"})
        );
    }

    #[test]
    fn a_request_cannot_smuggle_in_a_reference() {
        let mut body = json!({"x": {"$secret": "of-somebody-else"}});
        let sealed = seal(&mut body, &|_| false, &mut counter());
        assert_eq!(sealed[0].1.reveal(), "of-somebody-else");
        assert_eq!(reference(&body["x"]), None);
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::new("hidden")), "Secret(…)");
    }
}
