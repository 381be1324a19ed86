//! Server-side apply, after a read.
//!
//! | found | done |
//! |---|---|
//! | nothing | applied; the answer must say "created", else somebody was faster and our fields are withdrawn |
//! | ours | applied with its UID as a precondition |
//! | ours, being deleted | waited on: what is applied onto it would vanish with it |
//! | ours, a Job or Pod that failed | deleted by UID and waited on: applying it again changes nothing |
//! | ours, a Job or Pod that succeeded | nothing: it never runs again |
//! | a Namespace or definition of somebody else | nothing: it is shared |
//! | anything else of somebody else | refused, not touched |

use crate::client::{Answer, Call, Session, media};
use crate::delete;
use crate::discovery::{Located, encode};
use crate::errors::{CallError, Halt, Refusal, Try};
use crate::gone;
use crate::json;
use crate::managed_fields;
use crate::marks;
use crate::replicas;
use crate::shape;
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use http::Method;
use serde_json::{Value, json};

/// Path of `spec.replicas` as conflicts name it.
const REPLICAS: &str = ".spec.replicas";

/// What is to be applied.
pub(crate) struct Wanted<'a> {
    pub object: &'a ObjectRef,
    pub manifest: &'a Value,
    /// The replicas of its level.
    pub replicas: Option<u32>,
    /// Take back fields that our manager owned.
    pub force_owned: bool,
}

/// How far a Job or Pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// It is no such thing, or it still runs.
    Open,
    Succeeded,
    Failed,
}

