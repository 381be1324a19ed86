//! What is written, and what is left alone.

use crate::bench::{Bench, uid_of};
use crate::objects::{config_map, deployment, job, service, stateful_set};
use cairn_domain::ids::VnfLcmOpOccId;
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, PreState};
use cairn_domain::object::{Body, ObjectRef, Uid};
use serde_json::{Value, json};

pub async fn a_workload_is_made_marked_scaled_and_removed(bench: Bench) {
    let manifests = [
        config_map("cfg", "a"),
        deployment("web", 2, "cairn.test/web:1"),
        service("web", "web"),
    ];
    let mut made = Vec::new();
    for manifest in &manifests {
        let outcome = bench.must(&bench.apply(manifest)).await;
        assert!(
            matches!(outcome, Outcome::Applied { created: true, .. }),
            "{outcome:?}"
        );
        made.push((bench.object(manifest), Some(uid_of(&outcome))));
    }
    let all: Vec<&Value> = manifests.iter().collect();
    bench.until_done(&bench.ready(&all)).await;
    for (manifest, (_, uid)) in manifests.iter().zip(&made) {
        let again = bench.must(&bench.apply(manifest)).await;
        let uid = uid.clone().unwrap();
        assert_eq!(again, applied_again(uid));
    }
    is_marked(&bench).await;
    is_scaled(&bench, &bench.object(&manifests[1])).await;
    bench.until_done(&bench.ready(&all)).await;
    is_removed(&bench, &made).await;
    bench.done().await;
}

fn applied_again(uid: Uid) -> Outcome {
    Outcome::Applied {
        uid,
        created: false,
        overridden: Vec::new(),
    }
}

async fn is_marked(bench: &Bench) {
    let live = bench.get(&bench.path("deployments", "web")).await;
    let instance = json!(bench.scope.instance.as_str());
    let metadata = &live["metadata"];
    assert_eq!(metadata["labels"]["cairn.dev/vnf-instance-id"], instance);
    assert_eq!(metadata["annotations"]["cairn.dev/operation-id"], "op-1");
    assert_eq!(metadata["annotations"]["cairn.dev/package-digest"], "d1");
    let template = &live["spec"]["template"]["metadata"];
    assert_eq!(template["labels"]["cairn.dev/vnf-instance-id"], instance);
    assert!(template["annotations"].is_null(), "{template}");
}

async fn is_scaled(bench: &Bench, web: &ObjectRef) {
    let inventory = Action::TakeInventory {
        workloads: vec![("VDU1".into(), web.clone())],
    };
    let Outcome::Inventory { vnfcs } = bench.must(&inventory).await else {
        panic!("no inventory")
    };
    assert_eq!(vnfcs.len(), 2);
    assert!(
        vnfcs
            .iter()
            .all(|v| v.vdu_id == "VDU1" && v.workload_kind == "Deployment")
    );
    let scale = Action::SetReplicas {
        object: web.clone(),
        from: 2,
        to: 3,
    };
    let set = |from| Outcome::ReplicasSet { from, to: 3 };
    assert_eq!(bench.must(&scale).await, set(2));
    assert_eq!(bench.must(&scale).await, set(3));
}

async fn is_removed(bench: &Bench, made: &[(ObjectRef, Option<Uid>)]) {
    let delete = |object: &ObjectRef, uid: Option<Uid>| Action::Delete {
        object: object.clone(),
        uid,
        grace_s: None,
    };
    for (object, uid) in made {
        let outcome = bench.must(&delete(object, uid.clone())).await;
        assert_eq!(outcome, Outcome::Deleted { was_absent: false });
    }
    let gone = Action::AwaitGone {
        objects: made.to_vec(),
        volumes: false,
    };
    let none = Outcome::Gone {
        residue: Vec::new(),
    };
    assert_eq!(bench.until_done(&gone).await, none);
    let pods = bench.get(&bench.path("pods", "")).await;
    assert_eq!(pods["items"], json!([]));
    let outcome = bench.must(&delete(&made[0].0, None)).await;
    assert_eq!(outcome, Outcome::Deleted { was_absent: true });
}

pub async fn an_apply_keeps_the_number_that_was_scaled_to(bench: Bench) {
    let mut web = deployment("web", 1, "cairn.test/web:1");
    bench
        .must(&Action::Apply {
            object: bench.object(&web),
            manifest: Body::Inline(web.clone()),
            replicas: Some(2),
            force_owned: false,
        })
        .await;
    let path = bench.path("deployments", "web");
    assert_eq!(
        bench.get(&path).await["spec"]["replicas"],
        2,
        "an absent one gets the number of its level"
    );
    bench.must(&bench.apply(&web)).await;
    assert_eq!(
        bench.get(&path).await["spec"]["replicas"],
        2,
        "our own number stays"
    );
    bench
        .must(&Action::SetReplicas {
            object: bench.object(&web),
            from: 2,
            to: 3,
        })
        .await;
    web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("cairn.test/web:2");
    bench.must(&bench.apply(&web)).await;
    bench.must(&bench.apply(&web)).await;
    let live = bench.get(&path).await;
    assert_eq!(live["spec"]["replicas"], 3, "the scaled number stays");
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"][0]["image"],
        "cairn.test/web:2"
    );
    bench.done().await;
}

