//! Notifications owed: a queue with a cursor of its own into the log. It is never rebuilt.

use crate::error::port;
use async_trait::async_trait;
use cairn_db::{Database, DbError, Row, Tx, args};
use cairn_domain::ids::{DeliveryId, InvalidId, SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::operation::OperationState;
use cairn_domain::ports::{Deliveries, Delivery, DeliveryState, PortError, PortResult};
use cairn_domain::time::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

const COLUMNS: &str = "id, subscription_id, position, notification_id, vnf_instance_id, op_id, \
     operation_state, state, tries, created_at, last_tried_at, last_answer, next_try_at";

/// How long a delivery is shown after it was accepted or given up, in milliseconds: longer than any may be tried.
const KEEP_SETTLED_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Once in so many stretches of the log that owe something, what is older is forgotten.
const FORGET_EVERY: u64 = 200;

/// `Deliveries` on PostgreSQL or SQLite.
pub struct SqlDeliveries {
    database: Database,
    stretches: AtomicU64,
}

impl SqlDeliveries {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            stretches: AtomicU64::new(0),
        }
    }

    /// Forgets what was settled long ago; the table would grow for ever.
    async fn forget_settled(&self, tx: &mut Tx) -> PortResult<()> {
        let nth = self.stretches.fetch_add(1, Ordering::Relaxed);
        if !nth.is_multiple_of(FORGET_EVERY) {
            return Ok(());
        }
        let now = tx.dialect().now_ms();
        let lock = tx.dialect().for_update_skip_locked();
        tx.execute(
            &format!(
                "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries \
                 WHERE state <> 'PENDING' AND created_at < {now} - $1{lock})"
            ),
            args![KEEP_SETTLED_MS],
        )
        .await
        .map_err(port)?;
        Ok(())
    }

    /// Whether anything is owed at all: mostly nothing is, and then nothing need be written.
    async fn anything_pending(&self) -> PortResult<bool> {
        let sql = "SELECT id FROM deliveries WHERE state = 'PENDING' LIMIT 1";
        let pending = self.database.fetch_optional(sql, args![]).await;
        Ok(pending.map_err(port)?.is_some())
    }
}

#[async_trait]
impl Deliveries for SqlDeliveries {
    async fn cursor(&self) -> PortResult<u64> {
        let row = self
            .database
            .fetch_optional("SELECT position FROM delivery_cursor", args![])
            .await
            .map_err(port)?;
        row.map_or(Ok(0), |row| row.count(0)).map_err(port)
    }

    async fn enqueue(&self, deliveries: Vec<Delivery>, from: u64, to: u64) -> PortResult<()> {
        let mut tx = self.database.begin_unsynced().await.map_err(port)?;
        let moved = tx
            .execute(
                "UPDATE delivery_cursor SET position = $2 WHERE id = 1 AND position = $1",
                args![from, to],
            )
            .await
            .map_err(port)?;
        if moved == 0 {
            return tx.rollback().await.map_err(port);
        }
        if !deliveries.is_empty() {
            self.forget_settled(&mut tx).await?;
        }
        for delivery in &deliveries {
            tx.execute(
                &format!(
                    "INSERT INTO deliveries ({COLUMNS}) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
                     ON CONFLICT (subscription_id, position) DO NOTHING"
                ),
                values(delivery),
            )
            .await
            .map_err(port)?;
        }
        tx.commit().await.map_err(port)
    }

    async fn due(&self, limit: u32, lease_ms: u64) -> PortResult<Vec<Delivery>> {
        if !self.anything_pending().await? {
            return Ok(Vec::new());
        }
        let clock = self.database.dialect().now_ms();
        let of_d = match self.database.dialect() {
            cairn_db::Dialect::Postgres => " FOR UPDATE OF d SKIP LOCKED",
            cairn_db::Dialect::Sqlite => "",
        };
        // Tried or made in what is now the future: the clock was set back since, or the one who made it is ahead, and
        // the pause says nothing any more.
        let rows = self
            .database
            .execute_returning(
                &format!(
                    "WITH heads AS (SELECT subscription_id AS s, vnf_instance_id AS i, \
                     min(position) AS p FROM deliveries WHERE state = 'PENDING' \
                     GROUP BY subscription_id, vnf_instance_id), \
                     free AS (SELECT d.id AS free_id FROM deliveries d JOIN heads \
                     ON d.subscription_id = s AND d.vnf_instance_id = i AND d.position = p \
                     WHERE d.state = 'PENDING' \
                     AND (COALESCE(d.next_try_at, 0) <= {clock} \
                     OR COALESCE(d.last_tried_at, d.created_at) > {clock}) \
                     AND COALESCE(d.leased_until, 0) <= {clock} \
                     ORDER BY d.position LIMIT $1{of_d}) \
                     UPDATE deliveries SET leased_until = {clock} + $2 \
                     FROM free WHERE id = free_id RETURNING {COLUMNS}"
                ),
                args![limit, lease_ms],
            )
            .await
            .map_err(port)?;
        let mut due: Vec<Delivery> = rows.iter().map(read).collect::<PortResult<_>>()?;
        due.sort_by_key(|delivery| delivery.position);
        Ok(due)
    }

