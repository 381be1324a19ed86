//! What the survey says of the Jobs of hooks.

use crate::bench::{Bench, item, simulated};
use crate::objects::{config_map, job};
use cairn_domain::hook::{LABEL, Moment, ResultFrom};
use cairn_domain::ports::{HookJob, SurveyItem, SurveyRequest};
use cairn_domain::waits::Obstacle;
use serde_json::{Value, json};

/// A hook whose Job needs a `ConfigMap`, a `Secret` and a `ServiceAccount`.
fn hook(moment: Moment) -> SurveyItem {
    let mut manifest = job("cairn-hook-1", "cairn.test/sh:1", &["true"], 0);
    manifest["metadata"]["labels"] = json!({LABEL: "some_hook"});
    let pod = &mut manifest["spec"]["template"]["spec"];
    pod["serviceAccountName"] = json!("runner");
    pod["volumes"] = json!([{"name": "c", "configMap": {"name": "cfg"}},
        {"name": "s", "secret": {"secretName": "key"}}]);
    SurveyItem {
        hook: Some(HookJob {
            moment,
            result: ResultFrom::Optional,
            registers_vim: false,
        }),
        ..item(&manifest)
    }
}

/// What the hook needs.
fn needed() -> [(&'static str, Value); 3] {
    let named = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    [
        ("configmaps", config_map("cfg", "a")),
        ("secrets", named("Secret", "key")),
        ("serviceaccounts", named("ServiceAccount", "runner")),
    ]
}

fn with(hook: SurveyItem, manifests: &[Value]) -> SurveyRequest {
    let items = manifests.iter().map(item).chain([hook]);
    SurveyRequest {
        items: items.collect(),
        ..SurveyRequest::default()
    }
}

fn says(told: &[Obstacle], object: &str, reason: &str, text: &str) {
    assert!(
        told.iter()
            .any(|o| o.object == object && o.reason == reason && o.message.contains(text)),
        "{object} {reason} {text} in {told:?}"
    );
}

pub async fn what_the_package_makes_is_not_there_for_a_hook_that_runs_before_it(bench: Bench) {
    let ours = needed().map(|(_, manifest)| manifest);
    for (moment, when) in [
        (
            Moment::Start,
            "some_hook runs before the objects of the package are made",
        ),
        (
            Moment::RollbackEnd,
            "some_hook runs when the objects of the package are removed again",
        ),
    ] {
        let told = bench.blocked(&with(hook(moment), &ours)).await;
        for name in ["ConfigMap/cfg", "Secret/key", "ServiceAccount/runner"] {
            let text = format!("needs {name} in namespace {}", bench.namespace);
            says(&told, "Job/cairn-hook-1", "Missing", &text);
        }
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told.iter().all(|o| o.message.contains(when)), "{told:?}");
    }
    // The others run when it is there, or may be.
    for moment in [Moment::End, Moment::RollbackStart] {
        bench.survey(&with(hook(moment), &ours)).await;
    }
    // Made beforehand, it is there for all.
    for (plural, manifest) in needed() {
        bench.post(&bench.path(plural, ""), manifest).await;
    }
    bench.survey(&with(hook(Moment::Start), &[])).await;
    bench.done().await;
}

pub async fn a_hook_does_not_run_in_a_namespace_that_is_made_after_it(mut bench: Bench) {
    let own = format!("{}-own", bench.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}});
    bench.scope.namespace.clone_from(&own);
    let ours: Vec<Value> = [namespace]
        .into_iter()
        .chain(needed().map(|(_, manifest)| manifest))
        .collect();
    bench.survey(&with(hook(Moment::End), &ours)).await;
    let told = bench.blocked(&with(hook(Moment::Start), &ours)).await;
    says(
        &told,
        "Job/cairn-hook-1",
        "Missing",
        &format!("namespace {own} is one of them"),
    );
    bench.done().await;
}

pub async fn a_terminate_leaves_hooks_out_where_their_namespace_is_gone(mut bench: Bench) {
    let request = SurveyRequest {
        skip_dry_run: true,
        ends_hooks: true,
        ..with(hook(Moment::Start), &[])
    };
    let told = bench.blocked(&request).await;
    says(&told, "Job/cairn-hook-1", "Missing", "ConfigMap/cfg");
    "no-such-namespace".clone_into(&mut bench.scope.namespace);
    let survey = bench.survey(&request).await;
    assert_eq!(
        survey.hooks_left_out.as_deref(),
        Some("namespace no-such-namespace does not exist")
    );
    assert_eq!(survey.items, []);
    // Any other operation cannot do without.
    let others = SurveyRequest {
        ends_hooks: false,
        ..request
    };
    let told = bench.blocked(&others).await;
    says(
        &told,
        "Namespace/no-such-namespace",
        "Missing",
        "does not exist",
    );
    bench.done().await;
}

#[tokio::test]
async fn the_rights_of_hooks_are_asked_for_before_the_first_write() {
    let bench = simulated("rights").await;
    let namespace = bench.namespace.clone();
    for (verb, resource) in [
        ("get", "secrets"),
        ("create", "jobs"),
        ("watch", "pods"),
        ("delete", "jobs"),
    ] {
        bench.cluster().deny(verb, resource, &namespace);
    }
    let hook = |result: ResultFrom, registers_vim: bool| {
        let manifest = job("cairn-hook-1", "cairn.test/sh:1", &["true"], 0);
        let labelled = json!({"name": "cairn-hook-1", "labels": {LABEL: "some_hook"}});
        let mut item = item(&manifest);
        item.manifest["metadata"] = labelled;
        item.hook = Some(HookJob {
            moment: Moment::Start,
            result,
            registers_vim,
        });
        with(item, &[])
    };
    let told = bench.blocked(&hook(ResultFrom::Optional, false)).await;
    says(
        &told,
        "Job/cairn-hook-1",
        "Forbidden",
        "create jobs of batch",
    );
    says(&told, "Job/cairn-hook-1", "Forbidden", "watch pods");
    assert!(
        !told.iter().any(|o| o.message.contains("secrets")),
        "{told:?}"
    );
    let named = ResultFrom::Secret("made".into());
    let told = bench.blocked(&hook(named, false)).await;
    says(
        &told,
        "hook some_hook",
        "Forbidden",
        "get secrets named made",
    );
    let told = bench
        .blocked(&hook(ResultFrom::TerminationMessage, true))
        .await;
    says(
        &told,
        "hook some_hook",
        "Forbidden",
        "get secrets in namespace",
    );
    let ends = SurveyRequest {
        skip_dry_run: true,
        ends_hooks: true,
        ..SurveyRequest::default()
    };
    let told = bench.blocked(&ends).await;
    says(
        &told,
        "the Jobs of hooks",
        "Forbidden",
        "delete jobs of batch",
    );
    assert_eq!(told.len(), 1, "{told:?}");
    bench.done().await;
}
