//! Works on claimed operations: claims what needs an owner, keeps the leases alive, runs one task per operation.
//!
//! One dumb loop per operation ([`work`]): load, `next`, perform through a port, append, repeat. It is woken by a
//! signal of the log and by a timer, and the wake-up carries nothing. Every append checks the lease's fence, so
//! a process that lost its lease writes nothing more.

mod grant;
mod plan;
mod steps;
mod vims;
mod waits;
mod work;

pub(crate) use plan::recorded_uids;

use crate::bodies::StoredBodies;
use crate::faults::FaultBoard;
use crate::supervised::spawn;
use crate::target::Targets;
use cairn_domain::clocks::Clocks;
use cairn_domain::ids::{NodeId, VnfLcmOpOccId};
use cairn_domain::ports::{
    Blobs, Clock, ContainerPlatform, EventLog, Ids, Lease, Metrics, Nfvo, Packages, Vims, WorkQueue,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often claimable operations are looked for without a signal.
const SWEEP_MS: u64 = 1000;
/// Between two looks for claimable operations, however often the log changes.
const CLAIM_BREATH: Duration = Duration::from_millis(20);
/// How often leases are renewed; a lease lasts 10 s.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How long a lease is trusted without having been renewed: a little less than it lasts.
pub(crate) const LEASE_TRUSTED: Duration = Duration::from_secs(9);
/// How long running calls get to end when the process is asked to.
const HANDOVER: Duration = Duration::from_millis(1500);
/// How long an operation that cannot be worked on is left alone.
pub(crate) const QUARANTINE_MS: u64 = 30_000;

/// What the runner drives.
pub struct Ports {
    /// The log.
    pub log: Arc<dyn EventLog>,
    /// Who works on what.
    pub work: Arc<dyn WorkQueue>,
    /// Bodies of objects.
    pub blobs: Arc<dyn Blobs>,
    /// The clusters.
    pub platform: Arc<dyn ContainerPlatform>,
    /// Onboarded packages.
    pub packages: Arc<dyn Packages>,
    /// Grants.
    pub nfvo: Arc<dyn Nfvo>,
    /// Where instances run.
    pub targets: Arc<Targets>,
    /// Registered VIMs.
    pub vims: Arc<dyn Vims>,
    /// Names of secrets in the vault.
    pub ids: Arc<dyn Ids>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Faults, where they are enabled.
    pub faults: Option<Arc<FaultBoard>>,
    /// Counters.
    pub metrics: Arc<dyn Metrics>,
}

/// How the runner behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of this process.
    pub node: NodeId,
    /// Clocks set at start.
    pub clocks: Clocks,
    /// Operations worked on at once.
    pub concurrency: usize,
}

/// The runner.
pub struct Runner {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) bodies: StoredBodies,
    /// When the leases were renewed last; asked for before the answer was known.
    renewed: Mutex<Instant>,
}

struct Running {
    lease: Lease,
    lost: CancellationToken,
    task: JoinHandle<Option<()>>,
}

impl Runner {
    /// A runner on these ports.
    #[must_use]
    pub fn new(ports: Ports, settings: Settings) -> Self {
        let bodies = StoredBodies(ports.blobs.clone());
        Self {
            ports,
            settings,
            bodies,
            renewed: Mutex::new(Instant::now()),
        }
    }

    /// When the leases of this process were renewed last.
    pub(crate) fn renewed(&self) -> Instant {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until `stop`; then hands its operations over: leases are released, so that any replica goes on at once.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut running: HashMap<VnfLcmOpOccId, Running> = HashMap::new();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            running.retain(|_, one| !one.task.is_finished());
            let looked = Instant::now();
            self.claim(&mut running, &stop).await;
            tokio::select! {
                () = stop.cancelled() => break,
                _ = heartbeat.tick() => self.heartbeat(&mut running).await,
                () = self.ports.log.changed(SWEEP_MS) => {
                    tokio::time::sleep_until(looked + CLAIM_BREATH).await;
                }
            }
        }
        self.hand_over(running).await;
    }

    async fn claim(
        self: &Arc<Self>,
        running: &mut HashMap<VnfLcmOpOccId, Running>,
        stop: &CancellationToken,
    ) {
        let room = self.settings.concurrency.saturating_sub(running.len());
        // One that cannot follow the log would set aside what a newer replica can work on.
        if room == 0 || self.ports.log.health().is_err() {
            return;
        }
        let asked = Instant::now();
        let claimed = match self.ports.work.claim(&self.settings.node, room).await {
            Ok(claimed) => claimed,
            Err(failed) => {
                warn!(error = %failed, "cannot claim operations now; the next sweep tries again");
                return;
            }
        };
        for lease in claimed {
            info!(lcm_op_occ.id = %lease.op, fence = lease.fence, "claimed");
            let lost = stop.child_token();
            let own = self.clone().own(lease.clone(), lost.clone(), asked);
            let task = spawn("operation", own);
            let one = Running { lease, lost, task };
            if let Some(before) = running.insert(one.lease.op.clone(), one) {
                // Its lease ran out and came back to this process; no heartbeat would tell it any more.
                before.lost.cancel();
            }
        }
    }

    /// Works on one operation until it rests, then gives the lease back.
    async fn own(self: Arc<Self>, lease: Lease, lost: CancellationToken, asked: Instant) {
        let worked = spawn("work", work::work(self.clone(), lease.clone(), lost, asked)).await;
        let reason = match worked {
            Ok(Some(work::Ended::Rests | work::Ended::Lost)) => None,
            Ok(Some(work::Ended::Unworkable(reason))) => Some(reason),
            Ok(None) | Err(_) => Some("the runner's task ended by panic; see the log".to_owned()),
        };
        let given_back = match reason {
            None => {
                self.ports
                    .work
                    .release(&self.settings.node, std::slice::from_ref(&lease))
                    .await
            }
            Some(reason) => {
                tracing::error!(lcm_op_occ.id = %lease.op, %reason, "quarantined");
                self.ports
                    .work
                    .quarantine(&lease, &reason, QUARANTINE_MS)
                    .await
            }
        };
        if let Err(failed) = given_back {
            warn!(lcm_op_occ.id = %lease.op, error = %failed, "the lease was not given back; it lapses by itself");
        }
    }

    async fn heartbeat(&self, running: &mut HashMap<VnfLcmOpOccId, Running>) {
        let leases: Vec<Lease> = running.values().map(|one| one.lease.clone()).collect();
        let asked = Instant::now();
        match self
            .ports
            .work
            .heartbeat(&self.settings.node, &leases)
            .await
        {
            Ok(held) => {
                *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = asked;
                for one in running.values().filter(|one| !held.contains(&one.lease)) {
                    if !one.task.is_finished() {
                        warn!(lcm_op_occ.id = %one.lease.op, "lease lost; another process goes on");
                        one.lost.cancel();
                    }
                }
            }
            Err(failed) => warn!(error = %failed, "leases were not renewed"),
        }
    }

    async fn hand_over(&self, running: HashMap<VnfLcmOpOccId, Running>) {
        let leases: Vec<Lease> = running.values().map(|one| one.lease.clone()).collect();
        for one in running.values() {
            one.lost.cancel();
        }
        let tasks = running.into_values().map(|one| one.task);
        let all = futures::future::join_all(tasks);
        if tokio::time::timeout(HANDOVER, all).await.is_err() {
            warn!("some calls did not end in time; their steps are looked at by the next owner");
        }
        if let Err(failed) = self.ports.work.release(&self.settings.node, &leases).await {
            warn!(error = %failed, "leases were not released; they lapse by themselves");
        }
    }
}
