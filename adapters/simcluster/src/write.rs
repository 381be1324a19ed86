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
use crate::status::{ApiError, ApiResult, Cause};
use crate::table;
use crate::typed;
use crate::validate;

/// What to do about fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Strict,
    Warn,
    Ignore,
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
            validation: FieldValidation::Ignore,
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

/// The part of a new object that its creator does not own, since the server writes it.
fn unowned(kind: &Kind, object: &Value) -> Value {
    let mut unowned = json!({});
    if kind.has_status && kind.kind != "Node" {
        unowned["status"] = json::at(object, "/status").clone();
    }
    if kind.is("namespaces") {
        unowned["spec"] = json!({"finalizers": json::at(object, "/spec/finalizers")});
    }
    json::drop_nulls(&mut unowned);
    unowned
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

fn has_version(object: &Value) -> bool {
    !matches!(json::text(object, "/metadata/resourceVersion"), "" | "0")
}

fn name_it(kind: &Kind, object: &mut Value) -> ApiResult<()> {
    if !json::name(object).is_empty() {
        return Ok(());
    }
    let prefix = json::text(object, "/metadata/generateName").to_owned();
    if prefix.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(ApiError::invalid(kind, "", &[cause]));
    }
    json::set(
        object,
        "/metadata/name",
        format!("{prefix}{}", random_suffix()),
    );
    Ok(())
}

