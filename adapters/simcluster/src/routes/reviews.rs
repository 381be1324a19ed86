//! Kinds that can only be created: reviews answer a question, a Binding places a pod.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::path::At;
use crate::json;
use crate::kinds::Kind;
use crate::state::State;
use crate::status::{ApiError, ApiResult, Cause, json_response};
use crate::write::Options;

/// Answers a review. Everything is allowed but what a test denied.
pub(crate) fn review(
    state: &State,
    token: Option<&str>,
    kind: &Kind,
    at: &At,
    mut review: Value,
) -> ApiResult<Value> {
    let given = json::kind(&review);
    if !given.is_empty() && given != kind.kind {
        return Err(ApiError::bad_request(format!(
            "the kind in the data ({given}) does not match the expected kind ({})",
            kind.kind
        )));
    }
    json::set(&mut review, "/apiVersion", kind.api_version());
    json::set(&mut review, "/kind", kind.kind.clone());
    json::set_default(&mut review, "/metadata", json!({}));
    let status = match kind.kind.as_str() {
        "TokenReview" => token_status(token, json::text(&review, "/spec/token")),
        "SelfSubjectReview" => json!({"userInfo": user()}),
        // What is denied cannot be said by rules.
        "SelfSubjectRulesReview" if !state.denials.is_empty() => json!({
            "resourceRules": [], "nonResourceRules": [], "incomplete": true,
            "evaluationError": "some accesses are denied one by one",
        }),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => access_status(state, kind, at, &review)?,
    };
    json::set(&mut review, "/status", status);
    Ok(review)
}

fn user() -> Value {
    json!({"username": "admin", "uid": "admin",
        "groups": ["system:masters", "system:authenticated"]})
}

fn token_status(token: Option<&str>, asked: &str) -> Value {
    if token.is_some_and(|token| token == asked) {
        return json!({"authenticated": true, "user": user(), "audiences":
            ["https://kubernetes.default.svc"]});
    }
    json!({"user": {}, "error": "invalid bearer token"})
}

fn access_status(state: &State, kind: &Kind, at: &At, review: &Value) -> ApiResult<Value> {
    let attributes = json::at(review, "/spec/resourceAttributes");
    let one = attributes.is_object() != json::has(review, "/spec/nonResourceAttributes");
    if !one {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        let cause = Cause::invalid("spec.resourceAttributes", attributes, detail);
        return Err(ApiError::invalid(kind, "", &[cause]));
    }
    let namespace = json::text(attributes, "/namespace");
    if kind.kind == "LocalSubjectAccessReview" && namespace != at.namespace {
        let detail = "must match metadata.namespace";
        let cause = Cause::invalid(
            "spec.resourceAttributes.namespace",
            &Value::from(namespace),
            detail,
        );
        return Err(ApiError::invalid(kind, "", &[cause]));
    }
    let (verb, resource) = (
        json::text(attributes, "/verb"),
        json::text(attributes, "/resource"),
    );
    let denied = state
        .denials
        .iter()
        .any(|denial| denial.covers(verb, resource, namespace));
    Ok(if denied {
        json!({"allowed": false})
    } else {
        json!({"allowed": true})
    })
}

/// Places a pod on a node.
pub(crate) fn bind(
    state: &mut State,
    at: &At,
    binding: &Value,
    dry_run: bool,
) -> ApiResult<Response<Body>> {
    let pods = state.kinds.get("pods");
    let name = if at.name.is_empty() {
        json::name(binding)
    } else {
        &at.name
    };
    let node = json::text(binding, "/target/name").to_owned();
    if node.is_empty() {
        let cause = Cause::required("target.name", "");
        return Err(ApiError::invalid(
            &state.kinds.get("bindings"),
            name,
            &[cause],
        ));
    }
    let options = Options {
        dry_run,
        ..Options::by("kube-scheduler")
    };
    state.update(&pods, (&at.namespace, name), &options, |live| {
        let bound = json::text(live, "/spec/nodeName");
        if !bound.is_empty() {
            let why = format!("pod {name} is already assigned to node \"{bound}\"");
            return Err(ApiError::conflict(&pods, name, &why));
        }
        let mut next = live.clone();
        json::set(&mut next, "/spec/nodeName", node);
        Ok(next)
    })?;
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "code": 201});
    Ok(json_response(StatusCode::CREATED, &body))
}
