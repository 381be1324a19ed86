//! Eviction of one pod, so that disruption budgets are heard.

use crate::client::{Call, Session, media};
use crate::discovery::Located;
use crate::errors::{CallError, Refusal, Try};
use crate::json;
use cairn_domain::lcm_op_occ::plan::{Outcome, Vnfc};
use cairn_domain::object::ObjectRef;
use http::Method;
use serde_json::json;

const GONE: Outcome = Outcome::Evicted { was_absent: true };
const DONE: Outcome = Outcome::Evicted { was_absent: false };

/// Evicts the pod of this UID, or finds that it is gone.
pub(crate) async fn evict(session: &Session, vnfc: &Vnfc) -> Try<Outcome> {
    let name = format!("Pod/{}", vnfc.id);
    let kind = session
        .builtin("v1", "Pod")
        .await
        .map_err(|e| e.reading(&name))?;
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some(vnfc.namespace.clone()),
        name: vnfc.id.clone(),
    };
    let at = Located { kind, object };
    match session.read(&at).await.map_err(|e| e.reading(&name))? {
        Some(pod) if json::uid(&pod) == vnfc.uid.0 => {
            if json::deleting(&pod) {
                return Ok(DONE);
            }
        }
        Some(_) | None => return Ok(GONE),
    }
    let body = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": vnfc.id, "namespace": vnfc.namespace},
        "deleteOptions": {"preconditions": {"uid": vnfc.uid.0}},
    });
    let call = Call::with(
        Method::POST,
        format!("{}/eviction", at.path()),
        media::JSON,
        body,
    );
    match session.send(&call).await {
        Ok(_) => Ok(DONE),
        Err(CallError::Refused(refusal)) if refusal.says_absent(&vnfc.id) => Ok(GONE),
        Err(CallError::Refused(refusal))
            if refusal.code == 409 && refusal.message.contains("UID") =>
        {
            Ok(GONE)
        }
        Err(CallError::Refused(refusal)) if several_budgets(&refusal) => Err(
            crate::errors::Halt::call(name, "DisruptionBudget", refusal.message),
        ),
        Err(error) => Err(error.writing(name)),
    }
}

/// A pod that two budgets select cannot be evicted until one of them goes; the API says so with 500.
fn several_budgets(refusal: &Refusal) -> bool {
    refusal
        .message
        .contains("more than one PodDisruptionBudget")
}
