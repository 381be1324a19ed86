//! The simulated cluster, driven in process through its router.

mod applying;
mod conversation;
mod deleting;
mod faults;
mod serving;
mod watching;
mod workloads;
