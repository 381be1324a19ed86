//! What makes things happen: the only crate that drives the ports of `cairn-domain`.
//!
//! * [`executor`] carries user requests out: load, decide, follow, append, retry on conflict, catch up.
//! * [`runner`] works on claimed operations: load, `next`, perform, append, repeat.
//! * [`observer`] looks at halted operations: "retry would succeed now".
//!
//! It makes no choice of its own: what is legal and what comes next is asked of the domain. It never
//! talks to a database, a cluster or a web server but through a port.

pub mod bodies;
pub mod executor;
pub mod faults;
pub mod observer;
pub mod runner;
pub mod supervised;
pub mod target;
mod unit;

pub use executor::Executor;
pub use runner::Runner;
