//! Streams for tests, built of events as the domain makes them.

use crate::{EventStore, KeyFile, Stores};
use cairn_db::testing::TestDatabase;
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{NodeId, SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::ids::{VnfPkgId, VnfdId};
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use cairn_domain::operation::{AdditionalParams, Params};
use cairn_domain::ports::{Append, Appended, EventLog, PortResult, StateAfter, Unit};
use cairn_domain::root::Pure;
use cairn_domain::subscription::{
    CallbackAuth, LccnSubscription, LccnSubscriptionEvent, Verbosity,
};
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::{VnfInfo, VnfInstance, VnfInstanceEvent, VnfProduct};
use serde_json::Map;

pub(crate) fn key(byte: u8) -> KeyFile {
    KeyFile::from_bytes([byte; 32])
}

pub(crate) async fn stores(test: &TestDatabase) -> Stores {
    Stores::open(test.open().await, &key(1)).await.unwrap()
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + second * 1000)
}

pub(crate) fn instance_id(name: &str) -> VnfInstanceId {
    VnfInstanceId::parse(name).unwrap()
}

pub(crate) fn op_id(name: &str) -> VnfLcmOpOccId {
    VnfLcmOpOccId::parse(name).unwrap()
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::parse(name).unwrap()
}

pub(crate) fn product() -> VnfProduct {
    VnfProduct {
        vnfd_id: VnfdId::parse("vnfd-1").unwrap(),
        vnf_pkg_id: VnfPkgId::parse("pkg-1").unwrap(),
        vnf_provider: "Example".into(),
        vnf_product_name: "Sample".into(),
        vnf_software_version: "1.0".into(),
        vnfd_version: "1.0".into(),
    }
}

pub(crate) fn created(id: &str) -> VnfInstanceEvent {
    VnfInstanceEvent::VnfIdentifierCreated {
        at: at(0),
        id: instance_id(id),
        by: "anonymous".into(),
        tenant: Tenant::default_tenant(),
        product: product(),
        info: VnfInfo::default(),
    }
}

pub(crate) fn observed(second: i64) -> VnfInstanceEvent {
    VnfInstanceEvent::VnfcsObserved {
        at: at(second),
        vnfcs: Vec::new(),
    }
}

pub(crate) fn started(id: &str, instance: &str) -> VnfLcmOpOccEvent {
    VnfLcmOpOccEvent::OperationStarted {
        at: at(1),
        id: op_id(id),
        vnf_instance_id: instance_id(instance),
        by: "anonymous".into(),
        tenant: Tenant::default_tenant(),
        request: Map::new(),
        params: Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        },
        additional: AdditionalParams::default(),
        inventory: Vec::new(),
    }
}

pub(crate) fn subscribed(id: &str) -> LccnSubscriptionEvent {
    LccnSubscriptionEvent::SubscriptionCreated {
        at: at(2),
        id: SubscriptionId::parse(id).unwrap(),
        by: "anonymous".into(),
        tenant: Tenant::default_tenant(),
        callback_uri: "https://nfvo.example/callback".into(),
        filter: None,
        verbosity: Verbosity::Full,
        auth: CallbackAuth::None,
    }
}

fn fold<S: Pure>(before: Option<S>, events: &[S::Event]) -> S {
    events
        .iter()
        .fold(before, S::evolve)
        .expect("the first event makes a state")
}

/// Events of an instance on top of what the log holds.
pub(crate) async fn of_instance(
    log: &EventStore,
    id: &str,
    events: Vec<VnfInstanceEvent>,
) -> Append {
    let (state, version) = log.instance(&instance_id(id)).await.unwrap().unzip();
    let after = fold::<VnfInstance>(state, &events);
    Append {
        stream: StreamId::VnfInstance(instance_id(id)),
        expected_version: version.unwrap_or(0),
        vnf_instance_id: Some(instance_id(id)),
        events: events.into_iter().map(EventBody::VnfInstance).collect(),
        state: StateAfter::VnfInstance(Box::new(after)),
    }
}

/// Events of an operation on top of what the log holds.
pub(crate) async fn of_op(log: &EventStore, id: &str, events: Vec<VnfLcmOpOccEvent>) -> Append {
    let (state, version) = log.op_occ(&op_id(id)).await.unwrap().unzip();
    let after = fold::<VnfLcmOpOcc>(state, &events);
    Append {
        stream: StreamId::VnfLcmOpOcc(op_id(id)),
        expected_version: version.unwrap_or(0),
        vnf_instance_id: Some(after.vnf_instance_id.clone()),
        events: events.into_iter().map(EventBody::VnfLcmOpOcc).collect(),
        state: StateAfter::VnfLcmOpOcc(Box::new(after)),
    }
}

/// A new subscription.
pub(crate) fn of_subscription(id: &str) -> Append {
    let events = vec![subscribed(id)];
    let after = fold::<LccnSubscription>(None, &events);
    Append {
        stream: StreamId::LccnSubscription(after.id.clone()),
        expected_version: 0,
        vnf_instance_id: None,
        events: events
            .into_iter()
            .map(EventBody::LccnSubscription)
            .collect(),
        state: StateAfter::LccnSubscription(Box::new(after)),
    }
}

pub(crate) fn unit(appends: Vec<Append>) -> Unit {
    Unit {
        appends,
        ..Unit::default()
    }
}

/// Appends and answers the positions.
pub(crate) async fn append(log: &EventStore, appends: Vec<Append>) -> PortResult<Vec<u64>> {
    match log.append(unit(appends)).await? {
        Appended::Written(events) => Ok(events.iter().map(|event| event.position).collect()),
        Appended::Repeated(_) => panic!("no key was given"),
    }
}
