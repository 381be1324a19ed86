//! An append that is held before it reaches the log, so that another one can come first.

use async_trait::async_trait;
use cairn_domain::history::{Envelope, StreamId};
use cairn_domain::ids::{SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{Appended, EventLog, KeyedAnswer, PortResult, Unit};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use std::sync::Arc;
use tokio::sync::watch;

/// How far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Every append goes through.
    Open,
    /// The next append with this event is to be held.
    Waiting(&'static str),
    /// It is held.
    Held,
}

/// Holds one append of a world.
#[derive(Clone)]
pub struct Hold {
    stage: watch::Sender<Stage>,
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            stage: watch::Sender::new(Stage::Open),
        }
    }
}

impl Hold {
    /// The next append with an event of this name is held.
    pub fn next(&self, event: &'static str) {
        self.stage.send_replace(Stage::Waiting(event));
    }

    /// Resolves when one is held.
    ///
    /// # Panics
    /// When none comes in time.
    pub async fn held(&self) {
        let mut stage = self.stage.subscribe();
        let held = stage.wait_for(|stage| *stage == Stage::Held);
        tokio::time::timeout(crate::client::SOON, held)
            .await
            .expect("the append is made in time")
            .expect("the sender lives as long as this does");
    }

    /// Lets it go on, and all that follow.
    pub fn release(&self) {
        self.stage.send_replace(Stage::Open);
    }

    /// Puts it before a log.
    #[must_use]
    pub fn before_log(&self, log: Arc<dyn EventLog>) -> Arc<dyn EventLog> {
        Arc::new(HeldLog {
            log,
            hold: self.clone(),
        })
    }

    async fn pass(&self, unit: &Unit) {
        let mut events = unit.appends.iter().flat_map(|append| &append.events);
        let is_held = self.stage.send_if_modified(|stage| match stage {
            Stage::Waiting(name) if events.any(|event| event.name() == *name) => {
                *stage = Stage::Held;
                true
            }
            Stage::Waiting(_) | Stage::Open | Stage::Held => false,
        });
        if is_held {
            let mut stage = self.stage.subscribe();
            let open = stage.wait_for(|stage| *stage == Stage::Open).await;
            open.expect("the sender lives as long as this does");
        }
    }
}

struct HeldLog {
    log: Arc<dyn EventLog>,
    hold: Hold,
}

#[async_trait]
impl EventLog for HeldLog {
    async fn load(&self, stream: &StreamId) -> PortResult<Vec<Envelope>> {
        self.log.load(stream).await
    }

    async fn load_after(&self, stream: &StreamId, sequence: u64) -> PortResult<Vec<Envelope>> {
        self.log.load_after(stream, sequence).await
    }

    async fn op_occ(&self, id: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>> {
        self.log.op_occ(id).await
    }

    async fn instance(&self, id: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>> {
        self.log.instance(id).await
    }

    async fn subscription(
        &self,
        id: &SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>> {
        self.log.subscription(id).await
    }

    async fn append(&self, unit: Unit) -> PortResult<Appended> {
        self.hold.pass(&unit).await;
        self.log.append(unit).await
    }

    async fn answered(&self, key: &str) -> PortResult<Option<KeyedAnswer>> {
        self.log.answered(key).await
    }

    async fn read_after(&self, position: u64, limit: u32) -> PortResult<Vec<Envelope>> {
        self.log.read_after(position, limit).await
    }

    async fn of_subscriptions(&self, up_to: u64) -> PortResult<Vec<Envelope>> {
        self.log.of_subscriptions(up_to).await
    }

    async fn of_instance(&self, id: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        self.log.of_instance(id).await
    }

    fn health(&self) -> PortResult<()> {
        self.log.health()
    }

    async fn head(&self) -> PortResult<u64> {
        self.log.head().await
    }

    async fn changed(&self, at_most_ms: u64) {
        self.log.changed(at_most_ms).await;
    }
}
