//! Every shape against the published schemas, for operations and instances in every state that a story reaches.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do, where something is not as it must be"
)]

mod judge;
mod notifications;
mod occurrences;
mod secrets;
