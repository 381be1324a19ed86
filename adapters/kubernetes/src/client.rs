//! Calls to one cluster: limited in rate and time, with what came back told apart by [`CallError`].

use crate::access::Source;
use crate::discovery::Kinds;
use crate::errors::{CallError, Refusal, before_sending, chain, chain_under};
use crate::limiter::{Limiter, RateLimit};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Limits of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long one call may take, from sending to the last byte of its answer.
    pub call_timeout: Duration,
    /// How long one call may be put off by 429 before it counts as refused. Longer than `longest_retry_after`, else
    /// that alone would refuse it.
    pub patience: Duration,
    /// Longest `Retry-After` that is obeyed; longer ones are cut to it.
    pub longest_retry_after: Duration,
    /// Longest watch.
    pub longest_watch: Duration,
    /// Largest answer, in bytes.
    pub largest_answer: usize,
    /// Clusters whose clients are kept at most.
    pub clusters: usize,
    /// Calls to each cluster.
    pub rate: RateLimit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(30),
            patience: Duration::from_mins(2),
            longest_retry_after: Duration::from_secs(30),
            longest_watch: Duration::from_secs(200),
            largest_answer: 64 * 1024 * 1024,
            clusters: 64,
            rate: RateLimit {
                per_second: 1000,
                burst: 1000,
                under_way: 64,
            },
        }
    }
}

/// Media types of request bodies.
pub(crate) mod media {
    pub(crate) const JSON: &str = "application/json";
    /// Server-side apply takes YAML, of which JSON is a part.
    pub(crate) const APPLY: &str = "application/apply-patch+yaml";
    pub(crate) const MERGE: &str = "application/merge-patch+json";
}

/// Operations whose last look is remembered at most.
const SEEN: usize = 1024;

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub body: Option<(&'static str, Value)>,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
        }
    }

    pub(crate) fn with(
        method: Method,
        path: impl Into<String>,
        media: &'static str,
        body: Value,
    ) -> Self {
        Self {
            method,
            path: path.into(),
            body: Some((media, body)),
        }
    }
}

/// A successful answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// HTTP status, 200 to 299.
    pub code: u16,
    /// Its JSON.
    pub body: Value,
}

/// One cluster with everything that is kept for it.
pub(crate) struct Cluster {
    source: Source,
    client: Mutex<Option<Client>>,
    limiter: Limiter,
    pub(crate) kinds: Kinds,
    pub(crate) settings: Settings,
    /// Resource version of the last look, by operation and namespace, until a watch begins there.
    seen: std::sync::Mutex<HashMap<String, HashMap<String, String>>>,
}

/// A cluster as one operation uses it.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) cluster: Arc<Cluster>,
    operation: String,
}

impl Cluster {
    pub(crate) fn new(source: Source, settings: Settings) -> Self {
        Self {
            source,
            client: Mutex::new(None),
            limiter: Limiter::new(settings.rate),
            kinds: Kinds::default(),
            settings,
            seen: std::sync::Mutex::default(),
        }
    }

    async fn client(&self) -> Result<Client, CallError> {
        let mut kept = self.client.lock().await;
        if let Some(client) = kept.as_ref() {
            return Ok(client.clone());
        }
        let client = self.source.connect().await?;
        *kept = Some(client.clone());
        Ok(client)
    }

    async fn forget_client(&self) {
        *self.client.lock().await = None;
    }
}

impl Session {
    pub(crate) fn new(cluster: Arc<Cluster>, operation: impl Into<String>) -> Self {
        Self {
            cluster,
            operation: operation.into(),
        }
    }

    /// Notes up to where the operation's look has seen a namespace.
    pub(crate) fn saw(&self, namespace: &str, resource_version: &str) {
        let mut seen = self
            .cluster
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= SEEN {
            seen.clear();
        }
        seen.entry(self.operation.clone())
            .or_default()
            .insert(namespace.to_owned(), resource_version.to_owned());
    }

    /// Up to where the operation's last look has seen each namespace. It is told once: a later watch must not be told
    /// again of what its look did not list.
    pub(crate) fn take_seen(&self) -> HashMap<String, String> {
        let mut seen = self
            .cluster
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.remove(&self.operation).unwrap_or_default()
    }

