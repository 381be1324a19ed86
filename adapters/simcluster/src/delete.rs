//! Deleting: propagation, preconditions, finalizers, grace.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::json;
use crate::kinds::Kind;
use crate::state::State;
use crate::status::{ApiError, ApiResult, Cause};
use crate::write::{DEFINITIONS, Options};

/// The finalizer that waits for dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that lets dependents go.
pub(crate) const ORPHAN: &str = "orphan";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// `DeleteOptions`.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub propagation: Option<Propagation>,
    pub grace_seconds: Option<i64>,
    pub uid: String,
    pub resource_version: String,
    pub dry_run: bool,
}

impl DeleteOptions {
    pub fn propagate(propagation: Propagation) -> Self {
        Self {
            propagation: Some(propagation),
            ..Self::default()
        }
    }

    /// Reads the body; query parameters are added by the route.
    ///
    /// # Errors
    /// 422 for an unknown propagation policy.
    pub fn read(body: &Value) -> ApiResult<Self> {
        let mut options = Self {
            propagation: None,
            grace_seconds: json::at(body, "/gracePeriodSeconds").as_i64(),
            uid: json::text(body, "/preconditions/uid").to_owned(),
            resource_version: json::text(body, "/preconditions/resourceVersion").to_owned(),
            dry_run: json::list(body, "/dryRun").iter().any(|d| d == "All"),
        };
        options.set_propagation(json::text(body, "/propagationPolicy"))?;
        if let Some(orphan) = json::at(body, "/orphanDependents").as_bool() {
            let propagation = if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            };
            options.propagation.get_or_insert(propagation);
        }
        Ok(options)
    }

    pub fn set_propagation(&mut self, policy: &str) -> ApiResult<()> {
        self.propagation = match policy {
            "" => return Ok(()),
            "Foreground" => Some(Propagation::Foreground),
            "Background" => Some(Propagation::Background),
            "Orphan" => Some(Propagation::Orphan),
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                let cause = Cause::unsupported("propagationPolicy", other, &supported);
                return Err(ApiError::invalid_options("DeleteOptions", &cause));
            }
        };
        Ok(())
    }
}

/// What a delete left behind.
#[derive(Debug)]
pub(crate) enum Deleted {
    Gone(Arc<Value>),
    /// Held by finalizers or by a pod's grace.
    Pending(Arc<Value>),
}

impl State {
    /// Deletes an object, as a DELETE does.
    pub fn delete(
        &mut self,
        kind: &Kind,
        (namespace, name): (&str, &str),
        options: &DeleteOptions,
    ) -> ApiResult<Deleted> {
        let live = self
            .get(&kind.storage(), namespace, name)
            .ok_or_else(|| ApiError::not_found(kind, name))?;
        check_preconditions(kind, &live, options)?;
        let mut object = (*live).clone();
        let grace = grace_of(kind, &live, options);
        set_finalizers(kind, &mut object, options.propagation);
        let pending = grace > 0
            || !json::list(&object, "/metadata/finalizers").is_empty()
            || (kind.is("namespaces") && !json::list(&object, "/spec/finalizers").is_empty());
        if options.dry_run {
            return Ok(if pending {
                Deleted::Pending(live)
            } else {
                Deleted::Gone(live)
            });
        }
        if !pending {
            self.remove_now(kind, &live);
            return Ok(Deleted::Gone(live));
        }
        self.mark_deleted(kind, &live, &mut object, grace);
        if object == *live {
            return Ok(Deleted::Pending(live));
        }
        Ok(Deleted::Pending(self.store.put(&kind.storage(), object)))
    }

    fn mark_deleted(&self, kind: &Kind, live: &Value, object: &mut Value, grace: i64) {
        if !json::is_deleting(live) {
            json::set(object, "/metadata/deletionTimestamp", self.clock.stamp());
            let plain = kind.is(DEFINITIONS) || kind.is("namespaces");
            if !plain {
                json::set(object, "/metadata/deletionGracePeriodSeconds", grace);
            }
            if !plain && json::has(object, "/metadata/generation") {
                let next = json::int(object, "/metadata/generation", 0) + 1;
                json::set(object, "/metadata/generation", next);
            }
        } else if grace < json::int(live, "/metadata/deletionGracePeriodSeconds", 0) {
            json::set(object, "/metadata/deletionGracePeriodSeconds", grace);
        }
        if kind.is("namespaces") {
            json::set(object, "/status/phase", "Terminating");
        }
    }

