//! Watches: a stream of changes from a resource version on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::Stream;
use futures::stream::unfold;
use http::{Response, header};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::Inner;
use crate::json;
use crate::kinds::Kind;
use crate::selector::Selectors;
use crate::status::ApiError;
use crate::store::{Change, ChangeKind};
use crate::table::Shape;

/// What a client watches.
pub(crate) struct WatchRequest {
    pub kind: Arc<Kind>,
    pub namespace: String,
    pub selectors: Selectors,
    /// Empty or 0: everything that is there comes first.
    pub resource_version: u64,
    pub timeout: Duration,
    pub bookmarks: bool,
    pub shape: Shape,
    /// A fault: the first event is a 410.
    pub gone: bool,
}

struct Watching {
    inner: Arc<Inner>,
    request: WatchRequest,
    version: u64,
    queue: VecDeque<Value>,
    changes: watch::Receiver<()>,
    cuts: watch::Receiver<u64>,
    ends: Instant,
    next_bookmark: Instant,
    done: bool,
}

/// Opens a watch.
pub(crate) fn open(inner: Arc<Inner>, request: WatchRequest) -> Response<Body> {
    let body = Body::from_stream(stream(inner, request));
    let mut response = Response::new(body);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    response
}

fn stream(
    inner: Arc<Inner>,
    request: WatchRequest,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    let now = Instant::now();
    let mut watching = Watching {
        version: request.resource_version,
        queue: VecDeque::new(),
        changes: inner
            .watchers
            .subscribe(&request.kind.storage(), &request.namespace),
        cuts: inner.cuts.subscribe(),
        ends: now + request.timeout,
        next_bookmark: now + inner.options.bookmark_interval,
        done: false,
        inner,
        request,
    };
    watching.cuts.borrow_and_update();
    watching.begin();
    unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        let mut line = event.to_string();
        line.push('\n');
        Some((Ok(Bytes::from(line)), watching))
    })
}

impl Watching {
    fn begin(&mut self) {
        if self.request.gone {
            self.end_with_gone();
            return;
        }
        if self.version != 0 {
            return;
        }
        let state = self.inner.lock();
        self.version = state.store.resource_version();
        let storage = self.request.kind.storage();
        let here: Vec<Arc<Value>> = state
            .store
            .list(&storage, &self.request.namespace)
            .filter(|object| self.request.selectors.select(object))
            .cloned()
            .collect();
        drop(state);
        for object in here {
            self.tell("ADDED", &object);
        }
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            if self.done {
                return None;
            }
            self.changes.borrow_and_update();
            self.collect();
            if self.queue.is_empty() && !self.done {
                self.wait().await;
            }
        }
    }

    /// Waits for a change, a bookmark that is due, or an end.
    async fn wait(&mut self) {
        tokio::select! {
            changed = self.changes.changed() => self.done |= changed.is_err(),
            _ = self.cuts.changed() => self.done = true,
            () = self.inner.stopped.cancelled() => self.done = true,
            () = tokio::time::sleep_until(self.ends) => self.done = true,
            () = tokio::time::sleep_until(self.next_bookmark) => {
                self.next_bookmark = Instant::now() + self.inner.options.bookmark_interval;
                if self.request.bookmarks {
                    self.bookmark();
                }
            }
        }
    }

    fn collect(&mut self) {
        let (changes, latest) = {
            let state = self.inner.lock();
            let storage = self.request.kind.storage();
            (
                state.store.changes_after(&storage, self.version),
                state.store.resource_version(),
            )
        };
        let Some(changes) = changes else {
            self.end_with_gone();
            return;
        };
        self.version = self.version.max(latest);
        for change in changes {
            self.tell_change(&change);
        }
    }

    /// An object that enters or leaves the selection is told as added or deleted.
    fn tell_change(&mut self, change: &Change) {
        let namespace = &self.request.namespace;
        if !namespace.is_empty() && json::namespace(&change.object) != namespace {
            return;
        }
        let selects = |object: &Value| self.request.selectors.select(object);
        let before = change.before.as_deref().is_some_and(selects);
        let after = change.what != ChangeKind::Deleted && selects(&change.object);
        let what = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return,
        };
        let object = Arc::clone(&change.object);
        self.tell(what, &object);
    }

    fn tell(&mut self, what: &str, object: &Value) {
        let state = self.inner.lock();
        let shown = self
            .request
            .shape
            .one(&state.clock, &self.request.kind, object);
        drop(state);
        self.queue.push_back(json!({"type": what, "object": shown}));
    }

    fn bookmark(&mut self) {
        let kind = &self.request.kind;
        let object = json!({
            "kind": kind.kind,
            "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": self.version.to_string(), "creationTimestamp": null},
        });
        self.queue
            .push_back(json!({"type": "BOOKMARK", "object": object}));
    }

    fn end_with_gone(&mut self) {
        let text = format!(
            "too old resource version: {} ({})",
            self.version,
            self.version + 1
        );
        let error = ApiError::gone(text);
        self.queue
            .push_back(json!({"type": "ERROR", "object": error.to_json()}));
        self.done = true;
    }
}
