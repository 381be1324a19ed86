//! What pods need beside their own manifest: `Secret`s, `ConfigMap`s, storage and priority classes.

use super::package::Brought;
use super::{Found, Namespaces, hooks};
use crate::client::Session;
use crate::discovery::Located;
use crate::errors::{CallError, Halt, call};
use crate::json;
use crate::shape;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Something that must exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// In the namespace of whoever needs it; classes are in none.
    pub namespaced: bool,
    pub name: String,
}

impl Reference {
    fn local(kind: &'static str, name: &str) -> Self {
        Self {
            api_version: "v1",
            kind,
            namespaced: true,
            name: name.to_owned(),
        }
    }

    fn class(api_version: &'static str, kind: &'static str, name: &str) -> Self {
        Self {
            api_version,
            kind,
            namespaced: false,
            name: name.to_owned(),
        }
    }
}

/// Everything that a manifest refers to and that is not optional. `template` is where its pod template is.
pub(crate) fn of(manifest: &Value, template: Option<&[&str]>) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    let is_pod = manifest["kind"] == "Pod" && manifest["apiVersion"] == "v1";
    let pod = match template {
        Some(path) => manifest.pointer(&format!("/{}/spec", path.join("/"))),
        None => manifest.get("spec").filter(|_| is_pod),
    };
    if let Some(spec) = pod {
        pod_spec(spec, &mut found);
    }
    let claims = json::entries(manifest, "/spec/volumeClaimTemplates").iter();
    let claim = Some(manifest).filter(|m| m["kind"] == "PersistentVolumeClaim");
    for claim in claims.chain(claim) {
        add(
            &mut found,
            json::text(claim, "/spec/storageClassName"),
            |name| Reference::class("storage.k8s.io/v1", "StorageClass", name),
        );
    }
    found
}

fn pod_spec(spec: &Value, found: &mut BTreeSet<Reference>) {
    add(found, json::text(spec, "/priorityClassName"), |name| {
        Reference::class("scheduling.k8s.io/v1", "PriorityClass", name)
    });
    let account = json::text(spec, "/serviceAccountName");
    // Kubernetes makes this one in each namespace by itself.
    if account != "default" {
        add(found, account, |name| {
            Reference::local("ServiceAccount", name)
        });
    }
    for container in ["/initContainers", "/containers"]
        .iter()
        .flat_map(|p| json::entries(spec, p))
    {
        for env in json::entries(container, "/env") {
            source(
                found,
                "Secret",
                env.pointer("/valueFrom/secretKeyRef"),
                "/name",
            );
            source(
                found,
                "ConfigMap",
                env.pointer("/valueFrom/configMapKeyRef"),
                "/name",
            );
        }
        for from in json::entries(container, "/envFrom") {
            source(found, "Secret", from.get("secretRef"), "/name");
            source(found, "ConfigMap", from.get("configMapRef"), "/name");
        }
    }
    for volume in json::entries(spec, "/volumes") {
        source(found, "Secret", volume.get("secret"), "/secretName");
        source(found, "ConfigMap", volume.get("configMap"), "/name");
        for part in json::entries(volume, "/projected/sources") {
            source(found, "Secret", part.get("secret"), "/name");
            source(found, "ConfigMap", part.get("configMap"), "/name");
        }
    }
}

fn source(found: &mut BTreeSet<Reference>, kind: &'static str, source: Option<&Value>, name: &str) {
    let Some(source) = source.filter(|source| !json::truth(source, "/optional")) else {
        return;
    };
    add(found, json::text(source, name), |name| {
        Reference::local(kind, name)
    });
}

fn add(found: &mut BTreeSet<Reference>, name: &str, make: impl FnOnce(&str) -> Reference) {
    // Kubernetes makes the root certificate's ConfigMap in each namespace by itself.
    if !name.is_empty() && name != "kube-root-ca.crt" {
        found.insert(make(name));
    }
}

/// References to what neither the cluster nor the package has.
pub(super) async fn missing(
    session: &Session,
    scope: &Scope,
    found: &[Found<'_>],
    brought: &Brought<'_>,
    namespaces: &Namespaces,
) -> Result<Vec<Obstacle>, Halt> {
    let mut missing = Vec::new();
    let mut known: BTreeMap<ObjectRef, bool> = BTreeMap::new();
    for item in found {
        let name = item.at.object.to_string();
        for needed in of(&item.item.manifest, shape::template(&item.at.kind)) {
            let namespace = item
                .at
                .object
                .namespace
                .clone()
                .filter(|_| needed.namespaced);
            let is_brought = brought.object(
                needed.kind,
                namespace.as_deref(),
                &needed.name,
                &scope.namespace,
            );
            let too_early = hooks::without_objects(item.item);
            if is_brought && too_early.is_none() {
                continue;
            }
            let object = ObjectRef {
                api_version: needed.api_version.into(),
                kind: needed.kind.into(),
                namespace,
                name: needed.name.clone(),
            };
            if !known.contains_key(&object) {
                let there = (!needed.namespaced || namespaces.exists(&item.at))
                    && exists(session, &object)
                        .await
                        .map_err(|e| e.reading(&name))?;
                known.insert(object.clone(), there);
            }
            if !known[&object] {
                let place = object
                    .namespace
                    .as_ref()
                    .map_or_else(String::new, |ns| format!(" in namespace {ns}"));
                let message = match too_early.filter(|_| is_brought) {
                    Some(when) => format!(
                        "{} runs {when}, and needs {object}{place}, which is one of them; make it beforehand",
                        hooks::title(item.item)
                    ),
                    None => format!(
                        "it needs {object}{place}, which neither the cluster nor the package has"
                    ),
                };
                missing.push(call(&name, "Missing", message));
            }
        }
    }
    Ok(missing)
}

async fn exists(session: &Session, object: &ObjectRef) -> Result<bool, CallError> {
    let Some(kind) = session.kind(&object.api_version, &object.kind).await? else {
        return Ok(false);
    };
    match session
        .read(&Located {
            kind,
            object: object.clone(),
        })
        .await
    {
        Ok(live) => Ok(live.is_some()),
        // What may not be looked at is left to the kubelet, which may.
        Err(CallError::Refused(refusal)) if refusal.code == 403 => Ok(true),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_optional_is_no_need() {
        let deployment = json!({"spec": {"template": {"spec": {
            "priorityClassName": "high", "serviceAccountName": "account",
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s1"}}},
                {"valueFrom": {"secretKeyRef": {"name": "s2", "optional": true}}}],
                "envFrom": [{"configMapRef": {"name": "c1"}}]}],
            "volumes": [{"secret": {"secretName": "s3"}}, {"configMap": {"name": "c2", "optional": true}}]
        }}}});
        let names: Vec<String> = of(&deployment, Some(&["spec", "template"]))
            .into_iter()
            .map(|r| format!("{}/{}", r.kind, r.name))
            .collect();
        assert_eq!(
            names,
            [
                "PriorityClass/high",
                "ConfigMap/c1",
                "Secret/s1",
                "Secret/s3",
                "ServiceAccount/account"
            ]
        );
    }
}
