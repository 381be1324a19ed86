//! Waiting for something to happen to the objects of an action: short watches, with the caller's periodic
//! re-read as the safety net.
//!
//! A watch begins where the look before it was, so that nothing between look and watch is missed; where that look
//! listed nothing, it begins with the present. Events, an expired version (410), or a watch that ends all mean "look
//! again": at once where an event shows what is waited for, else after a moment in which others may come.

use crate::client::{Call, Session};
use crate::discovery::{Kind, encode};
use crate::errors::CallError;
use crate::json;
use crate::pods::selector;
use crate::readiness::{Readiness, is_awaited, judge};
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
use tokio::sync::mpsc;

/// Kinds that are watched at once, beside pods.
const KINDS: usize = 8;

/// How long is waited where nothing can be watched.
const BLIND: Duration = Duration::from_secs(2);

/// How long further events are let come before the next look, unless one of them is decisive.
const SWARM: Duration = Duration::from_millis(100);

/// How long is waited after a watch that ended before its time: one that always does must not spin.
const AGAIN: Duration = Duration::from_millis(250);

/// Events that wait to be heard.
const QUEUE: usize = 16;

/// Longest line of a watch, in bytes; an event is never larger than an object.
const LINE: usize = 16 * 1024 * 1024;

/// The objects that an action is about, as far as they can be watched.
fn objects(action: &Action) -> Vec<ObjectRef> {
    match action {
        Action::Apply { object, .. }
        | Action::Create { object, .. }
        | Action::Delete { object, .. }
        | Action::SetReplicas { object, .. }
        | Action::RunHook { object, .. } => vec![object.clone()],
        Action::RemoveHookJobs { namespace } => vec![ObjectRef {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            namespace: Some(namespace.clone()),
            name: String::new(),
        }],
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
        Action::RegisterVim { .. } | Action::UnregisterVim { .. } | Action::Unknown(_) => {
            Vec::new()
        }
    }
}

