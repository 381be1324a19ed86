//! Telling those who wait that something may have been appended.

use crate::EventStore;
use cairn_db::Database;
use sqlx::postgres::PgListener;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Channel of NOTIFY; its payload is the position and nothing more.
pub(crate) const CHANNEL: &str = "cairn";

/// An append this young may have happened between a waiter's last look and its wait, so the waiter looks again.
const YOUNG: Duration = Duration::from_millis(100);
/// How long it waits before that, so that it does not spin.
const PAUSE: Duration = Duration::from_millis(20);
/// How long listening pauses after an error.
const BACKOFF: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Signal {
    notify: Notify,
    last: Mutex<Option<Instant>>,
}

impl Signal {
    pub(crate) fn raise(&self) {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = Some(Instant::now());
        drop(last);
        self.notify.notify_waiters();
    }

    pub(crate) async fn wait(&self, at_most: Duration) {
        let notified = self.notify.notified();
        let last = *self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let wait = match last {
            Some(last) if last.elapsed() < YOUNG => at_most.min(PAUSE),
            Some(_) | None => at_most,
        };
        // Both ends of the wait mean the same: look at the log.
        tokio::time::timeout(wait, notified).await.unwrap_or(());
    }
}

/// Passes on what other replicas tell, for ever. On SQLite there are none.
pub(crate) async fn listen(database: &Database, store: &EventStore) {
    let Some(pool) = database.postgres() else {
        return std::future::pending().await;
    };
    loop {
        let heard = async {
            let mut listener = PgListener::connect_with(pool).await?;
            listener.listen(CHANNEL).await?;
            // Whatever was told while nobody listened is in the log.
            store.signal().raise();
            loop {
                // Also `None`, a connection made anew, may stand for what was missed.
                listener.try_recv().await?;
                store.signal().raise();
            }
        };
        let ended: Result<std::convert::Infallible, sqlx::Error> = heard.await;
        let Err(error) = ended;
        tracing::warn!(%error, "listening for appends of other replicas failed; trying again");
        tokio::time::sleep(BACKOFF).await;
    }
}
