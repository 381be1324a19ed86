//! One look at whether objects are ready, with the root of what is in the way.

use crate::apply::{locate, not_ours};
use crate::client::Session;
use crate::delete;
use crate::discovery::{Located, encode};
use crate::errors::{CallError, Halt, Try};
use crate::json;
use crate::pods::{Pods, is_custom};
use crate::readiness::{Readiness, Waiting, judge};
use crate::roots;
use crate::scale::missing;
use cairn_domain::lcm_op_occ::plan::Outcome;
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::ports::Scope;
use cairn_domain::waits::Obstacle;
use futures::StreamExt as _;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads that are under way at once.
pub(crate) const AT_ONCE: usize = 8;

/// What was read of the namespaces concerned.
pub(crate) struct Surroundings {
    pods: BTreeMap<String, Pods>,
    events: BTreeMap<String, Vec<Value>>,
    /// Nodes that were looked at; none for those that may not be, or are gone.
    nodes: BTreeMap<String, NodeSeen>,
}

/// What a look at a node came to.
#[derive(Clone)]
enum NodeSeen {
    Is(Value),
    Absent,
    /// Without permission to read nodes the pods' own words must do.
    Forbidden,
}

impl Surroundings {
    /// Reads the pods of all namespaces that the objects are in.
    pub(crate) async fn read(
        session: &Session,
        scope: &Scope,
        objects: &[Located],
    ) -> Result<Self, CallError> {
        let mut wide: BTreeMap<String, bool> = BTreeMap::new();
        for at in objects {
            let Some(namespace) = &at.object.namespace else {
                continue;
            };
            *wide.entry(namespace.clone()).or_default() |= is_custom(&at.kind);
        }
        let mut pods = BTreeMap::new();
        for (namespace, wide) in wide {
            let read = Pods::read(session, scope, &namespace, wide).await?;
            session.saw(&namespace, &read.resource_version);
            pods.insert(namespace, read);
        }
        Ok(Self {
            pods,
            events: BTreeMap::new(),
            nodes: BTreeMap::new(),
        })
    }

    async fn events(&mut self, session: &Session, namespace: &str) -> Result<(), CallError> {
        if self.events.contains_key(namespace) {
            return Ok(());
        }
        let kind = session.builtin("v1", "Event").await?;
        let query = format!("&fieldSelector={}", encode("type!=Normal"));
        // Events only explain: without permission to read them the objects' own words must do.
        let events = match session
            .list(&kind.collection(Some(namespace)), &query)
            .await
        {
            Ok(listed) => listed.items,
            Err(CallError::Refused(refusal)) if matches!(refusal.code, 403 | 404) => Vec::new(),
            Err(other) => return Err(other),
        };
        self.events.insert(namespace.to_owned(), events);
        Ok(())
    }

