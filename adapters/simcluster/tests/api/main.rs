//! The simulated cluster, driven in process through its router.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests unwrap as tests may"
)]

mod applying;
mod conversation;
mod deleting;
mod faults;
mod serving;
mod watching;
mod workloads;
