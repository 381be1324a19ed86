//! What queries read.

use super::PortResult;
use crate::history::Envelope;
use crate::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId};
use crate::lcm_op_occ::VnfLcmOpOcc;
use crate::subscription::LccnSubscription;
use crate::vnf_instance::VnfInstance;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A row of a read model.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<S> {
    /// What it shows; shared with who else reads it.
    pub state: Arc<S>,
    /// Version of its stream: the `ETag`.
    pub version: u64,
    /// Position of its last event.
    pub position: u64,
}

/// A row in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed<S> {
    /// Its place in the order of creation: the position of its first event.
    pub place: u64,
    /// The row.
    pub row: Row<S>,
}

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Rows behind this place; 0 begins the list.
    pub after: u64,
    /// So many rows at most.
    pub limit: u32,
}

impl Page {
    /// All of a list that is known to be short.
    pub const ALL: Self = Self {
        after: 0,
        limit: u32::MAX,
    };
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

    /// Instances, a page of them.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn instances(&self, tenant: &Tenant, page: Page) -> PortResult<Vec<Listed<VnfInstance>>>;

    /// The operations that are halted, each the one that claims its instance.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn halted(&self, tenant: &Tenant) -> PortResult<Vec<VnfLcmOpOccId>>;

    /// The packages that instances need: were made of, or change to.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn packages_in_use(&self, tenant: &Tenant) -> PortResult<BTreeSet<VnfPkgId>>;

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

    /// Operations, a page of them.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn op_occs(&self, tenant: &Tenant, page: Page) -> PortResult<Vec<Listed<VnfLcmOpOcc>>>;

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

    /// Subscriptions, a page of them.
    ///
    /// # Errors
    ///
    /// `Unavailable`, `Corrupt`.
    async fn subscriptions(
        &self,
        tenant: &Tenant,
        page: Page,
    ) -> PortResult<Vec<Listed<LccnSubscription>>>;

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
