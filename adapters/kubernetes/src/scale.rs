//! Replicas through the scale subresource, which every scalable kind has.

use crate::apply::{locate, not_ours};
use crate::client::{Call, Session, media};
use crate::errors::{CallError, Halt, Try};
use crate::gone;
use crate::json;
use crate::marks;
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use http::Method;
use serde_json::json;

/// Conflicts that are met within one try of a step.
const TRIES: u32 = 4;

/// Sets the number of replicas, guarded by the resource version that was read.
pub(crate) async fn set(
    session: &Session,
    scope: &Scope,
    object: &ObjectRef,
    to: u32,
) -> Try<Outcome> {
    let at = locate(session, scope, object).await?;
    let name = at.object.to_string();
    if !at.kind.scalable {
        let message = format!(
            "{} of {} has no scale subresource",
            object.kind, object.api_version
        );
        return Err(Halt::call(name, "Invalid", message));
    }
    let live = session
        .read(&at)
        .await
        .map_err(|e| e.reading(&name))?
        .ok_or_else(|| missing(&name))?;
    if !marks::labelled(scope, &live) {
        return Err(not_ours(&at, &live));
    }
    if json::deleting(&live) {
        let obstacle = gone::being_deleted(name, &live, "it is being deleted");
        return Err(Halt::InTheWay(vec![obstacle]));
    }
    let path = format!("{}/scale", at.path());
    let from = match write(session, scope, &path, to).await {
        Ok(from) => from,
        Err(error) => return Err(error.writing(name)),
    };
    // Only what is read afterwards counts: a number can be taken and not kept.
    let after = session
        .send(&Call::get(path))
        .await
        .map_err(|e| e.reading(&name))?
        .body;
    match json::count(&after, "/spec/replicas") {
        after if after == to => Ok(Outcome::ReplicasSet { from, to: after }),
        after => Err(Halt::InTheWay(vec![Obstacle {
            object: name,
            source: object.kind.clone(),
            reason: "ReplicasDiffer".into(),
            message: format!("{to} replicas were asked for and the cluster keeps {after}"),
            progress: 0,
        }])),
    }
}

/// Writes the number where it is another; answers the one read before. Each change of the object's status
/// is a conflict too, so a few are met by reading anew.
async fn write(session: &Session, scope: &Scope, path: &str, to: u32) -> Result<u32, CallError> {
    let manager = crate::discovery::encode(&marks::manager(scope));
    let mut tries = 0;
    loop {
        tries += 1;
        let scale = session.send(&Call::get(path)).await?.body;
        let from = json::count(&scale, "/spec/replicas");
        if from == to {
            return Ok(from);
        }
        let change = json!({
            "metadata": {"resourceVersion": json::text(&scale, "/metadata/resourceVersion")},
            "spec": {"replicas": to},
        });
        let query = format!("{path}?fieldManager={manager}");
        let call = Call::with(Method::PATCH, query, media::MERGE, change);
        match session.send(&call).await {
            Ok(_) => return Ok(from),
            Err(CallError::Refused(refusal)) if refusal.code == 409 && tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

/// That an object which must be there is not.
pub(crate) fn missing(name: &str) -> Halt {
    Halt::call(
        name,
        "Missing",
        "it does not exist any more; a retry or HEAL makes it again",
    )
}
