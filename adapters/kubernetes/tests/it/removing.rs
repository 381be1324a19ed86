//! What is removed, and what stays.

use crate::bench::{Bench, items, uid_of};
use crate::objects::{config_map, deployment, job, stateful_set};
use cairn_domain::hook::{Moment, ResultFrom};
use cairn_domain::ids::VnfLcmOpOccId;
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, PreState, Vnfc};
use cairn_domain::object::{Body, ObjectRef, Uid};
use cairn_domain::ports::ContainerPlatform as _;
use cairn_domain::waits::Obstacle;
use serde_json::{Value, json};

pub async fn a_delete_of_another_uid_finds_ours_gone(bench: Bench) {
    let cfg = config_map("cfg", "a");
    let uid = uid_of(&bench.must(&bench.apply(&cfg)).await);
    let delete = |uid: &str| Action::Delete {
        object: bench.object(&cfg),
        uid: Some(Uid(uid.into())),
        grace_s: None,
    };
    let other = "00000000-0000-4000-8000-000000000000";
    assert_eq!(
        bench.must(&delete(other)).await,
        Outcome::Deleted { was_absent: true }
    );
    assert!(bench.exists(&bench.path("configmaps", "cfg")).await);
    assert_eq!(
        bench.must(&delete(&uid.0)).await,
        Outcome::Deleted { was_absent: false }
    );
    let gone = Action::AwaitGone {
        objects: vec![(bench.object(&cfg), Some(uid.clone()))],
        volumes: false,
    };
    bench.until_done(&gone).await;
    assert_eq!(
        bench.must(&delete(&uid.0)).await,
        Outcome::Deleted { was_absent: true }
    );
    bench.done().await;
}

pub async fn a_pod_is_evicted_unless_a_budget_forbids_it(bench: Bench) {
    let web = deployment("web", 1, "cairn.test/web:1");
    bench.up(&web).await;
    let workloads = vec![("VDU1".to_owned(), bench.object(&web))];
    let before: Vec<Vnfc> = bench
        .platform
        .inventory(&bench.scope, &workloads)
        .await
        .unwrap();
    let evict = Action::Evict {
        vnfc: before[0].clone(),
    };
    assert_eq!(
        bench.must(&evict).await,
        Outcome::Evicted { was_absent: false }
    );
    let ready = Action::AwaitReady {
        objects: vec![bench.object(&web)],
        replaced: vec![before[0].uid.clone()],
    };
    bench.until_done(&ready).await;
    assert_eq!(
        bench.must(&evict).await,
        Outcome::Evicted { was_absent: true }
    );
    let after = bench
        .platform
        .inventory(&bench.scope, &workloads)
        .await
        .unwrap();
    assert_eq!(after.len(), 1);
    assert_ne!(after[0].uid, before[0].uid);

    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "none-down"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let path = format!(
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
        bench.namespace
    );
    bench.post(&path, budget).await;
    let evict = Action::Evict {
        vnfc: after[0].clone(),
    };
    let told = bench
        .until_told(&evict, |o| {
            o.reason == "DisruptionBudget" && o.message.contains("none-down")
        })
        .await;
    assert_eq!(told.object, format!("Pod/{}", after[0].id));
    bench
        .call("DELETE", &format!("{path}/none-down"), None)
        .await
        .unwrap();
    bench.done().await;
}

