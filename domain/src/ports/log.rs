//! The log of events and what is written together with it.

use super::PortResult;
use crate::history::{Envelope, EventBody, StreamId};
use crate::ids::{NodeId, VimId, VnfInstanceId, VnfLcmOpOccId, VnfPkgId};
use crate::lcm_op_occ::VnfLcmOpOcc;
use crate::object::Digest;
use crate::secret::{SealedSecret, Secret, SecretRef};
use crate::subscription::LccnSubscription;
use crate::time::Timestamp;
use crate::vnf_instance::VnfInstance;
use async_trait::async_trait;

/// New events of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// Its version (last sequence) that was decided on; 0: the stream must be new.
    pub expected_version: u64,
    /// The instance that the events concern.
    pub vnf_instance_id: Option<VnfInstanceId>,
    /// The events, at least one.
    pub events: Vec<EventBody>,
    /// The state after them, for the state row.
    pub state: StateAfter,
}

/// The state of an aggregate after an append.
#[derive(Clone, Debug, PartialEq)]
pub enum StateAfter {
    /// Of an instance.
    VnfInstance(Box<VnfInstance>),
    /// Of an operation.
    VnfLcmOpOcc(Box<VnfLcmOpOcc>),
    /// Of a subscription.
    LccnSubscription(Box<LccnSubscription>),
}

/// The proof that a runner still holds its operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The operation.
    pub op: VnfLcmOpOccId,
    /// The number that the claim was given.
    pub number: u64,
}

/// What the work queue is told in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkChange {
    /// The operation is in a transitional state: it needs an owner. (Idempotent.)
    Needed(VnfLcmOpOccId),
    /// The operation is halted or has ended: nobody needs to own it.
    Done(VnfLcmOpOccId),
}

/// The answer stored under an `Idempotency-Key`, returned again when the key comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedAnswer {
    /// The key, unique per tenant.
    pub key: String,
    /// Digest of what was asked: another request under the same key is refused (422).
    pub request_digest: String,
    /// The answer, as the executor encodes it.
    pub answer: String,
}

/// A record outside the log that events refer to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reliance {
    /// A package.
    Package(VnfPkgId),
    /// A registered VIM.
    Vim(VimId),
}

/// Everything that is written or nothing of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unit {
    /// Stored first; the key's presence ends the unit with [`Appended::Repeated`].
    pub key: Option<KeyedAnswer>,
    /// Checked next, against the database's clock; refused: [`super::PortError::Fenced`].
    pub fence: Option<Fence>,
    /// What must be there when the events are written, and cannot be deleted before that is visible; gone:
    /// [`super::PortError::Conflict`].
    pub relies_on: Vec<Reliance>,
    /// Secrets for the vault.
    pub secrets: Vec<SealedSecret>,
    /// Bodies for the blob store, as `Blobs::name` named them.
    pub blobs: Vec<(Digest, Vec<u8>)>,
    /// The events.
    pub appends: Vec<Append>,
    /// Changes of the work queue.
    pub work: Vec<WorkChange>,
}

/// What came of a unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// Written; the envelopes in order, with their positions.
    Written(Vec<Envelope>),
    /// The key had come before; this was answered then. Nothing was written.
    Repeated(KeyedAnswer),
}

