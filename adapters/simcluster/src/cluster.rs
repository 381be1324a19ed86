//! The simulated cluster as its users hold it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::delete::{DeleteOptions, Propagation};
use crate::faults::{Denial, Fault};
use crate::requests::RequestRecord;
use crate::state::State;
use crate::status::ApiError;
use crate::watchers::{Place, Watchers, place};
use crate::write::{FieldValidation, Options};
use crate::{controllers, json, routes};

/// How the simulated cluster behaves.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// The token that requests must carry; `None` lets everybody in.
    pub bearer_token: Option<String>,
    /// How many changes watches can go back; older ones are answered 410.
    pub watch_window: usize,
    /// How often a watch that asked for bookmarks gets one.
    pub bookmark_interval: Duration,
    /// How long controllers lag behind a change. Real ones are never instant either.
    pub controller_delay: Duration,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            bearer_token: None,
            watch_window: 10_000,
            bookmark_interval: Duration::from_secs(10),
            controller_delay: Duration::from_millis(5),
        }
    }
}

/// An answer of the cluster that is not success, for callers of the direct methods.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the simulated cluster answered {code} {reason}: {message}")]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// `reason` of the Status object.
    pub reason: String,
    /// `message` of the Status object.
    pub message: String,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self {
            code: error.code,
            reason: error.reason.to_owned(),
            message: error.message,
        }
    }
}

/// A simulated Kubernetes API server with its controllers. Clones share one cluster; the
/// controllers end with the last clone.
#[derive(Clone)]
pub struct SimCluster {
    pub(crate) inner: Arc<Inner>,
    _controllers: Arc<DropGuard>,
}

pub(crate) struct Inner {
    state: Mutex<State>,
    pub options: SimOptions,
    /// Latest resource version; the controllers wait for it to move.
    pub changed: watch::Sender<u64>,
    /// Whoever watches a kind in a namespace waits for its own alone: a change wakes few of many watches.
    pub watchers: Watchers,
    /// Counts orders to cut all watches.
    pub cuts: watch::Sender<u64>,
    pub stopped: CancellationToken,
}

impl Inner {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned store is as good as before: every write is one map operation.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the state and wakes whoever waits for changes.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let before = state.store.resource_version();
        let result = work(&mut state);
        let after = state.store.resource_version();
        if after == before {
            return result;
        }
        let changes = state.store.all_changes_after(before);
        let places = changes.map(|all| all.map(place).collect::<BTreeSet<Place>>());
        drop(state);
        match places {
            Some(places) => self.watchers.wake(&places),
            None => self.watchers.wake_all(),
        }
        self.changed.send_replace(after);
        result
    }
}

impl SimCluster {
    /// Starts a fresh cluster with its controllers.
    ///
    /// # Panics
    /// Outside a tokio runtime, on which the controllers run.
    #[must_use]
    pub fn new(options: SimOptions) -> Self {
        let state = State::new(options.watch_window);
        Self::begin(state, options)
    }

