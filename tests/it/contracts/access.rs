//! Who may do what, and what the server serves.

use cairn_tests::kinds::reviews;
use cairn_tests::place::{Place, list_path};
use cairn_tests::until::until;
use serde_json::{Value, json};
use std::time::Duration;

pub async fn without_a_token_or_with_a_wrong_one_the_answer_is_401(place: Place) {
    for token in [None, Some("wrong")] {
        let answer = place
            .kube
            .with_token(token)
            .get(&place.list("v1", "configmaps"))
            .await;
        // A real server may let anonymous callers in and forbid the call; without a token either says no.
        let expected: &[u16] = if token.is_none() { &[401, 403] } else { &[401] };
        assert!(
            expected.contains(&answer.status),
            "{token:?}: {}",
            answer.status
        );
        assert_eq!(answer.body["kind"], "Status");
        if answer.status == 401 {
            assert_eq!(
                (answer.reason(), answer.message()),
                ("Unauthorized", "Unauthorized")
            );
        }
    }
}

pub async fn what_an_account_may_not_do_is_answered_403(place: Place) {
    if let Some(sim) = &place.sim {
        // It has one user, who may do everything: the refusal is scripted.
        use cairn_simcluster::{Fault, FaultAction, RequestMatch, When};
        let action = FaultAction::Answer {
            status: 403,
            message: String::new(),
            retry_after: None,
            when: When::Before,
        };
        sim.inject(Fault::always(
            RequestMatch::method("POST").resource("secrets"),
            action,
        ));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let answer = place.kube.post(&place.list("v1", "secrets"), &secret).await;
        assert_eq!((answer.status, answer.reason()), (403, "Forbidden"));
        assert!(
            answer.message().contains("forbidden"),
            "{}",
            answer.message()
        );
        return;
    }
    let kube = place.kube.with_token(Some(&account_token(&place).await));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let answer = kube.post(&place.list("v1", "secrets"), &secret).await;
    assert_eq!((answer.status, answer.reason()), (403, "Forbidden"));
    assert!(
        answer.message().contains("forbidden"),
        "{}",
        answer.message()
    );
}

async fn account_token(place: &Place) -> String {
    let path = format!("{}/token", place.path("v1", "serviceaccounts", "default"));
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = place.kube.post(&path, &body).await.is(201);
    made["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

async fn may(place: &Place, verb: &str, resource: &str) -> Value {
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes":
            {"verb": verb, "resource": resource, "namespace": place.namespace}}});
    let path = list_path("authorization.k8s.io/v1", "selfsubjectaccessreviews", None);
    place.kube.post(&path, &body).await.is(201)["status"]["allowed"].clone()
}

pub async fn a_review_says_what_one_may_do(place: Place) {
    assert_eq!(may(&place, "create", "configmaps").await, true);
    if let Some(sim) = &place.sim {
        sim.deny("create", "secrets", &place.namespace);
        assert_eq!(may(&place, "create", "secrets").await, false);
        assert_eq!(may(&place, "delete", "secrets").await, true);
    } else {
        let kube = place.kube.with_token(Some(&account_token(&place).await));
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes":
                {"verb": "create", "resource": "secrets", "namespace": place.namespace}}});
        let path = list_path("authorization.k8s.io/v1", "selfsubjectaccessreviews", None);
        assert_eq!(
            kube.post(&path, &body).await.is(201)["status"]["allowed"],
            false
        );
    }
}

pub async fn kinds_that_can_only_be_created_say_so_in_discovery_and_are_answered_at_once(
    place: Place,
) {
    for (version, plural, namespaced, manifest) in reviews(&place) {
        let resources = place.kube.get(&format!("/apis/{version}")).await.is(200);
        let row = resources["resources"]
            .as_array()
            .expect("resources")
            .iter()
            .find(|row| row["name"] == plural)
            .unwrap_or_else(|| panic!("{plural} is served"))
            .clone();
        assert_eq!(row["verbs"], json!(["create"]), "{plural}");
        assert_eq!(row["namespaced"], json!(namespaced), "{plural}");
        let path = list_path(version, plural, namespaced.then_some(&place.namespace));
        let answer = place.kube.post(&path, &manifest).await;
        assert_eq!(answer.status, 201, "{plural}: {:#}", answer.body);
        assert!(
            answer.body.get("status").is_some(),
            "{plural}: {:#}",
            answer.body
        );
        // No patch, so no apply.
        let applied = place
            .kube
            .apply(&format!("{path}/x"), "m", false, &manifest)
            .await;
        assert!(
            matches!(applied.status, 404 | 405),
            "{plural}: {}",
            applied.status
        );
    }
    let binding = place.kube.get("/api/v1").await.is(200);
    let rows = binding["resources"].as_array().expect("resources");
    let binding = rows
        .iter()
        .find(|row| row["name"] == "bindings")
        .expect("bindings are served");
    assert_eq!(binding["verbs"], json!(["create"]));
}

pub async fn an_unknown_kind_is_404(place: Place) {
    let path = place.path("example.org/v1", "nothings", "x");
    let body =
        json!({"apiVersion": "example.org/v1", "kind": "Nothing", "metadata": {"name": "x"}});
    until(Duration::from_secs(5), "a 404", || async {
        let answer = place.kube.apply(&path, "m", false, &body).await;
        if answer.status == 404 {
            Ok(())
        } else {
            Err(answer.status)
        }
    })
    .await;
    assert_eq!(place.kube.get("/apis/example.org/v1").await.status, 404);
}
