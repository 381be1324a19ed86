//! The garbage collector: dependents go with their owners, and finalizers of the server end.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Pass;
use super::act::MANAGER;
use crate::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use crate::json;
use crate::kinds::Kind;

/// The owners of one namespace's objects: they are there too, or cluster-scoped.
struct Owners<'a> {
    here: HashMap<&'a str, &'a Arc<Value>>,
}

impl Owners<'_> {
    /// The owner that a reference names. One in another namespace counts as absent.
    fn find(&self, pass: &Pass<'_>, reference: &Value) -> Option<Arc<Value>> {
        let uid = json::text(reference, "/uid");
        let here = self.here.get(uid).map(|owner| Arc::clone(owner));
        here.or_else(|| {
            let cluster_scoped = pass.state.store.all_within("");
            let mut owners = cluster_scoped.map(|(_, owner)| owner);
            owners.find(|owner| json::uid(owner) == uid).cloned()
        })
    }
}

pub(super) fn run(pass: &mut Pass<'_>) {
    // A namespace is looked at with what is in it.
    let mut here: Vec<(Arc<str>, Arc<Value>)> = pass
        .state
        .store
        .all_within(&pass.namespace)
        .filter(|(storage, _)| !matches!(&***storage, "events" | "namespaces"))
        .map(|(storage, object)| (Arc::clone(storage), Arc::clone(object)))
        .collect();
    let own = pass.state.get("namespaces", "", &pass.namespace);
    here.extend(own.map(|own| (Arc::from("namespaces"), own)));
    let owners = Owners {
        here: here
            .iter()
            .map(|(_, object)| (json::uid(object), object))
            .collect(),
    };
    if pass.namespace.is_empty() {
        let ends = here.iter().any(|(_, object)| json::is_deleting(object));
        pass.state.memory.cluster_ends = ends;
    }
    for (storage, object) in &here {
        let Some(kind) = pass.state.kind_of(storage) else {
            continue;
        };
        collect(pass, &kind, object, &owners);
    }
    for (storage, object) in here.iter().filter(|(_, object)| json::is_deleting(object)) {
        let Some(kind) = pass.state.kind_of(storage) else {
            continue;
        };
        if has_finalizer(object, ORPHAN) {
            orphan(pass, &kind, object);
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

/// Deletes an object whose owners are all gone, or whose owner waits for it to go.
fn collect(pass: &mut Pass<'_>, kind: &Kind, object: &Value, owners: &Owners<'_>) {
    let references = json::list(object, "/metadata/ownerReferences");
    if references.is_empty() || json::is_deleting(object) {
        return;
    }
    let waits = |owner: &Value| has_finalizer(owner, FOREGROUND) && json::is_deleting(owner);
    let found: Vec<(&Value, Arc<Value>)> = references
        .iter()
        .filter_map(|reference| Some((reference, owners.find(pass, reference)?)))
        .collect();
    let waited_for = found
        .iter()
        .any(|(reference, owner)| json::flag(reference, "/blockOwnerDeletion") && waits(owner));
    let all_wait = waited_for && found.iter().all(|(_, owner)| waits(owner));
    if !(found.is_empty() || all_wait) {
        return;
    }
    let propagation = if waited_for && !dependents(pass, object).is_empty() {
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

/// Everything that names this owner.
fn dependents(pass: &Pass<'_>, owner: &Value) -> Vec<(Arc<str>, Arc<Value>)> {
    pass.state
        .store
        .all()
        .filter(|(_, other)| owned_by(other, json::uid(owner)))
        .map(|(storage, other)| (Arc::clone(storage), Arc::clone(other)))
        .collect()
}

fn owned_by(object: &Value, uid: &str) -> bool {
    json::list(object, "/metadata/ownerReferences")
        .iter()
        .any(|o| json::text(o, "/uid") == uid)
}

/// Lets dependents go, then the owner's finalizer.
fn orphan(pass: &mut Pass<'_>, kind: &Kind, object: &Value) {
    let uid = json::uid(object).to_owned();
    for (storage, dependent) in dependents(pass, object) {
        let Some(kind) = pass.state.kind_of(&storage) else {
            continue;
        };
        pass.change(&kind, &dependent, MANAGER, |dependent| {
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
