//! The garbage collector: dependents go with their owners, and finalizers of the server end.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Pass;
use super::act::MANAGER;
use crate::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::json;
use crate::kinds::Kind;

/// Where an owner is, and whether it waits for its dependents.
struct Owner {
    namespace: String,
    waits: bool,
}

pub(super) fn run(pass: &mut Pass<'_>) {
    let all: Vec<(String, Arc<Value>)> = pass
        .state
        .store
        .all()
        .filter(|(storage, _)| &***storage != "events")
        .map(|(storage, object)| (storage.to_string(), Arc::clone(object)))
        .collect();
    let owners: HashMap<String, Owner> = all
        .iter()
        .map(|(_, object)| {
            let owner = Owner {
                namespace: json::namespace(object).to_owned(),
                waits: has_finalizer(object, FOREGROUND) && json::is_deleting(object),
            };
            (json::uid(object).to_owned(), owner)
        })
        .collect();
    forget_the_dead(pass, &owners);
    for (storage, object) in &all {
        let Some(kind) = pass.state.kind_of(storage) else {
            continue;
        };
        collect(pass, &kind, object, &owners, &all);
    }
    for (storage, object) in all.iter().filter(|(_, object)| json::is_deleting(object)) {
        let Some(kind) = pass.state.kind_of(storage) else {
            continue;
        };
        if has_finalizer(object, ORPHAN) {
            orphan(pass, &kind, object, &all);
        }
        if has_finalizer(object, FOREGROUND) {
            finish_foreground(pass, &kind, object);
        }
        if kind.is("customresourcedefinitions.apiextensions.k8s.io") {
            clean_up_definition(pass, &kind, object);
        }
    }
}

pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    json::list(object, "/metadata/finalizers")
        .iter()
        .any(|f| f == finalizer)
}

fn forget_the_dead(pass: &mut Pass<'_>, owners: &HashMap<String, Owner>) {
    let memory = &mut pass.state.memory;
    memory.pods.retain(|uid, _| owners.contains_key(uid));
    memory.backoffs.retain(|uid, _| owners.contains_key(uid));
    memory.told.retain(|(uid, _), _| owners.contains_key(uid));
    memory.progress.retain(|uid, _| owners.contains_key(uid));
}

/// Deletes an object whose owners are all gone, or whose owner waits for it to go.
fn collect(
    pass: &mut Pass<'_>,
    kind: &Kind,
    object: &Value,
    owners: &HashMap<String, Owner>,
    all: &[(String, Arc<Value>)],
) {
    let references = json::list(object, "/metadata/ownerReferences");
    if references.is_empty() || json::is_deleting(object) {
        return;
    }
    let find = |reference: &Value| {
        owners.get(json::text(reference, "/uid")).filter(|owner| {
            // An owner in another namespace counts as absent.
            owner.namespace.is_empty() || owner.namespace == json::namespace(object)
        })
    };
    let found: Vec<&Owner> = references.iter().filter_map(find).collect();
    let waited_for = references.iter().any(|reference| {
        json::flag(reference, "/blockOwnerDeletion") && find(reference).is_some_and(|o| o.waits)
    });
    let all_wait = waited_for && found.iter().all(|owner| owner.waits);
    if !(found.is_empty() || all_wait) {
        return;
    }
    let has_dependents = all
        .iter()
        .any(|(_, other)| owned_by(other, json::uid(object)));
    let propagation = if waited_for && has_dependents {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let options = DeleteOptions {
        uid: json::uid(object).to_owned(),
        ..DeleteOptions::propagate(propagation)
    };
    let at = (json::namespace(object), json::name(object));
    if let Err(error) = pass.state.delete(kind, at, &options) {
        tracing::debug!(error = error.message, "a dependent was gone already");
    }
}

fn owned_by(object: &Value, uid: &str) -> bool {
    json::list(object, "/metadata/ownerReferences")
        .iter()
        .any(|o| json::text(o, "/uid") == uid)
}

/// Lets dependents go, then the owner's finalizer.
fn orphan(pass: &mut Pass<'_>, kind: &Kind, object: &Value, all: &[(String, Arc<Value>)]) {
    let uid = json::uid(object).to_owned();
    for (storage, dependent) in all.iter().filter(|(_, other)| owned_by(other, &uid)) {
        let Some(kind) = pass.state.kind_of(storage) else {
            continue;
        };
        pass.change(&kind, dependent, MANAGER, |dependent| {
            json::list_mut(dependent, "/metadata/ownerReferences")
                .retain(|owner| json::text(owner, "/uid") != uid);
        });
    }
    release(pass, kind, object, ORPHAN);
}

/// The finalizer goes when no dependent that blocks is left.
fn finish_foreground(pass: &mut Pass<'_>, kind: &Kind, object: &Value) {
    let uid = json::uid(object);
    let blocked = pass.state.store.all().any(|(_, other)| {
        json::list(other, "/metadata/ownerReferences")
            .iter()
            .any(|owner| {
                json::text(owner, "/uid") == uid && json::flag(owner, "/blockOwnerDeletion")
            })
    });
    if !blocked {
        release(pass, kind, object, FOREGROUND);
    }
}

/// A definition goes after its objects.
fn clean_up_definition(pass: &mut Pass<'_>, kind: &Kind, definition: &Value) {
    let storage = json::name(definition).to_owned();
    let objects = pass.state.list(&storage, "");
    if let Some(custom) = pass.state.kind_of(&storage) {
        for object in objects.iter().filter(|object| !json::is_deleting(object)) {
            pass.delete(&custom, object);
        }
    }
    if pass.state.list(&storage, "").is_empty() {
        release(
            pass,
            kind,
            definition,
            "customresourcecleanup.apiextensions.k8s.io",
        );
    }
}

pub(super) fn release(pass: &mut Pass<'_>, kind: &Kind, object: &Value, finalizer: &str) {
    if let Err(error) = pass.state.release(kind, object, finalizer) {
        tracing::warn!(
            error = error.message,
            finalizer,
            "a finalizer could not be removed"
        );
    }
}
