//! The order in which kinds are applied; deletion goes the other way round.

/// The wave of a kind. Custom resources come last and go first: what serves them must outlive them.
#[must_use]
pub fn wave_of(group: &str, kind: &str) -> u32 {
    match kind {
        "Namespace"
        | "CustomResourceDefinition"
        | "PriorityClass"
        | "StorageClass"
        | "PersistentVolume"
        | "IngressClass"
        | "Node" => 0,
        "ServiceAccount" | "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => 1,
        "ConfigMap"
        | "Secret"
        | "PersistentVolumeClaim"
        | "LimitRange"
        | "ResourceQuota"
        | "NetworkPolicy"
        | "PodDisruptionBudget"
        | "PodTemplate"
        | "Lease"
        | "ControllerRevision" => 2,
        "Service" | "Endpoints" | "EndpointSlice" => 3,
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "ReplicaSet"
        | "ReplicationController"
        | "Pod"
        | "Job"
        | "CronJob" => 4,
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => 6,
        _ if is_builtin(group) => 5,
        _ => 7,
    }
}

fn is_builtin(group: &str) -> bool {
    group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_come_before_workloads_and_custom_resources_last() {
        let order = [
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("rbac.authorization.k8s.io", "Role"),
            ("", "Secret"),
            ("", "Service"),
            ("apps", "Deployment"),
            ("autoscaling", "HorizontalPodAutoscaler"),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
            ),
            ("example.org", "Widget"),
        ];
        let waves: Vec<u32> = order
            .iter()
            .map(|(group, kind)| wave_of(group, kind))
            .collect();
        assert_eq!(waves, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
