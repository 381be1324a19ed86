//! The look at everything before the first write. It writes nothing; what is in the way is told all at once.

mod autoscalers;
mod dry_run;
mod hooks;
mod needs;
mod package;
mod permissions;
mod references;

use crate::apply::{Run, is_shared, not_ours, run};
use crate::await_ready::AT_ONCE;
use crate::client::Session;
use crate::discovery::Located;
use crate::errors::{CallError, Halt, call};
use crate::gone;
use crate::inventory;
use crate::json;
use crate::marks;
use crate::shape;
use cairn_domain::lcm_op_occ::plan::PreState;
use cairn_domain::object::{Body, ObjectRef, Uid};
use cairn_domain::planning::another_cluster;
use cairn_domain::ports::{
    KindFacts, Scope, Survey, SurveyItem, SurveyOutcome, SurveyRequest, Surveyed,
};
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;
use package::Brought;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An item with what was found of it.
struct Found<'a> {
    item: &'a SurveyItem,
    at: Located,
    /// The kind is served now, not only after the package made it.
    served: bool,
    live: Option<Value>,
}

/// How namespaces are.
struct Namespaces(BTreeMap<String, bool>);

impl Namespaces {
    fn exists(&self, at: &Located) -> bool {
        at.object
            .namespace
            .as_ref()
            .is_none_or(|name| self.0.get(name) == Some(&true))
    }
}

/// Surveys.
pub(crate) async fn survey(
    session: &Session,
    scope: &Scope,
    request: &SurveyRequest,
) -> SurveyOutcome {
    match look(session, scope, request).await {
        Ok(outcome) => outcome,
        Err(halt) => SurveyOutcome::Blocked(halt.obstacles()),
    }
}

async fn look(
    session: &Session,
    scope: &Scope,
    request: &SurveyRequest,
) -> Result<SurveyOutcome, Halt> {
    let cluster_uid = cluster_uid(session)
        .await
        .map_err(|e| e.reading("Namespace/kube-system"))?;
    // First of all: on another cluster everything would only be missing.
    if let Some(known) = request
        .cluster_uid
        .as_ref()
        .filter(|known| **known != cluster_uid)
    {
        let said = another_cluster(&cluster_uid, known);
        let obstacle = call("Namespace/kube-system", "OtherCluster", said);
        return Ok(SurveyOutcome::Blocked(vec![obstacle]));
    }
    let brought = Brought::new(&request.items);
    let mut in_the_way = Vec::new();
    let hooks_left_out = hooks::left_out(session, scope, request).await?;
    let runs = |item: &&SurveyItem| item.hook.is_none() || hooks_left_out.is_none();
    let items = request.items.iter().filter(runs);
    let mut found = locate_items(session, scope, items, &brought, &mut in_the_way).await?;
    let scaled = locate_all(session, scope, request.scaled.iter()).await?;
    let cluster = |e: CallError| e.reading("cluster");
    let mut needs = needs::of(session, scope, request, &found, &scaled)
        .await
        .map_err(cluster)?;
    if hooks_left_out.is_none() {
        let of_hooks = needs::of_hooks(session, scope, request, &mut needs);
        of_hooks.await.map_err(cluster)?;
    }
    // None of these waits for what another finds.
    let (lives, refused, scalers, reads, vnfcs) = futures::join!(
        lives(session, &found, &brought),
        permissions::check(session, needs),
        autoscalers::check(session, &scaled),
        reads(session, scope, request),
        inventory::take(session, scope, &request.workloads),
    );
    let (namespaces, lives, without) = lives?;
    for (item, live) in found.iter_mut().zip(lives) {
        item.live = live;
    }
    in_the_way.extend(without);
    in_the_way.extend(refused.map_err(cluster)?);
    in_the_way.extend(references::missing(session, scope, &found, &brought, &namespaces).await?);
    in_the_way.extend(scalers.map_err(cluster)?);
    in_the_way.extend(found.iter().filter_map(|item| foreign(scope, item)));
    let mut runs = vec![dry_run::DryRun::default(); found.len()];
    // A dry-run that may not be made, or into a place that does not exist, would only say so again.
    if !request.skip_dry_run && in_the_way.is_empty() {
        runs = dry_run::all(session, scope, &found, &namespaces, &mut in_the_way).await?;
    }
    let reads = reads?;
    let vnfcs = vnfcs.map_err(|e| e.reading("Pod"))?;
    if !in_the_way.is_empty() {
        return Ok(SurveyOutcome::Blocked(in_the_way));
    }
    let items = found
        .iter()
        .zip(runs)
        .map(|(item, run)| surveyed(scope, item, run))
        .collect();
    Ok(SurveyOutcome::Clear(Survey {
        cluster_uid,
        items,
        reads,
        vnfcs,
        hooks_left_out,
    }))
}

