//! What the integration tests stand on: a whole Cairn in one process, clusters, packages, clients.
//!
//! Nothing here knows a rule of VNF lifecycle management; what must hold is said in `it/`. Whatever a
//! test needs and cannot have ends it with the reason, and is never skipped in silence.
//!
//! Start reading at [`world::World`], then [`place::Place`].

#![expect(
    clippy::missing_panics_doc,
    reason = "a harness panics wherever what a test needs cannot be had; that is how the test fails"
)]

pub mod answer;
pub mod child;
pub mod client;
pub mod cuts;
pub mod heard;
pub mod held;
pub mod kinds;
pub mod kube;
pub mod package;
pub mod place;
pub mod proxy;
pub mod receiver;
pub mod twice;
pub mod until;
pub mod wire;
pub mod world;
