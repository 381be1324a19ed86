//! A simulated Kubernetes API server with small controllers: what `cairn demo` runs on and what
//! the fault tests drive.
//!
//! It keeps everything in memory behind one mutex and speaks the part of the Kubernetes API that
//! Cairn and kubectl use. It must never be kinder than a real cluster: where the two differ, the
//! contract suite learns the difference first and this crate follows.
//!
//! It imports nothing of Cairn and knows nothing of VNFs. Start reading at [`SimCluster`], then
//! `routes.rs` (how a request is answered), `write.rs` (the path of every write) and
//! `controllers.rs` (what happens afterwards).

mod admission;
mod apply;
mod clock;
mod cluster;
mod controllers;
mod defaults;
mod delete;
mod discovery;
mod faults;
mod json;
mod kinds;
mod names;
mod requests;
mod routes;
mod selector;
mod serve;
mod state;
mod status;
mod store;
mod table;
mod typed;
mod validate;
mod watch;
mod watchers;
mod write;

pub use cluster::{Refusal, SimCluster, SimOptions};
pub use faults::{Denial, Fault, FaultAction, RequestMatch, When};
pub use requests::RequestRecord;
pub use serve::{ServeError, SimTls};

/// The version that the server says it is.
pub const VERSION: &str = "v1.35.4";
