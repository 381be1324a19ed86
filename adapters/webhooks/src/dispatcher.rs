//! The loop that makes out and sends what subscriptions are owed. It keeps nothing that cannot be read again:
//! the cursor and the queue are in the database, the subscriptions are folded from the log.

mod attempt;
mod make_out;
mod subscribers;

use cairn_domain::ids::SubscriptionId;
use cairn_domain::ports::{
    CallbackAnswer, Callbacks, Clock, Deliveries, Delivery, EventLog, Ids, PortError, PortResult,
    Renderer,
};
use cairn_domain::subscription::LccnSubscription;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use subscribers::Subscribers;

/// Most deliveries on their way at one time.
const IN_FLIGHT: usize = 64;
/// How long a claimed delivery belongs to this process: longer than any call may last.
const LEASE_MS: u64 = 60_000;
/// Longest sleep while nothing is heard from the log.
const IDLE_MS: u64 = 1_000;
/// What is appended within this time is made out together.
const BREATH: Duration = Duration::from_millis(10);
/// How long the running calls may go on once the process is to end.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often the result of a call is written, should the database not answer.
const RECORD_TRIES: u32 = 5;

/// What the dispatcher drives.
#[derive(Clone)]
pub struct DispatcherPorts {
    /// Where events are read.
    pub log: Arc<dyn EventLog>,
    /// The queue and its cursor.
    pub deliveries: Arc<dyn Deliveries>,
    /// Who is called.
    pub callbacks: Arc<dyn Callbacks>,
    /// What they are told.
    pub renderer: Arc<dyn Renderer>,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Ids of deliveries.
    pub ids: Arc<dyn Ids>,
}

/// Makes out and sends notifications until it is cancelled. Any number of replicas may run one each.
#[derive(Clone)]
pub struct Dispatcher {
    ports: DispatcherPorts,
}

impl Dispatcher {
    /// Over these ports.
    #[must_use]
    pub fn new(ports: DispatcherPorts) -> Self {
        Self { ports }
    }

    /// Runs until `cancel`; what is on its way then has two seconds to end, and is sent again by whoever comes
    /// next if it does not.
    pub async fn run(self, cancel: CancellationToken) {
        let mut subscribers = Subscribers::default();
        // Tasks of their own, not futures that this loop polls: a delivery that waits for the database's one
        // writer, or holds it, must go on while the loop waits for the same.
        let mut sending = JoinSet::new();
        while !cancel.is_cancelled() {
            let made_out = self.make_out(&mut subscribers).await;
            let claimed = self.claim(IN_FLIGHT - sending.len()).await;
            let well = made_out.is_ok() && claimed.is_ok();
            for error in [made_out.err(), claimed.as_ref().err().cloned()]
                .into_iter()
                .flatten()
            {
                log_failure(&error);
            }
            for delivery in claimed.unwrap_or_default() {
                let dispatcher = self.clone();
                sending.spawn(async move { dispatcher.deliver(delivery).await });
            }
            tokio::select! {
                () = cancel.cancelled() => {}
                Some(sent) = sending.join_next(), if !sending.is_empty() => log_panic(sent),
                () = self.idle(well) => {}
            }
        }
        let rest = async {
            while let Some(sent) = sending.join_next().await {
                log_panic(sent);
            }
        };
        if tokio::time::timeout(FAREWELL, rest).await.is_err() {
            tracing::info!("notifications were on their way at the end; they will be sent again");
        }
    }

    /// Waits for news; after a failure for a moment, so that a database that is down is not hammered.
    async fn idle(&self, well: bool) {
        if well {
            self.ports.log.changed(IDLE_MS).await;
            tokio::time::sleep(BREATH).await;
        } else {
            tokio::time::sleep(Duration::from_millis(IDLE_MS)).await;
        }
    }

    async fn claim(&self, room: usize) -> PortResult<Vec<Delivery>> {
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        // Who cannot follow the log could not make the bodies either, and would only use tries up.
        if limit == 0 || self.ports.log.health().is_err() {
            return Ok(Vec::new());
        }
        self.ports.deliveries.due(limit, LEASE_MS).await
    }

    /// Sends one delivery and records what came of it. A failure of our own side is no try: the lease ends and
    /// the delivery is due again.
    async fn deliver(&self, delivery: Delivery) {
        match self.try_to_deliver(&delivery).await {
            Ok(Some(answer)) => {
                let done = attempt::after(delivery, &answer, self.ports.clock.now());
                self.record(&done).await;
            }
            Ok(None) => {}
            Err(error) => log_failure(&error),
        }
    }

    async fn try_to_deliver(&self, delivery: &Delivery) -> PortResult<Option<CallbackAnswer>> {
        let Some(subscription) = self.living(&delivery.subscription).await? else {
            self.ports
                .deliveries
                .drop_pending(&delivery.subscription)
                .await?;
            return Ok(None);
        };
        match self.ports.renderer.render(delivery, &subscription).await {
            Ok(body) => Ok(Some(self.ports.callbacks.send(&subscription, &body).await)),
            // It counts as a try, so that an unreadable stream does not stop the others for ever.
            Err(error @ PortError::Corrupt(_)) => {
                log_failure(&error);
                Ok(Some(CallbackAnswer::NoAnswer {
                    why: error.to_string(),
                }))
            }
            Err(error) => Err(error),
        }
    }

    async fn living(&self, id: &SubscriptionId) -> PortResult<Option<LccnSubscription>> {
        let found = self.ports.log.subscription(id).await?;
        Ok(found
            .map(|(subscription, _)| subscription)
            .filter(|s| !s.deleted))
    }

    async fn record(&self, delivery: &Delivery) {
        for tried in 1..=RECORD_TRIES {
            match self.ports.deliveries.record(delivery).await {
                Ok(()) => return,
                Err(error) => log_failure(&error),
            }
            tokio::time::sleep(Duration::from_millis(100) * tried).await;
        }
    }
}

/// The lease of a delivery whose task panicked ends, and it is sent again.
fn log_panic(sent: Result<(), JoinError>) {
    if let Err(error) = sent {
        tracing::error!(%error, "sending a notification ended by panic");
    }
}

fn log_failure(error: &PortError) {
    match error {
        PortError::Corrupt(_) => tracing::error!(%error, "notifications cannot be made out"),
        PortError::Conflict(_)
        | PortError::Fenced
        | PortError::Unavailable(_)
        | PortError::Refused(_) => tracing::warn!(%error, "notifications have to wait"),
    }
}