/// Resolves when something about the action's objects may have changed, at the latest after `at_most`.
pub(crate) async fn changed(session: &Session, scope: &Scope, action: &Action, at_most: Duration) {
    let at_most = at_most.min(session.cluster.settings.longest_watch);
    let watching = async {
        match paths(session, scope, action).await {
            Ok(paths) if !paths.is_empty() => first_event(session, action, paths, at_most).await,
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
    /// Names of the objects of the action, of which one that comes to what is waited for is worth a look at once.
    names: BTreeSet<String>,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Something happened.
    Something,
    /// What is waited for may have come.
    Decisive,
}

/// A kind in a namespace, with the names of the objects of the action.
type Place = (Arc<Kind>, Option<String>, BTreeSet<String>);

/// What is watched for an action: the kinds of its objects, as far as they may change, and what explains them.
async fn places(
    session: &Session,
    scope: &Scope,
    action: &Action,
) -> Result<Vec<Place>, CallError> {
    let awaits_ready = matches!(action, Action::AwaitReady { .. });
    let mut places: Vec<Place> = Vec::new();
    let mut beside: BTreeSet<(&str, &str, String)> = BTreeSet::new();
    for object in objects(action) {
        let Some(at) = session.locate(scope, &object).await? else {
            continue;
        };
        if let Some(namespace) = &at.object.namespace {
            beside.insert(("v1", "Pod", namespace.clone()));
            if awaits_ready && at.kind.is("", "Service") {
                beside.insert(("discovery.k8s.io/v1", "EndpointSlice", namespace.clone()));
            }
        }
        let changes = !awaits_ready || is_awaited(at.kind.group(), &at.kind.name);
        let known = places
            .iter_mut()
            .find(|(kind, namespace, _)| *kind == at.kind && *namespace == at.object.namespace);
        if let Some((_, _, names)) = known {
            names.insert(at.object.name);
        } else if changes && at.kind.can("watch") && places.len() < KINDS {
            let names = BTreeSet::from([at.object.name]);
            places.push((at.kind, at.object.namespace, names));
        }
    }
    for (api_version, kind, namespace) in beside {
        let Some(kind) = session.kind(api_version, kind).await? else {
            continue;
        };
        let namespace = Some(namespace);
        if !places
            .iter()
            .any(|(known, ns, _)| *known == kind && *ns == namespace)
        {
            places.push((kind, namespace, BTreeSet::new()));
        }
    }
    Ok(places)
}

async fn paths(
    session: &Session,
    scope: &Scope,
    action: &Action,
) -> Result<Vec<Watched>, CallError> {
    let places = places(session, scope, action).await?;
    let seen = session.take_seen();
    let mut watched = Vec::with_capacity(places.len());
    for (kind, namespace, names) in places {
        let path = kind.collection(namespace.as_deref());
        // Budgets and what they count are whoever's; everything else of ours carries our label.
        let query = if kind.name == "PodDisruptionBudget" {
            String::new()
        } else {
            selector(scope)
        };
        let from = match namespace.as_ref().and_then(|name| seen.get(name)) {
            Some(seen) => seen.clone(),
            None => newest(session, &path, &query).await?,
        };
        watched.push(Watched {
            path,
            query,
            from,
            names,
        });
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

async fn first_event(session: &Session, action: &Action, paths: Vec<Watched>, at_most: Duration) {
    let (tell, mut told) = mpsc::channel(QUEUE);
    let mut watches: FuturesUnordered<_> = paths
        .into_iter()
        .map(|watched| follow(session, action, watched, at_most, tell.clone()).boxed())
        .collect();
    drop(tell);
    let heard = async {
        match told.recv().await {
            Some(News::Decisive) => {}
            // Events come in swarms; one look serves them all, unless one says that it is time.
            Some(News::Something) => {
                let decisive = async { while told.recv().await == Some(News::Something) {} };
                if tokio::time::timeout(SWARM, decisive).await.is_err() {
                    tracing::trace!("nothing decisive followed");
                }
            }
            // All watches have ended.
            None => std::future::pending().await,
        }
    };
    let ended = async {
        while let Some(end) = watches.next().await {
            match end {
                // It has missed something: the caller looks again.
                Ok(()) => return tokio::time::sleep(AGAIN).await,
                Err(error) => tracing::debug!(%error, "a watch was not possible"),
            }
        }
        tokio::time::sleep(BLIND).await;
    };
    tokio::select! {
        () = heard => {}
        () = ended => {}
    }
}

/// Tells of each event of a watch, until its end: its time is over, its version has expired (410), it was cut, or it
/// says what is no event.
async fn follow(
    session: &Session,
    action: &Action,
    watched: Watched,
    at_most: Duration,
    tell: mpsc::Sender<News>,
) -> Result<(), CallError> {
    let seconds = at_most.as_secs().max(1);
    let Watched {
        path,
        query,
        from,
        names,
    } = watched;
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
            let Some(news) = news(action, &names, &event) else {
                return Ok(());
            };
            if event["type"] != "BOOKMARK" && tell.send(news).await.is_err() {
                return Ok(());
            }
        }
        if line.len() > LINE {
            return Ok(());
        }
    }
    Ok(())
}

/// What an event says; nothing if the watch is of no more use.
fn news(action: &Action, names: &BTreeSet<String>, event: &Value) -> Option<News> {
    let object = &event["object"];
    let is_ours = names.contains(json::name(object));
    let awaits_ready = matches!(action, Action::AwaitReady { .. });
    let is_decisive = match json::text(event, "/type") {
        "ADDED" | "MODIFIED" if json::text(object, "/kind") == "EndpointSlice" => true,
        "ADDED" | "MODIFIED" => awaits_ready && is_ours && judge(object) == Readiness::Ready,
        "DELETED" => !awaits_ready && is_ours,
        "BOOKMARK" => false,
        _ => return None,
    };
    Some(if is_decisive {
        News::Decisive
    } else {
        News::Something
    })
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
