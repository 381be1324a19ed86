//! The scale subresource.

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::path::At;
use super::{Call, body, patch};
use crate::apply::managed::Writer;
use crate::apply::server_side;
use crate::cluster::SimCluster;
use crate::json;
use crate::kinds::Kind;
use crate::selector;
use crate::state::State;
use crate::status::{ApiError, ApiResult, Cause, json_response};
use crate::write::{FieldValidation, Options};

pub(crate) fn answer(
    cluster: &SimCluster,
    call: &Call,
    kind: &Kind,
    at: &At,
    ignore: bool,
) -> ApiResult<Response<Body>> {
    let manager = call.manager();
    let options = Options {
        manager: &manager,
        subresource: "scale",
        dry_run: call.dry_run() || ignore,
        validation: FieldValidation::Warn,
    };
    let body = match call.method {
        Method::GET => {
            let state = cluster.inner.lock();
            let live = live(&state, kind, at)?;
            of(kind, &live)
        }
        Method::PUT => {
            let asked = body::object(&call.content_type, &call.body)?;
            cluster
                .inner
                .with(|state| write(state, kind, at, &options, |_| Ok(asked)))?
        }
        Method::PATCH => match patch::read(call)? {
            patch::Asked::Apply(config) => {
                let force = call.query.flag("force");
                cluster
                    .inner
                    .with(|state| apply(state, kind, at, &options, &config, force))?
            }
            patch::Asked::Patch(change) => cluster.inner.with(|state| {
                write(state, kind, at, &options, |scale| change.apply(kind, scale))
            })?,
        },
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(json_response(StatusCode::OK, &body))
}

fn live(state: &State, kind: &Kind, at: &At) -> ApiResult<Value> {
    state
        .get(&kind.storage(), &at.namespace, &at.name)
        .map(|object| (*object).clone())
        .ok_or_else(|| ApiError::not_found(kind, &at.name))
}

/// The Scale of an object.
fn of(kind: &Kind, object: &Value) -> Value {
    let paths = kind
        .scale
        .as_ref()
        .expect("asked only for kinds with a scale");
    let selector = match &paths.selector {
        Some(path) => json::text(object, path).to_owned(),
        None if json::has(object, "/spec/selector/matchLabels")
            || json::has(object, "/spec/selector/matchExpressions") =>
        {
            selector::to_text(json::at(object, "/spec/selector"))
        }
        None => selector::to_text(&json!({"matchLabels": json::at(object, "/spec/selector")})),
    };
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        metadata[field] = json::at(object, &format!("/metadata/{field}")).clone();
    }
    let replicas = json::int(object, &paths.spec_replicas, 0);
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": json::int(object, &paths.status_replicas, 0), "selector": selector},
    });
    if replicas != 0 {
        scale["spec"]["replicas"] = json!(replicas);
    }
    scale
}

fn write(
    state: &mut State,
    kind: &Kind,
    at: &At,
    options: &Options<'_>,
    make: impl FnOnce(&Value) -> ApiResult<Value>,
) -> ApiResult<Value> {
    let written = state.update(kind, (&at.namespace, &at.name), options, |live| {
        let before = of(kind, live);
        let after = make(&before)?;
        check(kind, &before, &after)?;
        let mut next = live.clone();
        set_replicas(kind, &mut next, &after);
        Ok(next)
    })?;
    Ok(of(kind, &written.object))
}

/// Scale's own version and UID are what the client saw of the object.
fn check(kind: &Kind, before: &Value, after: &Value) -> ApiResult<()> {
    let name = json::name(before);
    for field in ["/metadata/resourceVersion", "/metadata/uid"] {
        let asked = json::text(after, field);
        if !asked.is_empty() && asked != json::text(before, field) {
            return Err(ApiError::modified(kind, name));
        }
    }
    let replicas = json::int(after, "/spec/replicas", 0);
    if replicas < 0 {
        let detail = "must be greater than or equal to 0";
        let cause = Cause::invalid("spec.replicas", &Value::from(replicas), detail);
        let text = format!(
            "Scale.autoscaling \"{name}\" is invalid: {}: {}",
            cause.field, cause.message
        );
        let mut error = ApiError::new(422, "Invalid", text);
        error.details = json!({"name": name, "group": "autoscaling", "kind": "Scale"});
        return Err(error.with_causes(&[cause]));
    }
    Ok(())
}

fn set_replicas(kind: &Kind, object: &mut Value, scale: &Value) {
    let paths = kind
        .scale
        .as_ref()
        .expect("asked only for kinds with a scale");
    json::set(
        object,
        &paths.spec_replicas,
        json::int(scale, "/spec/replicas", 0),
    );
}

fn apply(
    state: &mut State,
    kind: &Kind,
    at: &At,
    options: &Options<'_>,
    config: &Value,
    force: bool,
) -> ApiResult<Value> {
    let stamp = state.clock.stamp();
    let live = live(state, kind, at)?;
    check(kind, &of(kind, &live), config)?;
    let mut claim = json!({});
    if json::has(config, "/spec/replicas") {
        set_replicas(kind, &mut claim, config);
    }
    let writer = Writer {
        manager: options.manager,
        subresource: "scale",
        now: &stamp,
    };
    let merged = server_side::apply(kind, &live, &claim, &writer, force)?;
    let written = state.replace_applied(kind, &live, merged, options)?;
    Ok(of(kind, &written))
}
