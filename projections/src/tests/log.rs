//! A log in memory, and what it holds.

use async_trait::async_trait;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId, VnfdId};
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use cairn_domain::operation::{AdditionalParams, ErrorPoint, Operation, OperationState, Params};
use cairn_domain::ports::{Appended, EventLog, KeyedAnswer, PortError, PortResult, Unit};
use cairn_domain::subscription::{
    CallbackAuth, LccnSubscription, LccnSubscriptionEvent, Verbosity,
};
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::{VnfInfo, VnfInstance, VnfInstanceEvent, VnfProduct};
use serde_json::{Map, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Only what read models ask a log for; the rest is never called here.
#[derive(Default)]
pub(crate) struct MemoryLog {
    events: Mutex<Vec<Envelope>>,
    /// The head, also where the last events are unreadable and so not in `events`.
    head: Mutex<u64>,
    down: AtomicBool,
}

impl MemoryLog {
    /// Appends events of one stream.
    pub(crate) fn append(&self, instance: Option<&str>, stream: &StreamId, bodies: Vec<EventBody>) {
        let mut events = self.events.lock().unwrap();
        let mut head = self.head.lock().unwrap();
        let before = events
            .iter()
            .filter(|event| event.stream == *stream)
            .map(|event| event.sequence);
        let version = before.max().unwrap_or(0);
        for (sequence, body) in (version + 1..).zip(bodies) {
            *head += 1;
            events.push(Envelope {
                position: *head,
                recorded_at: body.at(),
                stream: stream.clone(),
                sequence,
                vnf_instance_id: instance.map(instance_id),
                body,
            });
        }
    }

    fn reachable(&self) -> PortResult<()> {
        if self.down.load(Ordering::Relaxed) {
            return Err(PortError::Unavailable("it is down".to_owned()));
        }
        Ok(())
    }

    /// Is out of reach from now on.
    pub(crate) fn go_down(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    /// Makes an event unreadable, as `read_after` would pass it over.
    pub(crate) fn lose(&self, position: u64) {
        self.events
            .lock()
            .unwrap()
            .retain(|event| event.position != position);
    }

    pub(crate) fn of_instance(&self, id: &str, bodies: Vec<VnfInstanceEvent>) {
        let stream = StreamId::VnfInstance(instance_id(id));
        self.append(
            Some(id),
            &stream,
            bodies.into_iter().map(EventBody::VnfInstance).collect(),
        );
    }

    pub(crate) fn of_op(&self, id: &str, instance: &str, bodies: Vec<VnfLcmOpOccEvent>) {
        let stream = StreamId::VnfLcmOpOcc(op_id(id));
        self.append(
            Some(instance),
            &stream,
            bodies.into_iter().map(EventBody::VnfLcmOpOcc).collect(),
        );
    }

    pub(crate) fn of_subscription(&self, id: &str, bodies: Vec<LccnSubscriptionEvent>) {
        let stream = StreamId::LccnSubscription(subscription_id(id));
        self.append(
            None,
            &stream,
            bodies
                .into_iter()
                .map(EventBody::LccnSubscription)
                .collect(),
        );
    }
}

#[async_trait]
impl EventLog for MemoryLog {
    async fn load(&self, stream: &StreamId) -> PortResult<Vec<Envelope>> {
        self.reachable()?;
        let events = self.events.lock().unwrap();
        let of_it = events.iter().filter(|event| event.stream == *stream);
        Ok(of_it.cloned().collect())
    }

    async fn op_occ(&self, _id: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>> {
        unreachable!("read models read on from positions")
    }

    async fn instance(&self, _id: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>> {
        unreachable!("read models read on from positions")
    }

    async fn subscription(
        &self,
        _id: &SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>> {
        unreachable!("read models read on from positions")
    }

    async fn append(&self, _unit: Unit) -> PortResult<Appended> {
        unreachable!("read models do not write the log")
    }

    async fn answered(&self, _key: &str) -> PortResult<Option<KeyedAnswer>> {
        unreachable!("read models know no keys")
    }

    async fn read_after(&self, position: u64, limit: u32) -> PortResult<Vec<Envelope>> {
        let events = self.events.lock().unwrap();
        let limit = usize::try_from(limit).unwrap();
        Ok(events
            .iter()
            .filter(|event| event.position > position)
            .take(limit)
            .cloned()
            .collect())
    }

    async fn of_subscriptions(&self, _up_to: u64) -> PortResult<Vec<Envelope>> {
        unreachable!("read models read on from positions")
    }

    async fn of_instance(&self, _id: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        unreachable!("read models read on from positions")
    }

    async fn head(&self) -> PortResult<u64> {
        self.reachable()?;
        Ok(*self.head.lock().unwrap())
    }

    async fn changed(&self, _at_most_ms: u64) {
        unreachable!("tests bring read models up themselves")
    }
}

pub(crate) fn instance_id(id: &str) -> VnfInstanceId {
    VnfInstanceId::parse(id).unwrap()
}

pub(crate) fn op_id(id: &str) -> VnfLcmOpOccId {
    VnfLcmOpOccId::parse(id).unwrap()
}

pub(crate) fn subscription_id(id: &str) -> SubscriptionId {
    SubscriptionId::parse(id).unwrap()
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + second * 1000)
}

pub(crate) fn created(id: &str, tenant: &Tenant) -> VnfInstanceEvent {
    VnfInstanceEvent::VnfIdentifierCreated {
        at: at(0),
        id: instance_id(id),
        by: "anonymous".into(),
        tenant: tenant.clone(),
        product: VnfProduct {
            vnfd_id: VnfdId::parse("vnfd-1").unwrap(),
            vnf_pkg_id: VnfPkgId::parse("pkg-1").unwrap(),
            vnf_provider: "Example".into(),
            vnf_product_name: "Sample".into(),
            vnf_software_version: "1.0".into(),
            vnfd_version: "1.0".into(),
        },
        info: VnfInfo {
            vnf_instance_name: Some("Größe".into()),
            ..VnfInfo::default()
        },
    }
}

pub(crate) fn deleted(tenant: &Tenant) -> VnfInstanceEvent {
    VnfInstanceEvent::VnfIdentifierDeleted {
        at: at(9),
        by: "anonymous".into(),
        tenant: tenant.clone(),
    }
}

pub(crate) fn observed(second: i64) -> VnfInstanceEvent {
    VnfInstanceEvent::VnfcsObserved {
        at: at(second),
        vnfcs: Vec::new(),
    }
}

pub(crate) fn started(id: &str, instance: &str, tenant: &Tenant) -> VnfLcmOpOccEvent {
    let request = json!({"vnfcInstanceId": ["a", "b"], "cause": "\u{0}\"quoted\""});
    VnfLcmOpOccEvent::OperationStarted {
        at: at(1),
        id: op_id(id),
        vnf_instance_id: instance_id(instance),
        by: "anonymous".into(),
        tenant: tenant.clone(),
        request: request.as_object().cloned().unwrap(),
        params: Params::Heal {
            vnfcs: vec!["a".into()],
            cause: None,
        },
        additional: AdditionalParams::default(),
        inventory: Vec::new(),
    }
}

pub(crate) fn subscribed(id: &str, tenant: &Tenant) -> LccnSubscriptionEvent {
    LccnSubscriptionEvent::SubscriptionCreated {
        at: at(2),
        id: subscription_id(id),
        by: "anonymous".into(),
        tenant: tenant.clone(),
        callback_uri: "https://nfvo.example/callback".into(),
        filter: Some(json!({"notificationTypes": ["VnfLcmOperationOccurrenceNotification"]})),
        verbosity: Verbosity::Short,
        auth: CallbackAuth::None,
    }
}

/// A log with every kind of stream, two tenants, and deleted things.
pub(crate) fn recorded() -> MemoryLog {
    let log = MemoryLog::default();
    let (mine, theirs) = (Tenant::default_tenant(), Tenant::parse("other").unwrap());
    for n in 0..4 {
        let (instance, op) = (format!("i{n}"), format!("o{n}"));
        let tenant = if n == 3 { &theirs } else { &mine };
        log.of_instance(&instance, vec![created(&instance, tenant)]);
        log.of_op(&op, &instance, vec![started(&op, &instance, tenant)]);
        let claimed = VnfInstanceEvent::OperationClaimed {
            at: at(1),
            op: op_id(&op),
            operation: Operation::Heal,
            vnf_pkg_id: None,
            overlay: Map::new(),
        };
        log.of_instance(&instance, vec![claimed]);
        for point in ErrorPoint::ALL {
            let reached = VnfLcmOpOccEvent::ErrorPointReached {
                at: at(2),
                point,
                attempt: 1,
            };
            log.of_op(&op, &instance, vec![reached]);
        }
        let completed = VnfLcmOpOccEvent::OperationCompleted {
            at: at(3),
            resource_changes: Vec::new(),
            changed_info: None,
            residue: Vec::new(),
        };
        log.of_op(&op, &instance, vec![completed]);
        let released = VnfInstanceEvent::OperationReleased {
            at: at(3),
            op: op_id(&op),
            outcome: OperationState::Completed,
            scale_in_doubt: None,
        };
        log.of_instance(&instance, vec![released, observed(4)]);
    }
    log.of_subscription("s0", vec![subscribed("s0", &mine)]);
    log.of_subscription("s1", vec![subscribed("s1", &mine)]);
    let unsubscribed = LccnSubscriptionEvent::SubscriptionDeleted {
        at: at(5),
        by: "anonymous".into(),
        tenant: mine.clone(),
    };
    log.of_subscription("s0", vec![unsubscribed]);
    log.of_instance("i1", vec![deleted(&mine)]);
    log
}
