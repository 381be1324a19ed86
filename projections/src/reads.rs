//! The `ReadModels` port: reads see all that the log holds, so that what was answered with 202 is there. A read by id
//! folds what its row lacks on top of it; lists catch up first.

use crate::error::port;
use crate::fold::{LINE, Line, Shown};
use crate::model::Model;
use crate::{Projections, corrupt, subscriptions, timeline, vnf_instances, vnf_lcm_op_occs};
use async_trait::async_trait;
use cairn_db::args;
use cairn_domain::history::Envelope;
use cairn_domain::ids::{SubscriptionId, Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{Listed, Page, PortError, PortResult, ReadModels, Row};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use std::collections::BTreeSet;
use std::sync::Arc;
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
        model: Model,
        tenant: &Tenant,
        id: &str,
    ) -> PortResult<Option<Row<S>>> {
        let table = model.name();
        let line = match self.line::<S>(model, id).await {
            // A row or an event that cannot be read, or tables that another process makes anew.
            Err(PortError::Corrupt(_)) | Ok(None) => {
                self.ready().await?;
                let line = match self.read_line::<S>(table, id).await {
                    Err(PortError::Corrupt(why)) => {
                        self.mend(&why).await?;
                        self.read_line(table, id).await?
                    }
                    other => other?,
                };
                line.map(Line::shared)
            }
            Ok(Some(line)) => line,
            Err(other) => return Err(other),
        };
        let shown = line.filter(|line| line.state.tenant() == tenant && !line.state.is_deleted());
        Ok(shown.map(|line| Row {
            state: line.state,
            version: line.version,
            position: line.position,
        }))
    }

    /// The row as the log has it by now, if it has a row. It is read in one statement with the head of the log and
    /// the model's checkpoint, as one statement sees one state of the database. Where the model is behind, the
    /// events that the row lacks are folded on top of it here: a read waits for nobody who writes. The row's text is
    /// sent only where it is not that of what was read lately.
    async fn line<S: Shown>(
        &self,
        model: Model,
        id: &str,
    ) -> PortResult<Option<Option<Line<Arc<S>>>>> {
        let table = model.name();
        let kept = S::kept(self).get(id);
        let (version, position) = kept
            .as_ref()
            .map_or((0, 0), |line| (line.version, line.position));
        let row = self
            .database
            .fetch_optional(
                &format!(
                    "SELECT CASE WHEN r.version = $2 AND r.position = $3 THEN NULL ELSE r.state END, \
                     r.version, r.position, r.created_position, r.frozen, \
                     l.position, c.position, c.shape \
                     FROM log_position l JOIN checkpoints c ON c.name = '{table}' \
                     LEFT JOIN {table} r ON r.id = $1"
                ),
                args![id, version, position],
            )
            .await
            .map_err(port)?;
        let Some(row) = row else {
            return Ok(None);
        };
        if row.int(7).map_err(port)? != model.shape() {
            return Ok(None);
        }
        let has_row = row.opt_int(1).map_err(port)?.is_some();
        let is_new = row.opt_text(0).map_err(port)?.is_some();
        let line = match kept {
            _ if !has_row => None,
            Some(kept) if !is_new => Some(kept),
            _ => {
                let line = Line::<S>::read(&row, table, id)?.shared();
                S::kept(self).put(id, line.clone());
                Some(line)
            }
        };
        let (head, reached) = (row.count(5).map_err(port)?, row.count(6).map_err(port)?);
        if reached >= head || line.as_ref().is_some_and(|line| line.frozen) {
            return Ok(Some(line));
        }
        let stream = S::stream(id).map_err(|why| corrupt(table, why))?;
        let version = line.as_ref().map_or(0, |line| line.version);
        let events = self.log.load_after(&stream, version).await?;
        let line = line.map(Line::owned);
        Ok(Some(Line::with(line, &events).map(Line::shared)))
    }

    async fn read_line<S: Shown>(&self, table: &str, id: &str) -> PortResult<Option<Line<S>>> {
        let sql = format!("SELECT {LINE} FROM {table} WHERE id = $1");
        let row = self.database.fetch_optional(&sql, args![id]).await;
        let row = row.map_err(port)?;
        row.map(|row| Line::read(&row, table, id)).transpose()
    }

    async fn list<S: Shown>(
        &self,
        table: &str,
        tenant: &Tenant,
        page: Page,
    ) -> PortResult<Vec<Listed<S>>> {
        self.ready().await?;
        match self.read_list(table, tenant, page).await {
            Err(PortError::Corrupt(why)) => {
                self.mend(&why).await?;
                self.read_list(table, tenant, page).await
            }
            other => other,
        }
    }

    async fn read_list<S: Shown>(
        &self,
        table: &str,
        tenant: &Tenant,
        page: Page,
    ) -> PortResult<Vec<Listed<S>>> {
        let rows = self
            .database
            .fetch_all(
                &format!(
                    "SELECT state, version, position, created_position FROM {table} \
                     WHERE tenant = $1 AND deleted = 0 AND created_position > $2 \
                     ORDER BY created_position LIMIT $3"
                ),
                args![tenant.as_str(), page.after, page.limit],
            )
            .await
            .map_err(port)?;
        rows.iter()
            .map(|row| {
                Ok(Listed {
                    place: row.count(3).map_err(port)?,
                    row: decode(table, row)?,
                })
            })
            .collect()
    }

    /// One column of the instances, once they have caught up.
    async fn column(&self, sql: &str, tenant: &Tenant) -> PortResult<Vec<String>> {
        self.ready().await?;
        let rows = self
            .database
            .fetch_all(sql, args![tenant.as_str()])
            .await
            .map_err(port)?;
        rows.iter().map(|row| row.text(0).map_err(port)).collect()
    }
}

