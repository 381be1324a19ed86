//! What the outside must provide. Each trait states its contract: whether a call may be repeated, and what
//! each error obliges the caller to do. Async traits are objects (`Arc<dyn Port>`), so no generic leaks upwards.

mod cluster;
mod log;
mod packages;
mod reading;
mod service;
mod stores;

pub use cluster::*;
pub use log::*;
pub use packages::*;
pub use reading::*;
pub use service::*;
pub use stores::*;

use crate::problem::Problem;

/// What went wrong with a port, by what the caller does about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PortError {
    /// Somebody appended first: load and decide again, a bounded number of times.
    #[error("somebody else was first: {0}")]
    Conflict(String),
    /// The lease was lost: stop, and write nothing more for this operation.
    #[error("the lease on the operation was lost")]
    Fenced,
    /// It may work later: try again with backoff, or answer 503.
    #[error("not available now: {0}")]
    Unavailable(String),
    /// The other side said no: record it, or answer with it.
    #[error("refused: {}", .0.detail)]
    Refused(Problem),
    /// Stored data is impossible: stop with this stream, tell somebody, answer 500.
    #[error("stored data is impossible: {0}")]
    Corrupt(String),
}

/// Result of a port's call.
pub type PortResult<T> = Result<T, PortError>;