pub async fn finalizers_are_named_and_stay(bench: Bench) {
    let mut held = config_map("cfg", "a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let uid = uid_of(&bench.must(&bench.apply(&held)).await);
    bench
        .must(&Action::Delete {
            object: bench.object(&held),
            uid: Some(uid.clone()),
            grace_s: None,
        })
        .await;
    let gone = Action::AwaitGone {
        objects: vec![(bench.object(&held), Some(uid))],
        volumes: false,
    };
    let told = bench.refused(&gone).await;
    assert_eq!(
        (told[0].object.as_str(), told[0].reason.as_str()),
        ("ConfigMap/cfg", "Finalizers")
    );
    assert!(
        told[0].message.contains("example.com/hold"),
        "{}",
        told[0].message
    );
    bench
        .patch(
            &bench.path("configmaps", "cfg"),
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    bench.until_done(&gone).await;
    bench.done().await;
}

/// Whoever meets what is being deleted names the finalizers that hold it.
pub async fn finalizers_are_named_wherever_they_are_met(bench: Bench) {
    let hold = |mut manifest: Value| {
        manifest["metadata"]["finalizers"] = json!(["example.com/hold"]);
        manifest
    };
    let says = |told: &[Obstacle], object: &str| {
        let [one] = told else { panic!("{told:?}") };
        assert_eq!(
            (one.object.as_str(), one.reason.as_str()),
            (object, "Finalizers")
        );
        assert!(one.message.contains("example.com/hold"), "{one:?}");
    };
    let web = hold(deployment("web", 1, "cairn.test/web:1"));
    let run = hold(job("run", "cairn.test/sh:1", &["true"], 0));
    bench.must(&bench.apply(&web)).await;
    bench.must(&bench.apply(&run)).await;
    let foreign = hold(config_map("cfg", "theirs"));
    bench.post(&bench.path("configmaps", ""), foreign).await;
    let objects = [
        ("deployments", "web"),
        ("jobs", "run"),
        ("configmaps", "cfg"),
    ];
    for (plural, name) in objects {
        let path = bench.path(plural, name);
        bench.call("DELETE", &path, None).await.unwrap();
    }

    let scale = Action::SetReplicas {
        object: bench.object(&web),
        from: 1,
        to: 2,
    };
    says(&bench.refused(&scale).await, "Deployment/web");
    let hook = Action::RunHook {
        hook: "scale_start".into(),
        at: Moment::Start,
        item: None,
        object: bench.object(&run),
        manifest: Body::Inline(run),
        clock_ms: None,
        result: ResultFrom::Optional,
        registers_vim: false,
    };
    says(&bench.refused(&hook).await, "Job/run");
    let request = items(&[&config_map("cfg", "ours")]);
    says(&bench.blocked(&request).await, "ConfigMap/cfg");
    for (plural, name) in objects {
        let released = json!({"metadata": {"finalizers": null}});
        bench.patch(&bench.path(plural, name), released).await;
    }
    bench.done().await;
}

/// A claim as the template of the cases makes it.
fn claim_spec() -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "resources": {"requests": {"storage": "1Mi"}},
    })
}

/// Removes a set and waits until it is gone.
async fn remove_set(bench: &Bench, object: &ObjectRef, uid: &Uid, volumes: bool) -> Vec<String> {
    let delete = Action::Delete {
        object: object.clone(),
        uid: Some(uid.clone()),
        grace_s: None,
    };
    bench.must(&delete).await;
    let gone = Action::AwaitGone {
        objects: vec![(object.clone(), Some(uid.clone()))],
        volumes,
    };
    match bench.until_done(&gone).await {
        Outcome::Gone { residue } => residue,
        other => panic!("{other:?}"),
    }
}

fn next_operation(bench: &mut Bench, id: &str) {
    bench.scope.operation = VnfLcmOpOccId::parse(id).unwrap();
    bench
        .scope
        .known_operations
        .push(bench.scope.operation.clone());
}

pub async fn volumes_of_a_set_go_only_where_this_operation_made_them(mut bench: Bench) {
    let mut set = stateful_set("db", 1, "cairn.test/web:1");
    set["spec"]["volumeClaimTemplates"] =
        json!([{"metadata": {"name": "data"}, "spec": claim_spec()}]);
    let foreign = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-1"}, "spec": claim_spec()});
    bench
        .post(&bench.path("persistentvolumeclaims", ""), foreign)
        .await;
    let object = bench.object(&set);
    let first = bench.up(&set).await;
    let again = bench.must(&bench.apply(&set)).await;
    assert_eq!(
        uid_of(&again),
        first,
        "templates of claims stay as they are"
    );
    let claim = bench.path("persistentvolumeclaims", "data-db-0");
    next_operation(&mut bench, "op-2");
    let residue = remove_set(&bench, &object, &first, false).await;
    assert_eq!(
        residue,
        ["PersistentVolumeClaim/data-db-0: volumes are kept"]
    );
    assert!(bench.exists(&claim).await);

    // A second life, rolled back: what the first one kept was there before.
    next_operation(&mut bench, "op-3");
    let second = bench.up(&set).await;
    remove_set(&bench, &object, &second, true).await;
    assert!(bench.exists(&claim).await, "it was there before");

    // A third, terminated with its volumes.
    let third = bench.up(&set).await;
    next_operation(&mut bench, "op-4");
    remove_set(&bench, &object, &third, true).await;
    assert!(!bench.exists(&claim).await);

    // A fourth, rolled back: its own volumes go.
    let fourth = bench.up(&set).await;
    assert!(bench.exists(&claim).await);
    remove_set(&bench, &object, &fourth, true).await;
    assert!(!bench.exists(&claim).await);
    let other = bench.path("persistentvolumeclaims", "data-db-1");
    assert!(bench.exists(&other).await, "not ours");
    bench.done().await;
}

