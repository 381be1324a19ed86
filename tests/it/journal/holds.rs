//! What must hold after every schedule, whatever ended where.

use super::scenario::Prepared;
use crate::seed_a::case::{calm, objects_in};
use cairn::wiring::{Opened, open};
use cairn_db::{Database, Row};
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::ports::EventLog;
use cairn_domain::{lcm_op_occ, vnf_instance};
use cairn_projections::Projections;
use cairn_tests::heard::Heard;
use cairn_tests::until::until;
use cairn_tests::world::{Ground, World};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is left when a scenario has ended.
pub struct Ended {
    /// The operation, as it is shown.
    pub op: Value,
    /// The instance, as it is shown; without positions and names of pods.
    pub instance: Value,
    /// Its objects in the cluster.
    pub objects: Value,
    /// How often each effect reached the cluster, by method and path.
    pub effects: BTreeMap<(String, String), usize>,
    /// The states that the operation was in since the scenario began.
    pub states: Vec<String>,
    /// How many VNFCs changed in which way.
    pub changes: BTreeMap<String, usize>,
}

/// Events that enter a state, each told once, and the creation of the instance.
const TOLD: [&str; 9] = [
    "VnfIdentifierCreated",
    "OperationStarted",
    "ProcessingStarted",
    "RetryStarted",
    "RollbackStarted",
    "OperationFailedTemporarily",
    "OperationRolledBack",
    "OperationFailed",
    "OperationCompleted",
];

/// The events of a history that a subscriber of everything is told, in order.
pub fn owed(history: &[Value]) -> Vec<&Value> {
    let told = |event: &&Value| TOLD.iter().any(|name| event["type"] == *name);
    history.iter().filter(told).collect()
}

impl Ended {
    /// Looks at everything, and ends the world as on SIGTERM. What must hold by itself is checked here.
    pub async fn of(world: World, op: String, prepared: &Prepared, heard: &Heard) -> Self {
        let (id, ground) = (&prepared.instance, world.ground.clone());
        let seen = world.op(&op).await;
        let instance = world.instance(id).await;
        let position = &instance["position"];
        let path = format!("/cairn/v1/vnf_instances/{id}?position={position}");
        let folded = world.get(&path).await.is(200);
        assert_eq!(folded, instance, "the row is the fold of the events");
        let history = world.history(id).await;
        let since: Vec<&Value> = owed(&history)
            .into_iter()
            .filter(|event| event["position"].as_u64() > Some(prepared.position))
            .collect();
        told_in_order(&heard.different(since.len()).await, &since);
        until(
            cairn_tests::client::SOON,
            "the lease to be free",
            || async {
                let owner = world.op(&op).await["owner"].clone();
                if owner.is_null() { Ok(()) } else { Err(owner) }
            },
        )
        .await;
        world.end().await;
        rows_are_folds(&ground, id, &op).await;
        Self {
            changes: crate::seed_a::case::changes(&seen),
            states: since
                .iter()
                .filter_map(|event| event["type"].as_str().map(str::to_owned))
                .collect(),
            objects: objects_in(ground.place.sim(), &prepared.namespace),
            effects: effects(&ground, &prepared.namespace),
            instance: calm(&instance),
            op: seen,
        }
    }
}

/// Every notification that is owed came, in order, and a repeated one has the same id.
pub fn told_in_order(told: &[Value], owed: &[&Value]) {
    let mut order: Vec<&Value> = Vec::new();
    for one in told {
        if order.iter().any(|known| known["id"] == one["id"]) {
            let same = order.iter().find(|known| known["id"] == one["id"]);
            assert_eq!(same, Some(&one), "a notification sent again is the same");
        } else {
            order.push(one);
        }
    }
    let states: Vec<&Value> = order.iter().map(|one| &one["operationState"]).collect();
    assert_eq!(order.len(), owed.len(), "{states:?} for {owed:#?}");
    for (one, event) in order.iter().zip(owed) {
        assert_eq!(one["vnfLcmOpOccId"], event["vnfLcmOpOccId"]);
        assert_eq!(one["timeStamp"], event["recordedAt"], "{states:?}");
    }
}

