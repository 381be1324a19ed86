//! Which pods realise which VDU.

use crate::client::Session;
use crate::errors::CallError;
use crate::json;
use crate::pods::{Pods, is_custom};
use cairn_domain::lcm_op_occ::plan::Vnfc;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pods of workloads that exist and are not being deleted, by VDU, then name.
pub(crate) async fn take(
    session: &Session,
    scope: &Scope,
    workloads: &[(String, ObjectRef)],
) -> Result<Vec<Vnfc>, CallError> {
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
        vnfcs.extend(
            pods.of(json::uid(&live))
                .filter(|pod| is_there(pod))
                .map(|pod| Vnfc {
                    vdu_id: vdu.clone(),
                    id: json::name(pod).to_owned(),
                    uid: Uid(json::uid(pod).to_owned()),
                    namespace: namespace.clone(),
                    workload_kind: object.kind.clone(),
                }),
        );
    }
    vnfcs.sort();
    Ok(vnfcs)
}

/// Pods that are being deleted are gone to users; those that ended (evicted, completed) are leftovers.
fn is_there(pod: &Value) -> bool {
    !json::deleting(pod) && !matches!(json::text(pod, "/status/phase"), "Failed" | "Succeeded")
}
