//! What happens after a write: the controllers, the scheduler and the kubelet, in one task.
//!
//! A pass looks at everything and does what is due, as level-triggered controllers do. It runs
//! under the store's mutex, a short delay after the change that woke it. A pass that changed
//! something is followed by another; each must therefore come to rest on its own.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Inner;
use crate::state::State;

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
mod quota;
mod replica_set;
mod revision;
mod rollout;
mod scheduler;
mod service_status;
mod stateful_set;
mod volume;

/// What controllers remember besides the objects, by the UID of what it is about.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pods: HashMap<String, kubelet::PodMemory>,
    backoffs: HashMap<String, Backoff>,
    progress: HashMap<String, deployment::Progress>,
    /// What was said about an object (UID, reason and message), and the event that says it.
    told: HashMap<(String, String), (String, String)>,
}

/// Failed creations are tried again later and later.
#[derive(Debug)]
struct Backoff {
    failures: u32,
    next: Instant,
}

const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const LAST_BACKOFF: Duration = Duration::from_secs(2);

/// One pass over the cluster.
struct Pass<'a> {
    state: &'a mut State,
    now: Instant,
    stamp: String,
    wake: Option<Instant>,
}

impl Pass<'_> {
    /// Asks for another pass at that time, should nothing else cause one.
    fn wake_at(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
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
    let stamp = state.clock.stamp();
    let mut pass = Pass {
        state,
        now: Instant::now(),
        stamp,
        wake: None,
    };
    namespace::run(&mut pass);
    definition::run(&mut pass);
    garbage::run(&mut pass);
    quota::run(&mut pass);
    volume::run(&mut pass);
    deployment::run(&mut pass);
    replica_set::run(&mut pass);
    stateful_set::run(&mut pass);
    daemon_set::run(&mut pass);
    job::run(&mut pass);
    scheduler::run(&mut pass);
    kubelet::run(&mut pass);
    endpoints::run(&mut pass);
    budget::run(&mut pass);
    service_status::run(&mut pass);
    pass.wake
}
