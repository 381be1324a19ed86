//! What queries read.

use super::PortResult;
use crate::history::Envelope;
use crate::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use crate::lcm_op_occ::VnfLcmOpOcc;
use crate::subscription::LccnSubscription;
use crate::vnf_instance::VnfInstance;
use async_trait::async_trait;

/// A row of a read model.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<S> {
    /// What it shows.
    pub state: S,
    /// Version of its stream: the `ETag`.
    pub version: u64,
    /// Position of its last event.
    pub position: u64,
}

/// The read models. A read by id whose checkpoint is behind the head catches up first, so that the `Location`
/// of a 202 answers at once. Another tenant's rows are not found. Lists are in order of creation, without
/// deleted instances and subscriptions.
#[async_trait]
pub trait ReadModels: Send + Sync {
    /// One instance; `None` when it never was or is deleted.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn instance(
        &self,
        tenant: &Tenant,
        id: &VnfInstanceId,
    ) -> PortResult<Option<Row<VnfInstance>>>;

    /// All instances.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn instances(&self, tenant: &Tenant) -> PortResult<Vec<Row<VnfInstance>>>;

    /// One operation; readable after its instance was deleted.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn op_occ(
        &self,
        tenant: &Tenant,
        id: &VnfLcmOpOccId,
    ) -> PortResult<Option<Row<VnfLcmOpOcc>>>;

    /// All operations.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn op_occs(&self, tenant: &Tenant) -> PortResult<Vec<Row<VnfLcmOpOcc>>>;

    /// One subscription.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn subscription(
        &self,
        tenant: &Tenant,
        id: &SubscriptionId,
    ) -> PortResult<Option<Row<LccnSubscription>>>;

    /// All subscriptions.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn subscriptions(&self, tenant: &Tenant) -> PortResult<Vec<Row<LccnSubscription>>>;

    /// The timeline of an instance and its operations, by rising position; empty when it never was.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn history(&self, tenant: &Tenant, id: &VnfInstanceId) -> PortResult<Vec<Envelope>>;

    /// Applies what the log holds beyond the checkpoints, until they have reached `position`.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn catch_up(&self, position: u64) -> PortResult<()>;
}
