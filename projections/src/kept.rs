//! Rows that were read lately, decoded. The database is asked for each read all the same: it says which version and
//! position the row has now, and sends the row's text only if what is kept here is not that.

use crate::fold::Line;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows of each read model that are kept.
const ROOM: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");

/// Some rows of a read model, by id.
pub(crate) struct Kept<S> {
    lines: Mutex<LruCache<String, Line<Arc<S>>>>,
}

impl<S> Kept<S> {
    pub(crate) fn get(&self, id: &str) -> Option<Line<Arc<S>>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn put(&self, id: &str, line: Line<Arc<S>>) {
        self.lock().put(id.to_owned(), line);
    }

    /// The tables were made anew.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Whoever panicked while holding it has left whole lines behind.
    fn lock(&self) -> MutexGuard<'_, LruCache<String, Line<Arc<S>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Self {
            lines: Mutex::new(LruCache::new(ROOM)),
        }
    }
}
