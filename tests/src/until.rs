//! Awaiting a condition, with a deadline.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;

/// How soon a condition that nobody signals is looked at again: first, and at most. What comes soon is seen soon, and
/// many tests that wait long do not keep each other from working.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LATER_LOOKS: Duration = Duration::from_millis(100);

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
    let mut pause = FIRST_LOOK;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if Instant::now() >= end => {
                panic!(
                    "waited {} s in vain for {what}; last seen: {seen:#?}",
                    deadline.as_secs_f32()
                )
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 5 / 4).min(LATER_LOOKS);
    }
}
