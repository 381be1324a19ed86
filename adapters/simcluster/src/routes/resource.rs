//! Requests about objects and collections.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::path::At;
use super::{Call, body, eviction, patch, reviews, scale, text};
use crate::cluster::SimCluster;
use crate::delete::{DeleteOptions, Deleted};
use crate::json;
use crate::kinds::Kind;
use crate::selector::Selectors;
use crate::state::State;
use crate::status::{ApiError, ApiResult, Cause, json_response};
use crate::table::Shape;
use crate::watch::{self, WatchRequest};
use crate::write::{FieldValidation, Options, Written};

/// Answers a request about the place `at`.
pub(crate) fn answer(
    cluster: &SimCluster,
    call: &Call,
    at: &At,
    gone: bool,
    ignore_scale: bool,
) -> ApiResult<Response<Body>> {
    let kind = find_kind(cluster, at)?;
    if kind.create_only {
        return create_only(cluster, call, &kind, at);
    }
    match at.subresource.as_str() {
        "" => {}
        "status" if kind.has_status => {}
        "scale" if kind.scale.is_some() => {
            return scale::answer(cluster, call, &kind, at, ignore_scale);
        }
        "eviction" if kind.is("pods") => return eviction::answer(cluster, call, &kind, at),
        "binding" if kind.is("pods") => return create_only(cluster, call, &kind, at),
        "log" if kind.is("pods") => return log(cluster, &kind, at),
        "finalize" if kind.is("namespaces") => return finalize(cluster, call, &kind, at),
        _ => return Err(ApiError::no_such_path()),
    }
    let collection = at.name.is_empty();
    match (&call.method, collection) {
        (&Method::GET, _) if call.query.flag("watch") => watch_it(cluster, call, &kind, at, gone),
        (&Method::GET, true) => list(cluster, call, &kind, at),
        (&Method::GET, false) => get(cluster, call, &kind, at),
        (&Method::POST, true) => create(cluster, call, &kind, at),
        (&Method::PUT, false) => replace(cluster, call, &kind, at),
        (&Method::PATCH, false) => patch_it(cluster, call, &kind, at),
        (&Method::DELETE, false) => delete(cluster, call, &kind, at),
        (&Method::DELETE, true) => delete_collection(cluster, call, &kind, at),
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn find_kind(cluster: &SimCluster, at: &At) -> ApiResult<Arc<Kind>> {
    let state = cluster.inner.lock();
    let kind = state
        .kinds
        .by_path(&at.group, &at.version, &at.plural)
        .ok_or_else(|| {
            if state.kinds.serves(&at.group, &at.version) {
                ApiError::no_such_path()
            } else {
                ApiError::no_such_group()
            }
        })?;
    // A namespaced kind can be listed across namespaces, nothing else can be done there.
    let misplaced = if kind.namespaced {
        at.namespace.is_empty() && !at.name.is_empty()
    } else {
        !at.namespace.is_empty()
    };
    if misplaced {
        Err(ApiError::no_such_path())
    } else {
        Ok(kind)
    }
}

fn create_only(
    cluster: &SimCluster,
    call: &Call,
    kind: &Kind,
    at: &At,
) -> ApiResult<Response<Body>> {
    if call.method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let object = body::object(&call.content_type, &call.body)?;
    if kind.kind == "Binding" || at.subresource == "binding" {
        return cluster
            .inner
            .with(|state| reviews::bind(state, at, &object, call.dry_run()));
    }
    let answered = {
        let state = cluster.inner.lock();
        reviews::review(
            &state,
            cluster.inner.options.bearer_token.as_deref(),
            kind,
            at,
            object,
        )?
    };
    Ok(json_response(StatusCode::CREATED, &answered))
}

/// The options of a write, or 400/422 for what cannot be.
pub(crate) fn options<'a>(call: &Call, at: &'a At, manager: &'a str) -> ApiResult<Options<'a>> {
    let validation = match call.query.text("fieldValidation") {
        "Strict" => FieldValidation::Strict,
        "Ignore" => FieldValidation::Ignore,
        "" | "Warn" => FieldValidation::Warn,
        other => {
            return Err(ApiError::new(
                422,
                "Invalid",
                format!("fieldValidation: Unsupported value: \"{other}\""),
            ));
        }
    };
    let subresource = if at.subresource == "status" {
        "status"
    } else {
        ""
    };
    Ok(Options {
        manager,
        subresource,
        dry_run: call.dry_run(),
        validation,
    })
}

fn show(state: &State, call: &Call, kind: &Kind, object: &Value) -> Value {
    Shape::asked(&call.accept, call.query.text("includeObject")).one(&state.clock, kind, object)
}

fn written(state: &State, call: &Call, kind: &Kind, written: &Written) -> Response<Body> {
    let code = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = json_response(code, &show(state, call, kind, &written.object));
    for warning in &written.warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = http::HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}

fn get(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    let state = cluster.inner.lock();
    let object = state
        .get(&kind.storage(), &at.namespace, &at.name)
        .ok_or_else(|| ApiError::not_found(kind, &at.name))?;
    Ok(json_response(
        StatusCode::OK,
        &show(&state, call, kind, &object),
    ))
}

fn selectors(call: &Call, kind: &Kind, at: &At) -> ApiResult<Selectors> {
    let mut fields = call.query.text("fieldSelector").to_owned();
    // Watching one object by its path is watching the collection for its name.
    if !at.name.is_empty() {
        fields = format!("metadata.name={}", at.name);
    }
    Selectors::parse(&kind.storage(), call.query.text("labelSelector"), &fields)
}

fn list(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    refuse_initial_events(call)?;
    let selectors = selectors(call, kind, at)?;
    let state = cluster.inner.lock();
    let after = read_continue(&state, call.query.text("continue"))?;
    let place = |object: &Value| {
        (
            json::namespace(object).to_owned(),
            json::name(object).to_owned(),
        )
    };
    let mut found: Vec<Arc<Value>> = state
        .store
        .list(&kind.storage(), &at.namespace)
        .filter(|object| selectors.select(object))
        .filter(|object| after.as_ref().is_none_or(|after| place(object) > *after))
        .cloned()
        .collect();
    let mut metadata = json!({"resourceVersion": state.store.resource_version().to_string()});
    let limit = usize::try_from(call.query.number("limit").unwrap_or(0)).unwrap_or(usize::MAX);
    if limit > 0 && found.len() > limit {
        let rest = found.len() - limit;
        found.truncate(limit);
        let last = found.last().map(|object| place(object)).unwrap_or_default();
        metadata["continue"] = json!(write_continue(&state, &last));
        if selectors.is_empty() {
            metadata["remainingItemCount"] = json!(rest);
        }
    }
    let shape = Shape::asked(&call.accept, call.query.text("includeObject"));
    Ok(json_response(
        StatusCode::OK,
        &shape.list(&state.clock, kind, &metadata, &found),
    ))
}

fn write_continue(state: &State, last: &(String, String)) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": state.store.resource_version(),
        "namespace": last.0, "name": last.1});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_continue(state: &State, token: &str) -> ApiResult<Option<(String, String)>> {
    if token.is_empty() {
        return Ok(None);
    }
    let bad = || ApiError::bad_request("continue key is not valid");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    let version = json::at(&token, "/rv").as_u64().unwrap_or(0);
    if state.store.changes_after("", version).is_none() {
        return Err(ApiError::gone(
            "The provided continue parameter is too old to display a consistent list result. You \
             can start a new list without the continue parameter.",
        ));
    }
    let text = |field| json::text(&token, field).to_owned();
    Ok(Some((text("/namespace"), text("/name"))))
}

