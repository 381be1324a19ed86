//! What the handlers need, and what an operator sets.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cairn_api_types::PublicUrl;
use cairn_domain::ids::Tenant;
use cairn_domain::ports::{
    Caller, Clock, Commands, Deliveries, EventLog, Faults, Ids, Metrics, Packages, ReadModels,
    Replay, Vims, WorkQueue,
};
use std::sync::Arc;
use std::time::Duration;

use crate::problem::ApiError;

/// The ports that the handlers drive.
#[derive(Clone)]
pub struct App {
    /// Carries requests out.
    pub commands: Arc<dyn Commands>,
    /// Answers queries.
    pub reads: Arc<dyn ReadModels>,
    /// Folds an instance up to a moment.
    pub replay: Arc<dyn Replay>,
    /// Onboarded packages.
    pub packages: Arc<dyn Packages>,
    /// Registered VIMs.
    pub vims: Arc<dyn Vims>,
    /// Notifications on their way.
    pub deliveries: Arc<dyn Deliveries>,
    /// Who works on an operation.
    pub work: Arc<dyn WorkQueue>,
    /// Faults, where they were enabled.
    pub faults: Option<Arc<dyn Faults>>,
    /// What is counted.
    pub metrics: Arc<dyn Metrics>,
    /// Asked for its head by the readiness check, for nothing else.
    pub log: Arc<dyn EventLog>,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn Ids>,
    /// What an operator set.
    pub settings: HttpSettings,
}

/// What an operator sets.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The address under which clients know this server.
    pub public_url: PublicUrl,
    /// A request without `Version` header is taken as 2.0.0.
    pub lenient: bool,
    /// Longest time for one request and its answer.
    pub request_timeout: Duration,
    /// The same while a package is uploaded.
    pub upload_timeout: Duration,
    /// Most requests at one time; more are answered with 503.
    pub max_in_flight: usize,
}

impl HttpSettings {
    /// Settings with default limits: 30 s for a request, 5 min for an upload, 1,024 requests at one time.
    #[must_use]
    pub fn new(public_url: PublicUrl, lenient: bool) -> Self {
        Self {
            public_url,
            lenient,
            request_timeout: Duration::from_secs(30),
            upload_timeout: Duration::from_mins(5),
            max_in_flight: 1024,
        }
    }
}

/// Who asks. Until authentication exists, everybody is `anonymous` and of tenant `default`.
pub(crate) struct Asker(pub(crate) Caller);

/// Longest `Idempotency-Key`, in bytes.
const KEY_LIMIT: usize = 255;

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let idempotency_key = match parts.headers.get("idempotency-key") {
            None => None,
            Some(value) => Some(key(value.as_bytes()).ok_or_else(|| {
                ApiError::new(
                    400,
                    format!("Idempotency-Key must be 1 to {KEY_LIMIT} visible ASCII characters"),
                )
            })?),
        };
        Ok(Self(Caller {
            by: "anonymous".to_owned(),
            tenant: tenant(),
            idempotency_key,
        }))
    }
}

fn key(bytes: &[u8]) -> Option<String> {
    let legal =
        !bytes.is_empty() && bytes.len() <= KEY_LIMIT && bytes.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(bytes)
        .ok()
        .filter(|_| legal)
        .map(str::to_owned)
}

/// The tenant of whoever asks.
pub(crate) fn tenant() -> Tenant {
    Tenant::default_tenant()
}
