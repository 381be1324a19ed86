//! What holds for every request: limits, time-outs, `Version`, `Accept`, and problem bodies for all that fails.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cairn_api_types::api_versions::{VNFLCM, VNFPKGM};
use cairn_api_types::problem_details::MEDIA_TYPE;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::body::SharedBody;
use crate::problem::ApiError;

/// State of the frame.
#[derive(Clone)]
pub(crate) struct Frame {
    app: App,
    room: Arc<Semaphore>,
}

impl Frame {
    pub(crate) fn new(app: App) -> Self {
        let room = Arc::new(Semaphore::new(app.settings.max_in_flight));
        Self { app, room }
    }
}

/// Which API a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    /// `/vnflcm/v2` without `api_versions`: `Version` is demanded.
    Vnflcm,
    /// The two `api_versions` of `vnflcm`, and whatever else stands there.
    VnflcmVersions,
    /// `/vnfpkgm/v2`.
    Vnfpkgm,
    /// `/vnfpkgm/v1`, as Tacker's clients use it.
    VnfpkgmV1,
    /// `/cairn/v1`.
    Cairn,
    /// Health and metrics.
    Root,
}

impl Api {
    fn of(path: &str) -> Self {
        let below = |prefix: &str| {
            path.strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if path == "/vnflcm/v2/api_versions" {
            Self::VnflcmVersions
        } else if below("/vnflcm/v2") {
            Self::Vnflcm
        } else if below("/vnflcm") {
            Self::VnflcmVersions
        } else if below("/vnfpkgm/v1") {
            Self::VnfpkgmV1
        } else if below("/vnfpkgm") {
            Self::Vnfpkgm
        } else if below("/cairn") {
            Self::Cairn
        } else {
            Self::Root
        }
    }

    /// What the `Version` header of an answer says.
    fn version(self) -> Option<&'static str> {
        match self {
            Self::Vnflcm | Self::VnflcmVersions => Some(VNFLCM),
            Self::Vnfpkgm | Self::VnfpkgmV1 => Some(VNFPKGM),
            Self::Cairn | Self::Root => None,
        }
    }
}

/// Runs a request inside its limits and finishes its answer.
pub(crate) async fn around(State(frame): State<Frame>, request: Request, next: Next) -> Response {
    let api = Api::of(request.uri().path());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    // One that waits to be asked for its body is not asked for what nobody wants.
    let waits = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let body = SharedBody::of(body);
    let request = Request::from_parts(parts, body.body());
    let response = match admit(&frame, api, &request) {
        Err(refused) => refused.into_response(),
        Ok(_permit) => run(&frame.app, request, next).await,
    };
    if !waits && is_refusal(response.status()) {
        body.discard().await;
    }
    let response = finish(api, response);
    let status = response.status();
    frame.app.metrics.answered(status.as_u16());
    tracing::debug!(%method, path, status = status.as_u16(), "answered");
    response
}

/// Whether the body may not have been read. A body that stopped coming is not waited for again.
fn is_refusal(status: StatusCode) -> bool {
    let failed = status.is_client_error() || status.is_server_error();
    failed && status != StatusCode::REQUEST_TIMEOUT
}

/// Decides whether a request may go on; the permit is kept until it is answered.
fn admit(
    frame: &Frame,
    api: Api,
    request: &Request,
) -> Result<Option<tokio::sync::OwnedSemaphorePermit>, ApiError> {
    if api == Api::Root {
        return Ok(None);
    }
    check_version(api, request.headers(), frame.app.settings.lenient)?;
    if answers_json(request.uri().path()) {
        must_accept(request.headers(), &["application/json"])?;
    }
    Arc::clone(&frame.room)
        .try_acquire_owned()
        .map(Some)
        .map_err(|_| ApiError::unavailable("too many requests at one time"))
}

fn check_version(api: Api, headers: &HeaderMap, lenient: bool) -> Result<(), ApiError> {
    let sent = headers.get("version");
    let given = sent.map(|value| value.to_str().unwrap_or("").trim());
    // SOL013 9.1.2 lets an implementation's own suffix follow.
    let number = given.map(|text| text.split_once("-impl:").map_or(text, |(number, _)| number));
    match (api, number) {
        (Api::Vnflcm, None) if !lenient => Err(ApiError::new(
            400,
            format!("the Version header is missing; send Version: {VNFLCM}"),
        )),
        (Api::Vnflcm, Some(number)) if number != VNFLCM => Err(ApiError::new(
            406,
            format!("this API version is not supported; {VNFLCM} is"),
        )),
        (Api::Vnfpkgm, Some(number)) if !number.starts_with("2.") && number != "2" => {
            Err(ApiError::new(
                406,
                format!("this API version is not supported; {VNFPKGM} is"),
            ))
        }
        (
            Api::Vnflcm
            | Api::VnflcmVersions
            | Api::Vnfpkgm
            | Api::VnfpkgmV1
            | Api::Cairn
            | Api::Root,
            _,
        ) => Ok(()),
    }
}