/// Streaming lists are a newer way that this server does not offer; clients fall back.
fn refuse_initial_events(call: &Call) -> ApiResult<()> {
    if !call.query.has("sendInitialEvents") {
        return Ok(());
    }
    let cause = Cause::forbidden(
        "sendInitialEvents",
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
    );
    Err(ApiError::invalid_options("ListOptions", &cause))
}

fn watch_it(
    cluster: &SimCluster,
    call: &Call,
    kind: &Arc<Kind>,
    at: &At,
    gone: bool,
) -> ApiResult<Response<Body>> {
    refuse_initial_events(call)?;
    let version = match call.query.text("resourceVersion") {
        "" | "0" => 0,
        text => text.parse().map_err(|_| {
            let text = format!(
                "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": \
                 invalid syntax"
            );
            ApiError::new(500, "", text)
        })?,
    };
    let seconds = call
        .query
        .number("timeoutSeconds")
        .filter(|s| *s > 0)
        .unwrap_or(1800);
    let request = WatchRequest {
        kind: Arc::clone(kind),
        namespace: at.namespace.clone(),
        selectors: selectors(call, kind, at)?,
        resource_version: version,
        timeout: Duration::from_secs(seconds),
        bookmarks: call.query.flag("allowWatchBookmarks"),
        shape: Shape::asked(&call.accept, call.query.text("includeObject")),
        gone,
    };
    Ok(watch::open(Arc::clone(&cluster.inner), request))
}

fn create(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    if kind.namespaced && at.namespace.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let object = body::object(&call.content_type, &call.body)?;
    let manager = call.manager();
    let options = options(call, at, &manager)?;
    cluster.inner.with(|state| {
        let done = state.create(kind, &at.namespace, object, &options)?;
        Ok(written(state, call, kind, &done))
    })
}

fn replace(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    let object = body::object(&call.content_type, &call.body)?;
    let manager = call.manager();
    let options = options(call, at, &manager)?;
    if json::name(&object) != at.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            json::name(&object),
            at.name
        )));
    }
    cluster.inner.with(|state| {
        let done = state.update(kind, (&at.namespace, &at.name), &options, |_| Ok(object))?;
        Ok(written(state, call, kind, &done))
    })
}

