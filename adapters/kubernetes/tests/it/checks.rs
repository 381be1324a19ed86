//! The survey.

use crate::bench::{Bench, item, items};
use crate::objects::{config_map, deployment, job, service};
use cairn_domain::lcm_op_occ::plan::{Action, PreState};
use cairn_domain::ports::SurveyRequest;
use serde_json::json;

pub async fn a_clear_survey_tells_what_is_there(bench: Bench) {
    let (web, cfg) = (
        deployment("web", 2, "cairn.test/web:1"),
        config_map("cfg", "a"),
    );
    let request = SurveyRequest {
        reads: vec![(bench.object(&cfg), None)],
        ..items(&[&web, &cfg])
    };
    let survey = bench.survey(&request).await;
    let system = bench.get("/api/v1/namespaces/kube-system").await;
    assert_eq!(survey.cluster_uid, system["metadata"]["uid"]);
    assert!(
        survey
            .items
            .iter()
            .all(|found| found.pre == PreState::Absent)
    );
    assert!(survey.items[0].kind.scalable && !survey.items[1].kind.scalable);
    assert_eq!(
        survey.items[0].object.namespace.as_deref(),
        Some(bench.namespace.as_str())
    );
    assert!(
        !bench.exists(&bench.path("deployments", "web")).await,
        "a survey writes nothing"
    );

    bench.up(&web).await;
    bench.must(&bench.apply(&cfg)).await;
    let request = SurveyRequest {
        workloads: vec![("VDU1".into(), bench.object(&web))],
        ..request
    };
    let survey = bench.survey(&request).await;
    assert_eq!(survey.vnfcs.len(), 2);
    let PreState::Ours {
        body,
        operation_id,
        replicas,
        deleting,
        failed,
        ..
    } = &survey.items[0].pre
    else {
        panic!("{:?}", survey.items[0].pre)
    };
    assert_eq!(
        (operation_id.as_deref(), *replicas, *deleting, *failed),
        (Some("op-1"), Some(2), false, false)
    );
    let cairn_domain::object::Body::Inline(body) = body else {
        panic!("a survey keeps bodies inline")
    };
    assert!(
        body.get("status").is_none() && body["metadata"].get("managedFields").is_none(),
        "{body}"
    );
    assert!(matches!(survey.reads[0].pre, PreState::Ours { .. }));
    bench.done().await;
}

pub async fn everything_in_the_way_is_told_at_once(bench: Bench) {
    bench
        .post(&bench.path("configmaps", ""), config_map("cfg", "theirs"))
        .await;
    let mut web = deployment("web", 1, "cairn.test/web:1");
    web["spec"]["template"]["spec"]["volumes"] = json!([{"name": "s", "secret": {"secretName": "absent"}}, {"name": "c", "configMap": {"name": "cfg"}}]);
    web["spec"]["template"]["spec"]["priorityClassName"] = json!("no-such-class");
    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "n"}});
    let misnamed =
        json!({"apiVersion": "apps/v1", "kind": "Deploiment", "metadata": {"name": "n"}});
    let mut elsewhere = config_map("other", "a");
    elsewhere["metadata"]["namespace"] = json!("no-such-namespace");
    let request = items(&[
        &config_map("cfg", "ours"),
        &web,
        &unknown,
        &misnamed,
        &elsewhere,
    ]);
    let told = bench.blocked(&request).await;
    let says = |object: &str, reason: &str, text: &str| {
        assert!(
            told.iter()
                .any(|o| o.object == object && o.reason == reason && o.message.contains(text)),
            "{object} {reason} {text} in {told:?}"
        );
    };
    says("ConfigMap/cfg", "NotOurs", "not touched");
    says("Deployment/web", "Missing", "Secret/absent");
    says("Deployment/web", "Missing", "PriorityClass/no-such-class");
    says("Nothing/n", "UnknownKind", "apps/v1");
    says("Deploiment/n", "UnknownKind", "Deployment");
    says("Namespace/no-such-namespace", "Missing", "does not exist");
    assert_eq!(told.len(), 6, "{told:?}");
    let mut invalid = deployment("web", 1, "cairn.test/web:1");
    invalid["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let told = bench.blocked(&items(&[&invalid])).await;
    assert_eq!(told[0].reason, "Invalid");
    let mut unknown_field = deployment("web", 1, "cairn.test/web:1");
    unknown_field["spec"]["replica"] = json!(1);
    let told = bench.blocked(&items(&[&unknown_field])).await;
    assert_eq!(told[0].reason, "Invalid", "{told:?}");
    bench.done().await;
}

pub async fn an_immutable_difference_asks_for_making_anew(bench: Bench) {
    let first = deployment("web", 1, "cairn.test/web:1");
    bench.must(&bench.apply(&first)).await;
    let run = job("run", "cairn.test/sh:1", &["sh", "-c", "read x"], 0);
    bench.must(&bench.apply(&run)).await;
    let mut other = first.clone();
    other["spec"]["selector"]["matchLabels"]["more"] = json!("x");
    other["spec"]["template"]["metadata"]["labels"]["more"] = json!("x");
    let survey = bench.survey(&items(&[&other])).await;
    let why = survey.items[0].needs_recreate.as_deref();
    assert!(why.is_some_and(|why| why.contains("immutable")), "{why:?}");
    assert_eq!(
        bench.survey(&items(&[&first])).await.items[0].needs_recreate,
        None
    );
    bench.done().await;
}

pub async fn an_autoscaler_that_targets_a_workload_is_told(bench: Bench) {
    let web = deployment("web", 1, "cairn.test/web:1");
    bench.must(&bench.apply(&web)).await;
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "grow"},
        "spec": {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    });
    let path = format!(
        "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
        bench.namespace
    );
    bench.post(&path, scaler).await;
    let request = SurveyRequest {
        scaled: vec![bench.object(&web)],
        ..SurveyRequest::default()
    };
    let told = bench.blocked(&request).await;
    assert_eq!(told[0].reason, "Autoscaled");
    assert!(
        told[0].message.contains("HorizontalPodAutoscaler/grow"),
        "{}",
        told[0].message
    );
    bench.done().await;
}

pub async fn kinds_and_namespaces_of_the_package_count_as_present(bench: Bench) {
    let group = format!("x{}.example.com", bench.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}
    });
    let name = format!("{}-own", bench.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut thing =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "one"}});
    thing["metadata"]["namespace"] = json!(name);
    let mut cfg = config_map("cfg", "a");
    cfg["metadata"]["namespace"] = json!(name);
    let mut web = deployment("web", 1, "cairn.test/web:1");
    web["metadata"]["namespace"] = json!(name);
    web["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "c", "configMap": {"name": "cfg"}}]);
    let request = SurveyRequest {
        items: [&definition, &namespace, &thing, &cfg, &web]
            .into_iter()
            .map(item)
            .collect(),
        ..SurveyRequest::default()
    };
    let survey = bench.survey(&request).await;
    assert!(
        survey
            .items
            .iter()
            .all(|found| found.pre == PreState::Absent)
    );
    assert_eq!(survey.items[0].object.namespace, None);
    assert_eq!(
        survey.items[2].object.namespace.as_deref(),
        Some(name.as_str())
    );
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "metadata": {"name": "may"}, "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let survey = bench.survey(&items(&[&review, &service("s", "a")])).await;
    assert!(survey.items[0].kind.create_only);
    let create = Action::Create {
        object: survey.items[0].object.clone(),
        manifest: cairn_domain::object::Body::Inline(review),
    };
    bench.must(&create).await;
    bench.done().await;
}
