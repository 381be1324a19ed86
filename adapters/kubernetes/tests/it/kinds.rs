//! Every kind of seed case B: made, found again by a survey, removed, and left alone where it was there before.

use crate::bench::{Bench, items};
use crate::objects::{config_map, container, pod_spec};
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, PreState};
use cairn_domain::object::{Body, ObjectRef, Uid};
use serde_json::{Value, json};

fn manifest(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Value::Object(members) = rest {
        object.as_object_mut().unwrap().extend(members);
    }
    object
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "all"}}, "spec": pod_spec("cairn.test/web:1")})
}

fn workload(api_version: &str, kind: &str, more: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "all"}}, "template": template()});
    if let Value::Object(members) = more {
        spec.as_object_mut().unwrap().extend(members);
    }
    manifest(api_version, kind, "all", json!({"spec": spec}))
}

/// Kept from the Node that the case makes, on which nothing ever runs.
fn nowhere(mut set: Value) -> Value {
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"case": "none"});
    set
}

fn core() -> Vec<Value> {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "resources": {"requests": {"storage": "1Mi"}}}});
    let mut controller = template();
    controller["metadata"]["labels"] = json!({"app": "rc"});
    vec![
        config_map("all", "a"),
        manifest(
            "v1",
            "Endpoints",
            "all",
            json!({"subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}]}),
        ),
        manifest(
            "v1",
            "LimitRange",
            "all",
            json!({"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}]}}),
        ),
        manifest("v1", "PersistentVolumeClaim", "all", claim),
        manifest(
            "v1",
            "Pod",
            "all",
            json!({"spec": pod_spec("cairn.test/web:1")}),
        ),
        manifest("v1", "PodTemplate", "all", json!({"template": template()})),
        manifest(
            "v1",
            "ReplicationController",
            "all",
            json!({"spec": {"replicas": 0, "selector": {"app": "rc"}, "template": controller}}),
        ),
        manifest(
            "v1",
            "ResourceQuota",
            "all",
            json!({"spec": {"hard": {"configmaps": "100"}}}),
        ),
        manifest("v1", "Secret", "all", json!({"stringData": {"a": "b"}})),
        manifest(
            "v1",
            "Service",
            "all",
            json!({"spec": {"ports": [{"port": 80}]}}),
        ),
        manifest("v1", "ServiceAccount", "all", json!({})),
    ]
}

fn workloads() -> Vec<Value> {
    let job = json!({"restartPolicy": "Never", "containers": [container("cairn.test/job:1")]});
    let scaler = |metrics: &Value| {
        json!({"spec": {"minReplicas": 1, "maxReplicas": 2, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}, "metadata": metrics})
    };
    vec![
        manifest(
            "apps/v1",
            "ControllerRevision",
            "all",
            json!({"revision": 1, "data": {"a": "b"}}),
        ),
        nowhere(workload("apps/v1", "DaemonSet", json!({}))),
        workload("apps/v1", "Deployment", json!({"replicas": 1})),
        workload("apps/v1", "ReplicaSet", json!({"replicas": 0})),
        workload(
            "apps/v1",
            "StatefulSet",
            json!({"serviceName": "all", "replicas": 1}),
        ),
        manifest(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            "first",
            scaler(&json!({"name": "first"})),
        ),
        manifest(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "second",
            scaler(&json!({"name": "second"})),
        ),
        manifest(
            "batch/v1",
            "CronJob",
            "all",
            json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": job}}}}}),
        ),
        manifest(
            "batch/v1",
            "Job",
            "all",
            json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "run", "image": "cairn.test/job:1", "imagePullPolicy": "IfNotPresent"}]}}}}),
        ),
    ]
}

fn others() -> Vec<Value> {
    let budget = json!({"spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "none"}}}});
    let ingress =
        json!({"spec": {"defaultBackend": {"service": {"name": "all", "port": {"number": 80}}}}});
    let subject = json!([{"kind": "ServiceAccount", "name": "all"}]);
    let role =
        |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "all"});
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    vec![
        manifest(
            "coordination.k8s.io/v1",
            "Lease",
            "all",
            json!({"spec": {"holderIdentity": "a"}}),
        ),
        manifest("networking.k8s.io/v1", "Ingress", "all", ingress),
        manifest(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "all",
            json!({"spec": {"podSelector": {}}}),
        ),
        manifest("policy/v1", "PodDisruptionBudget", "all", budget),
        manifest("rbac.authorization.k8s.io/v1", "Role", "all", rules),
        manifest(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "all",
            json!({"subjects": subject, "roleRef": role("Role")}),
        ),
    ]
}

