//! The server's time: the wall clock at start plus tokio's elapsed time.
//!
//! Taking the progress from tokio keeps time stamps in step with timers when a test pauses time.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SimClock {
    started: Instant,
    wall: OffsetDateTime,
}

impl SimClock {
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            wall: OffsetDateTime::now_utc(),
        }
    }

    /// The time now as Kubernetes writes it: UTC, whole seconds.
    pub fn stamp(&self) -> String {
        let now = self.wall + self.started.elapsed();
        now.replace_nanosecond(0)
            .expect("zero nanoseconds are valid")
            .format(&Rfc3339)
            .expect("a UTC time of this era can be written")
    }

    /// Seconds since a stamp written by [`SimClock::stamp`] or by a client; zero if unreadable.
    pub fn seconds_since(&self, stamp: &str) -> i64 {
        let now = self.wall + self.started.elapsed();
        OffsetDateTime::parse(stamp, &Rfc3339).map_or(0, |then| (now - then).whole_seconds())
    }
}
