//! What a proxy does to a call instead of passing it on, and to which.

use super::Seen;
use crate::place::background;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use futures::StreamExt as _;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

/// Whether a fault strikes before the call did anything, or after it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call is not passed on.
    Before,
    /// It is, and its answer is lost.
    After,
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strike {
    /// It is answered with this status, as an API server words it.
    Status(u16, When),
    /// 429, with `Retry-After` in seconds if given.
    TooMany(Option<u32>),
    /// The connection is closed without an answer.
    Reset(When),
    /// It is passed on, and half of the answer comes before the connection is closed.
    Half,
    /// Nothing ever comes.
    Silence(When),
    /// It is passed on after this time.
    Late(Duration),
    /// A GET is answered as the first one of the same path was.
    Stale,
    /// A watch begins, and ends at once.
    Cut,
    /// A watch begins, and says that its version is too old.
    Expired,
    /// A watch brings bookmarks and nothing else.
    Bookmarks,
    /// A watch begins, and then nothing comes and nothing ends.
    Swallow,
    /// An error whose text is this many bytes long.
    Wordy(usize),
}

/// Which calls are struck, and how.
#[derive(Clone, Debug)]
pub struct Rule {
    run: String,
    strike: Strike,
    /// Watches only, or no watch.
    watches: bool,
    method: Option<&'static str>,
    path: Option<String>,
    skip: usize,
    times: usize,
    /// After the first strike: every call of the same method and path, and no other.
    lasting: bool,
    every: usize,
    bound: Option<(String, String)>,
}

impl Rule {
    /// Strikes the calls of a run that open no watch, all of them.
    #[must_use]
    pub fn new(run: &str, strike: Strike) -> Self {
        let watches = matches!(
            strike,
            Strike::Cut | Strike::Expired | Strike::Bookmarks | Strike::Swallow
        );
        Self {
            run: run.to_owned(),
            strike,
            watches,
            method: None,
            path: None,
            skip: 0,
            times: usize::MAX,
            lasting: false,
            every: 1,
            bound: None,
        }
    }

    /// Strikes watches, and nothing else.
    #[must_use]
    pub fn watches(mut self) -> Self {
        self.watches = true;
        self
    }

    /// Only those with this method.
    #[must_use]
    pub fn method(mut self, method: &'static str) -> Self {
        self.method = Some(method);
        self
    }

    /// Only those whose path ends so.
    #[must_use]
    pub fn path(mut self, end: &str) -> Self {
        self.path = Some(end.to_owned());
        self
    }

    /// Lets so many pass first.
    #[must_use]
    pub fn after(mut self, skip: usize) -> Self {
        self.skip = skip;
        self
    }

    /// Strikes so many.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Strikes one in so many.
    #[must_use]
    pub fn every(mut self, every: usize) -> Self {
        self.every = every.max(1);
        self
    }

    /// From the first that is struck on: all calls of its method and path, and no others.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    fn strikes(&mut self, seen: &Seen) -> bool {
        let fits = seen.run == self.run
            && seen.is_watch() == self.watches
            && self.method.is_none_or(|method| seen.method == method)
            && self
                .path
                .as_ref()
                .is_none_or(|end| seen.path.ends_with(end));
        if !fits || self.times == 0 {
            return false;
        }
        let here = (seen.method.to_string(), seen.path.clone());
        if let Some(bound) = &self.bound {
            return *bound == here;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.skip = self.every - 1;
        if self.lasting {
            self.bound = Some(here);
        } else if self.times != usize::MAX {
            self.times -= 1;
        }
        true
    }
}

/// The rules of all runs, and what was answered before to those that are told old tales.
#[derive(Default)]
pub(super) struct Script {
    rules: HashMap<String, Vec<Rule>>,
    telling: HashSet<String>,
    told: HashMap<(String, String), Bytes>,
}

impl Script {
    pub(super) fn add(&mut self, rule: Rule) {
        if rule.strike == Strike::Stale {
            self.telling.insert(rule.run.clone());
        }
        self.rules.entry(rule.run.clone()).or_default().push(rule);
    }

    pub(super) fn calm(&mut self, run: &str) {
        self.rules.remove(run);
        self.telling.remove(run);
        self.told.retain(|(known, _), _| known != run);
    }

    pub(super) fn strike(&mut self, seen: &Seen) -> Option<Strike> {
        let rules = self.rules.get_mut(&seen.run)?;
        let mut struck = None;
        for rule in rules {
            // Each counts every call.
            if rule.strikes(seen) && struck.is_none() {
                struck = Some(rule.strike.clone());
            }
        }
        struck
    }

