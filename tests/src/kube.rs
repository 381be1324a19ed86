//! A plain client of the Kubernetes API: it adds nothing and hides nothing.

use crate::answer::Answer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Certificate, Client, Method, StatusCode};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;

/// How long one call may take.
const CALL: Duration = Duration::from_secs(30);

/// Media type of server-side apply.
pub const APPLY: &str = "application/apply-patch+yaml";
/// Media type of RFC 7396.
pub const MERGE: &str = "application/merge-patch+json";

/// The cryptography of all TLS in the tests; the first call decides, later ones change nothing.
pub fn with_tls() {
    if ring::default_provider().install_default().is_err() {
        // Another test of this process was first, with the same one.
    }
}

/// How the API of a cluster is reached.
#[derive(Clone)]
pub struct Kube {
    http: Client,
    /// `https://…` without a slash at its end.
    pub server: String,
    /// The authority of the server's certificate, in PEM.
    pub ca_pem: String,
    /// The bearer token that is sent.
    pub token: Option<String>,
}

impl Kube {
    /// A client for a server with an authority of its own.
    #[must_use]
    pub fn new(server: &str, ca_pem: &str, token: Option<String>) -> Self {
        with_tls();
        let ca = Certificate::from_pem(ca_pem.as_bytes()).expect("the authority is a certificate");
        let http = Client::builder()
            .tls_certs_only([ca])
            .no_proxy()
            .connect_timeout(CALL)
            .build()
            .expect("a client can be made");
        Self {
            http,
            server: server.to_owned(),
            ca_pem: ca_pem.to_owned(),
            token,
        }
    }

    /// The cluster of a kubeconfig's first entry, with a token.
    #[must_use]
    pub fn of_kubeconfig(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|e| panic!("{} cannot be read: {e}", path.display()));
        let config: Value = serde_saphyr::from_str(&text).expect("a kubeconfig is YAML");
        let cluster = &config["clusters"][0]["cluster"];
        let ca = STANDARD
            .decode(
                cluster["certificate-authority-data"]
                    .as_str()
                    .expect("an authority"),
            )
            .expect("base64");
        Self::new(
            cluster["server"].as_str().expect("a server"),
            std::str::from_utf8(&ca).expect("PEM"),
            config["users"][0]["user"]["token"]
                .as_str()
                .map(str::to_owned),
        )
    }

    /// The same server with another token.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self {
            token: token.map(str::to_owned),
            ..self.clone()
        }
    }

    /// The client below it.
    pub(crate) fn http(&self) -> &Client {
        &self.http
    }

    /// The same client for another server.
    #[must_use]
    pub fn at(&self, server: &str) -> Self {
        Self {
            server: server.to_owned(),
            ..self.clone()
        }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.server));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request with a body of this media type.
    pub async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Answer {
        let request = self
            .request(method, path)
            .header(CONTENT_TYPE, media)
            .body(body.to_string());
        answer(request).await
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, "application/json", body)
            .await
    }

    /// PUT of JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, "application/json", body).await
    }

    /// PATCH by RFC 7396.
    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, MERGE, body).await
    }

    /// Server-side apply.
    pub async fn apply(&self, path: &str, manager: &str, force: bool, body: &Value) -> Answer {
        let mark = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{mark}fieldManager={manager}&force={force}");
        self.send(Method::PATCH, &path, APPLY, body).await
    }

    /// DELETE with options.
    pub async fn delete(&self, path: &str, options: &Value) -> Answer {
        self.send(Method::DELETE, path, "application/json", options)
            .await
    }

    /// Awaits that a GET is answered 404.
    pub async fn gone(&self, path: &str, deadline: Duration) {
        crate::until::until(deadline, &format!("{path} to be gone"), || async {
            let answer = self.get(path).await;
            if answer.status == 404 {
                Ok(())
            } else {
                Err(answer.body)
            }
        })
        .await;
    }

    /// Awaits that a GET's body passes.
    pub async fn until(
        &self,
        path: &str,
        deadline: Duration,
        what: &str,
        passes: impl Fn(&Value) -> bool,
    ) -> Value {
        crate::until::until(deadline, &format!("{path}: {what}"), || async {
            let answer = self.get(path).await;
            if answer.status == 200 && passes(&answer.body) {
                Ok(answer.body)
            } else {
                Err(answer.body)
            }
        })
        .await
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str) -> Watch {
        let request = self.request(Method::GET, path);
        let response = tokio::time::timeout(CALL, request.send())
            .await
            .expect("a watch is answered in time")
            .expect("the API server answers");
        Watch {
            status: response.status(),
            response,
            rest: Vec::new(),
            lines: VecDeque::new(),
        }
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request
        .timeout(CALL)
        .send()
        .await
        .expect("the API server answers");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.expect("the answer is whole");
    Answer::of(status, headers, &bytes)
}

/// An open watch.
pub struct Watch {
    /// The HTTP status.
    pub status: StatusCode,
    response: reqwest::Response,
    rest: Vec<u8>,
    lines: VecDeque<Value>,
}

impl Watch {
    /// The next event; `None` when the server ended the watch.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.lines.pop_front() {
                return Some(event);
            }
            let chunk = tokio::time::timeout(CALL, self.response.chunk())
                .await
                .expect("the watch says something in time")
                .expect("the watch is not cut")?;
            self.rest.extend_from_slice(&chunk);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.lines
                    .push_back(serde_json::from_slice(&line).expect("a line is JSON"));
            }
        }
    }

    /// The next event of this type; bookmarks and others on the way are passed over.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.expect("the watch goes on");
            if event["type"] == kind {
                return event;
            }
        }
    }
}
