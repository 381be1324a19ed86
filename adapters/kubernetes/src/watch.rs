//! Waiting for something to happen to the objects of an action: short watches, with the caller's periodic
//! re-read as the safety net.
//!
//! A watch begins where the last look at the namespace was, so that nothing between look and watch is missed.
//! The first event, an expired version (410), or a watch that ends all mean "look again".

use crate::client::{Call, Session};
use crate::discovery::{Kind, encode};
use crate::errors::CallError;
use crate::json;
use crate::pods::selector;
use cairn_domain::lcm_op_occ::plan::Action;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Kinds that are watched at once, beside pods.
const KINDS: usize = 8;

/// How long is waited where nothing can be watched.
const BLIND: Duration = Duration::from_secs(2);

/// How long further events are let come before the next look.
const SWARM: Duration = Duration::from_millis(50);

/// Longest line of a watch, in bytes; an event is never larger than an object.
const LINE: usize = 16 * 1024 * 1024;

/// The objects that an action is about, as far as they can be watched.
fn objects(action: &Action) -> Vec<ObjectRef> {
    match action {
        Action::Apply { object, .. }
        | Action::Create { object, .. }
        | Action::Delete { object, .. }
        | Action::SetReplicas { object, .. } => vec![object.clone()],
        Action::Evict { vnfc } => vec![ObjectRef {
            api_version: "policy/v1".into(),
            kind: "PodDisruptionBudget".into(),
            namespace: Some(vnfc.namespace.clone()),
            name: String::new(),
        }],
        Action::AwaitReady { objects, .. } => objects.clone(),
        Action::AwaitGone { objects, .. } => {
            objects.iter().map(|(object, _)| object.clone()).collect()
        }
        Action::TakeInventory { workloads } => {
            workloads.iter().map(|(_, object)| object.clone()).collect()
        }
        Action::Verify {
            equal,
            absent,
            replicas,
        } => equal
            .iter()
            .map(|(object, _)| object)
            .chain(absent)
            .chain(replicas.iter().map(|(object, _)| object))
            .cloned()
            .collect(),
        Action::Unknown(_) => Vec::new(),
    }
}

/// Resolves when something about the action's objects may have changed, at the latest after `at_most`.
pub(crate) async fn changed(session: &Session, scope: &Scope, action: &Action, at_most: Duration) {
    let at_most = at_most.min(session.cluster.settings.longest_watch);
    let watching = async {
        match paths(session, scope, action).await {
            Ok(paths) if !paths.is_empty() => first_event(session, paths, at_most).await,
            Ok(_) => tokio::time::sleep(BLIND).await,
            Err(error) => {
                tracing::debug!(%error, "nothing can be watched; the next look comes by time");
                tokio::time::sleep(BLIND).await;
            }
        }
    };
    // Running out of time is the other way in which a wait for change ends.
    if tokio::time::timeout(at_most, watching).await.is_err() {
        tracing::trace!("nothing changed");
    }
}

/// One thing to watch: its path with selector, and from where.
struct Watched {
    path: String,
    query: String,
    from: String,
}

async fn paths(
    session: &Session,
    scope: &Scope,
    action: &Action,
) -> Result<Vec<Watched>, CallError> {
    let mut kinds: Vec<(Arc<Kind>, Option<String>)> = Vec::new();
    let mut namespaces = BTreeSet::new();
    for object in objects(action) {
        let Some(at) = session.locate(scope, &object).await? else {
            continue;
        };
        namespaces.extend(at.object.namespace.clone());
        let entry = (at.kind, at.object.namespace);
        if entry.0.can("watch") && kinds.len() < KINDS && !kinds.contains(&entry) {
            kinds.push(entry);
        }
    }
    let pods = session.builtin("v1", "Pod").await?;
    for namespace in &namespaces {
        let entry = (Arc::clone(&pods), Some(namespace.clone()));
        if !kinds.contains(&entry) {
            kinds.push(entry);
        }
    }
    let mut watched = Vec::with_capacity(kinds.len());
    for (kind, namespace) in kinds {
        let path = kind.collection(namespace.as_deref());
        // Budgets and what they count are whoever's; everything else of ours carries our label.
        let query = if kind.name == "PodDisruptionBudget" {
            String::new()
        } else {
            selector(scope)
        };
        let seen = namespace
            .as_deref()
            .and_then(|namespace| session.seen(namespace));
        let from = match seen {
            Some(seen) => seen,
            None => newest(session, &path, &query).await?,
        };
        watched.push(Watched { path, query, from });
    }
    Ok(watched)
}

async fn newest(session: &Session, path: &str, query: &str) -> Result<String, CallError> {
    let page = session
        .send(&Call::get(format!("{path}?limit=1{query}")))
        .await?
        .body;
    Ok(json::text(&page, "/metadata/resourceVersion").to_owned())
}

async fn first_event(session: &Session, paths: Vec<Watched>, at_most: Duration) {
    let mut watches: FuturesUnordered<_> = paths
        .into_iter()
        .map(|watched| event(session, watched, at_most).boxed())
        .collect();
    // Whichever ends first: an event, a cut connection or a refusal; the caller looks again in each case.
    match watches.next().await {
        Some(Err(error)) => {
            tracing::debug!(%error, "a watch was not possible");
            tokio::time::sleep(BLIND).await;
        }
        // Events come in swarms; one look serves them all.
        Some(Ok(())) => tokio::time::sleep(SWARM).await,
        None => {}
    }
}

/// Waits for the first event of a watch, or its end.
async fn event(session: &Session, watched: Watched, at_most: Duration) -> Result<(), CallError> {
    let seconds = at_most.as_secs().max(1);
    let Watched { path, query, from } = watched;
    let path = format!(
        "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={}{query}",
        encode(&from)
    );
    let mut body = session.open(&Call::get(path)).await?;
    let mut line = Vec::new();
    while let Some(data) = next(&mut body).await? {
        for byte in data {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }
            let event: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
            line.clear();
            if event["type"] != "BOOKMARK" {
                return Ok(());
            }
        }
        if line.len() > LINE {
            return Ok(());
        }
    }
    Ok(())
}

async fn next(body: &mut Body) -> Result<Option<bytes::Bytes>, CallError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(CallError::Lost(format!("the watch broke off: {error}")));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
