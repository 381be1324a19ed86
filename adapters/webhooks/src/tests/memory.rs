//! A log and a queue of deliveries in memory, and receivers that follow a script.

use async_trait::async_trait;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{DeliveryId, SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::{self, VnfLcmOpOcc};
use cairn_domain::ports::{
    Appended, CallbackAnswer, Callbacks, Clock, Deliveries, Delivery, DeliveryState, EventLog, Ids,
    KeyedAnswer, PortResult, Unit,
};
use cairn_domain::secret::Secret;
use cairn_domain::subscription::{
    self, CallbackAuth, LccnSubscription, LccnSubscriptionEvent, Verbosity,
};
use cairn_domain::testing::{OpStory, T0};
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::VnfInstance;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// Each look at it takes a second, so that waits pass by themselves.
pub struct TickingClock(AtomicI64);

impl Default for TickingClock {
    fn default() -> Self {
        Self(AtomicI64::new(T0))
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

#[derive(Default)]
pub struct CountedIds(AtomicU64);

impl Ids for CountedIds {
    fn fresh(&self) -> String {
        format!("d-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[derive(Default)]
pub struct MemoryLog {
    events: Mutex<Vec<Envelope>>,
    news: Notify,
}

impl MemoryLog {
    fn push(&self, stream: StreamId, instance: Option<VnfInstanceId>, body: EventBody) {
        let mut events = self.events.lock().unwrap();
        let sequence = events.iter().filter(|e| e.stream == stream).count() as u64 + 1;
        let position = events.len() as u64 + 1;
        events.push(Envelope {
            position,
            recorded_at: body.at(),
            stream,
            sequence,
            vnf_instance_id: instance,
            body,
        });
        self.news.notify_waiters();
    }

    /// A whole story: the instance's creation, then its operation, under these ids.
    pub fn tell(&self, story: &OpStory, instance: &str, op: &str) {
        let instance = VnfInstanceId::parse(instance).unwrap();
        let stream = StreamId::VnfInstance(instance.clone());
        for event in story.world.instance_history().iter().take(1) {
            self.push(
                stream.clone(),
                Some(instance.clone()),
                EventBody::VnfInstance(event.clone()),
            );
        }
        let stream = StreamId::VnfLcmOpOcc(VnfLcmOpOccId::parse(op).unwrap());
        for event in story.history() {
            self.push(
                stream.clone(),
                Some(instance.clone()),
                EventBody::VnfLcmOpOcc(event),
            );
        }
    }

    pub fn subscribe(&self, id: &str, filter: Option<Value>) {
        let id = SubscriptionId::parse(id).unwrap();
        let created = LccnSubscriptionEvent::SubscriptionCreated {
            at: Timestamp::from_millis(T0),
            id: id.clone(),
            by: "anonymous".into(),
            tenant: Tenant::default_tenant(),
            callback_uri: format!("https://{id}.example/cb"),
            filter,
            verbosity: Verbosity::Full,
            auth: CallbackAuth::None,
        };
        self.push(
            StreamId::LccnSubscription(id),
            None,
            EventBody::LccnSubscription(created),
        );
    }

    pub fn unsubscribe(&self, id: &str) {
        let deleted = LccnSubscriptionEvent::SubscriptionDeleted {
            at: Timestamp::from_millis(T0),
            by: "anonymous".into(),
            tenant: Tenant::default_tenant(),
        };
        let stream = StreamId::LccnSubscription(SubscriptionId::parse(id).unwrap());
        self.push(stream, None, EventBody::LccnSubscription(deleted));
    }

    fn of(&self, stream: &StreamId) -> Vec<Envelope> {
        self.events
            .lock()
            .unwrap()
            .iter()
            .filter(|e| e.stream == *stream)
            .cloned()
            .collect()
    }
}

#[async_trait]
impl EventLog for MemoryLog {
    async fn load(&self, stream: &StreamId) -> PortResult<Vec<Envelope>> {
        Ok(self.of(stream))
    }
    async fn op_occ(&self, id: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>> {
        let history = self.of(&StreamId::VnfLcmOpOcc(id.clone()));
        let op = history
            .iter()
            .fold(None, |op, envelope| match &envelope.body {
                EventBody::VnfLcmOpOcc(event) => lcm_op_occ::evolve(op, event),
                _ => op,
            });
        Ok(op.map(|op| (op, history.len() as u64)))
    }
    async fn instance(&self, _: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>> {
        unreachable!("instances are read as they were at an event")
    }
    async fn subscription(
        &self,
        id: &SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>> {
        let history = self.of(&StreamId::LccnSubscription(id.clone()));
        let found = history
            .iter()
            .fold(None, |state, envelope| match &envelope.body {
                EventBody::LccnSubscription(event) => subscription::evolve(state, event),
                _ => state,
            });
        Ok(found.map(|found| (found, history.len() as u64)))
    }
    async fn append(&self, _: Unit) -> PortResult<Appended> {
        unreachable!("notifications append nothing")
    }
    async fn answered(&self, _: &str) -> PortResult<Option<KeyedAnswer>> {
        unreachable!("notifications know no keys")
    }
    async fn read_after(&self, position: u64, limit: u32) -> PortResult<Vec<Envelope>> {
        let events = self.events.lock().unwrap();
        let page = events
            .iter()
            .filter(|e| e.position > position)
            .take(limit as usize);
        Ok(page.cloned().collect())
    }
    async fn of_subscriptions(&self, up_to: u64) -> PortResult<Vec<Envelope>> {
        let events = self.events.lock().unwrap();
        let of_them = events
            .iter()
            .filter(|e| e.position <= up_to && matches!(e.stream, StreamId::LccnSubscription(_)));
        Ok(of_them.cloned().collect())
    }
    async fn of_instance(&self, _: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        unreachable!("notifications read streams")
    }
    async fn head(&self) -> PortResult<u64> {
        Ok(self.events.lock().unwrap().len() as u64)
    }
    async fn changed(&self, at_most_ms: u64) {
        let timer = tokio::time::sleep(Duration::from_millis(at_most_ms));
        tokio::select! {
            () = self.news.notified() => {}
            () = timer => {}
        }
    }
}

#[derive(Default)]
pub struct MemoryQueue {
    /// Also that of the dispatchers.
    pub clock: Arc<TickingClock>,
    all: Mutex<Vec<Delivery>>,
    leases: Mutex<HashMap<DeliveryId, Timestamp>>,
    cursor: AtomicU64,
}

impl MemoryQueue {
    pub fn all(&self) -> Vec<Delivery> {
        self.all.lock().unwrap().clone()
    }

    /// Resolves when nothing is pending and everything up to a position was made out.
    pub async fn done(&self, position: u64) {
        let settled = || {
            self.cursor.load(Ordering::Relaxed) >= position
                && self.all().iter().all(|d| d.state != DeliveryState::Pending)
        };
        until("all is delivered or given up", settled).await;
    }
}

/// Resolves when a condition holds, on a clock that is paused and so moves by itself.
///
/// # Panics
///
/// When it does not hold within more hours than anything is tried for.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_hours(100), wait).await;
    assert!(waited.is_ok(), "it never came: {what}");
}

#[async_trait]
impl Deliveries for MemoryQueue {
    async fn cursor(&self) -> PortResult<u64> {
        Ok(self.cursor.load(Ordering::Relaxed))
    }
    async fn enqueue(&self, deliveries: Vec<Delivery>, from: u64, to: u64) -> PortResult<()> {
        if self
            .cursor
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            self.all.lock().unwrap().extend(deliveries);
        }
        Ok(())
    }
    async fn due(&self, limit: u32, lease_ms: u64) -> PortResult<Vec<Delivery>> {
        let now = self.clock.now();
        let all = self.all.lock().unwrap();
        let mut leases = self.leases.lock().unwrap();
        let mut seen = Vec::new();
        let mut due = Vec::new();
        for delivery in all.iter().filter(|d| d.state == DeliveryState::Pending) {
            let lane = (delivery.subscription.clone(), delivery.instance.clone());
            if seen.contains(&lane) {
                continue;
            }
            seen.push(lane);
            let free = leases.get(&delivery.id).is_none_or(|until| *until <= now);
            if free
                && delivery.next_try_at.is_some_and(|at| at <= now)
                && due.len() < limit as usize
            {
                leases.insert(delivery.id.clone(), now.plus_millis(lease_ms));
                due.push(delivery.clone());
            }
        }
        Ok(due)
    }
    async fn record(&self, delivery: &Delivery) -> PortResult<()> {
        self.leases.lock().unwrap().remove(&delivery.id);
        let mut all = self.all.lock().unwrap();
        if let Some(place) = all.iter_mut().find(|d| d.id == delivery.id) {
            *place = delivery.clone();
        }
        Ok(())
    }
    async fn of_subscription(&self, id: &SubscriptionId) -> PortResult<Vec<Delivery>> {
        Ok(self
            .all()
            .into_iter()
            .filter(|d| d.subscription == *id)
            .collect())
    }
    async fn resend(&self, _: &SubscriptionId, _: &DeliveryId) -> PortResult<bool> {
        Ok(false)
    }
    async fn drop_pending(&self, id: &SubscriptionId) -> PortResult<()> {
        let kept = |d: &Delivery| d.subscription != *id || d.state != DeliveryState::Pending;
        self.all.lock().unwrap().retain(kept);
        Ok(())
    }
}

type Script = Box<dyn Fn(&str, &Value, usize) -> CallbackAnswer + Send + Sync>;

/// Receivers that answer as the script says: by callback, body, and how often this body came before.
pub struct Receivers {
    pub heard: Mutex<Vec<(String, Value)>>,
    script: Script,
}

impl Receivers {
    pub fn that(
        script: impl Fn(&str, &Value, usize) -> CallbackAnswer + Send + Sync + 'static,
    ) -> Self {
        Self {
            heard: Mutex::default(),
            script: Box::new(script),
        }
    }

    pub fn accepting() -> Self {
        Self::that(|_, _, _| CallbackAnswer::Accepted)
    }

    /// What a subscription heard, in order.
    pub fn heard_by(&self, id: &str) -> Vec<Value> {
        let uri = format!("https://{id}.example/cb");
        let heard = self.heard.lock().unwrap();
        heard
            .iter()
            .filter(|(to, _)| *to == uri)
            .map(|(_, body)| body.clone())
            .collect()
    }
}

#[async_trait]
impl Callbacks for Receivers {
    async fn test(&self, _: &str, _: &CallbackAuth, _: Option<&Secret>) -> PortResult<()> {
        Ok(())
    }
    async fn send(&self, subscription: &LccnSubscription, body: &Value) -> CallbackAnswer {
        let entry = (subscription.callback_uri.clone(), body.clone());
        let mut heard = self.heard.lock().unwrap();
        let before = heard.iter().filter(|earlier| **earlier == entry).count();
        heard.push(entry);
        (self.script)(&subscription.callback_uri, body, before)
    }
}