fn patch_it(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    let manager = call.manager();
    let options = options(call, at, &manager)?;
    let place = (at.namespace.as_str(), at.name.as_str());
    match patch::read(call)? {
        patch::Asked::Apply(config) => {
            if call.query.text("fieldManager").is_empty() {
                let cause = Cause::required("fieldManager", "is required for apply patch");
                return Err(ApiError::invalid_options("PatchOptions", &cause));
            }
            let force = call.query.flag("force");
            cluster.inner.with(|state| {
                let done = state.apply(kind, place, config, force, &options)?;
                Ok(written(state, call, kind, &done))
            })
        }
        patch::Asked::Patch(change) => {
            if call.query.flag("force") {
                let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
                return Err(ApiError::invalid_options("PatchOptions", &cause));
            }
            cluster.inner.with(|state| {
                let make = |live: &Value| change.apply(kind, live);
                let done = state.update(kind, place, &options, make)?;
                Ok(written(state, call, kind, &done))
            })
        }
    }
}

fn delete_options(call: &Call) -> ApiResult<DeleteOptions> {
    let mut options = DeleteOptions::read(&body::options(&call.content_type, &call.body)?)?;
    options.set_propagation(call.query.text("propagationPolicy"))?;
    if let Ok(seconds) = call.query.text("gracePeriodSeconds").parse() {
        options.grace_seconds = Some(seconds);
    }
    options.dry_run |= call.dry_run();
    Ok(options)
}

fn delete(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    let options = delete_options(call)?;
    cluster.inner.with(|state| {
        let deleted = state.delete(kind, (&at.namespace, &at.name), &options)?;
        let body = match deleted {
            Deleted::Pending(object) => show(state, call, kind, &object),
            // A pod that is gone at once is still answered as a pod.
            Deleted::Gone(object) if kind.is("pods") => show(state, call, kind, &object),
            Deleted::Gone(object) => {
                let mut details = json!({"name": at.name, "kind": kind.plural,
                    "uid": json::uid(&object)});
                if !kind.group.is_empty() {
                    details["group"] = json!(kind.group);
                }
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Success", "details": details})
            }
        };
        Ok(json_response(StatusCode::OK, &body))
    })
}

fn delete_collection(
    cluster: &SimCluster,
    call: &Call,
    kind: &Kind,
    at: &At,
) -> ApiResult<Response<Body>> {
    if kind.namespaced && at.namespace.is_empty() || kind.is("namespaces") {
        return Err(ApiError::method_not_allowed());
    }
    let options = delete_options(call)?;
    let selectors = selectors(call, kind, at)?;
    cluster.inner.with(|state| {
        let found: Vec<Arc<Value>> = state
            .store
            .list(&kind.storage(), &at.namespace)
            .filter(|object| selectors.select(object))
            .cloned()
            .collect();
        for object in &found {
            let place = (json::namespace(object), json::name(object));
            match state.delete(kind, place, &options) {
                Ok(_) => {}
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let metadata = json!({"resourceVersion": state.store.resource_version().to_string()});
        let shape = Shape::asked(&call.accept, "");
        Ok(json_response(
            StatusCode::OK,
            &shape.list(&state.clock, kind, &metadata, &found),
        ))
    })
}

/// What a container said: the simulation has only its start to tell.
fn log(cluster: &SimCluster, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    let state = cluster.inner.lock();
    let pod = state
        .get("pods", &at.namespace, &at.name)
        .ok_or_else(|| ApiError::not_found(kind, &at.name))?;
    let started = text_of(&pod, "/status/startTime");
    Ok(text(&format!(
        "{started} simulated container of {} started\n",
        at.name
    )))
}

fn text_of(object: &Value, pointer: &str) -> String {
    json::text(object, pointer).to_owned()
}

/// The last step of a namespace's end: its `spec.finalizers` are taken away.
fn finalize(cluster: &SimCluster, call: &Call, kind: &Kind, at: &At) -> ApiResult<Response<Body>> {
    if call.method != Method::PUT {
        return Err(ApiError::method_not_allowed());
    }
    let asked = body::object(&call.content_type, &call.body)?;
    let manager = call.manager();
    cluster.inner.with(|state| {
        let done = state.update(kind, ("", &at.name), &Options::by(&manager), |live| {
            let mut next = live.clone();
            json::set(
                &mut next,
                "/spec/finalizers",
                json::at(&asked, "/spec/finalizers").clone(),
            );
            Ok(next)
        })?;
        let object = &done.object;
        let free = json::list(object, "/spec/finalizers").is_empty()
            && json::list(object, "/metadata/finalizers").is_empty();
        if json::is_deleting(object) && free {
            state.remove_now(kind, object);
        }
        Ok(json_response(StatusCode::OK, object))
    })
}
