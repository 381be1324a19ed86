//! The pods of workloads: by owner references through whatever stands between, never by label or name alone.

use crate::client::Session;
use crate::discovery::{Kind, Located, encode};
use crate::errors::CallError;
use crate::json;
use crate::marks;
use cairn_domain::ports::Scope;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// Controllers that may stand between a custom resource and its pods.
const BETWEEN: [(&str, &str); 4] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
];

/// Owners are followed over so many steps at most.
const DEPTH: usize = 5;

/// The pods of one namespace with who owns whom.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    pub all: Vec<Value>,
    /// `ReplicaSet`s, and for custom resources the other controllers.
    pub controllers: Vec<Value>,
    owners: HashMap<String, Vec<String>>,
    /// From where a watch sees what happens afterwards.
    pub resource_version: String,
}

impl Pods {
    /// Reads the pods of a namespace that carry our label, with their `ReplicaSet`s. `wide` reads those without
    /// it too, with every controller: operators do not hand our label down to what they make.
    pub(crate) async fn read(
        session: &Session,
        scope: &Scope,
        namespace: &str,
        wide: bool,
    ) -> Result<Self, CallError> {
        let query = if wide { String::new() } else { selector(scope) };
        let pods = session.builtin("v1", "Pod").await?;
        let listed = session
            .list(&pods.collection(Some(namespace)), &query)
            .await?;
        let sets = session.builtin("apps/v1", "ReplicaSet").await?;
        let mut controllers = session
            .list(&sets.collection(Some(namespace)), &query)
            .await?
            .items;
        for (api_version, kind) in BETWEEN.into_iter().filter(|_| wide) {
            let kind = session.builtin(api_version, kind).await?;
            match session.list(&kind.collection(Some(namespace)), "").await {
                Ok(listed) => controllers.extend(listed.items),
                // What may not be seen cannot be followed; pods behind it are not counted.
                Err(CallError::Refused(refusal)) if refusal.code == 403 => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Self::from_parts(
            listed.items,
            controllers,
            listed.resource_version,
        ))
    }

    /// Reads the pods in the namespace of a workload, as widely as its kind needs.
    pub(crate) async fn around(
        session: &Session,
        scope: &Scope,
        at: &Located,
    ) -> Result<Self, CallError> {
        let namespace = at.object.namespace.as_deref().unwrap_or(&scope.namespace);
        Self::read(session, scope, namespace, is_custom(&at.kind)).await
    }

    /// From what was read.
    pub(crate) fn from_parts(
        pods: Vec<Value>,
        controllers: Vec<Value>,
        resource_version: String,
    ) -> Self {
        let owners = pods
            .iter()
            .chain(&controllers)
            .map(|o| (json::uid(o).to_owned(), owners(o)))
            .collect();
        Self {
            all: pods,
            controllers,
            owners,
            resource_version,
        }
    }

    /// The pods that belong to the object of this UID, directly or through others.
    pub(crate) fn of<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Value> {
        self.all
            .iter()
            .filter(move |pod| self.belongs(json::uid(pod), uid))
    }

    /// The controllers that belong to the object of this UID.
    pub(crate) fn controllers_of<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Value> {
        self.controllers
            .iter()
            .filter(move |set| self.belongs(json::uid(set), uid))
    }

    /// Whether an object belongs to the one of this UID, or is it.
    pub(crate) fn belongs(&self, object: &str, to: &str) -> bool {
        let mut reached = BTreeSet::from([object.to_owned()]);
        for _ in 0..DEPTH {
            if reached.contains(to) {
                return true;
            }
            reached = reached
                .iter()
                .filter_map(|uid| self.owners.get(uid))
                .flatten()
                .cloned()
                .collect();
        }
        reached.contains(to)
    }

    /// Whether a pod's controller is gone, so that the pod will be collected.
    pub(crate) fn is_orphan(&self, pod: &Value) -> bool {
        json::entries(pod, "/metadata/ownerReferences")
            .iter()
            .any(|owner| {
                owner["kind"] == "ReplicaSet"
                    && !self.owners.contains_key(json::text(owner, "/uid"))
            })
    }
}

/// Whether a kind is none of Kubernetes' own, so that what it makes need not carry our label.
pub(crate) fn is_custom(kind: &Kind) -> bool {
    !matches!(kind.group(), "" | "apps" | "batch")
}

/// Query that selects what carries our label.
pub(crate) fn selector(scope: &Scope) -> String {
    format!(
        "&labelSelector={}",
        encode(&format!("{}={}", marks::INSTANCE, scope.instance))
    )
}

fn owners(object: &Value) -> Vec<String> {
    json::entries(object, "/metadata/ownerReferences")
        .iter()
        .map(|owner| json::text(owner, "/uid").to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn owned(uid: &str, owner: &str) -> Value {
        json!({"metadata": {"uid": uid, "labels": {"app": "same"},
            "ownerReferences": [{"kind": "ReplicaSet", "uid": owner}]}})
    }

    #[test]
    fn pods_belong_through_replica_sets_and_never_by_label() {
        let pods = Pods::from_parts(
            vec![owned("p1", "rs1"), owned("p2", "rs2"), owned("p3", "lost")],
            vec![owned("rs1", "d1"), owned("rs2", "d2")],
            String::new(),
        );
        let of = |uid| pods.of(uid).map(json::uid).collect::<Vec<_>>();
        assert_eq!(of("d1"), ["p1"]);
        assert_eq!(of("rs2"), ["p2"]);
        assert!(pods.is_orphan(&pods.all[2]));
        assert!(!pods.is_orphan(&pods.all[0]));
    }
}
