//! What happens after a write: the controllers, the scheduler and the kubelet, in one task.
//!
//! A pass looks at each namespace in which something changed or is due, and does what is to be done there, as
//! level-triggered controllers do; what is cluster-scoped concerns all of them. It runs under the store's mutex, a
//! short delay after the change that woke it. A pass that changed something is followed by another; each must
//! therefore come to rest on its own.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Inner;
use crate::state::State;
use crate::store::ObjectKey;

mod act;
mod budget;
mod daemon_set;
mod definition;
mod deployment;
mod endpoints;
mod garbage;
mod job;
mod kubelet;
mod namespace;
mod places;
mod quota;
mod replica_set;
mod revision;
mod rollout;
mod scheduler;
mod service_status;
mod stateful_set;
mod volume;

/// What controllers remember besides the objects, by the UID of what it is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pods: HashMap<String, kubelet::PodMemory>,
    backoffs: HashMap<String, Backoff>,
    progress: HashMap<String, deployment::Progress>,
    /// What was said (reason and message) about an object, by its UID, and the event that says it.
    told: HashMap<String, HashMap<String, ObjectKey>>,
    /// The events that controllers told, oldest first.
    events: VecDeque<ObjectKey>,
    /// Up to which resource version changes were looked at.
    passed: u64,
    /// When something is due again without a change, by namespace.
    wakes: HashMap<String, Instant>,
    /// Namespaces with pods that found no node.
    unplaced: BTreeSet<String>,
    /// Something cluster-scoped waits for its end, and so for objects in any namespace.
    cluster_ends: bool,
}

impl Memory {
    /// Forgets what is remembered of an object that is gone.
    fn forget(&mut self, uid: &str) {
        self.pods.remove(uid);
        self.backoffs.remove(uid);
        self.told.remove(uid);
        self.progress.remove(uid);
    }

    /// Forgets what is remembered of all objects but these.
    fn keep_only(&mut self, living: &HashSet<String>) {
        self.pods.retain(|uid, _| living.contains(uid));
        self.backoffs.retain(|uid, _| living.contains(uid));
        self.told.retain(|uid, _| living.contains(uid));
        self.progress.retain(|uid, _| living.contains(uid));
    }
}

/// Failed creations are tried again later and later.
#[derive(Debug, Clone)]
struct Backoff {
    failures: u32,
    next: Instant,
}

const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const LAST_BACKOFF: Duration = Duration::from_secs(2);

/// One pass over a namespace; the empty one has what is cluster-scoped.
struct Pass<'a> {
    state: &'a mut State,
    now: Instant,
    stamp: String,
    namespace: String,
}

impl Pass<'_> {
    /// Copies of the objects of a kind in this pass's namespace.
    fn list(&self, qualified: &str) -> Vec<Arc<Value>> {
        let within = self.state.store.within(qualified, &self.namespace);
        within.cloned().collect()
    }

    /// Asks for another pass at that time, should nothing else cause one.
    fn wake_at(&mut self, at: Instant) {
        let wakes = &mut self.state.memory.wakes;
        let wake = wakes.entry(self.namespace.clone()).or_insert(at);
        *wake = at.min(*wake);
    }

    /// Whether something that failed before may be tried again now.
    fn may_try(&mut self, uid: &str) -> bool {
        let Some(next) = self
            .state
            .memory
            .backoffs
            .get(uid)
            .map(|backoff| backoff.next)
        else {
            return true;
        };
        if next <= self.now {
            return true;
        }
        self.wake_at(next);
        false
    }

    fn failed(&mut self, uid: &str) {
        let now = self.now;
        let backoff = self
            .state
            .memory
            .backoffs
            .entry(uid.to_owned())
            .or_insert(Backoff {
                failures: 0,
                next: now,
            });
        let wait = FIRST_BACKOFF
            .saturating_mul(1 << backoff.failures.min(8))
            .min(LAST_BACKOFF);
        backoff.failures += 1;
        backoff.next = now + wait;
        let next = backoff.next;
        self.wake_at(next);
    }

    fn succeeded(&mut self, uid: &str) {
        self.state.memory.backoffs.remove(uid);
    }
}

/// Starts the controllers; they end with the cluster.
pub(crate) fn start(inner: Arc<Inner>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the crate knows no engine; panics of a pass are caught and logged in the task"
    )]
    tokio::spawn(run(inner));
}

async fn run(inner: Arc<Inner>) {
    let mut changes = inner.changed.subscribe();
    loop {
        changes.borrow_and_update();
        let next = supervised_pass(&inner);
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = inner.stopped.cancelled() => return,
            woken = changes.changed() => {
                if woken.is_err() {
                    return;
                }
                tokio::select! {
                    () = inner.stopped.cancelled() => return,
                    () = tokio::time::sleep(inner.options.controller_delay) => {}
                }
            }
            () = due => {}
        }
    }
}

/// A panic in a pass is a defect of the simulation; the cluster goes on with the next pass.
fn supervised_pass(inner: &Inner) -> Option<Instant> {
    let outcome = catch_unwind(AssertUnwindSafe(|| inner.with(pass)));
    outcome.unwrap_or_else(|_| {
        tracing::error!("a pass of the simulated controllers panicked");
        Some(Instant::now() + LAST_BACKOFF)
    })
}

/// Does what is due; returns when something is due again without a change.
fn pass(state: &mut State) -> Option<Instant> {
    if state.faults.controllers_frozen {
        return None;
    }
    let now = Instant::now();
    let stamp = state.clock.stamp();
    for namespace in places::due(state, now) {
        state.memory.wakes.remove(&namespace);
        let mut pass = Pass {
            state,
            now,
            stamp: stamp.clone(),
            namespace,
        };
        if pass.namespace.is_empty() {
            cluster(&mut pass);
        } else {
            namespaced(&mut pass);
        }
    }
    state.memory.wakes.values().min().copied()
}

fn cluster(pass: &mut Pass<'_>) {
    definition::run(pass);
    garbage::run(pass);
    volume::run_volumes(pass);
    service_status::run(pass);
}

fn namespaced(pass: &mut Pass<'_>) {
    namespace::run(pass);
    garbage::run(pass);
    quota::run(pass);
    volume::run_claims(pass);
    deployment::run(pass);
    replica_set::run(pass);
    stateful_set::run(pass);
    daemon_set::run(pass);
    job::run(pass);
    scheduler::run(pass);
    kubelet::run(pass);
    endpoints::run(pass);
    budget::run(pass);
}
