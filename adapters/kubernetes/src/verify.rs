//! Whether what is there equals what was recorded (section "What as before means" of the design).

use crate::client::Session;
use crate::content;
use crate::errors::{CallError, Halt, Try, call};
use crate::json;
use crate::marks;
use crate::shape;
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use serde_json::Value;

/// Differences that are told of one object at most.
const TOLD: usize = 8;

/// What must be so.
pub(crate) struct Expected {
    pub equal: Vec<(ObjectRef, Value)>,
    pub absent: Vec<ObjectRef>,
    pub replicas: Vec<(ObjectRef, u32)>,
}

/// Compares once; each difference is an obstacle.
pub(crate) async fn look(session: &Session, scope: &Scope, expected: &Expected) -> Try<Outcome> {
    let mut found = Vec::new();
    for (object, recorded) in &expected.equal {
        match read(session, scope, object).await? {
            None => found.push(differs(object, "it does not exist")),
            Some(live) => {
                let paths = differences(recorded, &live, &marks::manager(scope));
                if !paths.is_empty() {
                    found.push(differs(
                        object,
                        &format!("not as recorded: {}", paths.join(", ")),
                    ));
                }
            }
        }
    }
    for object in &expected.absent {
        let Some(live) = read(session, scope, object).await? else {
            continue;
        };
        if marks::written_by_us(scope, &live) && !stays(session, scope, object, &live).await? {
            found.push(differs(object, "it still exists"));
        }
    }
    for (object, wanted) in &expected.replicas {
        let live = read(session, scope, object).await?.unwrap_or(Value::Null);
        match json::number(&live, "/spec/replicas") {
            Some(number) if number == i64::from(*wanted) => {}
            number => {
                let number = number.map_or_else(|| "no".to_owned(), |n| n.to_string());
                let mut obstacle =
                    differs(object, &format!("{number} replicas instead of {wanted}"));
                obstacle.reason = "ReplicasDiffer".into();
                found.push(obstacle);
            }
        }
    }
    if found.is_empty() {
        Ok(Outcome::Verified)
    } else {
        Err(Halt::InTheWay(found))
    }
}

async fn read(session: &Session, scope: &Scope, object: &ObjectRef) -> Try<Option<Value>> {
    let reading = |e: CallError| e.reading(object.to_string());
    let Some(at) = session.locate(scope, object).await.map_err(reading)? else {
        return Ok(None);
    };
    session.read(&at).await.map_err(reading)
}

/// Definitions, and namespaces in which something foreign lives, stay on purpose.
async fn stays(session: &Session, scope: &Scope, object: &ObjectRef, live: &Value) -> Try<bool> {
    if object.group() == "apiextensions.k8s.io" {
        return Ok(true);
    }
    if object.kind != "Namespace" || !object.group().is_empty() || json::deleting(live) {
        return Ok(false);
    }
    let foreign = content::foreign(session, scope, &object.name)
        .await
        .map_err(|e| e.reading(object.to_string()))?;
    Ok(!foreign.is_empty())
}

fn differs(object: &ObjectRef, message: &str) -> Obstacle {
    call(object.to_string(), "Differs", message)
}

/// Paths in which a live object differs from its recorded form. Values are never told: they may be secret.
pub(crate) fn differences(recorded: &Value, live: &Value, manager: &str) -> Vec<String> {
    let now = shape::recorded(live, manager, Some(recorded));
    let without_others = shape::recorded(live, manager, None);
    let mut paths = Vec::new();
    diff(recorded, &now, &mut Vec::new(), &mut paths);
    paths
        .into_iter()
        // What others have taken over since is theirs.
        .filter(|path| find(&now, path).is_none() || find(&without_others, path).is_some())
        .map(|path| path.join("."))
        .filter(|path| !matches!(path.as_str(), "spec.replicas" | "metadata.uid"))
        .take(TOLD)
        .collect()
}

fn diff(a: &Value, b: &Value, at: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<&String> =
                left.keys().chain(right.keys()).collect();
            for name in names {
                let side = |members: &serde_json::Map<String, Value>| {
                    members.get(name).cloned().unwrap_or(Value::Null)
                };
                at.push(name.clone());
                diff(&side(left), &side(right), at, paths);
                at.pop();
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, entry) in left.iter().enumerate() {
                // Named entries may come back in another order.
                let name = json::text(entry, "/name");
                let named = right
                    .iter()
                    .find(|e| !name.is_empty() && json::text(e, "/name") == name);
                let label = if named.is_some() {
                    name.to_owned()
                } else {
                    index.to_string()
                };
                at.push(label);
                diff(entry, named.unwrap_or(&right[index]), at, paths);
                at.pop();
            }
        }
        (left, right) if left == right => {}
        _ => paths.push(at.clone()),
    }
}

fn find<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Object(members) => members.get(step),
        Value::Array(entries) => entries
            .iter()
            .find(|e| json::text(e, "/name") == step)
            .or_else(|| {
                step.parse::<usize>()
                    .ok()
                    .and_then(|index| entries.get(index))
            }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn server_fields_annotations_of_ours_and_order_do_not_count() {
        let recorded = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}]}});
        let live = json!({
            "metadata": {"name": "a", "uid": "other", "generation": 4, "annotations": {"cairn.dev/operation-id": "o"}},
            "spec": {"ports": [{"name": "y", "port": 2}, {"name": "x", "port": 1}], "replicas": 3}, "status": {"x": 1}
        });
        assert_eq!(
            differences(&recorded, &live, "cairn-a"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_difference_is_told_by_its_path_and_without_its_value() {
        let recorded = json!({"spec": {"containers": [{"name": "web", "image": "a"}]}});
        let live = json!({"spec": {"containers": [{"name": "web", "image": "b"}], "paused": true}});
        assert_eq!(
            differences(&recorded, &live, "m"),
            ["spec.containers.web.image", "spec.paused"]
        );
    }

    #[test]
    fn what_others_took_over_since_is_theirs() {
        let recorded = json!({"spec": {"image": "a"}});
        let live = json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:image": {}}}}]}, "spec": {"image": "b"}});
        let told = differences(&recorded, &live, "m");
        assert!(!told.contains(&"spec.image".to_owned()), "{told:?}");
    }
}
