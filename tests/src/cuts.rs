//! Where a process ends: at a call that writes to the log or changes the cluster, before it or after it.
//!
//! All such calls of one world are counted together, in the order in which they are begun. The call at which a
//! process is to end goes no further, and neither does any call after it: what is durable then is what `kill -9`
//! would have left. Two of the places leave the same behind, since nothing is written between them: after one call,
//! and before the next.

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use cairn_domain::history::{Envelope, StreamId};
use cairn_domain::ids::{SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::lcm_op_occ::VnfLcmOpOcc;
use cairn_domain::ports::{Appended, EventLog, KeyedAnswer, PortResult, StateAfter, Unit};
use cairn_domain::subscription::LccnSubscription;
use cairn_domain::vnf_instance::VnfInstance;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Before a call, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It was not made.
    Before,
    /// It was made; nobody learnt its answer.
    After,
}

/// A place where a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which of the counted calls, from 0.
    pub call: usize,
    /// Which side of it.
    pub side: Side,
}

/// What an operation looked like after an append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its state in SOL words; `None` before the first append.
    pub state: Option<String>,
    /// Whether it moves.
    pub moves: bool,
}

#[derive(Default)]
struct Count {
    cut: Option<Cut>,
    calls: Vec<String>,
    dead: bool,
}

/// Counts the calls of a world and ends it at one of them.
#[derive(Clone)]
pub struct Knife {
    count: Arc<Mutex<Count>>,
    struck: watch::Sender<bool>,
    seen: watch::Sender<Seen>,
}

impl Knife {
    /// One that strikes there, or only counts.
    #[must_use]
    pub fn new(cut: Option<Cut>) -> Self {
        Self {
            count: Arc::new(Mutex::new(Count {
                cut,
                ..Count::default()
            })),
            struck: watch::Sender::new(false),
            seen: watch::Sender::default(),
        }
    }

    fn locked(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts anew from here, and strikes there or nowhere.
    pub fn arm(&self, cut: Option<Cut>) {
        let mut count = self.locked();
        count.cut = cut;
        count.calls.clear();
    }

    /// The calls so far, each in a few words.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.locked().calls.clone()
    }

    /// Whether it has struck.
    #[must_use]
    pub fn has_struck(&self) -> bool {
        *self.struck.borrow()
    }

    /// Resolves when it strikes.
    pub async fn struck(&self) {
        let mut struck = self.struck.subscribe();
        // The sender lives as long as this does.
        if struck.wait_for(|struck| *struck).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Resolves when an append leaves an operation at rest.
    pub async fn rested(&self) -> Seen {
        let mut seen = self.seen.subscribe();
        match seen
            .wait_for(|seen| seen.state.is_some() && !seen.moves)
            .await
        {
            Ok(seen) => seen.clone(),
            Err(_) => pending().await,
        }
    }

    /// A call begins; its number.
    async fn begins(&self, what: String) -> usize {
        let (number, dead) = {
            let mut count = self.locked();
            count.calls.push(what);
            (count.calls.len() - 1, count.dead)
        };
        if dead {
            pending::<()>().await;
        }
        self.passes(number, Side::Before).await;
        number
    }

    /// A call was made.
    async fn ended(&self, number: usize) {
        self.passes(number, Side::After).await;
        self.lives().await;
    }

    async fn passes(&self, call: usize, side: Side) {
        let strikes = {
            let mut count = self.locked();
            let strikes = count.cut == Some(Cut { call, side });
            count.dead |= strikes;
            strikes
        };
        if strikes {
            self.struck.send_replace(true);
            pending::<()>().await;
        }
    }

    /// Nothing goes on in a process that has ended.
    async fn lives(&self) {
        if self.locked().dead {
            pending::<()>().await;
        }
    }

    /// Puts it before a log.
    #[must_use]
    pub fn before_log(&self, log: Arc<dyn EventLog>) -> Arc<dyn EventLog> {
        Arc::new(CutLog {
            log,
            knife: self.clone(),
        })
    }

    /// Puts it before the API of a cluster.
    pub fn before_cluster(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.clone(), around_request))
    }
}

