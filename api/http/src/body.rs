//! Reading request bodies: bounded in size and time, refused with the place where they go wrong.

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Method, header};
use bytes::{Bytes, BytesMut};
use cairn_api_types::request::Shape;
use futures::{Stream, StreamExt};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

use crate::problem::ApiError;

/// Largest JSON body.
pub(crate) const JSON_LIMIT: usize = 1024 * 1024;
/// Largest CSAR.
pub(crate) const CSAR_LIMIT: usize = 64 * 1024 * 1024;
/// Most that is read of a body that is refused.
const DISCARD_LIMIT: usize = CSAR_LIMIT * 2;
/// Longest time that is spent on it.
const DISCARD_TIME: Duration = Duration::from_secs(5);
/// Longest wait for the next piece of a body.
const STALL: Duration = Duration::from_secs(10);

/// A JSON body; an absent one is `{}`, so that a missing member is named instead of the missing body.
pub(crate) struct JsonBody(pub(crate) Map<String, Value>);

/// A JSON body that may be anything, for the one resource that is a bare list.
pub(crate) struct AnyJson(pub(crate) Value);

impl JsonBody {
    /// Checks the shape; members that are not known are logged and then ignored.
    pub(crate) fn shaped(self, shape: &Shape) -> Result<Map<String, Value>, ApiError> {
        let checked = shape.check(self.0)?;
        if !checked.unknown.is_empty() {
            let members = checked
                .unknown
                .join(", ")
                .chars()
                .take(500)
                .collect::<String>();
            tracing::info!(
                request = shape.name,
                members,
                "a request has members that are not known"
            );
        }
        Ok(checked.body)
    }
}

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        match json(request).await? {
            None => Ok(Self(Map::new())),
            Some(Value::Object(members)) => Ok(Self(members)),
            Some(_) => Err(ApiError::new(422, "the body must be a JSON object")),
        }
    }
}

impl<S: Sync> FromRequest<S> for AnyJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        match json(request).await? {
            Some(value) => Ok(Self(value)),
            None => Err(ApiError::new(400, "the body is empty; JSON is expected")),
        }
    }
}

async fn json(request: Request) -> Result<Option<Value>, ApiError> {
    let method = request.method().clone();
    let headers = request.headers().clone();
    let body = request.into_body();
    if body.is_end_stream() {
        return Ok(None);
    }
    let bytes = read(&headers, body, JSON_LIMIT).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    must_be_json(&method, &headers)?;
    // The errors of serde_json name line and column, and quote nothing of the text.
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| ApiError::new(400, format!("the body is not JSON: {error}")))
}

fn must_be_json(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let accepted: &[&str] = if *method == Method::PATCH {
        &["application/merge-patch+json", "application/json"]
    } else {
        &["application/json"]
    };
    must_be(headers, accepted)
}

/// Refuses a body whose `Content-Type` is none of these.
pub(crate) fn must_be(headers: &HeaderMap, accepted: &[&str]) -> Result<(), ApiError> {
    let sent = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|value| value.trim().to_ascii_lowercase());
    if sent
        .as_ref()
        .is_some_and(|sent| accepted.contains(&sent.as_str()))
    {
        return Ok(());
    }
    Err(ApiError::new(
        415,
        format!("Content-Type must be {}", accepted.join(" or ")),
    ))
}

/// Reads a body whole.
///
/// # Errors
///
/// 413 beyond the limit, 408 when the next piece does not come, 400 when the connection breaks.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::new(413, format!("the body is larger than {limit} bytes"));
    if announced(headers).is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut pieces = body.into_data_stream();
    let mut whole = BytesMut::new();
    loop {
        let next = timeout(STALL, pieces.next())
            .await
            .map_err(|_| ApiError::new(408, "the rest of the body did not come in time"))?;
        match next {
            None => return Ok(whole.freeze()),
            Some(Err(_)) => return Err(ApiError::new(400, "the body broke off")),
            Some(Ok(piece)) if whole.len() + piece.len() > limit => return Err(too_large()),
            Some(Ok(piece)) => whole.extend_from_slice(&piece),
        }
    }
}

/// A body that is read by a handler and, where the request was refused, to its end by whoever frames it.
#[derive(Clone)]
pub(crate) struct SharedBody(Arc<Mutex<Option<BodyDataStream>>>);

impl SharedBody {
    pub(crate) fn of(body: Body) -> Self {
        let pieces = (!body.is_end_stream()).then(|| body.into_data_stream());
        Self(Arc::new(Mutex::new(pieces)))
    }

    /// The body for the handler.
    pub(crate) fn body(&self) -> Body {
        Body::from_stream(self.clone())
    }

    /// Reads the rest, within bounds, and forgets it: a client that is still sending when the connection closes
    /// never sees the answer.
    pub(crate) async fn discard(mut self) {
        let rest = async {
            let mut left = DISCARD_LIMIT;
            while let Some(Ok(piece)) = self.next().await {
                left = left.saturating_sub(piece.len());
                if left == 0 {
                    break;
                }
            }
        };
        if timeout(DISCARD_TIME, rest).await.is_err() {
            tracing::debug!("a refused body was not read to its end");
        }
    }
}

impl Stream for SharedBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A panic while reading leaves nothing that could be half done.
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match pieces.as_mut() {
            Some(pieces) => pieces.poll_next_unpin(context),
            None => return Poll::Ready(None),
        };
        if matches!(next, Poll::Ready(None)) {
            *pieces = None;
        }
        next
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}
