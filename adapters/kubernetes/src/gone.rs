//! One look at whether objects are gone, with their pods and, where asked, their volumes.

use crate::await_ready::{AT_ONCE, Surroundings};
use crate::client::Session;
use crate::content;
use crate::delete::pending;
use crate::discovery::Located;
use crate::errors::{CallError, Halt, Try, call};
use crate::json;
use crate::marks;
use crate::roots;
use crate::volumes;
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;
use serde_json::Value;
use std::collections::BTreeSet;

/// Finalizers that Kubernetes itself takes off as things go.
const PASSING: [&str; 4] = [
    "foregroundDeletion",
    "orphan",
    "kubernetes.io/pvc-protection",
    "kubernetes.io/pv-protection",
];

/// What a namespace says of its own end, the gravest first.
const NAMESPACE: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
];

/// Looks whether everything is gone.
pub(crate) async fn look(
    session: &Session,
    scope: &Scope,
    objects: &[(ObjectRef, Option<Uid>)],
    with_volumes: bool,
) -> Try<Outcome> {
    let mut located = Vec::new();
    for (object, uid) in objects {
        let at = session
            .locate(scope, object)
            .await
            .map_err(|e| e.reading(object.to_string()))?;
        // A kind that is not served any more has no objects.
        located.extend(at.map(|at| (at, uid)));
    }
    let ats: Vec<Located> = located.iter().map(|(at, _)| at.clone()).collect();
    let around = Surroundings::read(session, scope, &ats)
        .await
        .map_err(|e| e.reading("Pod"))?;
    let reads: Vec<_> = ats.iter().map(|at| session.read(at)).collect();
    let read: Vec<_> = futures::stream::iter(reads)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut in_the_way = Vec::new();
    let mut residue = Vec::new();
    for ((at, uid), live) in located.iter().zip(read) {
        let Some(live) = live.map_err(|e| e.reading(at.object.to_string()))? else {
            continue;
        };
        let same = match uid {
            Some(uid) => uid.0 == json::uid(&live) && marks::labelled(scope, &live),
            None => marks::written_by_us(scope, &live),
        };
        if same {
            one(session, scope, at, &live, &mut in_the_way, &mut residue).await?;
        }
    }
    in_the_way.extend(pods_left(&located, &around));
    if in_the_way.is_empty() {
        let sets: Vec<ObjectRef> = ats
            .iter()
            .filter(|at| at.kind.is("apps", "StatefulSet"))
            .map(|at| at.object.clone())
            .collect();
        let left = volumes::after(session, scope, &sets, with_volumes).await?;
        in_the_way.extend(left.obstacles);
        residue.extend(left.residue);
    }
    if in_the_way.is_empty() && with_volumes {
        in_the_way.extend(release(session, &located).await?);
    }
    if in_the_way.is_empty() {
        Ok(Outcome::Gone { residue })
    } else {
        Err(Halt::InTheWay(in_the_way))
    }
}

async fn release(session: &Session, located: &[(Located, &Option<Uid>)]) -> Try<Vec<Obstacle>> {
    let keeps_volumes =
        |at: &Located| at.kind.is("apps", "StatefulSet") || at.kind.is("", "PersistentVolumeClaim");
    let namespaces: BTreeSet<String> = located
        .iter()
        .filter(|(at, _)| keeps_volumes(at))
        .filter_map(|(at, _)| at.object.namespace.clone())
        .collect();
    if namespaces.is_empty() {
        return Ok(Vec::new());
    }
    let claims: Vec<&str> = located
        .iter()
        .filter(|(at, _)| at.kind.is("", "PersistentVolumeClaim"))
        .filter_map(|(_, uid)| uid.as_ref().map(|uid| uid.0.as_str()))
        .collect();
    volumes::release(session, &namespaces, &claims).await
}

/// What an object that is still there says: why it stays, or what it waits for.
async fn one(
    session: &Session,
    scope: &Scope,
    at: &Located,
    live: &Value,
    in_the_way: &mut Vec<Obstacle>,
    residue: &mut Vec<String>,
) -> Try<()> {
    let name = at.object.to_string();
    if json::deleting(live) {
        in_the_way.push(leaving(live));
        return Ok(());
    }
    if at
        .kind
        .is("apiextensions.k8s.io", "CustomResourceDefinition")
    {
        residue.push(format!(
            "{name}: definitions are never removed, as the resources of others would go with them"
        ));
        return Ok(());
    }
    if at.kind.is("", "Namespace") {
        let foreign = content::foreign(session, scope, &at.object.name)
            .await
            .map_err(|e: CallError| e.reading(&name))?;
        if !foreign.is_empty() {
            residue.push(format!(
                "{name}: {} in it belongs to somebody else",
                foreign.join(", ")
            ));
            return Ok(());
        }
    }
    let message = "it is not marked for deletion yet".to_owned();
    in_the_way.extend(pending(name, &at.kind.name, message).obstacles());
    Ok(())
}

/// What keeps an object from being made again: it is being deleted, or finalizers hold it.
pub(crate) fn before_it_is_made_again(object: String, live: &Value) -> Obstacle {
    let message = "it is being deleted; it is made again when it is gone";
    being_deleted(object, live, message)
}