/// Which cluster this is: the UID of its `kube-system` namespace.
pub(crate) async fn cluster_uid(session: &Session) -> Result<String, CallError> {
    let kind = session.builtin("v1", "Namespace").await?;
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Namespace".into(),
        namespace: None,
        name: "kube-system".into(),
    };
    let live = session.read(&Located { kind, object }).await?;
    live.map(|live| json::uid(&live).to_owned())
        .ok_or_else(|| CallError::Setup("the cluster has no namespace kube-system".into()))
}

async fn locate_items<'a>(
    session: &Session,
    scope: &Scope,
    items: impl Iterator<Item = &'a SurveyItem>,
    brought: &Brought<'_>,
    in_the_way: &mut Vec<Obstacle>,
) -> Result<Vec<Found<'a>>, Halt> {
    let mut found = Vec::new();
    for item in items {
        let object = object_of(&item.manifest);
        let name = object.to_string();
        let served = session
            .locate(scope, &object)
            .await
            .map_err(|e| e.reading(&name))?;
        let made = brought.kind(&object.api_version, &object.kind);
        match (served, made) {
            (Some(at), _) => found.push(Found {
                item,
                at,
                served: true,
                live: None,
            }),
            (None, Some(kind)) => {
                let namespace = kind.namespaced.then(|| {
                    object
                        .namespace
                        .clone()
                        .unwrap_or_else(|| scope.namespace.clone())
                });
                let at = Located {
                    kind,
                    object: ObjectRef {
                        namespace,
                        ..object
                    },
                };
                found.push(Found {
                    item,
                    at,
                    served: false,
                    live: None,
                });
            }
            (None, None) => {
                let message = unknown(session, &object)
                    .await
                    .map_err(|e| e.reading(&name))?;
                in_the_way.push(call(name, "UnknownKind", message));
            }
        }
    }
    Ok(found)
}

async fn unknown(session: &Session, object: &ObjectRef) -> Result<String, CallError> {
    let served = session.served(&object.api_version).await?;
    let said = format!(
        "the cluster serves no kind {} of {}",
        object.kind, object.api_version
    );
    if served.is_empty() {
        let versions = session.api_versions().await?;
        return Ok(format!(
            "{said}; it serves the API versions {}",
            versions.join(", ")
        ));
    }
    let kinds: Vec<&str> = served.iter().map(|kind| kind.name.as_str()).collect();
    Ok(format!("{said}; there it serves {}", kinds.join(", ")))
}

fn object_of(manifest: &Value) -> ObjectRef {
    ObjectRef {
        api_version: json::text(manifest, "/apiVersion").to_owned(),
        kind: json::text(manifest, "/kind").to_owned(),
        namespace: Some(json::namespace(manifest).to_owned()).filter(|name| !name.is_empty()),
        name: json::name(manifest).to_owned(),
    }
}

async fn locate_all<'a>(
    session: &Session,
    scope: &Scope,
    objects: impl Iterator<Item = &'a ObjectRef>,
) -> Result<Vec<Located>, Halt> {
    let mut located = Vec::new();
    for object in objects {
        located.extend(
            session
                .locate(scope, object)
                .await
                .map_err(|e| e.reading(object.to_string()))?,
        );
    }
    Ok(located)
}

/// Looks which namespaces exist; one that is missing is in the way, unless the package makes it in time.
async fn namespaces(
    session: &Session,
    found: &[Found<'_>],
    brought: &Brought<'_>,
    in_the_way: &mut Vec<Obstacle>,
) -> Result<Namespaces, Halt> {
    let names: BTreeSet<&String> = found
        .iter()
        .filter_map(|item| item.at.object.namespace.as_ref())
        .collect();
    let mut known = BTreeMap::new();
    for name in names {
        let object = format!("Namespace/{name}");
        let live = namespace(session, name)
            .await
            .map_err(|e| e.reading(&object))?;
        match &live {
            Some(live) if json::deleting(live) => {
                let message = "it is being deleted; nothing can be made in it";
                in_the_way.push(call(object, "NamespaceTerminating", message));
            }
            None if !brought.namespace(name) => {
                let message = "the namespace does not exist; make it, or name another";
                in_the_way.push(call(object, "Missing", message));
            }
            None => in_the_way.extend(hooks::before_their_namespace(name, found)),
            Some(_) => {}
        }
        known.insert(name.clone(), live.is_some());
    }
    Ok(Namespaces(known))
}

async fn namespace(session: &Session, name: &str) -> Result<Option<Value>, CallError> {
    let kind = session.builtin("v1", "Namespace").await?;
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Namespace".into(),
        namespace: None,
        name: name.to_owned(),
    };
    session.read(&Located { kind, object }).await
}

