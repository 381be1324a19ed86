//! One rate limiter per cluster, fair between operations.
//!
//! A bucket of tokens, and a queue in which each operation's calls carry rising tags (start-time fair
//! queueing): an operation with a thousand calls waiting delays another's single call by one turn.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many calls a cluster gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Calls per second in the long run.
    pub per_second: u32,
    /// Calls at once after a pause.
    pub burst: u32,
}

/// Operations whose last turn is remembered at most; beyond it the oldest turns are forgotten.
const REMEMBERED: usize = 1024;

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
    closed_until: Option<Instant>,
    turn: u64,
    arrivals: u64,
    waiting: BTreeSet<(u64, u64)>,
    last_turn: HashMap<String, u64>,
}

/// Hands out turns to call one cluster.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    bucket: Mutex<Bucket>,
    moved: Notify,
}

/// A place in the queue; it is left when dropped, also by a call that is given up.
struct Place<'a> {
    limiter: &'a Limiter,
    tag: (u64, u64),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.limiter.lock().waiting.remove(&self.tag);
        self.limiter.moved.notify_waiters();
    }
}

impl Limiter {
    /// A limiter with a full bucket.
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            bucket: Mutex::new(Bucket {
                tokens: f64::from(limit.burst.max(1)),
                filled: Instant::now(),
                closed_until: None,
                turn: 0,
                arrivals: 0,
                waiting: BTreeSet::new(),
                last_turn: HashMap::new(),
            }),
            moved: Notify::new(),
        }
    }

    /// Waits for the turn of one call of an operation.
    pub(crate) async fn acquire(&self, operation: &str) {
        let place = self.queue(operation);
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the look, so that nobody who leaves in between is missed.
            moved.as_mut().enable();
            let Some(wait) = self.take(place.tag) else {
                return;
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = moved => {}
            }
        }
    }

    /// Nobody calls before this much time has passed: the cluster asked for it.
    pub(crate) fn close_for(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut bucket = self.lock();
        bucket.closed_until = Some(bucket.closed_until.map_or(until, |known| known.max(until)));
    }

    fn lock(&self) -> MutexGuard<'_, Bucket> {
        // Each change is one assignment, so a poisoned bucket is as good as before.
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, operation: &str) -> Place<'_> {
        let mut bucket = self.lock();
        if bucket.last_turn.len() >= REMEMBERED {
            let turn = bucket.turn;
            bucket.last_turn.retain(|_, last| *last > turn);
        }
        let tag = bucket
            .last_turn
            .get(operation)
            .map_or(bucket.turn, |last| bucket.turn.max(last + 1));
        bucket.last_turn.insert(operation.to_owned(), tag);
        bucket.arrivals += 1;
        let tag = (tag, bucket.arrivals);
        bucket.waiting.insert(tag);
        Place { limiter: self, tag }
    }

    /// Takes a token, or says how long to wait before asking again.
    fn take(&self, tag: (u64, u64)) -> Option<Duration> {
        let mut bucket = self.lock();
        let now = Instant::now();
        if let Some(until) = bucket.closed_until.filter(|until| *until > now) {
            return Some(until - now);
        }
        bucket.closed_until = None;
        let rate = f64::from(self.limit.per_second.max(1));
        let gained = now.duration_since(bucket.filled).as_secs_f64() * rate;
        bucket.tokens = (bucket.tokens + gained).min(f64::from(self.limit.burst.max(1)));
        bucket.filled = now;
        if bucket.waiting.first() != Some(&tag) {
            return Some(Duration::from_secs(1));
        }
        if bucket.tokens < 1.0 {
            return Some(Duration::from_secs_f64(
                ((1.0 - bucket.tokens) / rate).max(0.001),
            ));
        }
        bucket.tokens -= 1.0;
        bucket.turn = tag.0;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn one_call_of_another_operation_does_not_wait_for_a_hundred() {
        let limiter = Arc::new(Limiter::new(RateLimit {
            per_second: 10,
            burst: 1,
        }));
        limiter.acquire("busy").await;
        let crowd: Vec<_> = (0..100).map(|_| limiter.acquire("busy")).collect();
        let start = Instant::now();
        let other = async {
            limiter.acquire("other").await;
            start.elapsed()
        };
        let (_, waited) = tokio::join!(futures::future::join_all(crowd), other);
        assert!(waited < Duration::from_millis(500), "{waited:?}");
        assert!(start.elapsed() > Duration::from_secs(9));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_calls_while_the_cluster_asks_to_wait() {
        let limiter = Limiter::new(RateLimit {
            per_second: 10,
            burst: 10,
        });
        limiter.close_for(Duration::from_secs(3));
        let start = Instant::now();
        limiter.acquire("a").await;
        assert!(start.elapsed() >= Duration::from_secs(3));
    }
}