    pub(crate) fn all_pods(&self) -> impl Iterator<Item = &Value> {
        self.pods.values().flat_map(|pods| &pods.all)
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Option<&Pods> {
        self.pods.get(namespace)
    }
}

/// Looks whether all objects are ready and the pods that are being replaced are gone.
pub(crate) async fn look(
    session: &Session,
    scope: &Scope,
    objects: &[ObjectRef],
    replaced: &[Uid],
) -> Try<Outcome> {
    let mut located = Vec::with_capacity(objects.len());
    for object in objects {
        located.push(locate(session, scope, object).await?);
    }
    let mut around = Surroundings::read(session, scope, &located)
        .await
        .map_err(|e| e.reading("Pod"))?;
    let reads: Vec<_> = located.iter().map(|at| session.read(at)).collect();
    let read: Vec<_> = futures::stream::iter(reads)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut in_the_way: Vec<Obstacle> = around
        .all_pods()
        .filter(|pod| replaced.iter().any(|uid| uid.0 == json::uid(pod)))
        .map(roots::leaving)
        .collect();
    for (at, live) in located.iter().zip(read) {
        let name = at.object.to_string();
        let Some(live) = live.map_err(|e| e.reading(&name))? else {
            in_the_way.extend(missing(&name).obstacles());
            continue;
        };
        if json::label(&live, crate::marks::INSTANCE)
            .is_some_and(|id| id != scope.instance.as_str())
            && !crate::apply::is_shared(at)
        {
            in_the_way.extend(not_ours(at, &live).obstacles());
            continue;
        }
        in_the_way.extend(
            one(session, scope, at, &live, &mut around)
                .await
                .map_err(|e| e.reading(&name))?,
        );
    }
    if in_the_way.is_empty() {
        Ok(Outcome::Ready)
    } else {
        Err(Halt::InTheWay(in_the_way))
    }
}

/// What is in the way of one object.
async fn one(
    session: &Session,
    scope: &Scope,
    at: &Located,
    live: &Value,
    around: &mut Surroundings,
) -> Result<Vec<Obstacle>, CallError> {
    let waiting = match judge(live) {
        Readiness::Ready if at.kind.is("", "Service") => {
            match endpoints(session, at, live, around).await? {
                Some(waiting) => waiting,
                None => return Ok(Vec::new()),
            }
        }
        Readiness::Ready => return Ok(Vec::new()),
        Readiness::Waiting(waiting) => waiting,
    };
    let Some(namespace) = at.object.namespace.clone() else {
        return Ok(vec![roots::own(live, &waiting)]);
    };
    if at.kind.is("", "PersistentVolumeClaim") {
        return claim(session, live, waiting, around, &namespace).await;
    }
    around.events(session, &namespace).await?;
    let events = around.events.get(&namespace).map_or(&[][..], Vec::as_slice);
    if at.kind.is("", "Pod") {
        let root = if waiting.reason == "Failed" {
            None
        } else {
            roots::pod(live, events)
        };
        let mut root = root.unwrap_or_else(|| roots::own(live, &waiting));
        blame_node(session, around, &mut root, live).await?;
        return Ok(vec![root]);
    }
    if at.kind.is("apps", "StatefulSet") && !scope.look_only {
        let none = Pods::default();
        let pods = around.pods.get(&namespace).unwrap_or(&none);
        unstick(session, live, pods).await?;
    }
    workload(session, live, &waiting, around, &namespace).await
}

/// What is in the way of a workload, whose pods and events were read.
async fn workload(
    session: &Session,
    live: &Value,
    waiting: &Waiting,
    around: &mut Surroundings,
    namespace: &str,
) -> Result<Vec<Obstacle>, CallError> {
    let none = Pods::default();
    let pods = around.pods.get(namespace).unwrap_or(&none);
    let events = around.events.get(namespace).map_or(&[][..], Vec::as_slice);
    let mut found = roots::workload(live, waiting, pods, events);
    for obstacle in &mut found {
        let name = obstacle.object.strip_prefix("Pod/").unwrap_or_default();
        let pods = around.pods.get(namespace);
        let pod = pods.and_then(|pods| pods.all.iter().find(|pod| json::name(pod) == name));
        if let Some(pod) = pod.cloned() {
            blame_node(session, around, obstacle, &pod).await?;
        }
    }
    Ok(found)
}

/// What is in the way of one workload that waits so.
pub(crate) async fn roots_of(
    session: &Session,
    scope: &Scope,
    at: &Located,
    live: &Value,
    waiting: &Waiting,
) -> Result<Vec<Obstacle>, CallError> {
    let mut around = Surroundings::read(session, scope, std::slice::from_ref(at)).await?;
    let namespace = at.object.namespace.clone().unwrap_or_default();
    around.events(session, &namespace).await?;
    workload(session, live, waiting, &mut around, &namespace).await
}

/// Names the node as the root, where a pod gets no further since its node does not answer.
async fn blame_node(
    session: &Session,
    around: &mut Surroundings,
    obstacle: &mut Obstacle,
    pod: &Value,
) -> Result<(), CallError> {
    let may_be = match obstacle.reason.as_str() {
        // All containers are ready and the pod is not.
        "NotReady" => json::holds(pod, "ContainersReady"),
        "Pending" | "ContainerCreating" | "PodInitializing" => true,
        _ => false,
    };
    let name = json::text(pod, "/spec/nodeName");
    if !may_be || name.is_empty() {
        return Ok(());
    }
    if let Some(why) = node_failure(session, around, name).await? {
        obstacle.source = "pod".into();
        obstacle.reason = "NodeNotReady".into();
        obstacle.message = why;
    }
    Ok(())
}

/// Why a node runs no pods now, if it does not.
async fn node_failure(
    session: &Session,
    around: &mut Surroundings,
    name: &str,
) -> Result<Option<String>, CallError> {
    if !around.nodes.contains_key(name) {
        let object = ObjectRef {
            api_version: "v1".into(),
            kind: "Node".into(),
            namespace: None,
            name: name.to_owned(),
        };
        let kind = session.builtin("v1", "Node").await?;
        let node = match session.read(&Located { kind, object }).await {
            Ok(Some(node)) => NodeSeen::Is(node),
            Ok(None) => NodeSeen::Absent,
            Err(CallError::Refused(refusal)) if refusal.code == 403 => NodeSeen::Forbidden,
            Err(other) => return Err(other),
        };
        around.nodes.insert(name.to_owned(), node);
    }
    Ok(match around.nodes.get(name) {
        Some(NodeSeen::Is(node)) => json::condition(node, "Ready")
            .filter(|ready| ready["status"] != "True")
            .map(|ready| {
                let said = json::text(ready, "/message");
                format!("its node {name} is not ready: {said}")
            }),
        Some(NodeSeen::Absent) => Some(format!("its node {name} does not exist any more")),
        Some(NodeSeen::Forbidden) | None => None,
    })
}

/// A claim whose class waits for the first consumer is no gate: it is judged through its pod.
async fn claim(
    session: &Session,
    live: &Value,
    waiting: Waiting,
    around: &mut Surroundings,
    namespace: &str,
) -> Result<Vec<Obstacle>, CallError> {
    let class = json::text(live, "/spec/storageClassName");
    if waiting.reason == "Unbound"
        && !class.is_empty()
        && waits_for_consumer(session, class).await?
    {
        return Ok(Vec::new());
    }
    around.events(session, namespace).await?;
    let events = around.events.get(namespace).map_or(&[][..], Vec::as_slice);
    let mut obstacle = roots::own(live, &waiting);
    if let Some(event) = roots::latest(
        events,
        json::uid(live),
        &["ProvisioningFailed", "FailedBinding"],
    ) {
        json::text(event, "/message").clone_into(&mut obstacle.message);
        if json::text(event, "/reason") == "ProvisioningFailed" {
            obstacle.source = "event".into();
            obstacle.reason = "ProvisioningFailed".into();
        }
    }
    Ok(vec![obstacle])
}

async fn waits_for_consumer(session: &Session, class: &str) -> Result<bool, CallError> {
    let kind = session.builtin("storage.k8s.io/v1", "StorageClass").await?;
    let object = ObjectRef {
        api_version: "storage.k8s.io/v1".into(),
        kind: "StorageClass".into(),
        namespace: None,
        name: class.to_owned(),
    };
    match session.read(&Located { kind, object }).await {
        Ok(found) => Ok(found.is_some_and(|c| c["volumeBindingMode"] == "WaitForFirstConsumer")),
        Err(CallError::Refused(refusal)) if refusal.code == 403 => Ok(false),
        Err(other) => Err(other),
    }
}

/// Whether a Service that selects pods has none that is ready.
async fn endpoints(
    session: &Session,
    at: &Located,
    service: &Value,
    around: &Surroundings,
) -> Result<Option<Waiting>, CallError> {
    let Some(namespace) = at.object.namespace.as_deref() else {
        return Ok(None);
    };
    let Some(selector) = service.pointer("/spec/selector").and_then(Value::as_object) else {
        return Ok(None);
    };
    let none = Pods::default();
    let pods = around.pods.get(namespace).unwrap_or(&none);
    let selected = pods.all.iter().filter(|pod| {
        !matches!(json::text(pod, "/status/phase"), "Failed" | "Succeeded")
            && !json::deleting(pod)
            && selector
                .iter()
                .all(|(key, value)| json::label(pod, key) == value.as_str())
    });
    let selected = selected.count();
    if selector.is_empty() || selected == 0 || json::text(service, "/spec/type") == "ExternalName" {
        return Ok(None);
    }
    let ready = ready_endpoints(session, namespace, json::name(service)).await?;
    Ok((ready == 0).then(|| Waiting {
        reason: "NoEndpoints".into(),
        message: format!("it selects {selected} pods and none of them is an endpoint yet"),
        progress: 0,
    }))
}

async fn ready_endpoints(
    session: &Session,
    namespace: &str,
    service: &str,
) -> Result<usize, CallError> {
    if let Some(kind) = session.kind("discovery.k8s.io/v1", "EndpointSlice").await? {
        let query = format!(
            "&labelSelector={}",
            encode(&format!("kubernetes.io/service-name={service}"))
        );
        let slices = session
            .list(&kind.collection(Some(namespace)), &query)
            .await?
            .items;
        return Ok(slices
            .iter()
            .flat_map(|slice| json::entries(slice, "/endpoints"))
            .filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
            .count());
    }
    let kind = session.builtin("v1", "Endpoints").await?;
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Endpoints".into(),
        namespace: Some(namespace.to_owned()),
        name: service.to_owned(),
    };
    let found = session
        .read(&Located { kind, object })
        .await?
        .unwrap_or(Value::Null);
    Ok(json::entries(&found, "/subsets")
        .iter()
        .map(|s| json::entries(s, "/addresses").len())
        .sum())
}