fn decode<S: Shown>(table: &str, row: &cairn_db::Row) -> PortResult<Row<S>> {
    Ok(Row {
        state: Arc::new(
            serde_json::from_str(&row.text(0).map_err(port)?)
                .map_err(|why| corrupt(&format!("a row of {table}"), why))?,
        ),
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
        self.one(Model::VnfInstances, tenant, id.as_str()).await
    }

    async fn instances(&self, tenant: &Tenant, page: Page) -> PortResult<Vec<Listed<VnfInstance>>> {
        self.list(vnf_instances::NAME, tenant, page).await
    }

    async fn halted(&self, tenant: &Tenant) -> PortResult<Vec<VnfLcmOpOccId>> {
        let sql = "SELECT halted FROM vnf_instances WHERE tenant = $1 AND halted IS NOT NULL \
                   ORDER BY halted";
        let ids = self.column(sql, tenant).await?.into_iter();
        ids.map(|id| VnfLcmOpOccId::parse(id).map_err(|why| corrupt(vnf_instances::NAME, why)))
            .collect()
    }

    async fn packages_in_use(&self, tenant: &Tenant) -> PortResult<BTreeSet<VnfPkgId>> {
        let sql = "SELECT DISTINCT package FROM vnf_instances \
                   WHERE tenant = $1 AND deleted = 0";
        let lists = self.column(sql, tenant).await?;
        let ids = lists.iter().flat_map(|list| list.lines());
        ids.map(|id| VnfPkgId::parse(id).map_err(|why| corrupt(vnf_instances::NAME, why)))
            .collect()
    }

    async fn op_occ(
        &self,
        tenant: &Tenant,
        id: &VnfLcmOpOccId,
    ) -> PortResult<Option<Row<VnfLcmOpOcc>>> {
        self.one(Model::VnfLcmOpOccs, tenant, id.as_str()).await
    }

    async fn op_occs(&self, tenant: &Tenant, page: Page) -> PortResult<Vec<Listed<VnfLcmOpOcc>>> {
        self.list(vnf_lcm_op_occs::NAME, tenant, page).await
    }

    async fn subscription(
        &self,
        tenant: &Tenant,
        id: &SubscriptionId,
    ) -> PortResult<Option<Row<LccnSubscription>>> {
        self.one(Model::Subscriptions, tenant, id.as_str()).await
    }

    async fn subscriptions(
        &self,
        tenant: &Tenant,
        page: Page,
    ) -> PortResult<Vec<Listed<LccnSubscription>>> {
        self.list(subscriptions::NAME, tenant, page).await
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
