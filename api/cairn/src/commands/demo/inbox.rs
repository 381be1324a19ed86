//! Receives notifications, as an NFVO would.

use super::narrator::Narrator;
use anyhow::Context;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use cairn_engine::supervised::spawn;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Notifications that have arrived.
#[derive(Clone)]
pub struct Inbox {
    arrived: Arc<Mutex<Arrived>>,
    narrator: Narrator,
    /// Where they are sent.
    pub address: String,
}

#[derive(Default)]
struct Arrived {
    known: BTreeSet<String>,
    notifications: Vec<Value>,
}

impl Inbox {
    /// Listens on a free port until `stop`.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub async fn open(narrator: Narrator, stop: CancellationToken) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("a free port")?;
        let address = format!("http://{}/notifications", listener.local_addr()?);
        let inbox = Self {
            arrived: Arc::default(),
            narrator,
            address,
        };
        let routes = Router::new()
            // SOL003 5.4.20: a subscription is tested by GET.
            .route(
                "/notifications",
                get(|| async { StatusCode::NO_CONTENT }).post(receive),
            )
            .with_state(inbox.clone());
        spawn("inbox", async move {
            axum::serve(listener, routes)
                .with_graceful_shutdown(stop.cancelled_owned())
                .await
        });
        Ok(inbox)
    }

    /// All that arrived, each once, in order of arrival.
    pub fn all(&self) -> Vec<Value> {
        self.locked().notifications.clone()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(State(inbox): State<Inbox>, Json(notification): Json<Value>) -> StatusCode {
    let id = notification["id"].as_str().unwrap_or_default().to_owned();
    {
        let mut arrived = inbox.locked();
        // Delivery is at least once: a server killed before it noted our 204 sends again.
        if arrived.known.insert(id) {
            arrived.notifications.push(notification.clone());
        } else {
            return StatusCode::NO_CONTENT;
        }
    }
    inbox.narrator.notification(&told(&notification));
    StatusCode::NO_CONTENT
}

fn told(notification: &Value) -> String {
    let word = |name: &str| notification[name].as_str().unwrap_or("?");
    let short = |name: &str| word(name).chars().take(4).collect::<String>();
    if notification["vnfLcmOpOccId"].is_null() {
        return format!("{} {}", word("notificationType"), short("vnfInstanceId"));
    }
    let (operation, op) = (word("operation"), short("vnfLcmOpOccId"));
    format!(
        "{operation} {op}  {} ({})",
        word("operationState"),
        word("notificationStatus")
    )
}