/// The controller of a `StatefulSet` waits for a broken pod of another revision for ever, also once the template
/// is mended; such a pod is taken away, the highest ordinal first, one at a time.
async fn unstick(session: &Session, set: &Value, pods: &Pods) -> Result<(), CallError> {
    let newest = json::text(set, "/status/updateRevision");
    let observed = json::number(set, "/status/observedGeneration")
        >= json::number(set, "/metadata/generation");
    if newest.is_empty() || !observed || json::text(set, "/spec/updateStrategy/type") == "OnDelete"
    {
        return Ok(());
    }
    let partition = json::count(set, "/spec/updateStrategy/rollingUpdate/partition");
    let ordinal = |pod: &Value| {
        json::name(pod)
            .rsplit('-')
            .next()
            .and_then(|n| n.parse::<u32>().ok())
    };
    let broken = pods
        .of(json::uid(set))
        .filter(|pod| !json::deleting(pod) && roots::is_broken(pod))
        .filter(|pod| {
            json::label(pod, "controller-revision-hash").is_some_and(|hash| hash != newest)
        })
        .filter(|pod| ordinal(pod).is_some_and(|n| n >= partition))
        .max_by_key(|pod| ordinal(pod));
    let Some(pod) = broken else { return Ok(()) };
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some(json::namespace(pod).to_owned()),
        name: json::name(pod).to_owned(),
    };
    let at = Located {
        kind: session.builtin("v1", "Pod").await?,
        object,
    };
    tracing::info!(pod = %at.object.name, "a broken pod of another revision is taken away");
    match delete::by_uid(session, &at, json::uid(pod), None).await {
        Ok(_) => Ok(()),
        // The next look finds it again where this came to nothing.
        Err(halt) => {
            tracing::warn!(pod = %at.object.name, ?halt, "it could not be taken away");
            Ok(())
        }
    }
}