/// The namespaces, the objects as they are, and what is wrong with the namespaces.
async fn lives(
    session: &Session,
    found: &[Found<'_>],
    brought: &Brought<'_>,
) -> Result<(Namespaces, Vec<Option<Value>>, Vec<Obstacle>), Halt> {
    let mut in_the_way = Vec::new();
    let namespaces = namespaces(session, found, brought, &mut in_the_way).await?;
    let lives = read_items(session, found, &namespaces).await?;
    Ok((namespaces, lives, in_the_way))
}

async fn read_items(
    session: &Session,
    found: &[Found<'_>],
    namespaces: &Namespaces,
) -> Result<Vec<Option<Value>>, Halt> {
    let reads: Vec<_> = found
        .iter()
        .map(|item| async {
            if !item.served || item.at.kind.facts().create_only || !namespaces.exists(&item.at) {
                return Ok(None);
            }
            let live = session.read(&item.at).await;
            live.map_err(|e| e.reading(item.at.object.to_string()))
        })
        .collect();
    let lives: Vec<Result<Option<Value>, Halt>> = futures::stream::iter(reads)
        .buffered(AT_ONCE)
        .collect()
        .await;
    lives.into_iter().collect()
}

fn is_ours(scope: &Scope, live: &Value, recorded: Option<&Uid>) -> bool {
    marks::ours(scope, live, recorded.map(|uid| uid.0.as_str()))
}

/// An obstacle for an object of somebody else that stands where ours should.
fn foreign(scope: &Scope, found: &Found<'_>) -> Option<Obstacle> {
    let live = found.live.as_ref()?;
    if is_ours(scope, live, found.item.recorded_uid.as_ref()) {
        return None;
    }
    if json::deleting(live) {
        let message = "an object of this name is still being deleted";
        let object = found.at.object.to_string();
        return Some(gone::being_deleted(object, live, message));
    }
    if is_shared(&found.at) {
        return None;
    }
    not_ours(&found.at, live).obstacles().pop()
}

fn surveyed(scope: &Scope, found: &Found<'_>, run: dry_run::DryRun) -> Surveyed {
    let recorded = found.item.recorded_uid.as_ref();
    Surveyed {
        object: found.at.object.clone(),
        kind: found.at.kind.facts(),
        pre: pre_state(
            scope,
            found.live.as_ref(),
            recorded,
            Some(&found.item.manifest),
        ),
        needs_recreate: run.needs_recreate,
        unchanged: run.unchanged,
    }
}

fn pre_state(
    scope: &Scope,
    live: Option<&Value>,
    recorded: Option<&Uid>,
    keep: Option<&Value>,
) -> PreState {
    let Some(live) = live else {
        return PreState::Absent;
    };
    let uid = Uid(json::uid(live).to_owned());
    if !is_ours(scope, live, recorded) {
        return PreState::Foreign { uid };
    }
    PreState::Ours {
        uid,
        operation_id: json::annotation(live, marks::OPERATION).map(str::to_owned),
        body: Body::Inline(shape::recorded(live, &marks::manager(scope), keep)),
        deleting: json::deleting(live),
        failed: run(live) == Run::Failed,
        replicas: json::number(live, "/spec/replicas").and_then(|n| u32::try_from(n).ok()),
    }
}

async fn reads(
    session: &Session,
    scope: &Scope,
    request: &SurveyRequest,
) -> Result<Vec<Surveyed>, Halt> {
    let reads: Vec<_> = request
        .reads
        .iter()
        .map(|(object, uid)| read_one(session, scope, object, uid.as_ref()))
        .collect();
    let read: Vec<Result<Surveyed, Halt>> = futures::stream::iter(reads)
        .buffered(AT_ONCE)
        .collect()
        .await;
    read.into_iter().collect()
}

async fn read_one(
    session: &Session,
    scope: &Scope,
    object: &ObjectRef,
    uid: Option<&Uid>,
) -> Result<Surveyed, Halt> {
    let reading = |e: CallError| e.reading(object.to_string());
    let Some(at) = session.locate(scope, object).await.map_err(reading)? else {
        // A kind that is not served any more has no objects.
        let kind = KindFacts {
            create_only: false,
            scalable: false,
        };
        return Ok(Surveyed {
            object: object.clone(),
            kind,
            pre: PreState::Absent,
            needs_recreate: None,
            unchanged: false,
        });
    };
    let live = if at.kind.facts().create_only {
        None
    } else {
        session.read(&at).await.map_err(reading)?
    };
    Ok(Surveyed {
        pre: pre_state(scope, live.as_ref(), uid, None),
        kind: at.kind.facts(),
        object: at.object,
        needs_recreate: None,
        unchanged: false,
    })
}