    async fn record(&self, delivery: &Delivery) -> PortResult<()> {
        let clock = self.database.dialect().now_ms();
        let tried = delivery.last_tried_at;
        let pause = delivery
            .next_try_at
            .map(|next| next.as_millis() - tried.unwrap_or(next).as_millis());
        // A process that slept past its lease comes late with a failure; what another has delivered since stays.
        self.database
            .execute(
                &format!(
                    "UPDATE deliveries SET state = $2, tries = $3, last_tried_at = {clock} + $4, \
                     last_answer = $5, next_try_at = {clock} + $6, leased_until = NULL \
                     WHERE id = $1 AND state = 'PENDING'"
                ),
                args![
                    delivery.id.as_str(),
                    state_name(delivery.state),
                    delivery.tries,
                    tried.map(|_| 0_i64),
                    delivery.last_answer.map(i64::from),
                    pause,
                ],
            )
            .await
            .map_err(port)?;
        Ok(())
    }

    async fn of_subscription(&self, id: &SubscriptionId) -> PortResult<Vec<Delivery>> {
        let rows = self
            .database
            .fetch_all(
                &format!(
                    "SELECT {COLUMNS} FROM deliveries WHERE subscription_id = $1 ORDER BY position"
                ),
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        rows.iter().map(read).collect()
    }

    async fn resend(&self, subscription: &SubscriptionId, id: &DeliveryId) -> PortResult<bool> {
        let clock = self.database.dialect().now_ms();
        let found = self
            .database
            .execute(
                &format!(
                    "UPDATE deliveries SET state = 'PENDING', next_try_at = {clock}, leased_until = NULL \
                     WHERE id = $1 AND subscription_id = $2"
                ),
                args![id.as_str(), subscription.as_str()],
            )
            .await
            .map_err(port)?;
        Ok(found > 0)
    }

    async fn drop_pending(&self, id: &SubscriptionId) -> PortResult<()> {
        self.database
            .execute(
                "DELETE FROM deliveries WHERE subscription_id = $1 AND state = 'PENDING'",
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        Ok(())
    }
}

fn values(delivery: &Delivery) -> Vec<cairn_db::Arg> {
    args![
        delivery.id.as_str(),
        delivery.subscription.as_str(),
        delivery.position,
        delivery.notification_id.as_str(),
        delivery.instance.as_str(),
        delivery.op.as_ref().map(VnfLcmOpOccId::as_str),
        delivery.operation_state.map(OperationState::as_str),
        state_name(delivery.state),
        delivery.tries,
        delivery.created_at.as_millis(),
        delivery.last_tried_at.map(Timestamp::as_millis),
        delivery.last_answer.map(i64::from),
        delivery.next_try_at.map(Timestamp::as_millis),
    ]
}

fn state_name(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "PENDING",
        DeliveryState::Delivered => "DELIVERED",
        DeliveryState::GivenUp => "GIVEN_UP",
    }
}

fn read(row: &Row) -> PortResult<Delivery> {
    fields(row).map_err(|why| PortError::Corrupt(format!("a delivery cannot be read: {why}")))
}

#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(transparent)]
    Row(#[from] DbError),
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error("{0:?} is not known")]
    Name(String),
}

fn fields(row: &Row) -> Result<Delivery, Unreadable> {
    let state = row.text(7)?;
    let all = [
        DeliveryState::Pending,
        DeliveryState::Delivered,
        DeliveryState::GivenUp,
    ];
    Ok(Delivery {
        id: DeliveryId::parse(row.text(0)?)?,
        subscription: SubscriptionId::parse(row.text(1)?)?,
        position: row.count(2)?,
        notification_id: row.text(3)?,
        instance: VnfInstanceId::parse(row.text(4)?)?,
        op: row.opt_text(5)?.map(VnfLcmOpOccId::parse).transpose()?,
        operation_state: row.opt_text(6)?.map(operation_state).transpose()?,
        state: all
            .into_iter()
            .find(|known| state_name(*known) == state)
            .ok_or(Unreadable::Name(state))?,
        tries: u32::try_from(row.count(8)?).unwrap_or(u32::MAX),
        created_at: Timestamp::from_millis(row.int(9)?),
        last_tried_at: row.opt_int(10)?.map(Timestamp::from_millis),
        last_answer: row
            .opt_int(11)?
            .map(|status| u16::try_from(status).unwrap_or(0)),
        next_try_at: row.opt_int(12)?.map(Timestamp::from_millis),
    })
}

fn operation_state(name: String) -> Result<OperationState, Unreadable> {
    OperationState::ALL
        .into_iter()
        .find(|known| known.as_str() == name)
        .ok_or(Unreadable::Name(name))
}
