//! The other end of a subscription over HTTP.

use async_trait::async_trait;
use cairn_api_types::api_versions::VNFLCM;
use cairn_domain::ports::{CallbackAnswer, Callbacks, PortError, PortResult, Vault};
use cairn_domain::problem::Problem;
use cairn_domain::secret::Secret;
use cairn_domain::subscription::{CallbackAuth, LccnSubscription};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url, redirect};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crate::address::{AddressRules, GuardedResolver, refused};

/// How long calls may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// To connect.
    pub(crate) connect: Duration,
    /// For a notification and its answer.
    pub(crate) send: Duration,
    /// For the test of a callback (SOL003 5.4.18.3.1).
    pub(crate) test: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            send: Duration::from_secs(10),
            test: Duration::from_secs(5),
        }
    }
}

/// Why callbacks cannot be made at all.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for callbacks cannot be made")]
pub struct CallbackSetupError(#[source] reqwest::Error);

/// Callbacks over HTTP and HTTPS. Redirects are not followed and proxies are not used: both would lead around
/// the address rules.
pub struct HttpCallbacks {
    client: Client,
    rules: AddressRules,
    limits: Limits,
    vault: Arc<dyn Vault>,
}

impl HttpCallbacks {
    /// With these address rules; passwords are read from the vault when they are sent.
    ///
    /// # Errors
    ///
    /// [`CallbackSetupError`] when TLS cannot be set up.
    pub fn try_new(vault: Arc<dyn Vault>, rules: AddressRules) -> Result<Self, CallbackSetupError> {
        Self::with_limits(vault, rules, Limits::default())
    }

    pub(crate) fn with_limits(
        vault: Arc<dyn Vault>,
        rules: AddressRules,
        limits: Limits,
    ) -> Result<Self, CallbackSetupError> {
        let provider = tokio_rustls::rustls::crypto::ring::default_provider();
        if provider.install_default().is_err() {
            tracing::debug!("a TLS provider is installed already; it is used");
        }
        // A machine without certificates (a bare container) must still serve, and call back over HTTP.
        let client = limited(rules, limits).build().or_else(|error| {
            tracing::warn!(
                why = why(error),
                "callbacks over HTTPS will fail: no root certificates"
            );
            without_roots(rules, limits)
        })?;
        Ok(Self {
            client,
            rules,
            limits,
            vault,
        })
    }

    /// The address, if it may be called. Literal addresses never reach the resolver, so they are judged here.
    fn target(&self, uri: &str) -> Result<Url, String> {
        let url = Url::parse(uri).map_err(|error| format!("it is not a URI: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("it is neither http nor https".to_owned());
        }
        let host = url.host_str().unwrap_or("");
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        match literal {
            Ok(address) if !self.rules.allow(address) => Err(refused(host)),
            Ok(_) | Err(_) => Ok(url),
        }
    }

    async fn password(&self, auth: &CallbackAuth) -> PortResult<Option<(String, Secret)>> {
        match auth {
            CallbackAuth::None => Ok(None),
            CallbackAuth::Basic {
                user_name,
                password,
            } => Ok(Some((
                user_name.clone(),
                self.vault.reveal(password).await?,
            ))),
        }
    }

    async fn post(
        &self,
        subscription: &LccnSubscription,
        body: &Value,
    ) -> Result<Response, String> {
        let url = self.target(&subscription.callback_uri)?;
        let credential = self
            .password(&subscription.auth)
            .await
            .map_err(|error| error.to_string())?;
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("Version", VNFLCM)
            .body(body.to_string());
        with_basic(
            request,
            credential
                .as_ref()
                .map(|(user, password)| (user.as_str(), password)),
        )
        .send()
        .await
        .map_err(why)
    }
}

fn limited(rules: AddressRules, limits: Limits) -> ClientBuilder {
    Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(limits.connect)
        .timeout(limits.send)
        .no_proxy()
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(GuardedResolver { rules }))
}

/// A client that trusts nobody: every certificate is refused, by name, when it is met.
pub(crate) fn without_roots(
    rules: AddressRules,
    limits: Limits,
) -> Result<Client, CallbackSetupError> {
    limited(rules, limits)
        .tls_certs_only([])
        .build()
        .map_err(CallbackSetupError)
}

fn with_basic(request: RequestBuilder, credential: Option<(&str, &Secret)>) -> RequestBuilder {
    match credential {
        Some((user, password)) => request.basic_auth(user, Some(password.reveal())),
        None => request,
    }
}

/// The whole chain of causes, without the URI.
fn why(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// `Retry-After` in seconds; as a date it is ignored, the schedule is enough.
fn retry_after_ms(response: &Response) -> Option<u64> {
    let seconds: u64 = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    seconds.checked_mul(1000)
}

#[async_trait]
impl Callbacks for HttpCallbacks {
    async fn test(
        &self,
        uri: &str,
        auth: &CallbackAuth,
        password: Option<&Secret>,
    ) -> PortResult<()> {
        let unusable = |why: String| {
            PortError::Refused(Problem::new(
                422,
                format!("callbackUri cannot be used: {why}"),
            ))
        };
        let url = self.target(uri).map_err(unusable)?;
        let credential = match auth {
            CallbackAuth::None => None,
            CallbackAuth::Basic {
                user_name,
                password: _,
            } => password.map(|password| (user_name.as_str(), password)),
        };
        let response = with_basic(self.client.get(url).timeout(self.limits.test), credential)
            .send()
            .await
            .map_err(|error| {
                unusable(format!("its test by GET was not answered: {}", why(error)))
            })?;
        match response.status().as_u16() {
            204 => Ok(()),
            other => Err(unusable(format!(
                "its test by GET was answered with {other} instead of 204"
            ))),
        }
    }

    async fn send(&self, subscription: &LccnSubscription, body: &Value) -> CallbackAnswer {
        match self.post(subscription, body).await {
            Ok(response) if response.status().as_u16() == 204 => CallbackAnswer::Accepted,
            Ok(response) => CallbackAnswer::Status {
                status: response.status().as_u16(),
                retry_after_ms: retry_after_ms(&response),
            },
            Err(why) => CallbackAnswer::NoAnswer { why },
        }
    }
}