/// Files of packages come in types of their own; their handlers look at `Accept` themselves.
fn answers_json(path: &str) -> bool {
    let file = path.starts_with("/vnfpkgm/")
        && (path.ends_with("/package_content")
            || path.ends_with("/vnfd")
            || path.contains("/artifacts/"));
    !file
}

/// Refuses a request that accepts none of these types.
pub(crate) fn must_accept(
    headers: &HeaderMap,
    offered: &[&'static str],
) -> Result<&'static str, ApiError> {
    let mut accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.trim().to_ascii_lowercase())
        .filter(|range| !range.is_empty())
        .peekable();
    if accepted.peek().is_none() {
        return Ok(offered[0]);
    }
    accepted
        .filter(|range| !is_refused(range))
        .find_map(|range| {
            let range = range
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            offered.iter().copied().find(|kind| covers(&range, kind))
        })
        .ok_or_else(|| {
            ApiError::new(
                406,
                format!(
                    "none of the types in Accept can be given; {} can",
                    offered.join(", ")
                ),
            )
        })
}

/// Whether a range carries `q=0`.
fn is_refused(range: &str) -> bool {
    range.split(';').skip(1).any(|parameter| {
        parameter
            .trim()
            .strip_prefix("q=")
            .and_then(|q| q.parse::<f32>().ok())
            == Some(0.0)
    })
}

fn covers(range: &str, kind: &str) -> bool {
    range == "*/*"
        || range == kind
        || range
            .strip_suffix("/*")
            .is_some_and(|main| kind.split('/').next() == Some(main))
}

async fn run(app: &App, request: Request, next: Next) -> Response {
    let limit = if request.uri().path().ends_with("/package_content") {
        app.settings.upload_timeout
    } else {
        app.settings.request_timeout
    };
    within(limit, AssertUnwindSafe(next.run(request)).catch_unwind()).await
}

async fn within<F>(limit: Duration, answer: F) -> Response
where
    F: Future<Output = Result<Response, Box<dyn std::any::Any + Send>>>,
{
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(_panic)) => {
            tracing::error!("a handler panicked");
            ApiError::new(500, "a defect of the server; its log says more").into_response()
        }
        Err(_) => ApiError::unavailable(format!(
            "no answer within {} s; what was asked may still happen, so read before trying again",
            limit.as_secs()
        ))
        .into_response(),
    }
}

/// Gives a failure of the router itself (404, 405, …) its problem body, and every answer its `Version`.
fn finish(api: Api, response: Response) -> Response {
    let mut response = if needs_problem(&response) {
        with_problem(&response)
    } else {
        response
    };
    if let Some(version) = api.version() {
        response
            .headers_mut()
            .insert("version", HeaderValue::from_static(version));
    }
    response
}

fn needs_problem(response: &Response) -> bool {
    let failed = response.status().is_client_error() || response.status().is_server_error();
    let has_body = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == MEDIA_TYPE);
    failed && !has_body
}

fn with_problem(response: &Response) -> Response {
    let status = response.status();
    let detail = match status {
        StatusCode::NOT_FOUND => "there is no such resource",
        StatusCode::METHOD_NOT_ALLOWED => "this method is not supported here; see the Allow header",
        StatusCode::BAD_REQUEST => "the request's address cannot be read",
        _ => "the request cannot be answered",
    };
    let mut problem = ApiError::new(status.as_u16(), detail).into_response();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        problem.headers_mut().insert(header::ALLOW, allow.clone());
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(text))])
    }

    #[test]
    fn accept_ranges_are_read_with_their_weights() {
        let offered = ["text/plain", "application/zip"];
        for (sent, given) in [
            ("", Some("text/plain")),
            ("*/*", Some("text/plain")),
            ("application/zip", Some("application/zip")),
            ("application/*;q=0.5, text/html", Some("application/zip")),
            ("text/plain;q=0, application/zip", Some("application/zip")),
            ("text/html", None),
            ("*/*;q=0", None),
        ] {
            assert_eq!(
                must_accept(&accepting(sent), &offered).ok(),
                given,
                "{sent}"
            );
        }
        assert_eq!(
            must_accept(&HeaderMap::new(), &offered).ok(),
            Some("text/plain")
        );
    }

    #[test]
    fn a_path_belongs_to_one_api() {
        for (path, api) in [
            ("/vnflcm/v2/vnf_instances", Api::Vnflcm),
            ("/vnflcm/v2", Api::Vnflcm),
            ("/vnflcm/v2/api_versions", Api::VnflcmVersions),
            ("/vnflcm/api_versions", Api::VnflcmVersions),
            ("/vnflcm/v22", Api::VnflcmVersions),
            ("/vnfpkgm/v2/vnf_packages", Api::Vnfpkgm),
            ("/cairn/v1/vims", Api::Cairn),
            ("/healthz", Api::Root),
        ] {
            assert_eq!(Api::of(path), api, "{path}");
        }
    }
}
