//! Who is woken by which change: each watch waits for the changes of its kind in its namespace.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::json;
use crate::store::Change;

/// A kind's storage key and a namespace; the empty one stands for all.
pub(crate) type Place = (Arc<str>, String);

/// Places that nobody watches any more are forgotten once there are so many places.
const MANY: usize = 4096;

/// Where a change happened.
pub(crate) fn place(change: &Change) -> Place {
    let namespace = json::namespace(&change.object).to_owned();
    (Arc::clone(&change.storage), namespace)
}

/// The watches that wait, by what they watch.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<HashMap<Place, watch::Sender<()>>>);

impl Watchers {
    /// Waits for changes of a kind in a namespace, or in all of them.
    pub fn subscribe(&self, storage: &str, namespace: &str) -> watch::Receiver<()> {
        let mut known = self.lock();
        if known.len() >= MANY {
            known.retain(|_, sender| sender.receiver_count() > 0);
        }
        let place = (Arc::from(storage), namespace.to_owned());
        known.entry(place).or_default().subscribe()
    }

    /// Wakes those who watch these places.
    pub fn wake(&self, places: &BTreeSet<Place>) {
        let known = self.lock();
        let everywhere: BTreeSet<Place> = places
            .iter()
            .map(|(storage, _)| (Arc::clone(storage), String::new()))
            .collect();
        for place in places.union(&everywhere) {
            if let Some(sender) = known.get(place) {
                sender.send_replace(());
            }
        }
    }

    /// Wakes everybody.
    pub fn wake_all(&self) {
        for sender in self.lock().values() {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, watch::Sender<()>>> {
        // A poisoned map is as good as before: each change is one operation.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