/// `name` is part of each, as clusters have one of each for all cases.
fn cluster_scoped(name: &str) -> Vec<Value> {
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let volume = json!({"spec": {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "of-the-case", "hostPath": {"path": "/nowhere"}}});
    let service = json!({"spec": {"group": format!("{name}.example.com"), "version": "v1",
        "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
        "service": {"name": "nobody", "namespace": "default"}}});
    vec![
        manifest("v1", "Namespace", name, json!({})),
        manifest("v1", "Node", name, json!({"spec": {"unschedulable": true}})),
        manifest("v1", "PersistentVolume", name, volume),
        manifest(
            "networking.k8s.io/v1",
            "IngressClass",
            name,
            json!({"spec": {"controller": "example.com/none"}}),
        ),
        manifest("rbac.authorization.k8s.io/v1", "ClusterRole", name, rules),
        manifest(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            name,
            json!({"subjects": [], "roleRef": role}),
        ),
        manifest(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            name,
            json!({"value": 7}),
        ),
        manifest(
            "storage.k8s.io/v1",
            "StorageClass",
            name,
            json!({"provisioner": "example.com/none"}),
        ),
        manifest(
            "storage.k8s.io/v1",
            "VolumeAttachment",
            name,
            json!({"spec": {"attacher": "example.com",
            "nodeName": "nowhere", "source": {"persistentVolumeName": name}}}),
        ),
        manifest(
            "apiregistration.k8s.io/v1",
            "APIService",
            &format!("v1.{name}.example.com"),
            service,
        ),
    ]
}

pub async fn every_kind_is_made_found_again_and_removed(bench: Bench) {
    let all: Vec<Value> = core()
        .into_iter()
        .chain(workloads())
        .chain(others())
        .chain(cluster_scoped(
            &bench.namespace.clone().replace("it-", "own-"),
        ))
        .collect();
    let request = items(&all.iter().collect::<Vec<_>>());
    let survey = bench.survey(&request).await;
    let objects: Vec<ObjectRef> = survey
        .items
        .iter()
        .map(|found| found.object.clone())
        .collect();
    let apply = |object: &ObjectRef, manifest: &Value| Action::Apply {
        object: object.clone(),
        manifest: Body::Inline(manifest.clone()),
        replicas: None,
        force_owned: false,
    };
    let mut made: Vec<(ObjectRef, Option<Uid>)> = Vec::new();
    for (object, manifest) in objects.iter().zip(&all) {
        match bench.until_done(&apply(object, manifest)).await {
            Outcome::Applied {
                uid, created: true, ..
            } => made.push((object.clone(), Some(uid))),
            other => panic!("{object} came to {other:?}"),
        }
    }
    // An aggregated API without a server is never available.
    let ready = objects
        .iter()
        .filter(|o| o.kind != "APIService")
        .cloned()
        .collect();
    bench
        .until_done(&Action::AwaitReady {
            objects: ready,
            replaced: Vec::new(),
        })
        .await;
    let survey = bench.survey(&request).await;
    for (found, manifest) in survey.items.iter().zip(&all) {
        assert!(
            matches!(found.pre, PreState::Ours { .. }),
            "{:?}",
            found.object
        );
        let ended = matches!(found.object.kind.as_str(), "Job");
        assert!(
            ended || found.needs_recreate.is_none(),
            "{:?}",
            found.needs_recreate
        );
        bench.must(&apply(&found.object, manifest)).await;
    }
    remove(&bench, &made).await;
    bench.done().await;
}

async fn remove(bench: &Bench, made: &[(ObjectRef, Option<Uid>)]) {
    for (object, uid) in made.iter().rev() {
        let delete = Action::Delete {
            object: object.clone(),
            uid: uid.clone(),
            grace_s: None,
        };
        bench.must(&delete).await;
    }
    let gone = Action::AwaitGone {
        objects: made.to_vec(),
        volumes: true,
    };
    assert_eq!(
        bench.until_done(&gone).await,
        Outcome::Gone {
            residue: Vec::new()
        }
    );
    let absent = made.iter().map(|(object, _)| object.clone()).collect();
    bench
        .must(&Action::Verify {
            equal: Vec::new(),
            absent,
            replicas: Vec::new(),
        })
        .await;
}