/// An object on its way out: it is to be waited for, as the message says, or finalizers hold it. They are named.
pub(crate) fn being_deleted(object: String, live: &Value, message: impl Into<String>) -> Obstacle {
    let left = leaving(live);
    if left.reason == "Finalizers" {
        return Obstacle { object, ..left };
    }
    call(object, "BeingDeleted", message)
}

/// What an object on its way out waits for.
fn leaving(live: &Value) -> Obstacle {
    let kind = json::text(live, "/kind");
    let mut obstacle = Obstacle {
        object: format!("{kind}/{}", json::name(live)),
        source: kind.to_owned(),
        reason: "Deleting".into(),
        message: "it is being deleted".into(),
        progress: 0,
    };
    if kind == "Pod" {
        return roots::leaving(live);
    }
    let finalizers: Vec<&str> = json::entries(live, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| !PASSING.contains(name))
        .collect();
    let said = NAMESPACE.iter().find_map(|name| {
        json::condition(live, name).filter(|c| kind == "Namespace" && c["status"] == "True")
    });
    if let Some(said) = said {
        json::text(said, "/type").clone_into(&mut obstacle.reason);
        json::text(said, "/message").clone_into(&mut obstacle.message);
    } else if !finalizers.is_empty() {
        obstacle.reason = "Finalizers".into();
        obstacle.message = format!(
            "its finalizers are not taken off: {}",
            finalizers.join(", ")
        );
    } else if let Some(protection) = protection(live) {
        obstacle.message = format!("{protection} holds it as long as something uses it");
    }
    obstacle
}

/// The finalizer of Kubernetes that waits for those who use a claim or a volume.
fn protection(live: &Value) -> Option<&str> {
    json::entries(live, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .find(|name| name.ends_with("-protection"))
}

/// Pods that belonged to what is gone.
fn pods_left(located: &[(Located, &Option<Uid>)], around: &Surroundings) -> Vec<Obstacle> {
    let mut left = Vec::new();
    let namespaces: BTreeSet<&str> = located
        .iter()
        .filter_map(|(at, _)| at.object.namespace.as_deref())
        .collect();
    for namespace in namespaces {
        let Some(pods) = around.in_namespace(namespace) else {
            continue;
        };
        for pod in &pods.all {
            let belongs = pods.is_orphan(pod)
                || located.iter().any(|(at, uid)| {
                    at.object.namespace.as_deref() == Some(namespace)
                        && match uid {
                            Some(uid) => pods.belongs(json::uid(pod), &uid.0),
                            None => pods
                                .controllers
                                .iter()
                                .filter(|set| pods.belongs(json::uid(pod), json::uid(set)))
                                .chain([pod])
                                .any(|owned| is_owned_by_name(owned, at)),
                        }
                });
            if belongs {
                left.push(roots::leaving(pod));
            }
        }
    }
    left
}

/// For an owner whose UID was never heard of.
fn is_owned_by_name(owned: &Value, at: &Located) -> bool {
    json::entries(owned, "/metadata/ownerReferences")
        .iter()
        .any(|owner| {
            owner["kind"] == at.kind.name.as_str() && owner["name"] == at.object.name.as_str()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn foreign_finalizers_are_named_and_passing_ones_are_not() {
        let object = |finalizers: Value| {
            leaving(
                &json!({"kind": "ConfigMap", "metadata": {"name": "c", "finalizers": finalizers}}),
            )
        };
        assert_eq!(object(json!(["foregroundDeletion"])).reason, "Deleting");
        let held = object(json!(["example.com/hold", "foregroundDeletion"]));
        assert_eq!(held.reason, "Finalizers");
        assert!(
            held.message.ends_with(": example.com/hold"),
            "{}",
            held.message
        );
    }

    #[test]
    fn what_is_made_again_waits_for_the_end_of_the_old_one_or_for_its_finalizers() {
        let wait = |finalizers: Value| {
            let live =
                json!({"kind": "ConfigMap", "metadata": {"name": "c", "finalizers": finalizers}});
            before_it_is_made_again("ConfigMap/c".into(), &live)
        };
        assert_eq!(wait(json!([])).reason, "BeingDeleted");
        assert_eq!(wait(json!(["foregroundDeletion"])).reason, "BeingDeleted");
        let held = wait(json!(["example.com/hold"]));
        assert_eq!(
            (held.reason.as_str(), held.object.as_str()),
            ("Finalizers", "ConfigMap/c")
        );
        assert!(
            held.message.ends_with(": example.com/hold"),
            "{}",
            held.message
        );
    }

    #[test]
    fn a_claim_in_use_names_what_holds_it() {
        let held = leaving(
            &json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "c",
            "finalizers": ["kubernetes.io/pvc-protection"]}}),
        );
        assert_eq!(
            held.reason, "Deleting",
            "it goes by itself once nothing uses it"
        );
        assert!(
            held.message
                .starts_with("kubernetes.io/pvc-protection holds it"),
            "{}",
            held.message
        );
    }

    #[test]
    fn a_namespace_tells_why_it_does_not_go() {
        let held = leaving(
            &json!({"kind": "Namespace", "metadata": {"name": "n"}, "status": {"conditions": [
                {"type": "NamespaceContentRemaining", "status": "True", "message": "some"},
                {"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "message": "no backend"},
            ]}}),
        );
        assert_eq!(
            (held.reason.as_str(), held.message.as_str()),
            ("NamespaceDeletionDiscoveryFailure", "no backend")
        );
    }
}