pub async fn what_belongs_to_somebody_else_is_not_touched(bench: Bench) {
    let path = bench.path("configmaps", "cfg");
    let foreign = bench
        .post(&bench.path("configmaps", ""), config_map("cfg", "theirs"))
        .await;
    let told = bench
        .refused(&bench.apply(&config_map("cfg", "ours")))
        .await;
    assert_eq!(told[0].reason, "NotOurs");
    assert!(
        told[0]
            .message
            .contains("ConfigMap/cfg exists and belongs to"),
        "{}",
        told[0].message
    );
    let delete = Action::Delete {
        object: bench.object(&foreign),
        uid: None,
        grace_s: None,
    };
    assert_eq!(
        bench.must(&delete).await,
        Outcome::Deleted { was_absent: true }
    );
    let live = bench.get(&path).await;
    assert_eq!(live["data"], foreign["data"]);
    assert_eq!(
        live["metadata"]["resourceVersion"],
        foreign["metadata"]["resourceVersion"]
    );
    bench.done().await;
}

pub async fn a_field_of_another_manager_is_a_conflict_until_it_was_ours(mut bench: Bench) {
    let web = deployment("web", 1, "cairn.test/web:1");
    bench.must(&bench.apply(&web)).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "web", "image": "cairn.test/web:2"}]}}}});
    // As `kubectl set image` does it: a strategic merge by another manager.
    let path = format!(
        "{}?fieldManager=kubectl-set",
        bench.path("deployments", "web")
    );
    strategic(&bench, &path, image).await;
    let told = bench.refused(&bench.apply(&web)).await;
    assert_eq!(told[0].reason, "FieldConflict");
    assert!(
        told[0].message.contains("kubectl-set") && told[0].message.contains("image"),
        "{}",
        told[0].message
    );
    let heal = Action::Apply {
        object: bench.object(&web),
        manifest: Body::Inline(web.clone()),
        replicas: None,
        force_owned: true,
    };
    let Outcome::Applied { overridden, .. } = bench.must(&heal).await else {
        panic!("not applied")
    };
    assert_eq!(overridden.len(), 1);
    assert!(
        overridden[0].starts_with("kubectl-set: .spec.template"),
        "{overridden:?}"
    );
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "web", "image": "cairn.test/web:2"}]}}}});
    strategic(&bench, &path, image).await;
    bench.scope.take_over = true;
    bench.must(&bench.apply(&web)).await;
    let live = bench.get(&bench.path("deployments", "web")).await;
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"][0]["image"],
        "cairn.test/web:1"
    );
    bench.done().await;
}

async fn strategic(bench: &Bench, path: &str, change: Value) {
    bench.call("STRATEGIC", path, Some(change)).await.unwrap();
}

pub async fn an_object_being_deleted_is_waited_for(bench: Bench) {
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
    let plain = config_map("cfg", "a");
    let told = bench.refused(&bench.apply(&plain)).await;
    assert_eq!(told[0].reason, "Finalizers");
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
    let again = bench.until_done(&bench.apply(&plain)).await;
    assert!(
        matches!(&again, Outcome::Applied { created: true, uid: new, .. } if *new != uid),
        "{again:?}"
    );
    bench.done().await;
}

pub async fn a_failed_job_is_made_again_and_a_succeeded_one_is_left(bench: Bench) {
    let mut failing = job("run", "cairn.test/crash:1", &[], 0);
    failing["spec"]["template"]["metadata"] =
        json!({"annotations": {"simcluster.cairn.dev/crash": "always"}});
    failing["spec"]["template"]["spec"]["containers"][0]
        .as_object_mut()
        .unwrap()
        .remove("command");
    let first = uid_of(&bench.must(&bench.apply(&failing)).await);
    let ready = bench.ready(&[&failing]);
    let told = bench
        .until_told(&ready, |o| o.source == "Job" && o.reason == "Failed")
        .await;
    assert!(
        told.message.contains("BackoffLimitExceeded"),
        "{}",
        told.message
    );
    let told = bench.refused(&bench.apply(&failing)).await;
    assert_eq!(told[0].reason, "BeingReplaced");
    let mut mended = job("run", "cairn.test/job:1", &[], 0);
    mended["spec"]["template"]["spec"]["containers"][0]
        .as_object_mut()
        .unwrap()
        .remove("command");
    let again = bench.until_done(&bench.apply(&mended)).await;
    let second = uid_of(&again);
    assert_ne!(first, second);
    bench.until_done(&bench.ready(&[&mended])).await;
    let left = bench.must(&bench.apply(&mended)).await;
    assert_eq!(
        left,
        Outcome::Applied {
            uid: second,
            created: false,
            overridden: Vec::new()
        }
    );
    bench.done().await;
}

