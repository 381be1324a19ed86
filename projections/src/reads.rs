//! The `ReadModels` port: reads that first catch up with the log, so that what was answered with 202 is there.

use crate::error::port;
use crate::fold::Shown;
use crate::{Projections, corrupt, subscriptions, timeline, vnf_instances, vnf_lcm_op_occs};
use async_trait::async_trait;
use cairn_db::args;
use cairn_domain::history::Envelope;
use cairn_domain::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{PortError, PortResult, ReadModels, Row};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use std::sync::atomic::Ordering;

impl Projections {
    /// Catches up before a read.
    async fn ready(&self) -> PortResult<()> {
        match self.follow().await {
            Err(PortError::Corrupt(why)) => self.mend(&why).await,
            other => other,
        }
    }

    /// Makes all read models anew because a row cannot be read (a state of an older Cairn), once in the life of
    /// a process: if that does not help, nothing here will.
    async fn mend(&self, why: &str) -> PortResult<()> {
        if self.mended.swap(true, Ordering::Relaxed) {
            return Err(PortError::Corrupt(why.to_owned()));
        }
        tracing::warn!(
            why,
            "a row of a read model cannot be read; they are made anew"
        );
        self.rebuild().await?;
        self.follow().await
    }

    async fn one<S: Shown>(
        &self,
        table: &str,
        tenant: &Tenant,
        id: &str,
    ) -> PortResult<Option<Row<S>>> {
        self.ready().await?;
        match self.read_one(table, tenant, id).await {
            Err(PortError::Corrupt(why)) => {
                self.mend(&why).await?;
                self.read_one(table, tenant, id).await
            }
            other => other,
        }
    }

    async fn list<S: Shown>(&self, table: &str, tenant: &Tenant) -> PortResult<Vec<Row<S>>> {
        self.ready().await?;
        match self.read_list(table, tenant).await {
            Err(PortError::Corrupt(why)) => {
                self.mend(&why).await?;
                self.read_list(table, tenant).await
            }
            other => other,
        }
    }

    async fn read_one<S: Shown>(
        &self,
        table: &str,
        tenant: &Tenant,
        id: &str,
    ) -> PortResult<Option<Row<S>>> {
        let row = self
            .database
            .fetch_optional(
                &format!(
                    "SELECT state, version, position FROM {table} \
                     WHERE id = $1 AND tenant = $2 AND deleted = 0"
                ),
                args![id, tenant.as_str()],
            )
            .await
            .map_err(port)?;
        row.as_ref().map(|row| decode(table, row)).transpose()
    }

    async fn read_list<S: Shown>(&self, table: &str, tenant: &Tenant) -> PortResult<Vec<Row<S>>> {
        let rows = self
            .database
            .fetch_all(
                &format!(
                    "SELECT state, version, position FROM {table} \
                     WHERE tenant = $1 AND deleted = 0 ORDER BY created_position"
                ),
                args![tenant.as_str()],
            )
            .await
            .map_err(port)?;
        rows.iter().map(|row| decode(table, row)).collect()
    }
}

fn decode<S: Shown>(table: &str, row: &cairn_db::Row) -> PortResult<Row<S>> {
    Ok(Row {
        state: serde_json::from_str(&row.text(0).map_err(port)?)
            .map_err(|why| corrupt(&format!("a row of {table}"), why))?,
        version: row.count(1).map_err(port)?,
        position: row.count(2).map_err(port)?,
    })
}

#[async_trait]
impl ReadModels for Projections {
    async fn instance(
        &self,
        tenant: &Tenant,
        id: &VnfInstanceId,
    ) -> PortResult<Option<Row<VnfInstance>>> {
        self.one(vnf_instances::NAME, tenant, id.as_str()).await
    }

    async fn instances(&self, tenant: &Tenant) -> PortResult<Vec<Row<VnfInstance>>> {
        self.list(vnf_instances::NAME, tenant).await
    }

    async fn op_occ(
        &self,
        tenant: &Tenant,
        id: &VnfLcmOpOccId,
    ) -> PortResult<Option<Row<VnfLcmOpOcc>>> {
        self.one(vnf_lcm_op_occs::NAME, tenant, id.as_str()).await
    }

    async fn op_occs(&self, tenant: &Tenant) -> PortResult<Vec<Row<VnfLcmOpOcc>>> {
        self.list(vnf_lcm_op_occs::NAME, tenant).await
    }

    async fn subscription(
        &self,
        tenant: &Tenant,
        id: &SubscriptionId,
    ) -> PortResult<Option<Row<LccnSubscription>>> {
        self.one(subscriptions::NAME, tenant, id.as_str()).await
    }

    async fn subscriptions(&self, tenant: &Tenant) -> PortResult<Vec<Row<LccnSubscription>>> {
        self.list(subscriptions::NAME, tenant).await
    }

    async fn history(&self, tenant: &Tenant, id: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        self.ready().await?;
        match timeline::of_instance(&self.database, tenant, id).await {
            Err(PortError::Corrupt(why)) => {
                self.mend(&why).await?;
                timeline::of_instance(&self.database, tenant, id).await
            }
            other => other,
        }
    }

    async fn catch_up(&self, position: u64) -> PortResult<()> {
        self.reach(position).await
    }
}
