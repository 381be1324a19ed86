//! Creating and changing objects: the path that every write takes, whoever makes it.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::admission;
use crate::apply::managed::{self, Writer};
use crate::apply::server_side;
use crate::defaults;
use crate::json;
use crate::kinds::Kind;
use crate::state::State;
use crate::status::{ApiError, ApiResult};
use crate::table;
use crate::validate;

mod fields;
mod identity;
mod keep;

use fields::{check_applied_fields, check_fields};
use identity::{
    check_applied_uid, check_apply_metadata, check_identity, check_uid, has_version, name_it,
};
use keep::{applicable, count_generation, keep_metadata, keep_other_half, unowned};

/// What to do about fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Strict,
    Warn,
    Ignore,
    /// The writer is a part of the cluster, which knows the kinds.
    Trust,
}

/// The kind that adds kinds.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Whether a definition's objects are served.
pub(crate) fn is_established(definition: &Value) -> bool {
    json::list(definition, "/status/conditions")
        .iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// How a write is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    pub manager: &'a str,
    /// `""` for the object itself, else `status` or `scale`.
    pub subresource: &'a str,
    pub dry_run: bool,
    pub validation: FieldValidation,
}

impl<'a> Options<'a> {
    /// A write by a part of the cluster itself.
    pub fn by(manager: &'a str) -> Self {
        Self {
            manager,
            subresource: "",
            dry_run: false,
            validation: FieldValidation::Trust,
        }
    }

    pub fn status_by(manager: &'a str) -> Self {
        Self {
            subresource: "status",
            ..Self::by(manager)
        }
    }
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub object: Arc<Value>,
    pub created: bool,
    pub warnings: Vec<String>,
}

impl State {
    pub fn create_as(
        &mut self,
        manager: &str,
        kind: &Kind,
        namespace: &str,
        object: Value,
    ) -> ApiResult<Arc<Value>> {
        self.create(kind, namespace, object, &Options::by(manager))
            .map(|written| written.object)
    }

    /// Creates an object, as a POST does.
    pub fn create(
        &mut self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        options: &Options<'_>,
    ) -> ApiResult<Written> {
        json::drop_nulls(&mut object);
        check_identity(kind, &object, namespace, "")?;
        let warnings = check_fields(kind, &mut object, options.validation)?;
        self.insert(kind, namespace, object, options, false)
            .map(|object| Written {
                object,
                created: true,
                warnings,
            })
    }

    /// Applies a configuration on the server's side, creating the object when it is absent.
    pub fn apply(
        &mut self,
        kind: &Kind,
        (namespace, name): (&str, &str),
        mut config: Value,
        force: bool,
        options: &Options<'_>,
    ) -> ApiResult<Written> {
        check_apply_metadata(kind, &config, namespace, name)?;
        json::drop_nulls(&mut config);
        check_applied_fields(kind, &mut config)?;
        if kind.namespaced {
            json::set(&mut config, "/metadata/namespace", namespace);
        }
        json::set(&mut config, "/metadata/name", name);
        let stamp = self.clock.stamp();
        let live = self.live(kind, namespace, name);
        let Some(live) = live else {
            return self.apply_absent(kind, namespace, config, &stamp, options);
        };
        check_applied_uid(kind, &live, &config)?;
        let version = json::text(&config, "/metadata/resourceVersion");
        if !version.is_empty() && version != json::text(&live, "/metadata/resourceVersion") {
            return Err(ApiError::modified(kind, name));
        }
        let config = applicable(kind, config, options.subresource);
        let writer = Writer {
            manager: options.manager,
            subresource: options.subresource,
            now: &stamp,
        };
        let merged = server_side::apply(kind, &live, &config, &writer, force)?;
        let object = self.replace(kind, &live, merged, options, true)?;
        Ok(Written {
            object,
            created: false,
            warnings: Vec::new(),
        })
    }

