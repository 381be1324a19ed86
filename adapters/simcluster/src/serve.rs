//! The server on a port: TLS, since kubectl sends no token without it, and its kubeconfig.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::cluster::SimCluster;

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many connections are open at once; more wait in the listener's queue.
const CONNECTIONS: usize = 1024;

/// Why the server could not be set up or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The certificate could not be made.
    #[error("the simulated cluster's certificate could not be made")]
    Certificate(#[from] rcgen::Error),
    /// The certificate was made but is not accepted by the TLS library.
    #[error("the simulated cluster's certificate is not usable")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// The listener failed.
    #[error("the simulated cluster's listener failed")]
    Listener(#[from] std::io::Error),
}

/// A self-made authority with one server certificate, for the life of a process.
#[derive(Clone)]
pub struct SimTls {
    config: Arc<ServerConfig>,
    ca_pem: String,
}

impl SimTls {
    /// Makes the authority and a certificate for `localhost`, the loopback addresses and `address`.
    ///
    /// # Errors
    /// When the certificate cannot be made, which nothing outside can cause.
    pub fn generate(address: IpAddr) -> Result<Self, ServeError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name
            .push(DnType::CommonName, "cairn-simcluster");
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate()?;
        let mut server = CertificateParams::new(vec!["localhost".to_owned()])?;
        server
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        for ip in [
            address,
            IpAddr::from([127, 0, 0, 1]),
            IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ] {
            server.subject_alt_names.push(SanType::IpAddress(ip));
        }
        let certificate = server.signed_by(&key, &issuer)?;
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            ca_pem: ca_certificate.pem(),
        })
    }

    /// The same certificate for a server that speaks HTTP/1.1 alone, so that one connection carries one call.
    #[must_use]
    pub fn over_http1(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// The authority's certificate in PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }
}

impl std::fmt::Debug for SimTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimTls").finish_non_exhaustive()
    }
}

impl SimCluster {
    /// A kubeconfig for the server at `address`, with its authority and token in it.
    #[must_use]
    pub fn kubeconfig(&self, address: SocketAddr, tls: &SimTls) -> String {
        let ca = STANDARD.encode(tls.ca_pem());
        let token = self.inner.options.bearer_token.as_deref().unwrap_or("none");
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: simcluster\nclusters:\n\
             - name: simcluster\n  cluster:\n    server: https://{address}\n    \
             certificate-authority-data: {ca}\ncontexts:\n- name: simcluster\n  context:\n    \
             cluster: simcluster\n    user: admin\n    namespace: default\nusers:\n- name: admin\n  \
             user:\n    token: {}\n",
            serde_json::Value::from(token)
        )
    }

    /// Answers on `listener` until [`SimCluster::stop`] is called. The listener answers from the
    /// moment it is bound, so a kubeconfig may be written before this is awaited.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(&self, listener: TcpListener, tls: &SimTls) -> Result<(), ServeError> {
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.config));
        let stopped = self.stopped();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stopped.cancelled() => break,
                Some(ended) = connections.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a connection of the simulated cluster panicked");
                    }
                    continue;
                }
                accepted = listener.accept(), if connections.len() < CONNECTIONS => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    connections.spawn(self.clone().connection(acceptor.clone(), stream));
                }
                // A client that left before it was accepted is no fault of the listener.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error.into()),
            }
        }
        connections.shutdown().await;
        Ok(())
    }

    async fn connection(self, acceptor: TlsAcceptor, stream: TcpStream) {
        let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a client did not complete the TLS handshake");
                return;
            }
            Err(_) => return,
        };
        let service = TowerToHyperService::new(self.router());
        let builder = Builder::new(TokioExecutor::new());
        if let Err(error) = builder
            .serve_connection(TokioIo::new(stream), service)
            .await
        {
            tracing::debug!(%error, "a connection of the simulated cluster ended");
        }
    }
}
