//! Awaiting a condition, with a deadline.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// How often a condition that nobody signals is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Looks again and again until `look` gives `Ok`; the last `Err` says what was seen instead.
///
/// # Panics
/// When the deadline passes.
pub async fn until<T, E: Debug, F: Future<Output = Result<T, E>>>(
    deadline: Duration,
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + deadline;
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match look().await {
            Ok(found) => return found,
            Err(seen) if Instant::now() >= end => {
                panic!(
                    "waited {} s in vain for {what}; last seen: {seen:#?}",
                    deadline.as_secs_f32()
                )
            }
            Err(_) => {}
        }
    }
}
