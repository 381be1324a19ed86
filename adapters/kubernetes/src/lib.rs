//! The `ContainerPlatform` port on Kubernetes: any cluster, any kind that it serves.
//!
//! It reads before it writes, writes by server-side apply under one field manager per instance, and tells
//! three things apart by type: the cluster refused, it was not reached, the answer was lost. It must never
//! touch an object that is not the instance's, take off a finalizer, or take a lost answer for an absence.
//!
//! Start reading at [`KubernetesPlatform`], then `apply.rs` (the table of what is found and done),
//! `await_ready.rs` with `readiness.rs` and `roots.rs` (what a wait is told), and `errors.rs`.

mod access;
mod apply;
mod await_ready;
mod client;
mod content;
mod credentials;
mod delete;
mod discovery;
mod errors;
mod evict;
mod gone;
mod hook;
mod inventory;
mod json;
mod limiter;
mod managed_fields;
mod marks;
mod platform;
mod pods;
mod readiness;
mod replicas;
mod roots;
mod scale;
mod shape;
mod survey;
#[cfg(test)]
mod testing;
mod verify;
mod volumes;
mod watch;

pub use access::{ConfiguredCluster, RequestBody};
pub use client::Settings;
pub use limiter::RateLimit;
pub use platform::KubernetesPlatform;
