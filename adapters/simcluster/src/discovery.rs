//! What the server says about itself: versions, groups and kinds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds::{Kind, Kinds};

pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "35",
        "gitVersion": crate::VERSION,
        "gitCommit": "simulated",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

pub(crate) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
    })
}

pub(crate) fn groups(kinds: &Kinds) -> Value {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.all().iter().filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(&kind.group).or_default();
        if !versions.contains(&kind.version.as_str()) {
            versions.push(&kind.version);
        }
    }
    let groups: Vec<Value> = groups
        .into_iter()
        .map(|(name, v)| group_json(name, &v))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(crate) fn group(kinds: &Kinds, name: &str) -> Option<Value> {
    let all = groups(kinds);
    let mut found = all["groups"]
        .as_array()?
        .iter()
        .find(|g| g["name"] == name)?
        .clone();
    found["kind"] = json!("APIGroup");
    found["apiVersion"] = json!("v1");
    Some(found)
}

fn group_json(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
}

/// The kinds of one version of a group.
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let of: Vec<&Kind> = kinds
        .all()
        .iter()
        .map(AsRef::as_ref)
        .filter(|kind| kind.group == group && kind.version == version)
        .collect();
    let first = of.first()?;
    let resources: Vec<Value> = of.iter().flat_map(|kind| resource(kind)).collect();
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version(),
        "resources": resources,
    }))
}

/// The kind and its subresources.
fn resource(kind: &Kind) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs(),
    });
    if !kind.short_names.is_empty() {
        main["shortNames"] = json!(kind.short_names);
    }
    if kind.in_all {
        main["categories"] = json!(["all"]);
    }
    let sub = |name: &str, what: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", kind.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": what,
            "verbs": verbs,
        })
    };
    let mut resources = vec![main];
    if kind.is("pods") {
        resources.push(sub("binding", "Binding", &["create"]));
        let mut eviction = sub("eviction", "Eviction", &["create"]);
        eviction["group"] = json!("policy");
        eviction["version"] = json!("v1");
        resources.push(eviction);
        resources.push(sub("log", "Pod", &["get"]));
    }
    if kind.is("namespaces") {
        resources.push(sub("finalize", "Namespace", &["update"]));
    }
    if kind.scale.is_some() {
        let mut scale = sub("scale", "Scale", &["get", "patch", "update"]);
        scale["group"] = json!("autoscaling");
        scale["version"] = json!("v1");
        resources.push(scale);
    }
    if kind.has_status {
        resources.push(sub("status", &kind.kind, &["get", "patch", "update"]));
    }
    resources
}

/// The index of the published descriptions, one per version of a group.
pub(crate) fn openapi_index(kinds: &Kinds) -> Value {
    let mut paths = serde_json::Map::new();
    for kind in kinds.all() {
        let path = if kind.group.is_empty() {
            format!("api/{}", kind.version)
        } else {
            format!("apis/{}", kind.api_version())
        };
        let url = format!("/openapi/v3/{path}?hash=0");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// As much of a description as kubectl needs to learn that the server validates fields itself.
pub(crate) fn openapi(kinds: &Kinds, group: &str, version: &str) -> Value {
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .collect();
    let mut paths = serde_json::Map::new();
    for kind in kinds
        .all()
        .iter()
        .filter(|k| k.group == group && k.version == version)
    {
        let base = if group.is_empty() {
            "/api/v1".to_owned()
        } else {
            format!("/apis/{group}/{version}")
        };
        let namespaces = if kind.namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let operation = json!({
            "parameters": parameters,
            "responses": {},
            "x-kubernetes-group-version-kind":
                {"group": kind.group, "version": kind.version, "kind": kind.kind},
        });
        paths.insert(
            format!("{base}{namespaces}/{}/{{name}}", kind.plural),
            json!({"patch": operation}),
        );
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": crate::VERSION},
        "paths": paths,
        "components": {"schemas": {}},
    })
}