    /// Sends a call and reads its whole answer. A 429 is waited out within the settings' patience;
    /// a 401 is answered by reading the credentials anew, once.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, CallError> {
        let settings = self.cluster.settings;
        let until = Instant::now() + settings.patience;
        let mut renewed = false;
        loop {
            let turn = self.cluster.limiter.acquire(&self.operation).await;
            let reply = self.once(call).await?;
            drop(turn);
            let (refusal, headers) = match reply {
                Reply::Success(answer) => return Ok(answer),
                Reply::Refused(refusal, headers) => (refusal, headers),
            };
            if refusal.code == 401 && !renewed && self.cluster.source.is_renewable() {
                renewed = true;
                self.cluster.forget_client().await;
                continue;
            }
            match self.told_to_wait(&refusal, &headers) {
                Some(pause) if Instant::now() + pause < until => {}
                Some(_) | None => return Err(CallError::Refused(refusal)),
            }
        }
    }

    /// How long the cluster asks to be left alone, if it does; nobody calls it meanwhile.
    fn told_to_wait(&self, refusal: &Refusal, headers: &HeaderMap) -> Option<Duration> {
        if refusal.code != 429 || refusal.has_cause("DisruptionBudget") {
            return None;
        }
        let asked = retry_after(headers)
            .or(refusal.retry_after_s())
            .unwrap_or(1);
        let pause = Duration::from_secs(asked).min(self.cluster.settings.longest_retry_after);
        self.cluster.limiter.close_for(pause);
        Some(pause)
    }

    /// Opens a stream of answers, such as a watch; its body is read by the caller.
    pub(crate) async fn open(&self, call: &Call) -> Result<Body, CallError> {
        let _turn = self.cluster.limiter.acquire(&self.operation).await;
        let timeout = self.cluster.settings.call_timeout;
        let response = within(timeout, self.respond(call)).await?;
        let code = response.status().as_u16();
        if (200..300).contains(&code) {
            return Ok(response.into_body());
        }
        let headers = response.headers().clone();
        let bytes = within(timeout, self.collect(response)).await?;
        let refusal = Refusal::read(code, &bytes);
        self.told_to_wait(&refusal, &headers);
        Err(CallError::Refused(refusal))
    }

    async fn once(&self, call: &Call) -> Result<Reply, CallError> {
        within(self.cluster.settings.call_timeout, async {
            let response = self.respond(call).await?;
            let code = response.status().as_u16();
            let headers = response.headers().clone();
            let bytes = self.collect(response).await?;
            if !(200..300).contains(&code) {
                return Ok(Reply::Refused(Refusal::read(code, &bytes), headers));
            }
            let body = serde_json::from_slice(&bytes).map_err(|e| {
                CallError::Lost(format!("the answer of the cluster is not JSON: {e}"))
            })?;
            Ok(Reply::Success(Answer { code, body }))
        })
        .await
    }

    async fn respond(&self, call: &Call) -> Result<Response<Body>, CallError> {
        let client = self.cluster.client().await?;
        let request = self.request(call)?;
        client.send(request).await.map_err(|e| {
            let why = format!(
                "the cluster did not answer: {}",
                chain_under(self.cluster.source.authority(), &e)
            );
            if before_sending(&e) || !is_transport(&e) {
                CallError::NotSent(why)
            } else {
                CallError::Lost(why)
            }
        })
    }

    fn request(&self, call: &Call) -> Result<Request<Body>, CallError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(ACCEPT, media::JSON);
        if let Some(value) = self.cluster.source.authorization()? {
            request = request.header(AUTHORIZATION, value);
        }
        let built = match &call.body {
            None => request.body(Body::empty()),
            Some((media, body)) => {
                let bytes = serde_json::to_vec(body)
                    .map_err(|e| CallError::Setup(format!("the request cannot be written: {e}")))?;
                request.header(CONTENT_TYPE, *media).body(Body::from(bytes))
            }
        };
        built
            .map_err(|e| CallError::Setup(format!("the request {} cannot be made: {e}", call.path)))
    }

    async fn collect(&self, response: Response<Body>) -> Result<Bytes, CallError> {
        let limit = self.cluster.settings.largest_answer;
        Limited::new(response.into_body(), limit)
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .map_err(|e| {
                CallError::Lost(format!(
                    "the answer of the cluster broke off: {}",
                    chain(e.as_ref())
                ))
            })
    }
}

enum Reply {
    Success(Answer),
    Refused(Refusal, HeaderMap),
}

/// Errors of kube that are not about the way to the cluster come before anything is sent.
fn is_transport(error: &kube::Error) -> bool {
    matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_))
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => Err(CallError::Lost(format!(
            "the cluster did not answer within {} s",
            limit.as_secs()
        ))),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}
