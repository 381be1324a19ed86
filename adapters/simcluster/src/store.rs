//! What etcd is to a real server: objects by kind and name, one counter of resource versions and
//! a bounded window of changes for watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::json;

/// Namespace (empty for cluster-scoped kinds) and name.
pub(crate) type ObjectKey = (String, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One entry of the watch window.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub resource_version: u64,
    /// `deployments.apps`: the storage key of the kind.
    pub storage: Arc<str>,
    pub what: ChangeKind,
    pub object: Arc<Value>,
    /// The object before, by which a watch with a selector tells entering from staying.
    pub before: Option<Arc<Value>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    objects: BTreeMap<Arc<str>, BTreeMap<ObjectKey, Arc<Value>>>,
    changes: VecDeque<Change>,
    window: usize,
    resource_version: u64,
    /// Watches that begin before this version have missed changes: 410.
    forgotten: u64,
}

impl Store {
    pub fn new(window: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
            window,
            resource_version: 1,
            forgotten: 0,
        }
    }

    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    pub fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.objects.get(storage)?.get(&key).cloned()
    }

    /// Objects of a kind in order of namespace and name; an empty namespace means all.
    pub fn list<'a>(
        &'a self,
        storage: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        let objects = self.objects.get(storage).into_iter();
        objects.flat_map(move |objects| {
            let from = (namespace.to_owned(), String::new());
            objects
                .range(from..)
                .take_while(move |((ns, _), _)| namespace.is_empty() || ns == namespace)
                .map(|(_, object)| object)
        })
    }

    /// Objects of a kind in exactly this namespace; the empty one has what is cluster-scoped.
    pub fn within<'a>(
        &'a self,
        storage: &str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        self.list(storage, namespace)
            .take_while(move |object| json::namespace(object) == namespace)
    }

    /// Everything in exactly this namespace, with its storage key.
    pub fn all_within<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Value>)> {
        self.objects.keys().flat_map(move |storage| {
            self.within(storage, namespace)
                .map(move |object| (storage, object))
        })
    }

    /// Every object with its storage key.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Value>)> {
        self.objects
            .iter()
            .flat_map(|(storage, objects)| objects.values().map(move |o| (storage, o)))
    }

    /// Stores the object under a new resource version and returns it as stored.
    pub fn put(&mut self, storage: &str, mut object: Value) -> Arc<Value> {
        let version = self.next_version();
        json::set(
            &mut object,
            "/metadata/resourceVersion",
            version.to_string(),
        );
        let key = (
            json::namespace(&object).to_owned(),
            json::name(&object).to_owned(),
        );
        let object = Arc::new(object);
        let storage = self.storage_key(storage);
        let before = self
            .objects
            .entry(Arc::clone(&storage))
            .or_default()
            .insert(key, Arc::clone(&object));
        let what = if before.is_some() {
            ChangeKind::Modified
        } else {
            ChangeKind::Added
        };
        self.remember(Change {
            resource_version: version,
            storage,
            what,
            object: Arc::clone(&object),
            before,
        });
        object
    }

    /// Removes the object. Its last state, told to watches, carries the version of the removal.
    pub fn remove(&mut self, storage: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = (namespace.to_owned(), name.to_owned());
        let before = self.objects.get_mut(storage)?.remove(&key)?;
        let version = self.next_version();
        let mut last = (*before).clone();
        json::set(&mut last, "/metadata/resourceVersion", version.to_string());
        let storage = self.storage_key(storage);
        self.remember(Change {
            resource_version: version,
            storage,
            what: ChangeKind::Deleted,
            object: Arc::new(last),
            before: Some(Arc::clone(&before)),
        });
        Some(before)
    }

    /// Changes of a kind after `version`, or `None` when some of them are forgotten.
    pub fn changes_after(&self, storage: &str, version: u64) -> Option<Vec<Change>> {
        let all = self.all_changes_after(version)?;
        Some(all.filter(|c| &*c.storage == storage).cloned().collect())
    }

    /// Changes of all kinds after `version`, or `None` when some of them are forgotten.
    pub fn all_changes_after(&self, version: u64) -> Option<impl Iterator<Item = &Change>> {
        if version < self.forgotten {
            return None;
        }
        let first = self
            .changes
            .partition_point(|c| c.resource_version <= version);
        Some(self.changes.range(first..))
    }

    /// Forgets all changes so far, so that watches from an older version are answered 410.
    pub fn compact(&mut self) {
        self.changes.clear();
        self.forgotten = self.resource_version;
    }

    fn next_version(&mut self) -> u64 {
        self.resource_version += 1;
        self.resource_version
    }

    fn storage_key(&mut self, storage: &str) -> Arc<str> {
        if let Some((key, _)) = self.objects.get_key_value(storage) {
            return Arc::clone(key);
        }
        let key: Arc<str> = Arc::from(storage);
        self.objects.insert(Arc::clone(&key), BTreeMap::new());
        key
    }

    fn remember(&mut self, change: Change) {
        self.changes.push_back(change);
        while self.changes.len() > self.window {
            if let Some(oldest) = self.changes.pop_front() {
                self.forgotten = oldest.resource_version;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "default"}})
    }

    #[test]
    fn each_write_takes_a_new_resource_version() {
        let mut store = Store::new(10);
        let first = store.put("pods", object("a"));
        let second = store.put("pods", object("a"));
        assert_ne!(
            first["metadata"]["resourceVersion"],
            second["metadata"]["resourceVersion"]
        );
        assert_eq!(store.changes_after("pods", 0).unwrap().len(), 2);
    }

    #[test]
    fn a_watch_older_than_the_window_is_refused() {
        let mut store = Store::new(2);
        for name in ["a", "b", "c", "d"] {
            store.put("pods", object(name));
        }
        assert!(store.changes_after("pods", 1).is_none());
        assert_eq!(store.changes_after("pods", 3).unwrap().len(), 2);
    }

    #[test]
    fn removal_tells_the_last_state_under_a_version_of_its_own() {
        let mut store = Store::new(10);
        store.put("pods", object("a"));
        store.remove("pods", "default", "a").unwrap();
        let last = store.changes_after("pods", 2).unwrap();
        assert_eq!(last[0].what, ChangeKind::Deleted);
        assert_eq!(last[0].object["metadata"]["resourceVersion"], "3");
    }
}
