//! Server-side dry-run: what admission and validation would say.

use super::{Found, Namespaces, is_ours};
use crate::apply::{Run, creation, run, send, update};
use crate::await_ready::AT_ONCE;
use crate::client::Session;
use crate::errors::{CallError, Halt, Refusal};
use crate::json;
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;

/// What immutable fields sound like in the API server's refusals.
const IMMUTABLE: [&str; 8] = [
    "immutable",
    "may not change once set",
    "updates to statefulset spec for fields other than",
    "pod updates may not change fields other than",
    "cannot change roleRef",
    "is forbidden after creation",
    "may not be changed",
    "cannot be changed",
];

/// Dry-runs everything that can be; answers why an object would have to be made anew.
pub(super) async fn all(
    session: &Session,
    scope: &Scope,
    found: &[Found<'_>],
    namespaces: &Namespaces,
    in_the_way: &mut Vec<Obstacle>,
) -> Result<Vec<Option<String>>, Halt> {
    let runs: Vec<_> = found
        .iter()
        .map(|item| async {
            if can_be_run(scope, item, namespaces) {
                one(session, scope, item).await
            } else {
                Ok(None)
            }
        })
        .collect();
    let results: Vec<Result<Option<String>, Halt>> = futures::stream::iter(runs)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut recreate = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(why) => recreate.push(why),
            Err(halt) => {
                recreate.push(None);
                in_the_way.extend(halt.obstacles());
            }
        }
    }
    Ok(recreate)
}

/// Kinds and namespaces that the package makes are not there yet; what ended or goes is made anew anyway.
fn can_be_run(scope: &Scope, found: &Found<'_>, namespaces: &Namespaces) -> bool {
    found.served
        && !found.at.kind.facts().create_only
        && namespaces.exists(&found.at)
        && found.live.as_ref().is_none_or(|live| {
            !json::deleting(live)
                && run(live) == Run::Open
                && is_ours(scope, live, found.item.recorded_uid.as_ref())
        })
}

async fn one(session: &Session, scope: &Scope, found: &Found<'_>) -> Result<Option<String>, Halt> {
    let item = found.item;
    let body = match &found.live {
        None => creation(scope, &found.at, &item.manifest, item.replicas),
        Some(live) => update(scope, &found.at, &item.manifest, live),
    };
    // By force, as conflicts of fields are for the write itself, which may be allowed to override them.
    match send(session, scope, &found.at, &body, "&dryRun=All&force=true").await {
        Ok(_) => Ok(None),
        Err(CallError::Refused(refusal))
            if refusal.message.contains("does not support dry run") =>
        {
            Ok(None)
        }
        Err(CallError::Refused(refusal)) if found.live.is_some() && is_immutable(&refusal) => {
            Ok(Some(refusal.message))
        }
        Err(error) => Err(error.reading(found.at.object.to_string())),
    }
}

fn is_immutable(refusal: &Refusal) -> bool {
    matches!(refusal.code, 403 | 422) && IMMUTABLE.iter().any(|text| refusal.message.contains(text))
}
