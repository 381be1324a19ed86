//! A server over fakes, and requests as they read in a test.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use cairn_api_types::PublicUrl;
use cairn_http::{App, HttpSettings, router};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

use crate::fakes::Fakes;

pub struct Server {
    pub fakes: Arc<Fakes>,
    router: Router,
}

pub fn settings() -> HttpSettings {
    HttpSettings::new(PublicUrl::parse("https://gw.example/vnfm/").unwrap(), false)
}

pub fn server() -> Server {
    Server::over(Fakes::default(), settings())
}

impl Server {
    pub fn over(fakes: Fakes, settings: HttpSettings) -> Self {
        let fakes = Arc::new(fakes);
        let app = App {
            commands: fakes.clone(),
            reads: fakes.clone(),
            replay: fakes.clone(),
            packages: fakes.clone(),
            vims: fakes.clone(),
            deliveries: fakes.clone(),
            work: fakes.clone(),
            faults: fakes
                .faults_enabled
                .then(|| fakes.clone() as Arc<dyn cairn_domain::ports::Faults>),
            metrics: fakes.clone(),
            log: fakes.clone(),
            clock: fakes.clone(),
            ids: fakes.clone(),
            settings,
        };
        Self {
            fakes,
            router: router(app),
        }
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            bytes: bytes.to_vec(),
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(call(Method::GET, path).body(Body::empty()).unwrap())
            .await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(call(Method::DELETE, path).body(Body::empty()).unwrap())
            .await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(json(Method::POST, path, body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(json(Method::PUT, path, body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(json(Method::PATCH, path, body)).await
    }
}

/// A request with the `Version` header that `vnflcm` demands.
pub fn call(method: Method, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("Version", "2.0.0")
}

pub fn json(method: Method, path: &str, body: &Value) -> Request<Body> {
    call(method, path)
        .header("Content-Type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("the body is JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Fails unless it is a problem of this status whose detail says this.
    #[track_caller]
    pub fn is_problem(&self, status: u16, says: &str) {
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status, status, "{text}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let body = self.json();
        judge("ProblemDetails", &body);
        assert_eq!(body["status"], status);
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{detail:?} should say {says:?}");
    }

    /// Fails unless it is 202 without a body.
    #[track_caller]
    pub fn is_accepted(&self, location: Option<&str>) {
        assert_eq!(self.status, 202, "{}", String::from_utf8_lossy(&self.bytes));
        assert!(self.bytes.is_empty());
        assert_eq!(self.header("location"), location);
    }
}

/// The published schemas as judge.
#[track_caller]
pub fn judge(schema: &str, body: &Value) {
    let path = format!(
        "{}/../types/schemas/{schema}.schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator
        .iter_errors(body)
        .map(|error| error.to_string())
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}\n{body:#}");
}
