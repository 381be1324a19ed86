//! The rules of VNF lifecycle management: pure, synchronous, without I/O.
//!
//! Two aggregates carry the truth: [`vnf_instance::VnfInstance`] (the consistency boundary of one VNF)
//! and [`lcm_op_occ::VnfLcmOpOcc`] (the journal of one lifecycle operation). [`follow`] says what an
//! event of the second means for the first. What the outside must provide are the traits in [`ports`].
//!
//! This crate never reads a clock, draws a random number, or calls anything: time, ids and facts from
//! outside arrive in commands. Start reading at [`operation`], then [`lcm_op_occ`].

pub mod announce;
pub mod clocks;
pub mod follow;
pub mod history;
pub mod hook;
pub mod ids;
pub mod lcm_op_occ;
pub mod merge_patch;
pub mod object;
pub mod operation;
pub mod planning;
pub mod ports;
pub mod problem;
pub mod request;
pub mod root;
pub mod secret;
pub mod subscription;
pub mod time;
pub mod vim;
pub mod vnf_instance;
pub mod vnfd;
pub mod waits;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
