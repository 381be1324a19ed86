//! Server-side dry-run: what admission and validation would say.

use super::{Found, Namespaces, is_ours};
use crate::apply::{creation, send, update};
use crate::await_ready::AT_ONCE;
use crate::client::Session;
use crate::errors::{CallError, Halt, Refusal};
use crate::json;
use crate::marks;
use crate::shape;
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;
use serde_json::Value;

/// What immutable fields sound like in the API server's refusals.
const IMMUTABLE: [&str; 10] = [
    "immutable",
    "may not change once set",
    "updates to statefulset spec for fields other than",
    "pod updates may not change fields other than",
    "cannot change roleRef",
    "is forbidden after creation",
    "updates to provisioner are forbidden",
    "updates to parameters are forbidden",
    "may not be changed",
    "cannot be changed",
];

/// What applying an item would do.
#[derive(Clone, Debug, Default)]
pub(super) struct DryRun {
    /// It must be made anew: why.
    pub needs_recreate: Option<String>,
    /// It would be as it is.
    pub unchanged: bool,
}

/// Dry-runs everything that can be; answers what applying each would do.
pub(super) async fn all(
    session: &Session,
    scope: &Scope,
    found: &[Found<'_>],
    namespaces: &Namespaces,
    in_the_way: &mut Vec<Obstacle>,
) -> Result<Vec<DryRun>, Halt> {
    let runs: Vec<_> = found
        .iter()
        .map(|item| async {
            if can_be_run(scope, item, namespaces) {
                one(session, scope, item).await
            } else {
                Ok(DryRun::default())
            }
        })
        .collect();
    let results: Vec<Result<DryRun, Halt>> = futures::stream::iter(runs)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut runs = Vec::with_capacity(results.len());
    for result in results {
        match result {
            Ok(run) => runs.push(run),
            Err(halt) => {
                runs.push(DryRun::default());
                in_the_way.extend(halt.obstacles());
            }
        }
    }
    Ok(runs)
}

/// Kinds and namespaces that the package makes are not there yet; what goes is made anew anyway.
fn can_be_run(scope: &Scope, found: &Found<'_>, namespaces: &Namespaces) -> bool {
    found.served
        && !found.at.kind.facts().create_only
        && namespaces.exists(&found.at)
        && found.live.as_ref().is_none_or(|live| {
            !json::deleting(live) && is_ours(scope, live, found.item.recorded_uid.as_ref())
        })
}

async fn one(session: &Session, scope: &Scope, found: &Found<'_>) -> Result<DryRun, Halt> {
    let item = found.item;
    let body = match &found.live {
        None => creation(scope, &found.at, &item.manifest, item.replicas),
        Some(live) => update(scope, &found.at, &item.manifest, live),
    };
    // By force, as conflicts of fields are for the write itself, which may be allowed to override them.
    match send(session, scope, &found.at, &body, "&dryRun=All&force=true").await {
        Ok(answer) => {
            let live = found.live.as_ref();
            Ok(DryRun {
                needs_recreate: None,
                unchanged: live.is_some_and(|live| same(scope, live, &answer.body)),
            })
        }
        Err(CallError::Refused(refusal))
            if refusal.message.contains("does not support dry run") =>
        {
            Ok(DryRun::default())
        }
        Err(CallError::Refused(refusal)) if found.live.is_some() && is_immutable(&refusal) => {
            Ok(DryRun {
                needs_recreate: Some(refusal.message),
                unchanged: false,
            })
        }
        Err(error) => Err(error.reading(found.at.object.to_string())),
    }
}

/// Whether a write would leave an object as it is, but for our marks and what the server counts.
fn same(scope: &Scope, live: &Value, written: &Value) -> bool {
    let manager = marks::manager(scope);
    shape::recorded(live, &manager, Some(live)) == shape::recorded(written, &manager, Some(written))
}

fn is_immutable(refusal: &Refusal) -> bool {
    matches!(refusal.code, 403 | 422) && IMMUTABLE.iter().any(|text| refusal.message.contains(text))
}
