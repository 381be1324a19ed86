//! Crash everywhere: an operation, or its rollback, is carried out by processes that end one after the other, each at
//! a call that writes to the log or changes the cluster, and the next goes on from the journal.
//!
//! Each schedule of such ends has a database and a cluster of its own, forked from one that was prepared once
//! ([`scenario`]), is carried out by [`schedule`], and is judged by [`holds`]. `tests/run` takes every single end and
//! some of the pairs, drawn by a seed; `tests/run --all-pairs` takes all of them. [`story`] tells random ones.

mod holds;
mod matrix;
mod scenario;
mod schedule;
mod story;