/// How far an object is, if it is a Job or a Pod.
pub(crate) fn run(live: &Value) -> Run {
    let group = json::text(live, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    match (group, json::text(live, "/kind")) {
        ("batch", "Job") if json::holds(live, "Complete") => Run::Succeeded,
        ("batch", "Job") if json::holds(live, "Failed") => Run::Failed,
        ("", "Pod") => match json::text(live, "/status/phase") {
            "Succeeded" => Run::Succeeded,
            "Failed" => Run::Failed,
            _ => Run::Open,
        },
        _ => Run::Open,
    }
}

/// Whether objects of the kind are shared by all: found present, they are used as they are.
pub(crate) fn is_shared(at: &Located) -> bool {
    at.kind.is("", "Namespace")
        || at
            .kind
            .is("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// Makes the object as wanted, or says what is in the way.
pub(crate) async fn apply(session: &Session, scope: &Scope, wanted: &Wanted<'_>) -> Try<Outcome> {
    let at = locate(session, scope, wanted.object).await?;
    if at.kind.facts().create_only {
        return create_at(session, &at, wanted.manifest).await;
    }
    let Some(live) = session
        .read(&at)
        .await
        .map_err(|e| e.reading(at.object.to_string()))?
    else {
        return make(session, scope, &at, wanted).await;
    };
    let name = at.object.to_string();
    if json::deleting(&live) {
        let obstacle = gone::before_it_is_made_again(name, &live);
        return Err(Halt::InTheWay(vec![obstacle]));
    }
    if !marks::written_by_us(scope, &live) {
        if is_shared(&at) {
            return Ok(applied(&live, false, Vec::new()));
        }
        return Err(not_ours(&at, &live));
    }
    match run(&live) {
        Run::Open => change(session, scope, &at, wanted, &live).await,
        Run::Succeeded => Ok(applied(&live, false, Vec::new())),
        Run::Failed => {
            delete::by_uid(session, &at, json::uid(&live), None).await?;
            Err(Halt::call(
                name,
                "BeingReplaced",
                "it failed; it is made again when it is gone",
            ))
        }
    }
}

/// The object's kind, or that it is not served yet.
pub(crate) async fn locate(session: &Session, scope: &Scope, object: &ObjectRef) -> Try<Located> {
    session
        .locate(scope, object)
        .await
        .map_err(|e| e.reading(object.to_string()))?
        .ok_or_else(|| {
            let message = format!(
                "the cluster does not serve {} of {} yet",
                object.kind, object.api_version
            );
            Halt::call(object.to_string(), "NotYetServed", message)
        })
}

/// That an object is somebody else's.
pub(crate) fn not_ours(at: &Located, live: &Value) -> Halt {
    let message = format!(
        "{} exists and belongs to {}; not touched",
        at.object,
        marks::owner(live)
    );
    Halt::call(at.object.to_string(), "NotOurs", message)
}

/// Sends a create-only object once.
pub(crate) async fn create(
    session: &Session,
    scope: &Scope,
    object: &ObjectRef,
    manifest: &Value,
) -> Try<Outcome> {
    let at = locate(session, scope, object).await?;
    create_at(session, &at, manifest).await
}

async fn create_at(session: &Session, at: &Located, manifest: &Value) -> Try<Outcome> {
    let mut body = manifest.clone();
    json::remove(&mut body, "", "status");
    // Reviews are questions, not objects: the server refuses any metadata but a namespace.
    if at.kind.name.ends_with("Review") {
        json::remove(&mut body, "", "metadata");
    }
    if let Some(namespace) = &at.object.namespace {
        *json::member(json::member(&mut body, "metadata"), "namespace") = json!(namespace);
    }
    let call = Call::with(Method::POST, at.collection(), media::JSON, body);
    match session.send(&call).await {
        Ok(_) => Ok(Outcome::Created),
        Err(CallError::Refused(refusal)) if is_there_already(&refusal) => Ok(Outcome::Created),
        Err(other) => Err(other.writing(at.object.to_string())),
    }
}

fn is_there_already(refusal: &Refusal) -> bool {
    refusal.code == 409
        && (refusal.reason == "AlreadyExists" || refusal.message.contains("already assigned"))
}

/// Sends a body to server-side apply.
pub(crate) async fn send(
    session: &Session,
    scope: &Scope,
    at: &Located,
    body: &Value,
    query: &str,
) -> Result<Answer, CallError> {
    let manager = encode(&marks::manager(scope));
    let path = format!("{}?fieldManager={manager}{query}", at.path());
    session
        .send(&Call::with(Method::PATCH, path, media::APPLY, body.clone()))
        .await
        .inspect_err(|error| session.forget_if_not_served(at, error))
}

/// The body with which an absent object is made.
pub(crate) fn creation(
    scope: &Scope,
    at: &Located,
    manifest: &Value,
    replicas: Option<u32>,
) -> Value {
    let mut body = shape::dressed(scope, at, manifest, None);
    shape::fit_for_creation(&at.kind, &mut body);
    if let Some(replicas) = replicas {
        *json::member(json::member(&mut body, "spec"), "replicas") = json!(replicas);
    }
    body
}

async fn make(session: &Session, scope: &Scope, at: &Located, wanted: &Wanted<'_>) -> Try<Outcome> {
    let mut body = creation(scope, at, wanted.manifest, wanted.replicas);
    let mut sent = send(session, scope, at, &body, "&force=false").await;
    if let Err(CallError::Refused(refusal)) = &sent
        && refusal.message.contains("already allocated")
        && shape::give_up_addresses(&at.kind, &mut body)
    {
        // What a recorded Service had was given to another meanwhile; any address is better than none.
        sent = send(session, scope, at, &body, "&force=false").await;
    }
    let answer = sent.map_err(|e| e.writing(at.object.to_string()))?;
    let manager = marks::manager(scope);
    if answer.code != 201 && managed_fields::written_by_others(&answer.body, &manager) {
        // Somebody made it between our read and our apply: what was mixed in is taken out again.
        send(session, scope, at, &shape::identity(at), "&force=false")
            .await
            .map_err(|e| e.writing(at.object.to_string()))?;
        return Err(not_ours(at, &without_our_label(answer.body)));
    }
    verify(scope, at, &answer.body, None)?;
    Ok(applied(&answer.body, answer.code == 201, Vec::new()))
}

fn without_our_label(mut object: Value) -> Value {
    json::remove(&mut object, "/metadata/labels", marks::INSTANCE);
    object
}

/// The body that is applied onto an object of ours.
pub(crate) fn update(scope: &Scope, at: &Located, manifest: &Value, live: &Value) -> Value {
    let mut body = shape::dressed(scope, at, manifest, Some(live));
    *json::member(json::member(&mut body, "metadata"), "uid") = json!(json::uid(live));
    if at.kind.scalable {
        replicas::settle(&mut body, live, &marks::manager(scope));
    }
    body
}

async fn change(
    session: &Session,
    scope: &Scope,
    at: &Located,
    wanted: &Wanted<'_>,
    live: &Value,
) -> Try<Outcome> {
    let mut body = update(scope, at, wanted.manifest, live);
    let mut force = false;
    let mut overridden = Vec::new();
    // At most: once as it is, once without replicas, once by force.
    for _ in 0..3 {
        let refusal = match send(session, scope, at, &body, &format!("&force={force}")).await {
            Ok(answer) => {
                verify(scope, at, &answer.body, Some(json::uid(live)))?;
                return Ok(applied(&answer.body, answer.code == 201, overridden));
            }
            Err(CallError::Refused(refusal)) if refusal.has_cause("FieldManagerConflict") => {
                refusal
            }
            Err(other) => return Err(other.writing(at.object.to_string())),
        };
        let (replicas, others): (Vec<_>, Vec<_>) = refusal
            .conflicts()
            .into_iter()
            .partition(|(_, path)| path == REPLICAS);
        if !replicas.is_empty() {
            json::remove(&mut body, "/spec", "replicas");
        }
        if others.is_empty() {
            continue;
        }
        if !(wanted.force_owned || scope.take_over) {
            return Err(CallError::Refused(refusal).writing(at.object.to_string()));
        }
        overridden = others
            .into_iter()
            .map(|(manager, path)| format!("{manager}: {path}"))
            .collect();
        force = true;
    }
    Err(Halt::call(
        at.object.to_string(),
        "VersionConflict",
        "other managers change its fields meanwhile",
    ))
}

/// Looks whether what was written is ours: the label stayed, and it is the object that was read.
fn verify(scope: &Scope, at: &Located, written: &Value, uid: Option<&str>) -> Try<()> {
    let same = uid.is_none_or(|uid| uid == json::uid(written));
    if marks::labelled(scope, written) && same {
        return Ok(());
    }
    Err(not_ours(at, &without_our_label(written.clone())))
}

fn applied(object: &Value, created: bool, overridden: Vec<String>) -> Outcome {
    Outcome::Applied {
        uid: Uid(json::uid(object).to_owned()),
        created,
        overridden,
    }
}
