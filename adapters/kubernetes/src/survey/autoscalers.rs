//! Autoscalers that would undo a number of replicas.

use crate::client::Session;
use crate::discovery::Located;
use crate::errors::{CallError, call};
use crate::json;
use cairn_domain::waits::Obstacle;
use serde_json::Value;

/// An obstacle for each autoscaler that targets one of the workloads.
pub(crate) async fn check(
    session: &Session,
    workloads: &[Located],
) -> Result<Vec<Obstacle>, CallError> {
    let mut found = Vec::new();
    for at in workloads {
        let Some(namespace) = at.object.namespace.as_deref() else {
            continue;
        };
        for scaler in list(session, namespace).await? {
            let target = &scaler["spec"]["scaleTargetRef"];
            if is_target(target, at) {
                let message = format!(
                    "HorizontalPodAutoscaler/{} sets the replicas of {}; remove it or let it scale",
                    json::name(&scaler),
                    at.object
                );
                found.push(call(at.object.to_string(), "Autoscaled", message));
            }
        }
    }
    Ok(found)
}

async fn list(session: &Session, namespace: &str) -> Result<Vec<Value>, CallError> {
    for version in ["autoscaling/v2", "autoscaling/v1"] {
        let Some(kind) = session.kind(version, "HorizontalPodAutoscaler").await? else {
            continue;
        };
        return match session.list(&kind.collection(Some(namespace)), "").await {
            Ok(listed) => Ok(listed.items),
            Err(CallError::Refused(refusal)) if refusal.code == 403 => Ok(Vec::new()),
            Err(other) => Err(other),
        };
    }
    Ok(Vec::new())
}

fn is_target(target: &Value, at: &Located) -> bool {
    let group = json::text(target, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    group == at.kind.group()
        && json::text(target, "/kind") == at.kind.name
        && json::text(target, "/name") == at.object.name
}
