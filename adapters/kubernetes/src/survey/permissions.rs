//! Whether the credentials may do what the plan will do (`SelfSubjectAccessReview`).

use crate::await_ready::AT_ONCE;
use crate::client::{Call, Session, media};
use crate::discovery::Kind;
use crate::errors::{CallError, call};
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is done with an object that is applied, awaited and removed.
const VERBS: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];

/// One thing that must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    group: String,
    resource: String,
    subresource: &'static str,
    namespace: Option<String>,
    verb: &'static str,
    /// Who needs it, as `Kind/name`.
    object: String,
}

/// What must be allowed, each thing once.
#[derive(Debug, Default)]
pub(crate) struct Needs(
    Vec<Need>,
    BTreeSet<(String, String, &'static str, Option<String>, &'static str)>,
);

impl Needs {
    fn add(
        &mut self,
        kind: &Kind,
        subresource: &'static str,
        namespace: Option<&str>,
        verb: &'static str,
        object: &str,
    ) {
        let namespace = namespace.filter(|_| kind.namespaced).map(str::to_owned);
        let key = (
            kind.group().to_owned(),
            kind.plural.clone(),
            subresource,
            namespace.clone(),
            verb,
        );
        if self.1.insert(key) {
            self.0.push(Need {
                group: kind.group().to_owned(),
                resource: kind.plural.clone(),
                subresource,
                namespace,
                verb,
                object: object.to_owned(),
            });
        }
    }

    /// All that managing an object takes, as far as its kind can it.
    pub(crate) fn managing(&mut self, kind: &Kind, namespace: Option<&str>, object: &str) {
        let is_kept = kind.is("apiextensions.k8s.io", "CustomResourceDefinition");
        for verb in VERBS.into_iter().filter(|verb| kind.can(verb)) {
            // Definitions are never deleted, so nobody need allow it.
            if !(is_kept && verb == "delete") {
                self.add(kind, "", namespace, verb, object);
            }
        }
    }

    /// Looking at things.
    pub(crate) fn watching(&mut self, kind: &Kind, namespace: Option<&str>, object: &str) {
        for verb in ["get", "list", "watch"] {
            self.add(kind, "", namespace, verb, object);
        }
    }

    /// Evicting pods.
    pub(crate) fn evicting(&mut self, pods: &Kind, namespace: Option<&str>, object: &str) {
        self.add(pods, "eviction", namespace, "create", object);
    }

    /// Setting replicas.
    pub(crate) fn scaling(&mut self, kind: &Kind, namespace: Option<&str>, object: &str) {
        for verb in ["get", "patch"] {
            self.add(kind, "scale", namespace, verb, object);
        }
    }
}

/// Asks the cluster; what is not allowed is an obstacle.
pub(crate) async fn check(session: &Session, needs: Needs) -> Result<Vec<Obstacle>, CallError> {
    let asked: Vec<_> = needs.0.iter().map(|need| ask(session, need)).collect();
    let answers: Vec<Result<bool, CallError>> = futures::stream::iter(asked)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut refused = Vec::new();
    for (need, allowed) in needs.0.iter().zip(answers) {
        if !allowed? {
            refused.push(call(&need.object, "Forbidden", words(need)));
        }
    }
    Ok(refused)
}

async fn ask(session: &Session, need: &Need) -> Result<bool, CallError> {
    let mut attributes = json!({"verb": need.verb, "group": need.group, "resource": need.resource});
    if let Some(namespace) = &need.namespace {
        attributes["namespace"] = json!(namespace);
    }
    if !need.subresource.is_empty() {
        attributes["subresource"] = json!(need.subresource);
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = session
        .send(&Call::with(Method::POST, path, media::JSON, review))
        .await?;
    Ok(answer.body.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

fn words(need: &Need) -> String {
    let resource = match need.subresource {
        "" => need.resource.clone(),
        subresource => format!("{}/{subresource}", need.resource),
    };
    let group = if need.group.is_empty() {
        String::new()
    } else {
        format!(" of {}", need.group)
    };
    let place = need
        .namespace
        .as_ref()
        .map_or("in the cluster".to_owned(), |ns| {
            format!("in namespace {ns}")
        });
    format!(
        "the credentials of this VIM have no permission to {} {resource}{group} {place}; grant it with a Role",
        need.verb
    )
}
