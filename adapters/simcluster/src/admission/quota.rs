//! Resource quotas on the number of objects.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json;
use crate::kinds::Kind;
use crate::state::State;
use crate::status::{ApiError, ApiResult};

/// Core kinds whose number a quota can name by the plural alone.
const COUNTED: &[&str] = &[
    "pods",
    "services",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
];

/// Refuses a new object that would exceed a quota of its namespace.
///
/// # Errors
/// 403 `exceeded quota: …` with the numbers that the real server names.
pub(crate) fn check(state: &State, kind: &Kind, object: &Value) -> ApiResult<()> {
    let namespace = json::namespace(object);
    for quota in state.store.list("resourcequotas", namespace) {
        if namespace.is_empty() {
            continue;
        }
        let counted = |key: &str| counts(key, kind);
        let (mut requested, mut used, mut limited) = (Vec::new(), Vec::new(), Vec::new());
        for (key, hard) in hard(quota).into_iter().filter(|(key, _)| counted(key)) {
            let now = count(state, namespace, &key);
            if now + 1 > hard {
                requested.push(format!("{key}=1"));
                used.push(format!("{key}={now}"));
                limited.push(format!("{key}={hard}"));
            }
        }
        if !requested.is_empty() {
            let why = format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                json::name(quota),
                requested.join(","),
                used.join(","),
                limited.join(",")
            );
            return Err(ApiError::forbidden(kind, json::name(object), &why));
        }
    }
    Ok(())
}

/// What of a quota's limits is used now, for its status.
pub(crate) fn usage(state: &State, quota: &Value) -> BTreeMap<String, i64> {
    let namespace = json::namespace(quota);
    hard(quota)
        .into_iter()
        .map(|(key, _)| (key.clone(), count(state, namespace, &key)))
        .collect()
}

fn hard(quota: &Value) -> Vec<(String, i64)> {
    json::map(quota, "/spec/hard")
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let number = value
                .as_str()
                .and_then(|v| v.parse().ok())
                .or_else(|| value.as_i64())?;
            (COUNTED.contains(&key.as_str()) || key.starts_with("count/"))
                .then(|| (key.clone(), number))
        })
        .collect()
}

fn counts(key: &str, kind: &Kind) -> bool {
    match key.strip_prefix("count/") {
        Some(qualified) => kind.is(qualified),
        None => kind.group.is_empty() && kind.plural == key,
    }
}

/// The number of objects that a key of a quota counts. Pods that have ended count no longer,
/// except under `count/pods`.
fn count(state: &State, namespace: &str, key: &str) -> i64 {
    let storage = key.strip_prefix("count/").unwrap_or(key);
    let ended = |object: &Value| {
        key == "pods" && matches!(json::text(object, "/status/phase"), "Succeeded" | "Failed")
    };
    let number = state
        .store
        .list(storage, namespace)
        .filter(|object| !ended(object))
        .count();
    i64::try_from(number).unwrap_or(i64::MAX)
}
