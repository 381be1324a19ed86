//! Helps for the tests of the rules, here and in other crates (feature `testing`).
//!
//! [`given`] is for one decision: `given(history).when(command).then(events)`. [`World`] is for whole operations:
//! an instance, its operations and a scripted cluster, driven through `decide`, `follow` and `next` without I/O.
//! [`op`] and [`instance`] tell a story and hand out its history. All of them know events only: no state is
//! built that `decide` could not reach.

mod cluster;
mod fixture;
#[cfg(test)]
pub(crate) mod golden;
mod history;
mod rules;
mod world;

pub use cluster::{Cluster, Stay, Thing};
pub use fixture::{
    T0, caller, change_params, deployment, instantiate_params, levels, manifest, manifests,
    next_levels, next_manifests, next_product, product, vnfd,
};
pub use history::{InstanceStory, OpStory, instance, op};
pub use rules::{Given, Recorded, When, given};
pub use world::{World, at_point};
