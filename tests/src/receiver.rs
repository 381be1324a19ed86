//! An NFVO's end of the notifications.

use crate::place::background;
use crate::until::until;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::Value;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;

/// A notification as it came, and how it was answered.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Value,
    /// The status that it was answered with.
    pub answered: u16,
}

#[derive(Default)]
struct Inbox {
    told: Vec<Told>,
    next: VecDeque<u16>,
    always: Option<u16>,
}

/// A receiver on a port of this machine.
#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    inbox: Arc<Mutex<Inbox>>,
}

impl Receiver {
    /// Starts it; a GET is answered 204, and so is a notification unless it is told otherwise.
    ///
    /// # Panics
    /// When there is no port for it.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let routes = Router::new()
            .route("/", get(|| async { StatusCode::NO_CONTENT }).post(take))
            .with_state(inbox.clone());
        background(async move { axum::serve(listener, routes).await.expect("it serves") });
        Self { address, inbox }
    }

    fn locked(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its `callbackUri`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The next notifications are answered so.
    pub fn answer_next(&self, statuses: &[u16]) {
        self.locked().next.extend(statuses);
    }

    /// All notifications are answered so, until `None`.
    pub fn answer_always(&self, status: Option<u16>) {
        self.locked().always = status;
    }

    /// Everything that came.
    #[must_use]
    pub fn told(&self) -> Vec<Told> {
        self.locked().told.clone()
    }

    /// What was accepted, in order.
    #[must_use]
    pub fn accepted(&self) -> Vec<Value> {
        self.told()
            .into_iter()
            .filter(|told| told.answered == 204)
            .map(|told| told.body)
            .collect()
    }

    /// Awaits that so many were accepted.
    ///
    /// # Panics
    /// When they are not in time.
    pub async fn accepted_are(&self, count: usize) -> Vec<Value> {
        until(
            crate::client::SOON,
            &format!("{count} notifications"),
            || async {
                let accepted = self.accepted();
                if accepted.len() >= count {
                    Ok(accepted)
                } else {
                    Err(accepted)
                }
            },
        )
        .await
    }
}

async fn take(
    State(inbox): State<Arc<Mutex<Inbox>>>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
    let answered = inbox
        .always
        .or_else(|| inbox.next.pop_front())
        .unwrap_or(204);
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    inbox.told.push(Told {
        headers,
        body,
        answered,
    });
    StatusCode::from_u16(answered).expect("a status")
}
