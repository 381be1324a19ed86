//! What is never deleted, by kind and occasion: for what it holds, or for what others keep in it.
//!
//! | kind | replaced | terminated | its creation is undone |
//! |---|---|---|---|
//! | `CustomResourceDefinition` | kept | kept | kept |
//! | `Namespace` | kept | deleted | deleted |
//! | `PersistentVolumeClaim`, `PersistentVolume` | kept | kept, unless `cairn.deleteVolumes` is true | deleted |
//!
//! A `StatefulSet` whose volumes go with it is deleted, but never made anew.

use super::claims;
use crate::ports::Surveyed;
use crate::problem::Problem;

/// Why an object would be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// Another one takes its place, or none does: the package names it no more.
    Replaced,
    /// The VNF is terminated.
    Terminated {
        /// Its volumes go too.
        volumes: bool,
    },
    /// The operation that made it is rolled back.
    Undone,
}

/// Why it stays all the same, if it does.
pub(super) fn kept(kind: &str, occasion: Occasion) -> Option<&'static str> {
    match (kind, occasion) {
        ("CustomResourceDefinition", _) => {
            Some("kept, for custom resources of others would go with it")
        }
        ("Namespace", Occasion::Replaced) => Some("kept, for what else is in it would go with it"),
        ("PersistentVolumeClaim" | "PersistentVolume", Occasion::Replaced) => {
            Some("volumes are kept")
        }
        ("PersistentVolumeClaim" | "PersistentVolume", Occasion::Terminated { volumes: false }) => {
            Some("volumes are kept unless cairn.deleteVolumes is true")
        }
        _ => None,
    }
}

/// Whether what is lost with it, if it is made anew, could not be brought back.
pub(super) fn holds(found: &Surveyed) -> bool {
    kept(&found.object.kind, Occasion::Replaced).is_some() || claims::go_with_it(found)
}

/// What would have to be made anew must not hold what would be lost with it.
///
/// # Errors
///
/// A [`Problem`] that names it, and why it cannot be changed in place.
pub(super) fn refuse_loss(found: &Surveyed) -> Result<(), Problem> {
    let Some(why) = found.needs_recreate.as_ref().filter(|_| holds(found)) else {
        return Ok(());
    };
    let instead = if claims::go_with_it(found) {
        "; its persistentVolumeClaimRetentionPolicy removes its volumes with it: change that first"
    } else {
        ""
    };
    Err(Problem::new(
        409,
        format!(
            "{} cannot be changed to what the package says, and is never made anew for what it holds: {why}{instead}",
            found.object
        ),
    ))
}