/// The log of events. All appends go through [`EventLog::append`].
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Loads a stream from its beginning, in order.
    ///
    /// # Errors
    ///
    /// `Corrupt` when an event cannot be read; `Unavailable` when the database cannot be asked.
    async fn load(&self, stream: &StreamId) -> PortResult<Vec<Envelope>>;

    /// The events of a stream behind a sequence number, in order.
    ///
    /// # Errors
    ///
    /// As [`EventLog::load`].
    async fn load_after(&self, stream: &StreamId, sequence: u64) -> PortResult<Vec<Envelope>> {
        let mut events = self.load(stream).await?;
        events.retain(|event| event.sequence > sequence);
        Ok(events)
    }

    /// The present state of an operation and its version, from the state row or, where that is missing or
    /// unreadable, from the events. `None`: no such stream.
    ///
    /// # Errors
    ///
    /// As [`EventLog::load`].
    async fn op_occ(&self, id: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>>;

    /// The present state of an instance and its version, likewise.
    ///
    /// # Errors
    ///
    /// As [`EventLog::load`].
    async fn instance(&self, id: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>>;

    /// The present state of a subscription and its version, likewise.
    ///
    /// # Errors
    ///
    /// As [`EventLog::load`].
    async fn subscription(
        &self,
        id: &crate::ids::SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>>;

    /// Writes a unit in one transaction.
    ///
    /// # Errors
    ///
    /// `Conflict` when a stream is not at its expected version, or what the unit relies on is gone; `Fenced` when the lease was lost;
    /// `Unavailable` when the database cannot be asked (the unit may or may not be written: load and look).
    async fn append(&self, unit: Unit) -> PortResult<Appended>;

    /// What was answered under an idempotency key, if it has come before.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn answered(&self, key: &str) -> PortResult<Option<KeyedAnswer>>;

    /// Events after a position, in order, at most `limit`.
    ///
    /// # Errors
    ///
    /// As [`EventLog::load`]; `Unavailable` too when a newer Cairn wrote what comes next.
    async fn read_after(&self, position: u64, limit: u32) -> PortResult<Vec<Envelope>>;

    /// Events of all subscriptions up to a position, in order. Those that cannot be read are passed over.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn of_subscriptions(&self, up_to: u64) -> PortResult<Vec<Envelope>>;

    /// Events of an instance and its operations, in order of position.
    ///
    /// # Errors
    ///
    /// As [`EventLog::load`].
    async fn of_instance(&self, id: &VnfInstanceId) -> PortResult<Vec<Envelope>>;

    /// Whether this process can follow the log.
    ///
    /// # Errors
    ///
    /// `Unavailable` once it has met an event of a newer Cairn: until it is updated it must leave the work to others.
    fn health(&self) -> PortResult<()> {
        Ok(())
    }

    /// The last position, 0 for an empty log.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn head(&self) -> PortResult<u64>;

    /// Resolves when something may have been appended, here or by another replica; at the latest after
    /// `at_most_ms`. Carries nothing: read the log.
    async fn changed(&self, at_most_ms: u64);
}

/// A claimed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The operation.
    pub op: VnfLcmOpOccId,
    /// Checked by every append of its runner.
    pub fence: u64,
}

/// Who works on an operation now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub node: NodeId,
    /// When its lease ends unless it is renewed, by the database's clock.
    pub expires_at: Timestamp,
}

/// Operations that need an owner, and who has them. A lease lasts 10 s by the database's clock.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Claims every claimable operation that this process has room for, without a row limit of its own.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn claim(&self, node: &NodeId, room: usize) -> PortResult<Vec<Lease>>;

    /// Extends leases; answers those that are still held.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn heartbeat(&self, node: &NodeId, leases: &[Lease]) -> PortResult<Vec<Lease>>;

    /// Gives leases back, so that any process can claim them at once.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn release(&self, node: &NodeId, leases: &[Lease]) -> PortResult<()>;

    /// Sets an operation aside whose stream cannot be worked on, with the reason; it is tried again after
    /// `retry_after_ms`, and stops nothing else.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn quarantine(&self, lease: &Lease, reason: &str, retry_after_ms: u64) -> PortResult<()>;

    /// Who holds an operation now.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn owner(&self, op: &VnfLcmOpOccId) -> PortResult<Option<Owner>>;

    /// How many other processes hold a live lease or have been seen within a lease's time.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn other_nodes(&self, node: &NodeId) -> PortResult<u32>;
}

/// Bodies too large or too secret for events: encrypted, content-addressed, never changed.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// The name that a body has: a keyed digest.
    fn name(&self, bytes: &[u8]) -> Digest;

    /// Keeps a body (repeatable). Within a unit of work use [`Unit::blobs`] instead.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn put(&self, bytes: &[u8]) -> PortResult<Digest>;

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is missing or not what its name says; `Unavailable`.
    async fn get(&self, digest: &Digest) -> PortResult<Vec<u8>>;
}

/// Secrets, encrypted; written within units of work ([`Unit::secrets`]) or alone.
#[async_trait]
pub trait Vault: Send + Sync {
    /// Keeps a secret under a fresh reference.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn put(&self, secrets: &[SealedSecret]) -> PortResult<()>;

    /// Reveals a secret.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is missing or cannot be decrypted; `Unavailable`.
    async fn reveal(&self, reference: &SecretRef) -> PortResult<Secret>;
}

/// The clock of the process. Leases use the database's.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Fresh ids.
pub trait Ids: Send + Sync {
    /// A fresh UUID as text.
    fn fresh(&self) -> String;
}
