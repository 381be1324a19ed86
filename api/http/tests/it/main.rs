//! The API over fakes of its ports: what reaches them, and what comes back.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do, where something is not as it must be"
)]

mod bodies;
mod conditions;
mod failures;
mod fakes;
mod lists;
mod operations;
mod own;
mod packages;
mod routes;
mod server;
mod versions;