/// The rows beside the log are what the events say, and so are the read models.
pub async fn rows_are_folds(ground: &Ground, instance: &str, op: &str) {
    // The one before gives its lock up as its last task is dropped.
    let opened = until(cairn_tests::client::SOON, "the database", || async {
        open(&ground.store()).await.map_err(|e| e.to_string())
    })
    .await;
    let Opened {
        database, stores, ..
    } = &opened;
    let log: Arc<dyn EventLog> = stores.events.clone();
    let instance_id = VnfInstanceId::parse(instance).expect("an id");
    let op_id = VnfLcmOpOccId::parse(op).expect("an id");
    let (mut of_instance, mut of_op) = (None, None);
    for stream in [
        StreamId::VnfInstance(instance_id.clone()),
        StreamId::VnfLcmOpOcc(op_id.clone()),
    ] {
        for envelope in log.load(&stream).await.expect("the stream") {
            match &envelope.body {
                EventBody::VnfInstance(event) => {
                    of_instance = vnf_instance::evolve(of_instance, event);
                }
                EventBody::VnfLcmOpOcc(event) => of_op = lcm_op_occ::evolve(of_op, event),
                EventBody::LccnSubscription(_) => {}
            }
        }
    }
    let row = log.instance(&instance_id).await.expect("its row");
    assert_eq!(row.map(|(state, _)| state), of_instance);
    let row = log.op_occ(&op_id).await.expect("its row");
    assert_eq!(row.map(|(state, _)| state), of_op);
    let reads = Projections::open(database.clone(), log).await;
    let reads = reads.expect("the read models");
    let before = read_models(database).await;
    reads.rebuild().await.expect("a rebuild");
    assert_eq!(read_models(database).await, before, "rebuilt byte for byte");
    database.close().await;
}

async fn read_models(database: &Database) -> Vec<Vec<Row>> {
    let mut all = Vec::new();
    for table in [
        "vnf_instances",
        "vnf_lcm_op_occs",
        "subscriptions",
        "timeline",
    ] {
        let sql = format!("SELECT * FROM {table} ORDER BY 1, 2");
        all.push(database.fetch_all(&sql, Vec::new()).await.expect("rows"));
    }
    let needed = database.fetch_all("SELECT op_id FROM work WHERE needed = 1", Vec::new());
    let needed = needed.await.expect("rows");
    assert_eq!(needed, [], "nothing is left to be worked on");
    all
}

/// What was made, scaled, evicted and deleted in a namespace: creations by their answer, which says so once only.
fn effects(ground: &Ground, namespace: &str) -> BTreeMap<(String, String), usize> {
    let inside = format!("/namespaces/{namespace}/");
    let mut counted = BTreeMap::new();
    for request in ground.place.sim().requests() {
        let makes =
            request.status == 201 || request.method == "DELETE" || request.path.ends_with("/scale");
        if request.is_effect() && makes && request.path.contains(&inside) {
            *counted.entry((request.method, request.path)).or_insert(0) += 1;
        }
    }
    counted
}

/// Compares what is left with what a run without any end has left.
pub fn judge(
    ended: &Ended,
    calm: &Ended,
    prepared: &Prepared,
    struck: usize,
    calls: &[Vec<String>],
) {
    let trace = || {
        let last = |calls: &Vec<String>| calls.last().cloned().unwrap_or_default();
        calls.iter().map(last).collect::<Vec<_>>()
    };
    assert_eq!(
        ended.op["operationState"],
        prepared.scenario.end(),
        "{:?} {:#}",
        trace(),
        ended.op
    );
    assert_eq!(ended.instance, calm.instance, "{:?}", trace());
    assert_eq!(ended.objects, calm.objects, "{:?}", trace());
    assert_eq!(ended.states, calm.states, "{:?}", trace());
    assert_eq!(ended.changes, calm.changes, "{:?}", trace());
    for (effect, times) in &ended.effects {
        // A call whose answer was lost with its process may be made again where that changes nothing: a number that
        // is set already, an object that is on its way out. What makes something is answered 201 once.
        let repeats = effect.0 == "DELETE" || effect.1.ends_with("/scale");
        let known = calm.effects.get(effect).copied();
        let most = known.unwrap_or(1) + if repeats { struck } else { 0 };
        assert!(*times <= most, "{effect:?} {times} times; {:?}", trace());
    }
}
