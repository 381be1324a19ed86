//! A subscriber in this process, which survives every world.

use async_trait::async_trait;
use cairn_domain::ports::{CallbackAnswer, Callbacks, PortResult};
use cairn_domain::secret::Secret;
use cairn_domain::subscription::{CallbackAuth, LccnSubscription};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Accepts whatever it is told, and keeps it.
#[derive(Clone, Default)]
pub struct Heard {
    told: Arc<Mutex<Vec<Value>>>,
    changed: watch::Sender<()>,
}

impl Heard {
    /// Everything that it was told, in order.
    #[must_use]
    pub fn all(&self) -> Vec<Value> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.clone()
    }

    /// Awaits that it was told so many different notifications.
    ///
    /// # Panics
    /// When it is not in time.
    pub async fn different(&self, count: usize) -> Vec<Value> {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                let all = self.all();
                let ids: std::collections::BTreeSet<&str> =
                    all.iter().filter_map(|one| one["id"].as_str()).collect();
                if ids.len() >= count {
                    return;
                }
                changed.changed().await.expect("the sender lives");
            }
        };
        if tokio::time::timeout(crate::client::SOON, waiting)
            .await
            .is_err()
        {
            panic!(
                "waited in vain for {count} notifications: {:#?}",
                self.all()
            );
        }
        self.all()
    }
}

#[async_trait]
impl Callbacks for Heard {
    async fn test(
        &self,
        _uri: &str,
        _auth: &CallbackAuth,
        _password: Option<&Secret>,
    ) -> PortResult<()> {
        Ok(())
    }

    async fn send(&self, _subscription: &LccnSubscription, body: &Value) -> CallbackAnswer {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(body.clone());
        drop(told);
        self.changed.send_replace(());
        CallbackAnswer::Accepted
    }
}
