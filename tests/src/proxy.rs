//! A proxy in front of the API server of a cluster that answers, delays, drops and lies as it is told, call by call.
//!
//! Each user of it (a *run*) sends a bearer token of its own, which the proxy takes for its name and replaces by the
//! one that the cluster demands. So hundreds of runs share one proxy, and a fault strikes one of them alone, at
//! whichever of its calls, those included that name neither namespace nor object. It speaks HTTP/1.1 only: one
//! connection carries one call, so that what breaks it breaks no other call.

mod strike;

pub use strike::{Rule, Strike, When};

use crate::place::{Place, background};
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response};
use base64::Engine as _;
use cairn_simcluster::SimTls;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use strike::Script;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// The largest request that is passed on.
const LARGEST: usize = 64 * 1024 * 1024;

/// Where calls are passed on to.
#[derive(Clone)]
enum Upstream {
    /// A simulated cluster in this process.
    Routes(axum::Router),
    /// A server, at a base without a slash at its end.
    Server(reqwest::Client, String),
}

/// One call as it came and as it was answered.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Whose.
    pub run: String,
    /// Its method.
    pub method: Method,
    /// Its path without the query.
    pub path: String,
    /// Its query.
    pub query: String,
    /// What the cluster answered; 0 where the call was not passed on, or is under way.
    pub status: u16,
    /// Whether a fault struck it.
    pub struck: bool,
}

impl Seen {
    /// Whether it opens a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// Whether it asks for a change; dry-runs and questions about permissions do not.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
            && !self.query.contains("dryRun")
            && !self.path.ends_with("reviews")
    }

    /// Whether it changed something.
    #[must_use]
    pub fn is_effect(&self) -> bool {
        self.is_write() && (200..300).contains(&self.status)
    }
}

/// The proxy.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    upstream: Upstream,
    /// What the cluster demands.
    token: String,
    /// Tokens that are not accepted any more.
    stale: Mutex<Vec<String>>,
    script: Mutex<Script>,
    seen: Mutex<Vec<Seen>>,
    address: SocketAddr,
    ca_pem: Option<String>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.accepting).take() {
            task.abort();
        }
    }
}

impl Proxy {
    /// In front of a place's cluster, without TLS: cheap, for many runs by address.
    pub async fn plain(place: &Place) -> Self {
        Self::listen(place, None).await
    }

    /// In front of a place's cluster, with a certificate of its own.
    pub async fn with_tls(place: &Place) -> Self {
        let tls = SimTls::generate(IpAddr::from(Ipv4Addr::LOCALHOST)).expect("a certificate");
        Self::listen(place, Some(tls)).await
    }

