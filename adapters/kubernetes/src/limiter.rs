//! One rate limiter per cluster, fair between operations.
//!
//! A bucket of tokens, and a queue in which each operation's calls carry rising tags (start-time fair
//! queueing): an operation with a thousand calls waiting delays another's single call by one turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Calls under way at one time; a watch counts until it is open.
    pub under_way: u32,
}

/// Operations whose last turn is remembered at most; beyond it the oldest turns are forgotten.
const REMEMBERED: usize = 1024;

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
    closed_until: Option<Instant>,
    under_way: u32,
    turn: u64,
    arrivals: u64,
    waiting: BTreeMap<(u64, u64), Arc<Notify>>,
    last_turn: HashMap<String, u64>,
}

impl Bucket {
    /// Lets the first in the queue look whether its turn has come; nobody else's can have.
    fn wake_first(&self) {
        if let Some(first) = self.waiting.values().next() {
            first.notify_one();
        }
    }
}

/// Hands out turns to call one cluster.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: RateLimit,
    bucket: Mutex<Bucket>,
}

/// A place in the queue; it is left when dropped, also by a call that is given up.
struct Place<'a> {
    limiter: &'a Limiter,
    tag: (u64, u64),
    woken: Arc<Notify>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut bucket = self.limiter.lock();
        bucket.waiting.remove(&self.tag);
        bucket.wake_first();
    }
}

/// The turn of one call, until it is dropped.
#[must_use]
pub(crate) struct Turn<'a> {
    limiter: &'a Limiter,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut bucket = self.limiter.lock();
        bucket.under_way = bucket.under_way.saturating_sub(1);
        bucket.wake_first();
    }
}

/// What one in the queue finds.
enum Found {
    /// Its turn.
    Turn,
    /// That it has to wait this long.
    Later(Duration),
    /// That it has to wait for others.
    Others,
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
                under_way: 0,
                turn: 0,
                arrivals: 0,
                waiting: BTreeMap::new(),
                last_turn: HashMap::new(),
            }),
        }
    }

    /// Waits for the turn of one call of an operation.
    pub(crate) async fn acquire(&self, operation: &str) -> Turn<'_> {
        let place = self.queue(operation);
        loop {
            match self.take(place.tag) {
                Found::Turn => return Turn { limiter: self },
                Found::Later(wait) => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = place.woken.notified() => {}
                },
                Found::Others => place.woken.notified().await,
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
        let woken = Arc::new(Notify::new());
        bucket.waiting.insert(tag, Arc::clone(&woken));
        Place {
            limiter: self,
            tag,
            woken,
        }
    }

    /// Takes a token, or says what is to be waited for.
    fn take(&self, tag: (u64, u64)) -> Found {
        let mut bucket = self.lock();
        let is_first = bucket.waiting.keys().next() == Some(&tag);
        if !is_first || bucket.under_way >= self.limit.under_way.max(1) {
            return Found::Others;
        }
        let now = Instant::now();
        if let Some(until) = bucket.closed_until.filter(|until| *until > now) {
            return Found::Later(until - now);
        }
        bucket.closed_until = None;
        let rate = f64::from(self.limit.per_second.max(1));
        let gained = now.duration_since(bucket.filled).as_secs_f64() * rate;
        bucket.tokens = (bucket.tokens + gained).min(f64::from(self.limit.burst.max(1)));
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            let wait = Duration::from_secs_f64((1.0 - bucket.tokens) / rate);
            return Found::Later(wait.max(Duration::from_millis(1)));
        }
        bucket.tokens -= 1.0;
        bucket.under_way += 1;
        bucket.turn = tag.0;
        Found::Turn
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
            under_way: 10,
        }));
        drop(limiter.acquire("busy").await);
        let call = || async { drop(limiter.acquire("busy").await) };
        let crowd: Vec<_> = (0..100).map(|_| call()).collect();
        let start = Instant::now();
        let other = async {
            drop(limiter.acquire("other").await);
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
            under_way: 10,
        });
        limiter.close_for(Duration::from_secs(3));
        let start = Instant::now();
        drop(limiter.acquire("a").await);
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_all_are_under_way_waits_for_one_to_end() {
        let limiter = Limiter::new(RateLimit {
            per_second: 1000,
            burst: 1000,
            under_way: 2,
        });
        let first = limiter.acquire("a").await;
        let second = limiter.acquire("a").await;
        let soon = Duration::from_mins(1);
        let given_up = tokio::time::timeout(soon, limiter.acquire("b")).await;
        assert!(given_up.is_err(), "two are under way");
        let (third, ()) = tokio::join!(limiter.acquire("c"), async { drop(first) });
        let none = tokio::time::timeout(soon, limiter.acquire("b")).await;
        assert!(none.is_err(), "two are under way again");
        drop((second, third));
        let (all, done) = tokio::join!(
            tokio::time::timeout(soon, limiter.acquire("b")),
            tokio::time::timeout(soon, limiter.acquire("d"))
        );
        assert!(all.is_ok() && done.is_ok());
    }
}
