//! How a cluster is reached: a kubeconfig, a service in this process, or an address with a credential.

use crate::errors::{CallError, chain};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cairn_domain::secret::Secret;
use cairn_domain::vim::Credential;
use http::{HeaderValue, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tower::{BoxError, Service};

/// How long connecting, TLS included, may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long sending a request may take.
const SEND: Duration = Duration::from_secs(30);

/// A cluster that the process was started with.
#[derive(Clone)]
pub struct ConfiguredCluster(pub(crate) Source);

/// Body of the requests that a cluster within this process is sent.
pub type RequestBody = Body;

/// What a client is made from, again where credentials must be read anew.
#[derive(Clone)]
pub(crate) enum Source {
    /// A file as kubectl reads it.
    Kubeconfig(PathBuf),
    /// A service in this process, with the token that it demands.
    InProcess {
        connect: Arc<dyn Fn() -> Client + Send + Sync>,
        token: Option<Secret>,
    },
    /// An address with a credential.
    Direct {
        endpoint: String,
        ca_pem: Option<String>,
        credential: Credential,
    },
}

impl ConfiguredCluster {
    /// A cluster as a kubeconfig describes it: its current context, certificates and token files.
    /// The file is read at the first call, and again when the cluster refuses the credentials.
    #[must_use]
    pub fn kubeconfig(path: impl AsRef<Path>) -> Self {
        Self(Source::Kubeconfig(path.as_ref().to_owned()))
    }

    /// Reads the kubeconfig, if that is what it is made from, so that a wrong path or a broken file shows at the start
    /// and not in the first operation. The cluster itself is not called: it may answer later.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub async fn check(&self) -> Result<(), BoxError> {
        match &self.0 {
            Source::Kubeconfig(path) => from_kubeconfig(path).await.map(drop).map_err(Into::into),
            Source::InProcess { .. } | Source::Direct { .. } => Ok(()),
        }
    }

    /// A cluster in this process, such as the router of the simulated one, and the bearer token that it demands.
    #[must_use]
    pub fn in_process<S, B>(service: S, token: Option<Secret>) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let connect = Arc::new(move || Client::new(service.clone(), "default"));
        Self(Source::InProcess { connect, token })
    }
}

impl Source {
    /// Makes a client, reading files anew.
    ///
    /// # Errors
    ///
    /// [`CallError::Setup`] naming what cannot be used.
    pub(crate) async fn connect(&self) -> Result<Client, CallError> {
        match self {
            Self::InProcess { connect, .. } => Ok(connect()),
            Self::Kubeconfig(path) => client(from_kubeconfig(path).await?),
            Self::Direct {
                endpoint,
                ca_pem,
                credential,
            } => client(direct(endpoint, ca_pem.as_deref(), credential)?),
        }
    }

    /// The header that carries the token, where the client does not add it itself.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, CallError> {
        let Self::InProcess {
            token: Some(token), ..
        } = self
        else {
            return Ok(None);
        };
        bearer(token).map(Some)
    }

    /// Who must have signed the certificate of the cluster, in words.
    pub(crate) fn authority(&self) -> &'static str {
        match self {
            Self::Direct {
                ca_pem: Some(_), ..
            } => "the given authority (interfaceInfo.ssl_ca_cert)",
            Self::Direct { ca_pem: None, .. } => {
                "a public authority; if it has one of its own, give that in interfaceInfo.ssl_ca_cert"
            }
            Self::Kubeconfig(_) | Self::InProcess { .. } => {
                "the authority that the kubeconfig names, or a public one if it names none"
            }
        }
    }

    /// Whether reading the credentials anew may help.
    pub(crate) fn is_renewable(&self) -> bool {
        matches!(self, Self::Kubeconfig(_))
    }
}

fn bearer(token: &Secret) -> Result<HeaderValue, CallError> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {}", token.reveal().trim())).map_err(|_| {
            CallError::Setup("the bearer token holds characters that no header can".into())
        })?;
    value.set_sensitive(true);
    Ok(value)
}