    pub(super) fn remembers(&self, seen: &Seen) -> bool {
        self.telling.contains(&seen.run) && seen.method == "GET"
    }

    pub(super) fn remember(&mut self, seen: &Seen, answer: Bytes) {
        let key = (seen.run.clone(), seen.path.clone());
        self.told.entry(key).or_insert(answer);
    }

    pub(super) fn remembered(&self, seen: &Seen) -> Option<Bytes> {
        let key = (seen.run.clone(), seen.path.clone());
        self.told.get(&key).cloned()
    }
}

impl Strike {
    /// Answers a call so; `pass` passes it on.
    pub(super) async fn carry_out(
        self,
        seen: &Seen,
        old: Option<Bytes>,
        pass: impl Future<Output = io::Result<Response<Body>>> + Send + 'static,
    ) -> io::Result<Response<Body>> {
        match self {
            Self::Status(code, when) => {
                done_first(when, pass).await?;
                let (reason, message) = words(code, seen);
                Ok(status(code, reason, &message, None))
            }
            Self::TooMany(after) => Ok(status(
                429,
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
                after,
            )),
            Self::Reset(when) => {
                done_first(when, pass).await?;
                Err(io::Error::other("closed on purpose"))
            }
            Self::Half => half(pass.await?).await,
            Self::Silence(when) => {
                done_first(when, pass).await?;
                std::future::pending().await
            }
            // In a task of its own: it reaches the cluster although its caller gave up.
            Self::Late(by) => background(async move {
                tokio::time::sleep(by).await;
                pass.await
            })
            .await
            .map_err(io::Error::other)?,
            Self::Stale => match old {
                Some(bytes) => Ok(json_answer(StatusCode::OK, Body::from(bytes))),
                None => pass.await,
            },
            Self::Cut => Ok(json_answer(StatusCode::OK, Body::empty())),
            Self::Expired => {
                let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "reason": "Expired", "code": 410, "message": "too old resource version"});
                let event = json!({"type": "ERROR", "object": gone});
                Ok(json_answer(
                    StatusCode::OK,
                    Body::from(format!("{event}\n")),
                ))
            }
            Self::Bookmarks => Ok(json_answer(StatusCode::OK, bookmarks())),
            Self::Swallow => {
                let nothing = futures::stream::pending::<io::Result<Bytes>>();
                Ok(json_answer(StatusCode::OK, Body::from_stream(nothing)))
            }
            Self::Wordy(length) => Ok(status(
                500,
                "InternalError",
                &"no ".repeat(length / 3),
                None,
            )),
        }
    }
}

/// Passes a call on and throws its answer away, where it is to have its effect.
async fn done_first(
    when: When,
    pass: impl Future<Output = io::Result<Response<Body>>>,
) -> io::Result<()> {
    if when == When::After {
        let answer = pass.await?;
        drop(axum::body::to_bytes(answer.into_body(), super::LARGEST).await);
    }
    Ok(())
}

async fn half(answer: Response<Body>) -> io::Result<Response<Body>> {
    let (parts, body) = answer.into_parts();
    let whole = axum::body::to_bytes(body, super::LARGEST)
        .await
        .map_err(io::Error::other)?;
    let first = whole.slice(..whole.len() / 2);
    let broken = futures::stream::iter([Ok(first), Err(io::Error::other("closed on purpose"))]);
    Ok(Response::from_parts(parts, Body::from_stream(broken)))
}

fn bookmarks() -> Body {
    let ticks = futures::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}});
        let line = format!("{}\n", json!({"type": "BOOKMARK", "object": object}));
        Some((Ok::<_, io::Error>(Bytes::from(line)), ()))
    });
    Body::from_stream(ticks.boxed())
}

/// Reason and message of a status as an API server words them.
fn words(code: u16, seen: &Seen) -> (&'static str, String) {
    let path = &seen.path;
    match code {
        401 => ("Unauthorized", "Unauthorized".to_owned()),
        403 => (
            "Forbidden",
            format!("{path} is forbidden: User \"cairn\" cannot do this"),
        ),
        409 => (
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {path}: the object has been modified; please apply your changes to the latest version and try again"
            ),
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request".to_owned(),
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted".to_owned(),
        ),
        _ => ("InternalError", "etcdserver: request timed out".to_owned()),
    }
}

/// A Status object as an answer.
pub(super) fn status(
    code: u16,
    reason: &str,
    message: &str,
    retry_after: Option<u32>,
) -> Response<Body> {
    let body: Value = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code});
    let code = StatusCode::from_u16(code).expect("a status");
    let mut answer = json_answer(code, Body::from(body.to_string()));
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

fn json_answer(code: StatusCode, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    let json = axum::http::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}