pub async fn the_recorded_state_is_restored_and_equal(mut bench: Bench) {
    let first = deployment("web", 1, "cairn.test/web:1");
    let ports = service("web", "web");
    for manifest in [&first, &ports] {
        bench.up(manifest).await;
    }
    bench
        .patch(
            &bench.path("deployments", "web"),
            json!({"metadata": {"labels": {"theirs": "1"}}}),
        )
        .await;
    let mut second = deployment("web", 1, "cairn.test/web:2");
    second["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "b"}]);
    let mut other_ports = ports.clone();
    other_ports["spec"]["ports"][0]["port"] = json!(81);
    let request = crate::bench::items(&[&second, &other_ports]);
    let survey = bench.survey(&request).await;
    let recorded: Vec<Body> = survey
        .items
        .iter()
        .map(|found| match &found.pre {
            PreState::Ours { body, .. } => body.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    bench.scope.operation = VnfLcmOpOccId::parse("op-2").unwrap();
    bench
        .scope
        .known_operations
        .push(bench.scope.operation.clone());
    for manifest in [&second, &other_ports] {
        bench.must(&bench.apply(manifest)).await;
    }
    let equal: Vec<_> = [&first, &ports]
        .iter()
        .map(|m| bench.object(m))
        .zip(recorded.iter().cloned())
        .collect();
    let verify = Action::Verify {
        equal: equal.clone(),
        absent: Vec::new(),
        replicas: Vec::new(),
    };
    let told = bench.refused(&verify).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].message.contains("image"), "{told:?}");
    for (object, body) in equal {
        let restore = Action::Apply {
            object,
            manifest: body,
            replicas: None,
            force_owned: true,
        };
        bench.must(&restore).await;
    }
    assert_eq!(bench.must(&verify).await, Outcome::Verified);
    bench.until_done(&bench.ready(&[&first, &ports])).await;
    let live = bench.get(&bench.path("deployments", "web")).await;
    assert_eq!(live["metadata"]["labels"]["theirs"], "1");
    assert!(live["spec"]["template"]["spec"]["containers"][0]["env"].is_null());
    bench.done().await;
}

pub async fn a_definition_and_its_resource_are_made_in_turn(bench: Bench) {
    let group = format!("{}.example.com", bench.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"size": {"type": "integer"}}}}}}}]}
    });
    let thing = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing",
        "metadata": {"name": "one"}, "spec": {"size": 1}});
    let told = bench.refused(&bench.apply(&thing)).await;
    assert_eq!(told[0].reason, "NotYetServed");
    let mut at = bench.object(&definition);
    at.namespace = None;
    let make = Action::Apply {
        object: at.clone(),
        manifest: Body::Inline(definition),
        replicas: None,
        force_owned: false,
    };
    let definition_uid = uid_of(&bench.must(&make).await);
    bench
        .until_done(&Action::AwaitReady {
            objects: vec![at.clone()],
            replaced: Vec::new(),
        })
        .await;
    let uid = uid_of(&bench.until_done(&bench.apply(&thing)).await);
    bench.until_done(&bench.ready(&[&thing])).await;
    bench
        .must(&Action::Delete {
            object: bench.object(&thing),
            uid: Some(uid.clone()),
            grace_s: None,
        })
        .await;
    let delete = Action::Delete {
        object: at.clone(),
        uid: Some(definition_uid.clone()),
        grace_s: None,
    };
    bench.must(&delete).await;
    let objects = vec![
        (bench.object(&thing), Some(uid)),
        (at.clone(), Some(definition_uid)),
    ];
    let Outcome::Gone { residue } = bench
        .until_done(&Action::AwaitGone {
            objects,
            volumes: false,
        })
        .await
    else {
        panic!("not gone")
    };
    assert_eq!(residue.len(), 1);
    assert!(
        residue[0].starts_with("CustomResourceDefinition/things."),
        "{residue:?}"
    );
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
        at.name
    );
    bench.call("DELETE", &path, None).await.unwrap();
    bench.done().await;
}

pub async fn a_restored_stateful_set_gets_past_its_broken_pod(mut bench: Bench) {
    let good = stateful_set("db", 2, "cairn.test/web:1");
    bench.up(&good).await;
    let mut bad = stateful_set("db", 2, "cairn.test/missing:1");
    bad["spec"]["template"]["metadata"]["annotations"] =
        json!({"simcluster.cairn.dev/pull": "fail"});
    bench.scope.operation = VnfLcmOpOccId::parse("op-2").unwrap();
    bench
        .scope
        .known_operations
        .push(bench.scope.operation.clone());
    bench.must(&bench.apply(&bad)).await;
    bench
        .until_told(&bench.ready(&[&bad]), |o| {
            o.object == "Pod/db-1"
                && matches!(o.reason.as_str(), "ErrImagePull" | "ImagePullBackOff")
        })
        .await;
    bench.must(&bench.apply(&good)).await;
    bench.until_done(&bench.ready(&[&good])).await;
    bench.done().await;
}
