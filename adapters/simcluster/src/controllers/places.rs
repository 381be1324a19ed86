//! Which namespaces a pass has to look at.

use std::collections::{BTreeSet, HashSet};

use tokio::time::Instant;

use crate::json;
use crate::state::State;
use crate::store::{Change, ChangeKind};

/// Kinds in namespaces by which what is cluster-scoped is judged.
const JUDGE_THE_CLUSTER: [&str; 2] = ["persistentvolumeclaims", "services"];

/// What the changes since the last pass concern.
#[derive(Default)]
struct Concerned {
    namespaces: BTreeSet<String>,
    /// Something cluster-scoped changed.
    all: bool,
    /// Nothing changed at all.
    nothing: bool,
    /// UIDs of what is gone.
    dead: Vec<String>,
}

/// The namespaces in which something changed since the last pass, or is due by time. All of them where
/// something cluster-scoped changed, where changes were forgotten, or where a pass was asked for without a change.
/// The empty name, which comes first, stands for what is cluster-scoped.
pub(super) fn due(state: &mut State, now: Instant) -> BTreeSet<String> {
    let since = state.memory.passed;
    state.memory.passed = state.store.resource_version();
    let Some(concerned) = state.store.all_changes_after(since).map(concerned) else {
        forget_the_dead(state);
        return everywhere(state);
    };
    for uid in &concerned.dead {
        state.memory.forget(uid);
    }
    let mut due = concerned.namespaces;
    let wakes = state.memory.wakes.iter();
    due.extend(
        wakes
            .filter(|(_, at)| **at <= now)
            .map(|(namespace, _)| namespace.clone()),
    );
    if concerned.all || (concerned.nothing && due.is_empty()) {
        return everywhere(state);
    }
    // Room that became free in one namespace is for the pods of all.
    due.extend(state.memory.unplaced.iter().cloned());
    if state.memory.cluster_ends {
        due.insert(String::new());
    }
    due
}

fn concerned<'a>(changes: impl Iterator<Item = &'a Change>) -> Concerned {
    let mut concerned = Concerned {
        nothing: true,
        ..Concerned::default()
    };
    for change in changes {
        concerned.nothing = false;
        if change.what == ChangeKind::Deleted {
            concerned.dead.push(json::uid(&change.object).to_owned());
        }
        let namespace = json::namespace(&change.object);
        match &*change.storage {
            "events" => {}
            "namespaces" => {
                let name = json::name(&change.object);
                concerned.namespaces.insert(name.to_owned());
            }
            _ if namespace.is_empty() => concerned.all = true,
            storage => {
                concerned.namespaces.insert(namespace.to_owned());
                if JUDGE_THE_CLUSTER.contains(&storage) {
                    concerned.namespaces.insert(String::new());
                }
            }
        }
    }
    concerned
}

fn everywhere(state: &State) -> BTreeSet<String> {
    let names = state.store.list("namespaces", "");
    let names = names.map(|namespace| json::name(namespace).to_owned());
    std::iter::once(String::new()).chain(names).collect()
}

/// After changes were forgotten, nobody knows which objects went.
fn forget_the_dead(state: &mut State) {
    let living: HashSet<String> = state
        .store
        .all()
        .map(|(_, object)| json::uid(object).to_owned())
        .collect();
    state.memory.keep_only(&living);
}