/// The body must speak of the kind, namespace and name that the path names.
fn check_identity(kind: &Kind, object: &Value, namespace: &str, name: &str) -> ApiResult<()> {
    let (version, body_kind) = (json::text(object, "/apiVersion"), json::kind(object));
    if !body_kind.is_empty() && body_kind != kind.kind {
        return Err(ApiError::bad_request(format!(
            "{body_kind} in version {version:?} cannot be handled as a {}: no kind {body_kind:?} is \
             registered for this path",
            kind.kind
        )));
    }
    if !version.is_empty() && version != kind.api_version() {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    let body_namespace = json::namespace(object);
    if kind.namespaced && !body_namespace.is_empty() && body_namespace != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let body_name = json::name(object);
    if !name.is_empty() && body_name != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({body_name}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

fn check_apply_metadata(kind: &Kind, config: &Value, namespace: &str, name: &str) -> ApiResult<()> {
    if json::has(config, "/metadata/managedFields") {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    if json::kind(config).is_empty() || json::text(config, "/apiVersion").is_empty() {
        return Err(ApiError::bad_request("invalid object type: /, Kind="));
    }
    let name = if json::name(config).is_empty() {
        ""
    } else {
        name
    };
    check_identity(kind, config, namespace, name)
}

fn check_uid(kind: &Kind, live: &Value, object: &Value) -> ApiResult<()> {
    let (have, want) = (json::uid(live), json::uid(object));
    if want.is_empty() || want == have {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {want}, UID in object meta: {have}");
    Err(ApiError::conflict(kind, json::name(live), &why))
}

/// An apply may not name another UID than that of the object which is there.
fn check_applied_uid(kind: &Kind, live: &Value, config: &Value) -> ApiResult<()> {
    let want = json::uid(config);
    if want.is_empty() || want == json::uid(live) {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", &Value::from(want), "field is immutable");
    Err(ApiError::invalid(kind, json::name(live), &[cause]))
}

/// Drops unknown fields; strict validation refuses them, the others warn or keep silent.
fn check_fields(
    kind: &Kind,
    object: &mut Value,
    validation: FieldValidation,
) -> ApiResult<Vec<String>> {
    normalise(kind, object);
    let refused = |detail: String| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {detail}",
            kind.kind, kind.version, kind.kind
        ))
    };
    let unknown = typed::drop_unknown_fields(kind, object)
        .map_err(|detail| refused(format!("json: {detail}")))?;
    let texts: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    match validation {
        FieldValidation::Strict if !texts.is_empty() => Err(refused(format!(
            "strict decoding error: {}",
            texts.join(", ")
        ))),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict | FieldValidation::Warn => Ok(texts),
    }
}

/// An apply needs each field's place in the schema, so unknown ones are refused in every mode.
fn check_applied_fields(kind: &Kind, config: &mut Value) -> ApiResult<()> {
    normalise(kind, config);
    let what = format!(
        "failed to create typed patch object ({}/{}; {}/{}, Kind={})",
        json::namespace(config),
        json::name(config),
        kind.group,
        kind.version,
        kind.kind
    );
    let unknown = typed::drop_unknown_fields(kind, config)
        .map_err(|detail| ApiError::new(500, "", format!("{what}: {detail}")))?;
    match unknown.first() {
        Some(path) => Err(ApiError::new(
            500,
            "",
            format!("{what}: .{path}: field not declared in schema"),
        )),
        None => Ok(()),
    }
}

/// What the wire allows and the types do not keep: numbers where quantities belong, empty maps.
fn normalise(kind: &Kind, object: &mut Value) {
    if !kind.is_custom() {
        number_quantities(object);
        json::drop_empty_metadata(object);
    }
}

fn number_quantities(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (field, below) in members.iter_mut() {
                let quantities = matches!(
                    field.as_str(),
                    "limits" | "requests" | "hard" | "capacity" | "allocatable" | "max" | "min"
                );
                if quantities && below.is_object() {
                    if let Some(members) = below.as_object_mut() {
                        for value in members.values_mut().filter(|value| value.is_number()) {
                            *value = Value::from(value.to_string());
                        }
                    }
                } else {
                    number_quantities(below);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(number_quantities),
        _ => {}
    }
}

/// What an apply may claim: no server-owned metadata, and only its own half of the object.
fn applicable(kind: &Kind, mut config: Value, subresource: &str) -> Value {
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "selfLink",
        "deletionGracePeriodSeconds",
    ] {
        json::remove(&mut config, &format!("/metadata/{field}"));
    }
    if subresource == "status" {
        json::as_map(&mut config).retain(|field, _| {
            matches!(
                field.as_str(),
                "apiVersion" | "kind" | "metadata" | "status"
            )
        });
        if let Some(metadata) = config.get_mut("metadata") {
            json::as_map(metadata).retain(|field, _| field == "name" || field == "namespace");
        }
    } else if kind.has_status {
        json::remove(&mut config, "/status");
    }
    config
}

/// Metadata that the server alone writes.
fn keep_metadata(live: &Value, object: &mut Value) {
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
    ] {
        let pointer = format!("/metadata/{field}");
        match json::at(live, &pointer) {
            Value::Null => {
                json::remove(object, &pointer);
            }
            value => json::set(object, &pointer, value.clone()),
        }
    }
    // A deleted object takes no new finalizers, it only loses them.
    if json::is_deleting(live) && json::has(object, "/metadata/finalizers") {
        let had = json::list(live, "/metadata/finalizers").to_vec();
        json::list_mut(object, "/metadata/finalizers").retain(|f| had.contains(f));
    }
    for empty in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let pointer = format!("/metadata/{empty}");
        let is_empty = json::at(object, &pointer)
            .as_array()
            .is_some_and(Vec::is_empty)
            || json::at(object, &pointer)
                .as_object()
                .is_some_and(serde_json::Map::is_empty);
        if is_empty {
            json::remove(object, &pointer);
        }
    }
}

/// A write of the object leaves its status alone, a write of the status everything else.
fn keep_other_half(kind: &Kind, live: &Value, object: &mut Value, subresource: &str) {
    if subresource == "status" {
        let status = json::at(object, "/status").clone();
        let managed = json::remove(object, "/metadata/managedFields");
        let annotations = json::at(object, "/metadata/annotations").clone();
        *object = live.clone();
        // Built-in kinds take annotations through the status too; deployments are numbered so.
        if !kind.is_custom() && annotations.is_object() {
            json::set(object, "/metadata/annotations", annotations);
        }
        json::remove(object, "/metadata/managedFields");
        if let Some(managed) = managed {
            json::set(object, "/metadata/managedFields", managed);
        }
        if status.is_null() {
            json::remove(object, "/status");
        } else {
            json::set(object, "/status", status);
        }
    } else if kind.has_status {
        match json::at(live, "/status") {
            Value::Null => {
                json::remove(object, "/status");
            }
            status => json::set(object, "/status", status.clone()),
        }
    }
}

fn count_generation(kind: &Kind, live: &Value, object: &mut Value) {
    if !kind.counts_generations() {
        return;
    }
    let essence = |object: &Value| {
        let mut essence = object.clone();
        json::remove(&mut essence, "/metadata");
        json::remove(&mut essence, "/status");
        // Binding a pod is no change of what it asks for.
        if kind.is("pods") {
            json::remove(&mut essence, "/spec/nodeName");
        }
        essence
    };
    if essence(live) != essence(object) {
        let next = json::int(live, "/metadata/generation", 0) + 1;
        json::set(object, "/metadata/generation", next);
    }
}