pub async fn volumes_of_a_set_whose_name_ends_like_the_removed_one_stay(mut bench: Bench) {
    let set = |name: &str| {
        let mut set = stateful_set(name, 1, "cairn.test/web:1");
        set["spec"]["volumeClaimTemplates"] =
            json!([{"metadata": {"name": "data"}, "spec": claim_spec()}]);
        set
    };
    let (old, new) = (set("web-db"), set("db"));
    let first = bench.up(&old).await;
    next_operation(&mut bench, "op-2");
    let second = bench.up(&new).await;
    // The change removes the old set, then is rolled back: its own set goes, with its volumes.
    remove_set(&bench, &bench.object(&old), &first, false).await;
    remove_set(&bench, &bench.object(&new), &second, true).await;
    let claim = |name: &str| bench.path("persistentvolumeclaims", name);
    assert!(!bench.exists(&claim("data-db-0")).await);
    let kept = bench.get(&claim("data-web-db-0")).await;
    assert_eq!(kept["metadata"].get("deletionTimestamp"), None, "{kept}");
    bench.done().await;
}

pub async fn a_set_that_is_made_anew_by_another_operation_is_as_before(mut bench: Bench) {
    let mut set = stateful_set("db", 1, "cairn.test/web:1");
    set["spec"]["volumeClaimTemplates"] =
        json!([{"metadata": {"name": "data"}, "spec": claim_spec()}]);
    let first = bench.up(&set).await;
    let survey = bench.survey(&crate::bench::items(&[&set])).await;
    let PreState::Ours { body, .. } = survey.items[0].pre.clone() else {
        panic!("{:?}", survey.items[0].pre)
    };
    next_operation(&mut bench, "op-2");
    let object = bench.object(&set);
    remove_set(&bench, &object, &first, false).await;
    let again = Action::Apply {
        object: object.clone(),
        manifest: body.clone(),
        replicas: None,
        force_owned: false,
    };
    bench.must(&again).await;
    let verify = Action::Verify {
        equal: vec![(object, body)],
        absent: Vec::new(),
        replicas: Vec::new(),
    };
    bench.must(&verify).await;
    bench.done().await;
}

pub async fn a_namespace_with_something_foreign_in_it_stays(bench: Bench) {
    let name = format!("{}-own", bench.namespace);
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut object = bench.object(&manifest);
    object.namespace = None;
    let make = Action::Apply {
        object: object.clone(),
        manifest: cairn_domain::object::Body::Inline(manifest),
        replicas: None,
        force_owned: false,
    };
    let uid = uid_of(&bench.must(&make).await);
    let foreign = format!("/api/v1/namespaces/{name}/configmaps");
    bench.post(&foreign, config_map("theirs", "a")).await;
    let delete = Action::Delete {
        object: object.clone(),
        uid: Some(uid.clone()),
        grace_s: None,
    };
    bench.must(&delete).await;
    let gone = Action::AwaitGone {
        objects: vec![(object.clone(), Some(uid))],
        volumes: false,
    };
    let Outcome::Gone { residue } = bench.must(&gone).await else {
        panic!("not gone")
    };
    assert_eq!(
        residue,
        [format!(
            "Namespace/{name}: ConfigMap/theirs in it belongs to somebody else"
        )]
    );
    let verify = Action::Verify {
        equal: Vec::new(),
        absent: vec![object],
        replicas: Vec::new(),
    };
    bench.must(&verify).await;
    bench
        .call("DELETE", &format!("{foreign}/theirs"), None)
        .await
        .unwrap();
    bench.must(&delete).await;
    assert_eq!(
        bench.until_done(&gone).await,
        Outcome::Gone {
            residue: Vec::new()
        }
    );
    bench.done().await;
}

pub async fn a_volume_that_was_available_is_available_after_a_rollback(bench: Bench) {
    let class = format!("class-{}", bench.namespace);
    let volumes = "/api/v1/persistentvolumes";
    let path = format!("{volumes}/{class}");
    let made = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"});
    bench
        .post("/apis/storage.k8s.io/v1/storageclasses", made)
        .await;
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": class}, "spec": {
        "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": format!("/tmp/{class}"), "type": "DirectoryOrCreate"}}});
    bench.post(volumes, volume).await;
    let mut set = stateful_set("db", 1, "cairn.test/web:1");
    let mut claim = claim_spec();
    claim["storageClassName"] = json!(class);
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    let uid = bench.up(&set).await;
    assert_eq!(bench.get(&path).await["status"]["phase"], "Bound");
    let residue = remove_set(&bench, &bench.object(&set), &uid, true).await;
    assert_eq!(residue, Vec::<String>::new());
    let live = bench.get(&path).await;
    assert!(live["spec"].get("claimRef").is_none(), "{live}");
    assert!(
        live["metadata"]["annotations"]
            .get("cairn.dev/removed-claim")
            .is_none(),
        "{live}"
    );
    bench.call("DELETE", &path, None).await.unwrap();
    let class = format!("/apis/storage.k8s.io/v1/storageclasses/{class}");
    bench.call("DELETE", &class, None).await.unwrap();
    bench.done().await;
}
