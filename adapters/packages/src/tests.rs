//! Packages from outside: what is taken, what is refused and in which words.

mod arbitrary;
mod archives;
mod builds;
mod descriptors;
pub(crate) mod fixture;
mod hooks;
mod manifests;
mod metadata;
mod tacker;