    /// Takes the object out of the store, with what hangs on its being there.
    pub fn remove_now(&mut self, kind: &Kind, object: &Value) {
        if kind.is(DEFINITIONS) {
            self.kinds.remove_crd(object);
        }
        self.store
            .remove(&kind.storage(), json::namespace(object), json::name(object));
    }

    /// Removes one finalizer, and the object when nothing else holds it.
    pub fn release(&mut self, kind: &Kind, object: &Value, finalizer: &str) -> ApiResult<()> {
        let at = (json::namespace(object), json::name(object));
        let written = self.update(kind, at, &Options::by("kube-controller-manager"), |live| {
            let mut next = live.clone();
            json::list_mut(&mut next, "/metadata/finalizers").retain(|f| f != finalizer);
            Ok(next)
        });
        match written {
            Ok(_) => Ok(()),
            Err(error) if error.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn check_preconditions(kind: &Kind, live: &Value, options: &DeleteOptions) -> ApiResult<()> {
    let (uid, version) = (
        json::uid(live),
        json::text(live, "/metadata/resourceVersion"),
    );
    if !options.uid.is_empty() && options.uid != uid {
        let why = format!(
            "the UID in the precondition ({}) does not match the UID in record ({uid}). The object \
             might have been deleted and then recreated",
            options.uid
        );
        return Err(precondition(kind, json::name(live), &why));
    }
    if !options.resource_version.is_empty() && options.resource_version != version {
        let why = format!(
            "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in \
             record ({version}). The object might have been modified",
            options.resource_version
        );
        return Err(precondition(kind, json::name(live), &why));
    }
    Ok(())
}

/// Refusals of preconditions name the kind where others name the plural.
fn precondition(kind: &Kind, name: &str, why: &str) -> ApiError {
    let named = Kind {
        plural: kind.kind.clone(),
        ..kind.clone()
    };
    ApiError::conflict(&named, name, why)
}

/// Pods that run are given time to end; everything else ends at once.
fn grace_of(kind: &Kind, live: &Value, options: &DeleteOptions) -> i64 {
    let ended = matches!(json::text(live, "/status/phase"), "Succeeded" | "Failed");
    if !kind.is("pods") || json::text(live, "/spec/nodeName").is_empty() || ended {
        return 0;
    }
    let own = json::int(live, "/spec/terminationGracePeriodSeconds", 30);
    options.grace_seconds.unwrap_or(own).max(0)
}

/// Jobs and replication controllers let their pods go unless they are told otherwise.
fn default_propagation(kind: &Kind) -> Propagation {
    if kind.is("jobs.batch") || kind.is("replicationcontrollers") {
        Propagation::Orphan
    } else {
        Propagation::Background
    }
}

fn set_finalizers(kind: &Kind, object: &mut Value, asked: Option<Propagation>) {
    let has = |finalizer: &str| {
        json::list(object, "/metadata/finalizers")
            .iter()
            .any(|f| f == finalizer)
    };
    // With no word from the client a finalizer that is there already decides.
    if asked.is_none() && (has(FOREGROUND) || has(ORPHAN)) {
        return;
    }
    if kind.is(DEFINITIONS) {
        let cleanup = json!("customresourcecleanup.apiextensions.k8s.io");
        let finalizers = json::list_mut(object, "/metadata/finalizers");
        if !finalizers.contains(&cleanup) {
            finalizers.push(cleanup);
        }
    }
    let propagation = asked.unwrap_or_else(|| default_propagation(kind));
    if json::has(object, "/metadata/finalizers") {
        json::list_mut(object, "/metadata/finalizers").retain(|f| f != FOREGROUND && f != ORPHAN);
    }
    let finalizer = match propagation {
        Propagation::Foreground => FOREGROUND,
        Propagation::Orphan => ORPHAN,
        Propagation::Background => return,
    };
    json::list_mut(object, "/metadata/finalizers").push(json!(finalizer));
}
