//! How a request is answered: authentication, faults, then the part that its path names.

use axum::Router;
use axum::body::Body;
use axum::extract::State as FromState;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};

use crate::cluster::SimCluster;
use crate::faults::{FaultAction, RequestFacts, When};
use crate::json;
use crate::requests::{self, RequestRecord};
use crate::status::{ApiError, ApiResult};

mod body;
mod eviction;
mod meta;
mod patch;
mod path;
mod query;
mod resource;
mod reviews;
mod scale;

use path::Target;
use query::Query;

/// The largest body that is read, as on a real server.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

pub(crate) fn router(cluster: SimCluster) -> Router {
    Router::new().fallback(answer).with_state(cluster)
}

/// A request taken apart.
pub(crate) struct Call {
    pub method: Method,
    pub target: Target,
    pub query: Query,
    pub content_type: String,
    pub accept: String,
    pub user_agent: String,
    pub body: Bytes,
}

impl Call {
    /// The field manager: the parameter, else the first word of the user agent.
    pub fn manager(&self) -> String {
        let given = self.query.text("fieldManager");
        if !given.is_empty() {
            return given.to_owned();
        }
        self.user_agent
            .split('/')
            .next()
            .filter(|s| !s.is_empty())
            .unwrap_or("unknown")
            .to_owned()
    }

    pub fn dry_run(&self) -> bool {
        self.query.text("dryRun") == "All"
    }

    fn is_watch(&self) -> bool {
        self.method == Method::GET && self.query.flag("watch")
    }
}

async fn answer(
    FromState(cluster): FromState<SimCluster>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let header = |name: header::HeaderName| {
        parts
            .headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mut record = RequestRecord {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        manager: String::new(),
        status: 0,
        dry_run: false,
        watch: false,
    };
    let response = match Limited::new(body, BODY_LIMIT).collect().await {
        Err(_) => ApiError::new(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
        )
        .into_response(),
        Ok(collected) => {
            let call = Call {
                method: parts.method.clone(),
                target: path::parse(parts.uri.path()),
                query: Query::parse(parts.uri.query().unwrap_or_default()),
                content_type: header(header::CONTENT_TYPE),
                accept: header(header::ACCEPT),
                user_agent: header(header::USER_AGENT),
                body: collected.to_bytes(),
            };
            record.manager = call.manager();
            record.dry_run = call.dry_run();
            record.watch = call.is_watch();
            authenticated(
                &cluster,
                &header(header::AUTHORIZATION),
                &call,
                &record.path,
            )
            .await
        }
    };
    let broken = response.extensions().get::<Broken>().is_some();
    record.status = if broken {
        0
    } else {
        response.status().as_u16()
    };
    tracing::debug!(
        method = record.method,
        path = record.path,
        status = record.status,
        "answered"
    );
    requests::remember(&mut cluster.inner.lock().requests, record);
    response
}

async fn authenticated(
    cluster: &SimCluster,
    authorization: &str,
    call: &Call,
    path: &str,
) -> Response<Body> {
    let wanted = cluster.inner.options.bearer_token.as_deref();
    let open = matches!(call.target, Target::Health);
    if let Some(token) = wanted.filter(|_| !open)
        && authorization.strip_prefix("Bearer ") != Some(token)
    {
        return ApiError::unauthorized().into_response();
    }
    with_faults(cluster, call, path).await
}

async fn with_faults(cluster: &SimCluster, call: &Call, path: &str) -> Response<Body> {
    let action = {
        let name = call.target.name(&call.body);
        let (resource, subresource) = call.target.resource();
        let facts = RequestFacts {
            method: if call.is_watch() {
                "WATCH"
            } else {
                call.method.as_str()
            },
            path,
            resource,
            name: &name,
            subresource,
        };
        cluster.inner.lock().faults.strike(&facts)
    };
    match action {
        None => dispatch(cluster, call, false, false),
        Some(FaultAction::WatchGone) => dispatch(cluster, call, true, false),
        Some(FaultAction::IgnoreScale) => dispatch(cluster, call, false, true),
        Some(FaultAction::Delay(time)) => {
            tokio::time::sleep(time).await;
            dispatch(cluster, call, false, false)
        }
        Some(FaultAction::Answer {
            status,
            message,
            retry_after,
            when,
        }) => {
            if when == When::After {
                dispatch(cluster, call, false, false);
            }
            scripted(status, message, retry_after).into_response()
        }
        Some(FaultAction::DropAnswer(when)) => {
            if when == When::After {
                dispatch(cluster, call, false, false);
            }
            broken()
        }
        Some(FaultAction::Hang(time, when)) => {
            if when == When::After {
                dispatch(cluster, call, false, false);
            }
            tokio::time::sleep(time).await;
            broken()
        }
    }
}

/// Marks an answer that never reaches the client.
#[derive(Clone)]
struct Broken;

/// A connection that breaks: the body fails before its first byte.
fn broken() -> Response<Body> {
    let failure = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "connection reset");
    let stream = futures::stream::once(async { Err::<Bytes, _>(failure) });
    let mut response = Response::new(Body::from_stream(stream));
    response.extensions_mut().insert(Broken);
    response
}

fn scripted(status: u16, message: String, retry_after: Option<u32>) -> ApiError {
    let (reason, usual) = match status {
        400 => ("BadRequest", "the request is bad"),
        401 => ("Unauthorized", "Unauthorized"),
        403 => (
            "Forbidden",
            "forbidden: the simulated cluster was told to refuse",
        ),
        404 => (
            "NotFound",
            "the server could not find the requested resource",
        ),
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        410 => (
            "Expired",
            "The resourceVersion for the provided watch is too old.",
        ),
        422 => (
            "Invalid",
            "invalid: the simulated cluster was told to refuse",
        ),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => (
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
        ),
        _ => (
            "InternalError",
            "an error on the server has prevented the request from succeeding",
        ),
    };
    let text = if message.is_empty() {
        usual.to_owned()
    } else {
        message
    };
    let mut error = ApiError::new(status, reason, text);
    if let Some(seconds) = retry_after {
        error.details = serde_json::json!({"retryAfterSeconds": seconds});
        error.retry_after = Some(seconds);
    }
    error
}

fn dispatch(cluster: &SimCluster, call: &Call, gone: bool, ignore_scale: bool) -> Response<Body> {
    let answered: ApiResult<Response<Body>> = match &call.target {
        Target::Resource(at) => resource::answer(cluster, call, at, gone, ignore_scale),
        Target::Nowhere => Err(ApiError::no_such_group()),
        meta => meta::answer(cluster, call, meta),
    };
    answered.unwrap_or_else(ApiError::into_response)
}

/// A plain text answer.
fn text(body: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/plain"),
    );
    response
}

/// The name in a body, for faults that match creations by name.
fn body_name(body: &Bytes) -> String {
    serde_json::from_slice::<serde_json::Value>(body)
        .map(|object| json::name(&object).to_owned())
        .unwrap_or_default()
}