async fn from_kubeconfig(path: &Path) -> Result<Config, CallError> {
    // It was good when the process started. It may be read in the middle of being written anew, and it may be mended:
    // so the cluster is out of reach for now, and not the request wrong for ever.
    let unusable = |e: kube::config::KubeconfigError| {
        CallError::NotSent(format!("kubeconfig {}: {}", path.display(), chain(&e)))
    };
    // Relative paths in the file are meant from its own folder, which `read_from` resolves.
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(unusable)?;
    if config.accept_invalid_certs {
        tracing::warn!(
            kubeconfig = %path.display(),
            "insecure-skip-tls-verify is set: whoever answers at this address is believed to be the cluster"
        );
    }
    Ok(config)
}

fn direct(
    endpoint: &str,
    ca_pem: Option<&str>,
    credential: &Credential,
) -> Result<Config, CallError> {
    let url = endpoint.parse::<http::Uri>().map_err(|e| {
        CallError::Setup(format!(
            "interfaceInfo.endpoint {endpoint:?} is no URL: {e}"
        ))
    })?;
    let mut config = Config::new(url);
    config.root_cert = ca_pem.map(certificates).transpose()?;
    config.auth_info = auth_info(credential)?;
    Ok(config)
}

fn auth_info(credential: &Credential) -> Result<AuthInfo, CallError> {
    let members = match credential {
        Credential::None => return Ok(AuthInfo::default()),
        Credential::BearerToken(token) => {
            // kube panics at a token that is no header.
            bearer(token)?;
            json!({ "token": token.reveal().trim() })
        }
        Credential::ClientCertificate { certificate, key } => json!({
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key.reveal()),
        }),
    };
    // The members' types are private to kube's secrets crate; its own deserialiser makes them.
    serde_json::from_value(members)
        .map_err(|_| CallError::Setup("accessInfo cannot be used as a credential".into()))
}

fn client(mut config: Config) -> Result<Client, CallError> {
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(SEND);
    // Answers are timed by the caller, whose watches are longer than its calls.
    config.read_timeout = None;
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config)
        .map_err(|e| CallError::Setup(format!("the connection cannot be set up: {}", chain(&e))))?;
    Ok(builder.build())
}

/// The certificates of a PEM text, in DER.
fn certificates(pem: &str) -> Result<Vec<Vec<u8>>, CallError> {
    let unusable = |why: &str| CallError::Setup(format!("interfaceInfo.ssl_ca_cert {why}"));
    let mut found = Vec::new();
    for part in pem.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (body, _) = part
            .split_once("-----END CERTIFICATE-----")
            .ok_or_else(|| unusable("has a certificate without its end"))?;
        let compact: String = body.split_whitespace().collect();
        found.push(
            STANDARD
                .decode(compact)
                .map_err(|_| unusable("is not PEM"))?,
        );
    }
    if found.is_empty() {
        return Err(unusable("holds no certificate in PEM"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_may_hold_several_certificates() {
        let one = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
        assert_eq!(
            certificates(&one.repeat(2)).unwrap(),
            vec![vec![1, 2, 3], vec![1, 2, 3]]
        );
        for bad in [
            "",
            "-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----",
        ] {
            let refused = certificates(bad).unwrap_err().to_string();
            assert!(refused.contains("ssl_ca_cert"), "{refused}");
        }
    }

    #[test]
    fn a_token_that_no_header_can_hold_is_refused_in_words() {
        let refused = auth_info(&Credential::BearerToken(Secret::new("hush\nhush"))).unwrap_err();
        assert!(refused.to_string().contains("bearer token holds"));
        assert!(!refused.to_string().contains("hush"));
    }

    #[test]
    fn a_credential_is_never_shown() {
        let credential = Credential::BearerToken(Secret::new("hush"));
        assert!(!format!("{:?}", auth_info(&credential).unwrap()).contains("hush"));
    }
}