    fn apply_absent(
        &mut self,
        kind: &Kind,
        namespace: &str,
        config: Value,
        stamp: &str,
        options: &Options<'_>,
    ) -> ApiResult<Written> {
        let name = json::name(&config).to_owned();
        if !options.subresource.is_empty() {
            return Err(ApiError::not_found(kind, &name));
        }
        let uid = json::uid(&config);
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was \
                 found"
            );
            return Err(ApiError::conflict(kind, &name, &why));
        }
        let config = applicable(kind, config, "");
        let empty = json!({"apiVersion": kind.api_version(), "kind": kind.kind});
        let writer = Writer {
            manager: options.manager,
            subresource: "",
            now: stamp,
        };
        let object = server_side::apply(kind, &empty, &config, &writer, false)?;
        let object = self.insert(kind, namespace, object, options, true)?;
        Ok(Written {
            object,
            created: true,
            warnings: Vec::new(),
        })
    }

    /// Changes an object, as PUT and the plain patches do. `make` gets the live object.
    pub fn update(
        &mut self,
        kind: &Kind,
        (namespace, name): (&str, &str),
        options: &Options<'_>,
        make: impl FnOnce(&Value) -> ApiResult<Value>,
    ) -> ApiResult<Written> {
        let live = self
            .live(kind, namespace, name)
            .ok_or_else(|| ApiError::not_found(kind, name))?;
        let mut object = make(&live)?;
        json::drop_nulls(&mut object);
        check_identity(kind, &object, namespace, name)?;
        let warnings = check_fields(kind, &mut object, options.validation)?;
        check_uid(kind, &live, &object)?;
        let version = json::text(&object, "/metadata/resourceVersion");
        if !version.is_empty() && version != json::text(&live, "/metadata/resourceVersion") {
            return Err(ApiError::modified(kind, name));
        }
        let object = self.replace(kind, &live, object, options, false)?;
        Ok(Written {
            object,
            created: false,
            warnings,
        })
    }

    /// The live object in the version of `kind`; it may have been written in another one.
    fn live(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let live = self.get(&kind.storage(), namespace, name)?;
        if json::text(&live, "/apiVersion") == kind.api_version() {
            return Some(live);
        }
        Some(Arc::new(table::to_version(kind, &live)))
    }

    /// Stores a new object after filling, admission and validation.
    fn insert(
        &mut self,
        kind: &Kind,
        namespace: &str,
        mut object: Value,
        options: &Options<'_>,
        managed_already: bool,
    ) -> ApiResult<Arc<Value>> {
        name_it(kind, &mut object)?;
        let name = json::name(&object).to_owned();
        if has_version(&object) {
            let text = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(500, "", text));
        }
        self.check_namespace(kind, namespace, &name)?;
        self.new_metadata(kind, namespace, &mut object);
        if kind.has_status && options.manager != "kube-apiserver" {
            json::remove(&mut object, "/status");
        }
        defaults::fill(kind, &mut object);
        // What the server allocates from here on has no owner.
        if !managed_already {
            let now = self.clock.stamp();
            let writer = Writer {
                manager: options.manager,
                subresource: "",
                now: &now,
            };
            managed::record_update(kind, &unowned(kind, &object), &mut object, &writer);
        }
        admission::prepare_new(self, kind, &mut object);
        validate::object(kind, &object)?;
        admission::admit_new(self, kind, &mut object)?;
        if self.get(&kind.storage(), namespace, &name).is_some() {
            return Err(ApiError::already_exists(kind, &name));
        }
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.store.put(&kind.storage(), object))
    }

    fn new_metadata(&mut self, kind: &Kind, namespace: &str, object: &mut Value) {
        json::set(object, "/apiVersion", kind.api_version());
        json::set(object, "/kind", kind.kind.clone());
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "selfLink",
        ] {
            json::remove(object, &format!("/metadata/{field}"));
        }
        if kind.namespaced {
            json::set(object, "/metadata/namespace", namespace);
        } else {
            json::remove(object, "/metadata/namespace");
        }
        json::set(object, "/metadata/uid", new_uid());
        json::set(object, "/metadata/creationTimestamp", self.clock.stamp());
        if kind.counts_generations() {
            json::set(object, "/metadata/generation", 1);
        }
    }

    fn check_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> ApiResult<()> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(found) = self.get("namespaces", "", namespace) else {
            return Err(ApiError::not_found_in("namespaces", "", namespace));
        };
        if json::is_deleting(&found) {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being \
                 terminated"
            );
            let mut error = ApiError::forbidden(kind, name, &why);
            error.details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
            return Err(error);
        }
        Ok(())
    }

    /// Stores the next state of an object after filling and validation.
    fn replace(
        &mut self,
        kind: &Kind,
        live: &Arc<Value>,
        mut object: Value,
        options: &Options<'_>,
        managed_already: bool,
    ) -> ApiResult<Arc<Value>> {
        keep_metadata(live, &mut object);
        keep_other_half(kind, live, &mut object, options.subresource);
        defaults::fill(kind, &mut object);
        admission::prepare_change(self, kind, live, &mut object);
        if options.subresource != "status" {
            validate::object(kind, &object)?;
            validate::change(kind, live, &object)?;
        }
        count_generation(kind, live, &mut object);
        if !managed_already {
            let now = self.clock.stamp();
            let writer = Writer {
                manager: options.manager,
                subresource: options.subresource,
                now: &now,
            };
            managed::record_update(kind, live, &mut object, &writer);
        }
        if object == **live {
            return Ok(Arc::clone(live));
        }
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(self.store_change(kind, live, object))
    }

    /// Stores an object to which an apply was merged already.
    pub fn replace_applied(
        &mut self,
        kind: &Kind,
        live: &Value,
        object: Value,
        options: &Options<'_>,
    ) -> ApiResult<Arc<Value>> {
        self.replace(kind, &Arc::new(live.clone()), object, options, true)
    }

    /// Writes the object, or removes it when this write took the last thing that held it.
    fn store_change(&mut self, kind: &Kind, live: &Value, object: Value) -> Arc<Value> {
        if kind.is(DEFINITIONS) && is_established(&object) {
            self.kinds.register_crd(&object);
        }
        let held = !json::list(live, "/metadata/finalizers").is_empty()
            && json::list(&object, "/metadata/finalizers").is_empty();
        let graceless = json::int(&object, "/metadata/deletionGracePeriodSeconds", 0) == 0;
        let in_namespace =
            kind.is("namespaces") && !json::list(&object, "/spec/finalizers").is_empty();
        let stored = self.store.put(&kind.storage(), object);
        if json::is_deleting(&stored) && held && graceless && !in_namespace {
            self.remove_now(kind, &stored);
        }
        stored
    }
}

/// A fresh UID. The simulated server is a source of ids, as etcd's clients are not.
#[expect(
    clippy::disallowed_methods,
    reason = "an API server makes UIDs on its own; no port is asked"
)]
pub(crate) fn new_uid() -> String {
    Uuid::new_v4().to_string()
}

/// Five letters and digits, as generated names end in.
pub(crate) fn random_suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let uid = new_uid().replace('-', "");
    uid.as_bytes()
        .chunks(2)
        .take(5)
        .map(|pair| {
            let text = std::str::from_utf8(pair).unwrap_or("0");
            let number = usize::from_str_radix(text, 16).unwrap_or(0);
            char::from(LETTERS[number % LETTERS.len()])
        })
        .collect()
}
