//! The server on a port.

use std::sync::Arc;
use std::time::Duration;

use cairn_simcluster::{SimCluster, SimOptions, SimTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[tokio::test]
async fn a_client_that_trusts_the_kubeconfig_is_answered_over_tls() {
    let options = SimOptions {
        bearer_token: Some("secret".to_owned()),
        ..SimOptions::default()
    };
    let sim = SimCluster::new(options);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = SimTls::generate(address.ip()).unwrap();
    assert!(sim.kubeconfig(address, &tls).contains("token: \"secret\""));

    let client = async {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(tls.ca_pem().as_bytes()).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        let request = "GET /version HTTP/1.1\r\nhost: localhost\r\n\
                       authorization: Bearer secret\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..read]);
        }
        sim.stop();
        String::from_utf8(answer).unwrap()
    };
    let both = async { tokio::join!(sim.serve(listener, &tls), client) };
    let (served, answer) = tokio::time::timeout(Duration::from_secs(10), both)
        .await
        .unwrap();
    served.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("gitVersion"));
}
