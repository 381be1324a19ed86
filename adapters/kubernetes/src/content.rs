//! What lives in a namespace, for the question whether it may go.

use crate::client::Session;
use crate::errors::CallError;
use crate::json;
use crate::marks;
use cairn_domain::ports::Scope;
use serde_json::Value;

/// Groups whose objects are views or records and keep nobody's state.
const VIEWS: [&str; 3] = ["events.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io"];

/// Kinds that follow from others: they are made and removed with those.
const FOLLOWERS: [&str; 4] = ["Event", "Endpoints", "EndpointSlice", "PodMetrics"];

/// Things in a namespace that are not this instance's, as `Kind/name`, ten at most.
pub(crate) async fn foreign(
    session: &Session,
    scope: &Scope,
    namespace: &str,
) -> Result<Vec<String>, CallError> {
    let mut found = Vec::new();
    for api_version in session.api_versions().await? {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if VIEWS.contains(&group) {
            continue;
        }
        // A group whose server does not answer cannot be asked; the namespace's own conditions will tell.
        let Some(kinds) = unless_out_of_order(session.served(&api_version).await)? else {
            continue;
        };
        for kind in kinds
            .iter()
            .filter(|kind| kind.namespaced && kind.can("list"))
        {
            if FOLLOWERS.contains(&kind.name.as_str()) {
                continue;
            }
            let listed = session.list(&kind.collection(Some(namespace)), "").await;
            let Some(listed) = unless_out_of_order(listed)? else {
                continue;
            };
            for object in listed
                .items
                .iter()
                .filter(|object| is_foreign(scope, &kind.name, object))
            {
                found.push(format!("{}/{}", kind.name, json::name(object)));
                if found.len() == 10 {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}

fn unless_out_of_order<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(CallError::Refused(refusal)) if matches!(refusal.code, 404 | 405 | 503) => Ok(None),
        Err(other) => Err(other),
    }
}

fn is_foreign(scope: &Scope, kind: &str, object: &Value) -> bool {
    let name = json::name(object);
    let everywhere = matches!(
        (kind, name),
        ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default")
    ) || kind == "Secret"
        && json::text(object, "/type") == "kubernetes.io/service-account-token";
    let follows = !json::entries(object, "/metadata/ownerReferences").is_empty();
    !everywhere && !follows && !marks::labelled(scope, object)
}
