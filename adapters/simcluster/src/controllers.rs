//! What happens after a write: the controllers, the scheduler and the kubelet, in one task.
//!
//! A pass looks at everything and does what is due, as level-triggered controllers do; it runs
//! under the store's mutex, a short delay after the change that woke it.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Inner;
use crate::state::State;

/// What controllers remember besides the objects.
#[derive(Debug, Default)]
pub(crate) struct Memory {}

pub(crate) fn start(_inner: Arc<Inner>) {}

pub(crate) fn pass(_state: &mut State) -> Option<Duration> { None }
