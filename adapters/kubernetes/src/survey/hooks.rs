//! What the Jobs of hooks need, which run while the objects of the package are not there yet, or not any more.

use super::Found;
use crate::client::Session;
use crate::errors::{Halt, call};
use crate::json;
use cairn_domain::hook::{LABEL, Moment};
use cairn_domain::ports::{Scope, SurveyItem, SurveyRequest};
use cairn_domain::waits::Obstacle;

/// Why the hooks of a VNF that is terminated cannot run: their namespace is gone, or on its way out. What was in it
/// is gone too, so that the terminate must go on without them.
pub(super) async fn left_out(
    session: &Session,
    scope: &Scope,
    request: &SurveyRequest,
) -> Result<Option<String>, Halt> {
    if !request.ends_hooks {
        return Ok(None);
    }
    let name = &scope.namespace;
    let live = super::namespace(session, name)
        .await
        .map_err(|e| e.reading(format!("Namespace/{name}")))?;
    Ok(match live {
        None => Some(format!("namespace {name} does not exist")),
        Some(live) if json::deleting(&live) => Some(format!("namespace {name} is being deleted")),
        Some(_) => None,
    })
}

/// When a hook runs for which nothing of the package counts as there.
pub(super) fn without_objects(item: &SurveyItem) -> Option<&'static str> {
    match item.hook.as_ref()?.moment {
        Moment::Start => Some("before the objects of the package are made"),
        Moment::RollbackEnd => Some("when the objects of the package are removed again"),
        // What stood in the way of the operation says how much is there; the Job's clock ends it.
        Moment::RollbackStart | Moment::End => None,
    }
}

/// A hook, for people.
pub(super) fn title(item: &SurveyItem) -> String {
    let name = item.manifest["metadata"]["labels"][LABEL].as_str();
    format!("hook {}", name.unwrap_or_default())
}

/// The hooks that run where there is no namespace yet, or none any more.
pub(super) fn before_their_namespace<'a>(
    name: &'a str,
    found: &'a [Found<'_>],
) -> impl Iterator<Item = Obstacle> + 'a {
    let here = found
        .iter()
        .filter(move |item| item.at.object.namespace.as_deref() == Some(name));
    here.filter_map(|found| {
        let (hook, when) = (title(found.item), without_objects(found.item)?);
        let namespace = found.at.object.namespace.as_deref().unwrap_or_default();
        let message = format!(
            "{hook} runs {when}, and namespace {namespace} is one of them; make it beforehand"
        );
        Some(call(found.at.object.to_string(), "Missing", message))
    })
}
