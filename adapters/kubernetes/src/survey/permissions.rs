//! Whether the credentials may do what the plan will do: by the rules that hold for them in its namespaces
//! (`SelfSubjectRulesReview`, one question), and where these do not say yes, one by one (`SelfSubjectAccessReview`).

use crate::await_ready::AT_ONCE;
use crate::client::{Call, Session, media};
use crate::discovery::Kind;
use crate::errors::{CallError, call};
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;
use http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What is done with an object that is applied, awaited and removed.
const VERBS: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];

/// Which objects of a kind something must be allowed with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// Any.
    All,
    /// The one of this name.
    Named(String),
    /// One whose name comes later: it is enough that some may be.
    NotKnownYet,
}

/// One thing that must be allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Need {
    group: String,
    resource: String,
    subresource: &'static str,
    namespace: Option<String>,
    of: Of,
    verb: &'static str,
    /// Who needs it, as `Kind/name`.
    object: String,
}

/// What must be allowed, each thing once.
#[derive(Debug, Default)]
pub(crate) struct Needs(Vec<Need>, BTreeSet<Key>);

/// What tells needs apart, whoever has them.
type Key = (
    String,
    String,
    &'static str,
    Option<String>,
    Of,
    &'static str,
);

impl Needs {
    fn add(
        &mut self,
        kind: &Kind,
        subresource: &'static str,
        namespace: Option<&str>,
        of: Of,
        verb: &'static str,
        object: &str,
    ) {
        let namespace = namespace.filter(|_| kind.namespaced).map(str::to_owned);
        let key = (
            kind.group().to_owned(),
            kind.plural.clone(),
            subresource,
            namespace.clone(),
            of.clone(),
            verb,
        );
        if self.1.insert(key) {
            self.0.push(Need {
                group: kind.group().to_owned(),
                resource: kind.plural.clone(),
                subresource,
                namespace,
                of,
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
                self.add(kind, "", namespace, Of::All, verb, object);
            }
        }
    }

    /// Looking at things.
    pub(crate) fn watching(&mut self, kind: &Kind, namespace: Option<&str>, object: &str) {
        for verb in ["get", "list", "watch"] {
            self.add(kind, "", namespace, Of::All, verb, object);
        }
    }

    /// Reading objects that somebody else makes.
    pub(crate) fn reading(&mut self, kind: &Kind, namespace: Option<&str>, of: Of, object: &str) {
        self.add(kind, "", namespace, of, "get", object);
    }

    /// Finding, removing and seeing off whatever of a kind is there.
    pub(crate) fn removing(&mut self, kind: &Kind, namespace: Option<&str>, object: &str) {
        for verb in ["list", "delete", "watch"] {
            self.add(kind, "", namespace, Of::All, verb, object);
        }
    }

    /// Evicting pods.
    pub(crate) fn evicting(&mut self, pods: &Kind, namespace: Option<&str>, object: &str) {
        self.add(pods, "eviction", namespace, Of::All, "create", object);
    }

    /// Setting replicas.
    pub(crate) fn scaling(&mut self, kind: &Kind, namespace: Option<&str>, object: &str) {
        for verb in ["get", "patch"] {
            self.add(kind, "scale", namespace, Of::All, verb, object);
        }
    }
}

/// Asks the cluster; what is not allowed is an obstacle.
pub(crate) async fn check(session: &Session, needs: Needs) -> Result<Vec<Obstacle>, CallError> {
    let rules = Rules::read(session, &needs).await?;
    let asked: Vec<_> = needs
        .0
        .iter()
        .map(|need| async {
            if rules.grant(need) {
                Ok(true)
            } else {
                ask(session, need).await
            }
        })
        .collect();
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

/// What the credentials may do in some namespaces, all at once. What it does not say may be allowed all the same.
struct Rules(BTreeMap<String, Told>);

/// The rules of one namespace.
struct Told {
    rules: Vec<Value>,
    /// Nobody else has a say.
    is_all: bool,
}

impl Rules {
    async fn read(session: &Session, needs: &Needs) -> Result<Self, CallError> {
        let api_version = "authorization.k8s.io/v1";
        let served = session.kind(api_version, "SelfSubjectRulesReview").await?;
        let Some(kind) = served else {
            return Ok(Self(BTreeMap::new()));
        };
        let namespaces: BTreeSet<&String> = needs
            .0
            .iter()
            .filter_map(|need| need.namespace.as_ref())
            .collect();
        let mut rules = BTreeMap::new();
        for namespace in namespaces {
            let review = json!({
                "apiVersion": api_version,
                "kind": "SelfSubjectRulesReview",
                "spec": {"namespace": namespace},
            });
            let call = Call::with(Method::POST, kind.collection(None), media::JSON, review);
            let status = match session.send(&call).await {
                Ok(answer) => answer.body["status"].clone(),
                Err(CallError::Refused(_)) => Value::Null,
                Err(other) => return Err(other),
            };
            // Incomplete where an authorizer cannot tell its rules, and then one of them may also deny.
            let told = Told {
                rules: crate::json::entries(&status, "/resourceRules").to_vec(),
                is_all: status["incomplete"] == false,
            };
            rules.insert(namespace.clone(), told);
        }
        Ok(Self(rules))
    }

    /// Whether a rule grants it. Of what is cluster-scoped rules do not tell where they hold.
    fn grant(&self, need: &Need) -> bool {
        let told = need.namespace.as_ref().and_then(|name| self.0.get(name));
        told.is_some_and(|told| {
            // Without a name the cluster can only be asked for all of a kind, which is too much.
            let counts = told.is_all || need.of == Of::NotKnownYet;
            counts && told.rules.iter().any(|rule| rule_grants(rule, need))
        })
    }
}

fn rule_grants(rule: &Value, need: &Need) -> bool {
    let has = |member: &str, wanted: &str| {
        crate::json::entries(rule, member)
            .iter()
            .any(|entry| entry == "*" || entry == wanted)
    };
    let resource = if need.subresource.is_empty() {
        has("/resources", &need.resource)
    } else {
        has(
            "/resources",
            &format!("{}/{}", need.resource, need.subresource),
        ) || has("/resources", &format!("*/{}", need.subresource))
    };
    let names = crate::json::entries(rule, "/resourceNames");
    let is_named = match &need.of {
        Of::All => false,
        Of::Named(name) => names.iter().any(|entry| entry == name.as_str()),
        Of::NotKnownYet => true,
    };
    resource
        && has("/verbs", need.verb)
        && has("/apiGroups", &need.group)
        && (names.is_empty() || is_named)
}

async fn ask(session: &Session, need: &Need) -> Result<bool, CallError> {
    let mut attributes = json!({"verb": need.verb, "group": need.group, "resource": need.resource});
    if let Some(namespace) = &need.namespace {
        attributes["namespace"] = json!(namespace);
    }
    if let Of::Named(name) = &need.of {
        attributes["name"] = json!(name);
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
    let resource = match &need.of {
        Of::Named(name) => format!("{resource} named {name}"),
        Of::All | Of::NotKnownYet => resource,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn need(resource: &str, subresource: &'static str, verb: &'static str) -> Need {
        Need {
            group: "apps".into(),
            resource: resource.into(),
            subresource,
            namespace: Some("n".into()),
            of: Of::All,
            verb,
            object: "Deployment/x".into(),
        }
    }

    #[test]
    fn a_rule_for_one_name_grants_that_name_or_some() {
        let one = json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"],
            "resourceNames": ["x"]});
        for (of, granted) in [
            (Of::All, false),
            (Of::Named("x".into()), true),
            (Of::Named("y".into()), false),
            (Of::NotKnownYet, true),
        ] {
            let need = Need {
                of,
                ..need("deployments", "", "get")
            };
            assert_eq!(rule_grants(&one, &need), granted, "{need:?}");
        }
    }

    #[test]
    fn a_rule_grants_what_it_names_and_nothing_else() {
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let some = json!({"verbs": ["get", "patch"], "apiGroups": ["apps"],
            "resources": ["deployments", "*/scale"]});
        let one =
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["x"]});
        for (rule, need, granted) in [
            (&all, need("deployments", "", "delete"), true),
            (&all, need("deployments", "scale", "patch"), true),
            (&some, need("deployments", "", "get"), true),
            (&some, need("deployments", "", "delete"), false),
            (&some, need("statefulsets", "", "get"), false),
            (&some, need("statefulsets", "scale", "patch"), true),
            (&some, need("deployments", "status", "patch"), false),
            (&one, need("deployments", "", "get"), false),
        ] {
            assert_eq!(rule_grants(rule, &need), granted, "{need:?}");
        }
    }
}
