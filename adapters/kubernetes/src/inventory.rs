//! Which pods realise which VDU.

use crate::client::Session;
use crate::errors::{CallError, Halt, Try};
use crate::json;
use crate::pods::{Pods, is_custom};
use cairn_domain::lcm_op_occ::plan::Vnfc;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pods of workloads that exist and are not being deleted, by VDU, then name.
pub(crate) async fn take(
    session: &Session,
    scope: &Scope,
    workloads: &[(String, ObjectRef)],
) -> Result<Vec<Vnfc>, CallError> {
    Ok(count(session, scope, workloads).await?.0)
}

/// The same, as long as the list holds as many pods as the controllers count: one that is older than what they say
/// (a cache that lags behind answers so) would be recorded as the truth.
pub(crate) async fn agreed(
    session: &Session,
    scope: &Scope,
    workloads: &[(String, ObjectRef)],
) -> Try<Vec<Vnfc>> {
    let (vnfcs, differing) = count(session, scope, workloads)
        .await
        .map_err(|e| e.reading("Pod"))?;
    if differing.is_empty() {
        Ok(vnfcs)
    } else {
        Err(Halt::InTheWay(differing))
    }
}

/// The pods, and the workloads whose controllers count another number of them.
async fn count(
    session: &Session,
    scope: &Scope,
    workloads: &[(String, ObjectRef)],
) -> Result<(Vec<Vnfc>, Vec<Obstacle>), CallError> {
    let mut differing = Vec::new();
    let mut vnfcs = Vec::new();
    let mut known: BTreeMap<(String, bool), Pods> = BTreeMap::new();
    for (vdu, object) in workloads {
        let Some(at) = session.locate(scope, object).await? else {
            continue;
        };
        let Some(live) = session.read(&at).await? else {
            continue;
        };
        let namespace = at
            .object
            .namespace
            .clone()
            .unwrap_or_else(|| scope.namespace.clone());
        let key = (namespace.clone(), is_custom(&at.kind));
        if !known.contains_key(&key) {
            known.insert(
                key.clone(),
                Pods::read(session, scope, &namespace, key.1).await?,
            );
        }
        let pods = &known[&key];
        let there: Vec<&Value> = pods
            .of(json::uid(&live))
            .filter(|pod| is_there(pod))
            .collect();
        differing.extend(differs(&live, there.len()));
        vnfcs.extend(there.into_iter().map(|pod| Vnfc {
            vdu_id: vdu.clone(),
            id: json::name(pod).to_owned(),
            uid: Uid(json::uid(pod).to_owned()),
            namespace: namespace.clone(),
            workload_kind: object.kind.clone(),
        }));
    }
    vnfcs.sort();
    Ok((vnfcs, differing))
}

/// That a workload's controller counts another number of pods than are listed.
fn differs(live: &Value, listed: usize) -> Option<Obstacle> {
    let kind = json::text(live, "/kind");
    let counts = matches!(
        kind,
        "Deployment" | "ReplicaSet" | "ReplicationController" | "StatefulSet"
    );
    let counted = json::count(live, "/status/replicas");
    (counts && !json::deleting(live) && usize::try_from(counted) != Ok(listed)).then(|| Obstacle {
        object: format!("{kind}/{}", json::name(live)),
        source: kind.to_owned(),
        reason: "ReplicasDiffer".into(),
        message: format!("its controller counts {counted} pods and {listed} are listed"),
        progress: 0,
    })
}

/// Pods that are being deleted are gone to users; those that ended (evicted, completed) are leftovers.
fn is_there(pod: &Value) -> bool {
    !json::deleting(pod) && !matches!(json::text(pod, "/status/phase"), "Failed" | "Succeeded")
}