    /// A cluster of its own that begins with what this one holds now; nothing is shared afterwards. It counts no
    /// requests of this one and has none of its faults.
    ///
    /// # Panics
    /// Outside a tokio runtime, on which the controllers run.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.inner.lock().fork();
        Self::begin(state, self.inner.options.clone())
    }

    fn begin(state: State, options: SimOptions) -> Self {
        let version = state.store.resource_version();
        let inner = Arc::new(Inner {
            state: Mutex::new(state),
            options,
            changed: watch::Sender::new(version),
            watchers: Watchers::default(),
            cuts: watch::Sender::new(0),
            stopped: CancellationToken::new(),
        });
        let guard = inner.stopped.clone().drop_guard();
        controllers::start(Arc::clone(&inner));
        Self {
            inner,
            _controllers: Arc::new(guard),
        }
    }

    /// The API server as a service, to be used in process or behind a socket.
    pub fn router(&self) -> Router {
        routes::router(self.clone())
    }

    /// Ends controllers, watches and [`SimCluster::serve`].
    pub fn stop(&self) {
        self.inner.stopped.cancel();
    }

    /// The token that ends when the cluster stops.
    #[must_use]
    pub fn stopped(&self) -> CancellationToken {
        self.inner.stopped.clone()
    }

    /// Scripts a fault.
    pub fn inject(&self, fault: Fault) {
        self.inner.lock().faults.add(fault);
    }

    /// Forgets all faults and denials, and lets controllers work again.
    pub fn clear_faults(&self) {
        self.inner.with(|state| {
            state.faults.clear();
            state.denials.clear();
        });
        self.poke();
    }

    /// Stops or resumes all controllers, the kubelet included.
    pub fn freeze_controllers(&self, frozen: bool) {
        self.inner.lock().faults.controllers_frozen = frozen;
        self.poke();
    }

    /// Ends every open watch without a word, as a load balancer does.
    pub fn cut_watches(&self) {
        self.inner.cuts.send_modify(|count| *count += 1);
    }

    /// Forgets all changes, so that watches from older versions are answered 410.
    pub fn forget_changes(&self) {
        self.inner.lock().store.compact();
        self.poke();
    }

    /// Lets access reviews deny an access.
    pub fn deny(&self, verb: &str, resource: &str, namespace: &str) {
        self.inner.lock().denials.push(Denial {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
        });
    }

    /// All requests so far, oldest first (the last 100,000).
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.inner.lock().requests.iter().cloned().collect()
    }

    /// Empties the log of requests.
    pub fn clear_requests(&self) {
        self.inner.lock().requests.clear();
    }

    /// The version of the latest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.inner.lock().store.resource_version()
    }

    /// Reads an object by `apiVersion`, `kind`, namespace and name, past authentication and faults.
    #[must_use]
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let state = self.inner.lock();
        let kind = state.kinds.by_gvk(api_version, kind)?;
        state
            .get(&kind.storage(), namespace, name)
            .map(|object| (*object).clone())
    }

    /// Lists the objects of a kind; an empty namespace means all.
    #[must_use]
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let state = self.inner.lock();
        let Some(kind) = state.kinds.by_gvk(api_version, kind) else {
            return Vec::new();
        };
        state
            .store
            .list(&kind.storage(), namespace)
            .map(|object| (**object).clone())
            .collect()
    }

    /// Creates an object as the field manager `manager`. `apiVersion`, `kind` and, where the kind
    /// has them, `metadata.namespace` must be set.
    ///
    /// # Errors
    /// The refusal that the API would answer.
    pub fn create(&self, manager: &str, object: Value) -> Result<Value, Refusal> {
        self.inner.with(|state| {
            let kind = state
                .kinds
                .by_gvk(json::text(&object, "/apiVersion"), json::kind(&object))
                .ok_or_else(ApiError::no_such_path)?;
            let namespace = json::namespace(&object).to_owned();
            let options = Options {
                validation: FieldValidation::Strict,
                ..Options::by(manager)
            };
            Ok((*state.create(&kind, &namespace, object, &options)?.object).clone())
        })
    }

    /// Merges `patch` (RFC 7396) into an object, its status included, as `manager`.
    ///
    /// # Errors
    /// The refusal that the API would answer.
    pub fn patch(
        &self,
        manager: &str,
        (api_version, kind): (&str, &str),
        (namespace, name): (&str, &str),
        patch: &Value,
    ) -> Result<Value, Refusal> {
        self.inner.with(|state| {
            let kind = state
                .kinds
                .by_gvk(api_version, kind)
                .ok_or_else(ApiError::no_such_path)?;
            let at = (namespace, name);
            let merged = |live: &Value| {
                let mut next = live.clone();
                json_patch::merge(&mut next, patch);
                Ok(next)
            };
            let mut written = state.update(&kind, at, &Options::by(manager), merged)?;
            if kind.has_status && patch.get("status").is_some() {
                written = state.update(&kind, at, &Options::status_by(manager), merged)?;
            }
            Ok((*written.object).clone())
        })
    }

    /// Deletes an object in the background.
    ///
    /// # Errors
    /// The refusal that the API would answer.
    pub fn delete(
        &self,
        (api_version, kind): (&str, &str),
        (namespace, name): (&str, &str),
    ) -> Result<(), Refusal> {
        self.inner.with(|state| {
            let kind = state
                .kinds
                .by_gvk(api_version, kind)
                .ok_or_else(ApiError::no_such_path)?;
            let options = DeleteOptions::propagate(Propagation::Background);
            state.delete(&kind, (namespace, name), &options)?;
            Ok(())
        })
    }

    /// Waits until `check` holds over the cluster, looking again after every change.
    ///
    /// # Errors
    /// The time that was waited in vain.
    pub async fn wait_until(
        &self,
        deadline: Duration,
        mut check: impl FnMut(&Self) -> bool,
    ) -> Result<(), Duration> {
        let mut changes = self.inner.changed.subscribe();
        tokio::time::timeout(deadline, async {
            loop {
                changes.borrow_and_update();
                if check(self) {
                    return;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        })
        .await
        .map_err(|_| deadline)
    }

    /// Wakes whoever waits for changes although nothing changed.
    fn poke(&self) {
        self.inner.watchers.wake_all();
        self.inner.changed.send_modify(|_| {});
    }
}

impl std::fmt::Debug for SimCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimCluster").finish_non_exhaustive()
    }
}
