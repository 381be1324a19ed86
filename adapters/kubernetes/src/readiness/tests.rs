use super::*;
use proptest::prelude::*;
use serde_json::json;

fn is_ready(object: &Value) -> bool {
    judge(object) == Readiness::Ready
}

fn reason(object: &Value) -> String {
    match judge(object) {
        Readiness::Ready => String::new(),
        Readiness::Waiting(waiting) => waiting.reason,
    }
}

fn deployment(wanted: u32, status: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2},
        "spec": {"replicas": wanted}, "status": status})
}

#[test]
fn a_deployment_is_ready_with_all_replicas_of_the_newest_template() {
    let done = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    assert!(is_ready(&deployment(2, &done)));
    let stale = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    assert_eq!(reason(&deployment(2, &stale)), "RollingOut");
    let old = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 2, "availableReplicas": 2});
    assert_eq!(reason(&deployment(2, &old)), "RollingOut");
}

#[test]
fn no_pod_at_all_is_ready_only_where_none_is_wanted() {
    let none = json!({"observedGeneration": 2});
    assert!(is_ready(&deployment(0, &none)));
    assert!(!is_ready(&deployment(1, &none)));
}

#[test]
fn a_refusal_by_quota_is_told_with_its_numbers() {
    let refused = json!({"observedGeneration": 2, "conditions": [{"type": "ReplicaFailure", "status": "True",
        "message": "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"}]});
    let Readiness::Waiting(waiting) = judge(&deployment(3, &refused)) else {
        panic!("it waits")
    };
    assert_eq!(waiting.reason, "QuotaExceeded");
    assert!(
        waiting.message.contains("pods used 2 of 2"),
        "{}",
        waiting.message
    );
}

#[test]
fn a_job_is_judged_by_its_conditions_alone() {
    let job = |status: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "status": status});
    assert_eq!(
        reason(&job(json!({"failed": 2, "active": 1}))),
        "RollingOut"
    );
    assert!(is_ready(&job(
        json!({"failed": 2, "conditions": [{"type": "Complete", "status": "True"}]})
    )));
    assert_eq!(
        reason(&job(
            json!({"conditions": [{"type": "Failed", "status": "True"}]})
        )),
        "Failed"
    );
}

#[test]
fn a_load_balancer_without_address_waits_for_it_alone() {
    let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": spec});
    assert_eq!(
        reason(&service(json!({"type": "LoadBalancer"}))),
        "NoAddress"
    );
    assert!(is_ready(&service(
        json!({"type": "LoadBalancer", "externalIPs": ["10.0.0.1"]})
    )));
    assert!(is_ready(&service(json!({"type": "ExternalName"}))));
}

#[test]
fn custom_resources_are_judged_by_their_conditions_or_at_once() {
    let custom =
        |status: Value| json!({"apiVersion": "example.com/v1", "kind": "Db", "status": status});
    assert!(is_ready(&custom(json!({}))));
    assert!(!is_ready(&custom(
        json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Booting"}]})
    )));
    assert!(is_ready(&custom(
        json!({"conditions": [{"type": "Ready", "status": "True"}]})
    )));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z]{0,6}".prop_map(Value::from),
        Just(json!("True")),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let names = prop::sample::select(vec![
            "replicas",
            "readyReplicas",
            "updatedReplicas",
            "availableReplicas",
            "conditions",
            "type",
            "status",
            "reason",
            "message",
            "observedGeneration",
            "updateStrategy",
            "rollingUpdate",
            "partition",
            "phase",
            "loadBalancer",
            "ingress",
            "externalIPs",
            "containerStatuses",
            "state",
            "waiting",
            "template",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..6).prop_map(|members| Value::Object(
                members
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect()
            )),
        ]
    })
}

const KINDS: [(&str, &str); 14] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("v1", "Service"),
    ("v1", "Namespace"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("example.com/v1", "Custom"),
];

proptest! {
    #[test]
    fn every_object_is_judged(
        kind in prop::sample::select(KINDS.to_vec()),
        spec in any_json(),
        status in any_json(),
        metadata in any_json(),
    ) {
        let object = json!({"apiVersion": kind.0, "kind": kind.1, "metadata": metadata, "spec": spec, "status": status});
        judge(&object);
        crate::roots::pod(&object, &[]);
        crate::shape::recorded(&object, "cairn-a", Some(&spec));
    }
}