    async fn listen(place: &Place, tls: Option<SimTls>) -> Self {
        crate::kube::with_tls();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let upstream = match &place.sim {
            Some(sim) => Upstream::Routes(sim.router()),
            None => Upstream::Server(place.kube.http().clone(), place.kube.server.clone()),
        };
        let inner = Arc::new(Inner {
            upstream,
            token: place.kube.token.clone().expect("the cluster has a token"),
            stale: Mutex::default(),
            script: Mutex::default(),
            seen: Mutex::default(),
            address,
            ca_pem: tls.as_ref().map(|tls| tls.ca_pem().to_owned()),
            accepting: Mutex::default(),
        });
        // The task holds no reference, so that the proxy ends with its last user.
        let weak = Arc::downgrade(&inner);
        let accepting = background(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let Some(inner) = weak.upgrade() else { return };
                let tls = tls.clone();
                background(async move { Self(inner).connection(stream, tls).await });
            }
        });
        *lock(&inner.accepting) = Some(accepting);
        Self(inner)
    }

    async fn connection(self, stream: TcpStream, tls: Option<SimTls>) {
        let proxy = self;
        let service = tower::service_fn(move |request: Request<_>| {
            proxy.clone().answer(request.map(Body::new))
        });
        let service = TowerToHyperService::new(service);
        let builder = Builder::new(TokioExecutor::new()).http1_only();
        // A connection that is broken on purpose ends with an error here.
        let ended = match tls {
            None => {
                builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await
            }
            Some(tls) => {
                let acceptor = TlsAcceptor::from(tls.over_http1());
                match acceptor.accept(stream).await {
                    Ok(stream) => {
                        builder
                            .serve_connection(TokioIo::new(stream), service)
                            .await
                    }
                    Err(error) => Err(error.into()),
                }
            }
        };
        drop(ended);
    }

    /// Its address, with the scheme.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let scheme = self.0.ca_pem.as_ref().map_or("http", |_| "https");
        format!("{scheme}://{}", self.0.address)
    }

    /// `vimConnectionInfo` that leads a run through it.
    #[must_use]
    pub fn vim(&self, run: &str) -> Value {
        let mut interface = json!({"endpoint": self.endpoint()});
        if let Some(ca) = &self.0.ca_pem {
            interface["ssl_ca_cert"] = json!(ca);
        }
        json!({"vim1": {"vimId": "proxied", "vimType": "ETSINFV.KUBERNETES.V_1",
            "interfaceInfo": interface, "accessInfo": {"bearer_token": run}}})
    }

    /// A kubeconfig that leads a run through it.
    #[must_use]
    pub fn kubeconfig(&self, run: &str) -> String {
        let ca = self.0.ca_pem.as_ref().map(|pem| {
            let data = base64::engine::general_purpose::STANDARD.encode(pem);
            json!({"server": self.endpoint(), "certificate-authority-data": data})
        });
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": ca.unwrap_or_else(|| json!({"server": self.endpoint()}))}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {"token": run}}]})
        .to_string()
    }

    /// Scripts a fault.
    pub fn strike(&self, rule: Rule) {
        lock(&self.0.script).add(rule);
    }

    /// Forgets the faults of a run.
    pub fn calm(&self, run: &str) {
        lock(&self.0.script).calm(run);
    }

    /// Accepts this token no more: 401 from now on.
    pub fn revoke(&self, run: &str) {
        lock(&self.0.stale).push(run.to_owned());
    }

    /// The calls of a run since they were forgotten last.
    #[must_use]
    pub fn seen(&self, run: &str) -> Vec<Seen> {
        let mut all = lock(&self.0.seen).clone();
        all.retain(|seen| seen.run == run);
        all
    }

    /// Forgets the calls of a run.
    pub fn forget(&self, run: &str) {
        // Calls under way keep their places.
        for seen in lock(&self.0.seen).iter_mut().filter(|seen| seen.run == run) {
            seen.run.clear();
        }
    }

    async fn answer(self, request: Request<Body>) -> io::Result<Response<Body>> {
        let (mut parts, body) = request.into_parts();
        let run = bearer(&parts.headers);
        let body = axum::body::to_bytes(body, LARGEST)
            .await
            .map_err(io::Error::other)?;
        let seen = Seen {
            run: run.clone(),
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            status: 0,
            struck: false,
        };
        let strike = lock(&self.0.script).strike(&seen);
        let index = {
            let mut all = lock(&self.0.seen);
            all.push(Seen {
                struck: strike.is_some(),
                ..seen.clone()
            });
            all.len() - 1
        };
        if lock(&self.0.stale).contains(&run) {
            return Ok(strike::status(401, "Unauthorized", "Unauthorized", None));
        }
        let token = format!("Bearer {}", self.0.token);
        parts.headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(&token).expect("a token"),
        );
        let proxy = self.clone();
        let pass = async move {
            let answer = proxy.pass(parts, body).await?;
            lock(&proxy.0.seen)[index].status = answer.status().as_u16();
            Ok(answer)
        };
        match strike {
            None => {
                let answer = pass.await?;
                if !seen.is_watch() && lock(&self.0.script).remembers(&seen) {
                    let (parts, body) = answer.into_parts();
                    let bytes = axum::body::to_bytes(body, LARGEST)
                        .await
                        .map_err(io::Error::other)?;
                    lock(&self.0.script).remember(&seen, bytes.clone());
                    return Ok(Response::from_parts(parts, Body::from(bytes)));
                }
                Ok(answer)
            }
            Some(strike) => {
                let old = lock(&self.0.script).remembered(&seen);
                strike.carry_out(&seen, old, pass).await
            }
        }
    }

    async fn pass(
        &self,
        mut parts: axum::http::request::Parts,
        body: Bytes,
    ) -> io::Result<Response<Body>> {
        match &self.0.upstream {
            Upstream::Routes(routes) => {
                let request = Request::from_parts(parts, Body::from(body));
                let Ok(answer) = routes.clone().oneshot(request).await;
                Ok(answer)
            }
            Upstream::Server(http, base) => {
                let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
                parts.headers.remove(HOST);
                let request = http
                    .request(parts.method, format!("{base}{path}"))
                    .headers(parts.headers)
                    .body(body);
                let answer = request.send().await.map_err(io::Error::other)?;
                let answer: Response<reqwest::Body> = answer.into();
                Ok(answer.map(Body::new))
            }
        }
    }
}

fn bearer(headers: &HeaderMap) -> String {
    headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .unwrap_or_default()
        .to_owned()
}
