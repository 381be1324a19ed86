//! Deletion: in the foreground, with the UID as a precondition. Absent is done; another UID is somebody
//! else's and counts as absent. Finalizers are never touched.

use crate::client::{Call, Session, media};
use crate::content;
use crate::discovery::Located;
use crate::errors::{CallError, Halt, Try};
use crate::json;
use crate::marks;
use crate::pods::Pods;
use crate::volumes;
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use http::Method;
use serde_json::{Value, json};

const ABSENT: Outcome = Outcome::Deleted { was_absent: true };
const MARKED: Outcome = Outcome::Deleted { was_absent: false };

/// Marks an object for deletion, or finds that it is gone.
///
/// A Namespace in which something foreign lives stays as it is; `AwaitGone` reports it. Custom resource
/// definitions are never deleted, as the resources of others would go with them.
pub(crate) async fn delete(
    session: &Session,
    scope: &Scope,
    object: &ObjectRef,
    uid: Option<&Uid>,
    grace_s: Option<u32>,
) -> Try<Outcome> {
    let reading = |e: CallError| e.reading(object.to_string());
    let Some(at) = session.locate(scope, object).await.map_err(reading)? else {
        return Ok(ABSENT);
    };
    let Some(live) = session.read(&at).await.map_err(reading)? else {
        return Ok(ABSENT);
    };
    let found = json::uid(&live);
    // The UID alone is not enough: a shared Namespace is recorded by its UID too.
    let expected = match uid {
        Some(uid) => uid.0 == found && marks::labelled(scope, &live),
        None => marks::written_by_us(scope, &live),
    };
    if !expected {
        return Ok(ABSENT);
    }
    if at
        .kind
        .is("apiextensions.k8s.io", "CustomResourceDefinition")
    {
        return Ok(MARKED);
    }
    if at.kind.is("", "Namespace") && !json::deleting(&live) {
        let foreign = content::foreign(session, scope, &at.object.name)
            .await
            .map_err(reading)?;
        if !foreign.is_empty() {
            return Ok(MARKED);
        }
    }
    if at.kind.is("apps", "StatefulSet") {
        volumes::mark(session, scope, &live).await?;
    }
    let pods = match grace_s {
        Some(_) if is_workload(&at) => {
            Some(Pods::around(session, scope, &at).await.map_err(reading)?)
        }
        _ => None,
    };
    if !json::deleting(&live) || grace_s.is_some() && at.kind.is("", "Pod") {
        let outcome = by_uid(session, &at, found, grace_s).await?;
        if outcome == ABSENT {
            return Ok(ABSENT);
        }
    }
    if let (Some(pods), Some(grace_s)) = (pods, grace_s) {
        // A workload's grace period does not reach its pods; they are given theirs one by one.
        for pod in pods.of(found) {
            shorten(session, &at, pod, grace_s).await?;
        }
    }
    Ok(MARKED)
}

fn is_workload(at: &Located) -> bool {
    crate::shape::template(&at.kind).is_some() && !at.kind.is("", "PodTemplate")
}

async fn shorten(session: &Session, owner: &Located, pod: &Value, grace_s: u32) -> Try<()> {
    let kind = session
        .builtin("v1", "Pod")
        .await
        .map_err(|e| e.reading("Pod"))?;
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: owner.object.namespace.clone(),
        name: json::name(pod).to_owned(),
    };
    // 0 would take the pod off the records while its containers may still run.
    by_uid(
        session,
        &Located { kind, object },
        json::uid(pod),
        Some(grace_s.max(1)),
    )
    .await
    .map(|_| ())
}

/// Deletes the object of this UID.
pub(crate) async fn by_uid(
    session: &Session,
    at: &Located,
    uid: &str,
    grace_s: Option<u32>,
) -> Try<Outcome> {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": uid},
    });
    if let Some(grace_s) = grace_s {
        options["gracePeriodSeconds"] = json!(grace_s);
    }
    match session
        .send(&Call::with(Method::DELETE, at.path(), media::JSON, options))
        .await
    {
        Ok(_) => Ok(MARKED),
        Err(CallError::Refused(refusal)) if refusal.says_absent(&at.object.name) => Ok(ABSENT),
        Err(CallError::Refused(refusal))
            if refusal.code == 409 && refusal.message.contains("UID") =>
        {
            Ok(ABSENT)
        }
        // A Namespace that is being emptied answers a second deletion so.
        Err(CallError::Refused(refusal)) if refusal.code == 409 && at.kind.is("", "Namespace") => {
            Ok(MARKED)
        }
        Err(error) => {
            session.forget_if_not_served(at, &error);
            Err(error.writing(at.object.to_string()))
        }
    }
}

/// That an object is still on its way out.
pub(crate) fn pending(object: impl Into<String>, source: &str, message: String) -> Halt {
    Halt::InTheWay(vec![cairn_domain::waits::Obstacle {
        object: object.into(),
        source: source.into(),
        reason: "Deleting".into(),
        message,
        progress: 0,
    }])
}
