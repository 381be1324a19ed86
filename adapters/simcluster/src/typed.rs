//! Which fields a built-in kind has, by a round trip through the generated types.

use k8s_openapi::api;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::Kind;

type RoundTrip = fn(&Value) -> Result<Value, serde_json::Error>;

fn round_trip<T: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(T::deserialize(object)?)
}

fn codec(kind: &Kind) -> Option<RoundTrip> {
    core(kind)
        .or_else(|| workloads(kind))
        .or_else(|| others(kind))
}

fn core(kind: &Kind) -> Option<RoundTrip> {
    use api::core::v1;
    if !kind.group.is_empty() {
        return None;
    }
    Some(match kind.kind.as_str() {
        "Binding" => round_trip::<v1::Binding>,
        "ConfigMap" => round_trip::<v1::ConfigMap>,
        "Endpoints" => round_trip::<v1::Endpoints>,
        "LimitRange" => round_trip::<v1::LimitRange>,
        "Namespace" => round_trip::<v1::Namespace>,
        "Node" => round_trip::<v1::Node>,
        "PersistentVolume" => round_trip::<v1::PersistentVolume>,
        "PersistentVolumeClaim" => round_trip::<v1::PersistentVolumeClaim>,
        "Pod" => round_trip::<v1::Pod>,
        "PodTemplate" => round_trip::<v1::PodTemplate>,
        "ReplicationController" => round_trip::<v1::ReplicationController>,
        "ResourceQuota" => round_trip::<v1::ResourceQuota>,
        "Secret" => round_trip::<v1::Secret>,
        "Service" => round_trip::<v1::Service>,
        "ServiceAccount" => round_trip::<v1::ServiceAccount>,
        _ => return None,
    })
}

fn workloads(kind: &Kind) -> Option<RoundTrip> {
    use api::{apps::v1 as apps, autoscaling, batch::v1 as batch};
    Some(
        match (
            kind.group.as_str(),
            kind.version.as_str(),
            kind.kind.as_str(),
        ) {
            ("apps", _, "DaemonSet") => round_trip::<apps::DaemonSet>,
            ("apps", _, "Deployment") => round_trip::<apps::Deployment>,
            ("apps", _, "ReplicaSet") => round_trip::<apps::ReplicaSet>,
            ("apps", _, "StatefulSet") => round_trip::<apps::StatefulSet>,
            ("autoscaling", "v1", _) => round_trip::<autoscaling::v1::HorizontalPodAutoscaler>,
            ("autoscaling", "v2", _) => round_trip::<autoscaling::v2::HorizontalPodAutoscaler>,
            ("batch", _, "CronJob") => round_trip::<batch::CronJob>,
            ("batch", _, "Job") => round_trip::<batch::Job>,
            _ => return None,
        },
    )
}

fn others(kind: &Kind) -> Option<RoundTrip> {
    use api::{
        coordination::v1 as coordination, networking::v1 as networking, policy::v1 as policy,
        rbac::v1 as rbac, scheduling::v1 as scheduling, storage::v1 as storage,
    };
    Some(match (kind.group.as_str(), kind.kind.as_str()) {
        ("coordination.k8s.io", _) => round_trip::<coordination::Lease>,
        ("networking.k8s.io", "Ingress") => round_trip::<networking::Ingress>,
        ("networking.k8s.io", "NetworkPolicy") => round_trip::<networking::NetworkPolicy>,
        ("networking.k8s.io", "IngressClass") => round_trip::<networking::IngressClass>,
        ("policy", _) => round_trip::<policy::PodDisruptionBudget>,
        ("rbac.authorization.k8s.io", "Role") => round_trip::<rbac::Role>,
        ("rbac.authorization.k8s.io", "RoleBinding") => round_trip::<rbac::RoleBinding>,
        ("rbac.authorization.k8s.io", "ClusterRole") => round_trip::<rbac::ClusterRole>,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            round_trip::<rbac::ClusterRoleBinding>
        }
        ("scheduling.k8s.io", _) => round_trip::<scheduling::PriorityClass>,
        ("storage.k8s.io", "StorageClass") => round_trip::<storage::StorageClass>,
        ("storage.k8s.io", "VolumeAttachment") => round_trip::<storage::VolumeAttachment>,
        ("apiextensions.k8s.io", _) => round_trip::<apiextensions::CustomResourceDefinition>,
        ("apiregistration.k8s.io", _) => round_trip::<apiregistration::APIService>,
        _ => return None,
    })
}

/// Removes the fields that the kind does not have and returns their paths (`spec.foo`).
///
/// # Errors
/// The decoder's text when a field has the wrong type.
pub(crate) fn drop_unknown_fields(kind: &Kind, object: &mut Value) -> Result<Vec<String>, String> {
    if let Some(schema) = &kind.schema {
        let mut unknown = Vec::new();
        prune_custom(schema, object, "", &mut unknown);
        return Ok(unknown);
    }
    let Some(codec) = codec(kind) else {
        return Ok(Vec::new());
    };
    let known = codec(object).map_err(|error| error.to_string())?;
    let mut unknown = Vec::new();
    prune(&known, object, "", &mut unknown);
    Ok(unknown)
}

fn prune(known: &Value, object: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match (known, object) {
        (Value::Object(known), Value::Object(members)) => {
            members.retain(|field, value| {
                let path = join(path, field);
                if let Some(known) = known.get(field) {
                    prune(known, value, &path, unknown);
                    return true;
                }
                // Empty values do not survive the round trip although their fields exist.
                let empty = value.is_null()
                    || value.as_object().is_some_and(serde_json::Map::is_empty)
                    || value.as_array().is_some_and(Vec::is_empty);
                if !empty {
                    unknown.push(path);
                }
                empty
            });
        }
        (Value::Array(known), Value::Array(items)) => {
            for (index, (known, item)) in known.iter().zip(items).enumerate() {
                prune(known, item, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn prune_custom(schema: &Value, object: &mut Value, path: &str, unknown: &mut Vec<String>) {
    use crate::json;
    if json::flag(schema, "/x-kubernetes-preserve-unknown-fields") {
        return;
    }
    if let Value::Array(items) = object {
        for (index, item) in items.iter_mut().enumerate() {
            prune_custom(
                json::at(schema, "/items"),
                item,
                &format!("{path}[{index}]"),
                unknown,
            );
        }
        return;
    }
    let Value::Object(members) = object else {
        return;
    };
    members.retain(|field, value| {
        if path.is_empty() && matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
            return true;
        }
        let path = join(path, field);
        let named = schema.get("properties").and_then(|p| p.get(field));
        let below = named.or_else(|| schema.get("additionalProperties"));
        match below {
            Some(below) if below.is_object() => prune_custom(below, value, &path, unknown),
            Some(Value::Bool(true)) => {}
            _ => {
                unknown.push(path);
                return false;
            }
        }
        true
    });
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_named_and_dropped() {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a"}, "spec": {"replicsa": 2, "selector": {},
            "template": {"spec": {"containers": [{"name": "a", "imagee": "b"}]}}}});
        let kind = Kinds::built_in().get("deployments.apps");
        let unknown = drop_unknown_fields(&kind, &mut object).unwrap();
        assert_eq!(
            unknown,
            ["spec.replicsa", "spec.template.spec.containers[0].imagee"]
        );
        assert!(object["spec"].get("replicsa").is_none());
    }

    #[test]
    fn a_wrong_type_is_an_error() {
        let mut object = json!({"spec": {"replicas": "three"}});
        let kind = Kinds::built_in().get("deployments.apps");
        assert!(drop_unknown_fields(&kind, &mut object).is_err());
    }
}