/// Whether a request to a cluster can change anything that lasts.
fn is_effect(request: &Request) -> bool {
    let asks_only = request.method() == Method::GET
        || request.uri().path().ends_with("reviews")
        || request
            .uri()
            .query()
            .is_some_and(|query| query.contains("dryRun"));
    !asks_only
}

async fn around_request(State(knife): State<Knife>, request: Request, next: Next) -> Response {
    if !is_effect(&request) {
        knife.lives().await;
        let answer = next.run(request).await;
        knife.lives().await;
        return answer;
    }
    let what = format!("{} {}", request.method(), request.uri().path());
    let number = knife.begins(what).await;
    let answer = next.run(request).await;
    knife.ended(number).await;
    answer
}

struct CutLog {
    log: Arc<dyn EventLog>,
    knife: Knife,
}

fn in_words(unit: &Unit) -> String {
    let names = unit.appends.iter().flat_map(|append| &append.events);
    let names: Vec<String> = names.map(|event| event.name().to_owned()).collect();
    names.join(" ")
}

fn operation_after(unit: &Unit) -> Option<Seen> {
    unit.appends.iter().find_map(|append| match &append.state {
        StateAfter::VnfLcmOpOcc(op) => Some(Seen {
            state: Some(op.state.as_str().to_owned()),
            moves: op.state.is_transitional(),
        }),
        StateAfter::VnfInstance(_) | StateAfter::LccnSubscription(_) => None,
    })
}

#[async_trait]
impl EventLog for CutLog {
    async fn load(&self, stream: &StreamId) -> PortResult<Vec<Envelope>> {
        self.knife.lives().await;
        self.log.load(stream).await
    }

    async fn op_occ(&self, id: &VnfLcmOpOccId) -> PortResult<Option<(VnfLcmOpOcc, u64)>> {
        self.knife.lives().await;
        self.log.op_occ(id).await
    }

    async fn instance(&self, id: &VnfInstanceId) -> PortResult<Option<(VnfInstance, u64)>> {
        self.knife.lives().await;
        self.log.instance(id).await
    }

    async fn subscription(
        &self,
        id: &SubscriptionId,
    ) -> PortResult<Option<(LccnSubscription, u64)>> {
        self.knife.lives().await;
        self.log.subscription(id).await
    }

    async fn append(&self, unit: Unit) -> PortResult<Appended> {
        let (what, after) = (in_words(&unit), operation_after(&unit));
        let number = self.knife.begins(what).await;
        let appended = self.log.append(unit).await;
        self.knife.ended(number).await;
        if let (Some(after), Ok(_)) = (after, &appended) {
            self.knife.seen.send_replace(after);
        }
        appended
    }

    async fn answered(&self, key: &str) -> PortResult<Option<KeyedAnswer>> {
        self.knife.lives().await;
        self.log.answered(key).await
    }

    async fn read_after(&self, position: u64, limit: u32) -> PortResult<Vec<Envelope>> {
        self.knife.lives().await;
        self.log.read_after(position, limit).await
    }

    async fn load_after(&self, stream: &StreamId, sequence: u64) -> PortResult<Vec<Envelope>> {
        self.knife.lives().await;
        self.log.load_after(stream, sequence).await
    }

    async fn of_subscriptions(&self, up_to: u64) -> PortResult<Vec<Envelope>> {
        self.knife.lives().await;
        self.log.of_subscriptions(up_to).await
    }

    async fn of_instance(&self, id: &VnfInstanceId) -> PortResult<Vec<Envelope>> {
        self.knife.lives().await;
        self.log.of_instance(id).await
    }

    fn health(&self) -> PortResult<()> {
        self.log.health()
    }

    async fn head(&self) -> PortResult<u64> {
        self.knife.lives().await;
        self.log.head().await
    }

    async fn changed(&self, at_most_ms: u64) {
        self.log.changed(at_most_ms).await;
    }
}
