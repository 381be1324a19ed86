//! SOL003 `vnflcm`, SOL005 `vnfpkgm` and our own API over HTTP.
//!
//! A handler extracts, hands the request to [`cairn_domain::ports::Commands`] or reads a row, and answers. It
//! never branches on the state of an instance: what is legal is decided in the domain, what a refusal means in
//! HTTP in [`problem`], once. It never reads the log; `?at=` asks the engine.
//!
//! Start reading at [`router`], which lists every resource and method, then [`frame`], which holds what is
//! true of all of them: time-outs, limits, the `Version` header, and problem bodies for everything that fails.

mod answer;
mod app;
mod body;
mod cairn;
mod filter;
mod frame;
mod headers;
mod health;
mod problem;
mod query;
mod routes;
mod selector;
mod vnflcm;
mod vnfpkgm;

pub use app::{App, HttpSettings};
pub use routes::router;
