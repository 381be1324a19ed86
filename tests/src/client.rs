//! What an NFVO does, in a word each: over the routes in this process, or over HTTP to another one.

use crate::answer::Answer;
use crate::package::PackageBuilder;
use crate::until::until;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::Handle;
use tower::ServiceExt as _;

/// How long anything may take that a test waits for.
pub const SOON: Duration = Duration::from_mins(2);
/// The largest answer that is read.
const LARGEST: usize = 64 * 1024 * 1024;

/// The way to a Cairn.
#[derive(Clone)]
pub enum Door {
    /// The routes of a world in this process, run where that world runs.
    InProcess(Router, Handle),
    /// Another process at this base, without a slash at its end.
    Http(reqwest::Client, String),
}

/// A client of a Cairn.
#[derive(Clone)]
pub struct Client {
    door: Door,
}

/// One request in the making.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its method.
    pub method: Method,
    /// Its path with the query.
    pub path: String,
    /// Its headers; `Version` is not added.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Sent {
    /// A request with `Version`, and JSON if there is a body.
    #[must_use]
    pub fn json(method: Method, path: &str, body: Option<&Value>) -> Self {
        let mut headers = vec![("version".to_owned(), "2.0.0".to_owned())];
        if body.is_some() {
            let media = if method == Method::PATCH && path.contains("vnflcm") {
                "application/merge-patch+json"
            } else {
                "application/json"
            };
            headers.push(("content-type".to_owned(), media.to_owned()));
        }
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        Self {
            method,
            path: path.to_owned(),
            headers,
            body,
        }
    }

    /// With another header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// States in which an operation moves.
const TRANSITIONAL: [&str; 3] = ["STARTING", "PROCESSING", "ROLLING_BACK"];

impl Client {
    /// A client through this door.
    #[must_use]
    pub fn new(door: Door) -> Self {
        Self { door }
    }

    /// Sends a request; `None` when the other side ended instead of answering.
    pub async fn try_send(&self, sent: Sent) -> Option<Answer> {
        match &self.door {
            Door::InProcess(router, runtime) => {
                let mut request = Request::builder()
                    .method(sent.method)
                    .uri(sent.path.as_str());
                for (name, value) in &sent.headers {
                    request = request.header(name, value);
                }
                let request = request.body(Body::from(sent.body)).expect("a request");
                let router = router.clone();
                let answered = runtime.spawn(async move {
                    let Ok(response) = router.oneshot(request).await;
                    let (status, headers) =
                        (response.status().as_u16(), response.headers().clone());
                    let bytes = axum::body::to_bytes(response.into_body(), LARGEST).await;
                    Answer::of(status, headers, &bytes.expect("the answer is whole"))
                });
                answered.await.ok()
            }
            Door::Http(http, base) => {
                let mut request = http.request(sent.method, format!("{base}{}", sent.path));
                for (name, value) in &sent.headers {
                    request = request.header(name, value);
                }
                let response = request.body(sent.body).send().await.ok()?;
                let (status, headers): (u16, HeaderMap) =
                    (response.status().as_u16(), response.headers().clone());
                let bytes = response.bytes().await.ok()?;
                Some(Answer::of(status, headers, &bytes))
            }
        }
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When the other side ended instead of answering.
    pub async fn send(&self, sent: Sent) -> Answer {
        let what = format!("{} {}", sent.method, sent.path);
        self.try_send(sent)
            .await
            .unwrap_or_else(|| panic!("{what}: not answered"))
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Sent::json(Method::GET, path, None)).await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Sent::json(Method::POST, path, Some(body))).await
    }

    /// PUT of JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Sent::json(Method::PUT, path, Some(body))).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Sent::json(Method::DELETE, path, None)).await
    }

    /// PATCH of a VNF instance.
    pub async fn patch(&self, id: &str, body: &Value) -> Answer {
        let path = format!("/vnflcm/v2/vnf_instances/{id}");
        self.send(Sent::json(Method::PATCH, &path, Some(body)))
            .await
    }

    /// Uploads a CSAR and answers how onboarding ended.
    pub async fn upload(&self, csar: Vec<u8>) -> Value {
        let made = self.post("/vnfpkgm/v2/vnf_packages", &json!({})).await;
        let id = made.is(201)["id"].as_str().expect("an id").to_owned();
        let path = format!("/vnfpkgm/v2/vnf_packages/{id}");
        let mut sent = Sent::json(Method::PUT, &format!("{path}/package_content"), None);
        sent = sent.header("content-type", "application/zip");
        sent.body = csar;
        self.send(sent).await.is(202);
        until(SOON, "the package to be onboarded", || async {
            let seen = self.get(&path).await.is(200);
            let ended =
                seen["onboardingState"] == "ONBOARDED" || seen["onboardingState"] == "ERROR";
            if ended { Ok(seen) } else { Err(seen) }
        })
        .await
    }

    /// Onboards a package and answers its vnfdId.
    pub async fn onboard(&self, package: &PackageBuilder) -> String {
        let seen = self.upload(package.csar()).await;
        assert_eq!(seen["onboardingState"], "ONBOARDED", "{seen:#}");
        seen["vnfdId"].as_str().expect("a vnfdId").to_owned()
    }

    /// Creates a VNF instance and answers its id.
    pub async fn create(&self, vnfd_id: &str) -> String {
        let body = json!({"vnfdId": vnfd_id, "vnfInstanceName": "probe"});
        self.post("/vnflcm/v2/vnf_instances", &body).await.is(201)["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    /// Asks for an operation (`instantiate`, …; `modify` is a PATCH) as it is answered.
    pub async fn ask(&self, instance: &str, operation: &str, body: &Value) -> Answer {
        if operation == "modify" {
            return self.patch(instance, body).await;
        }
        self.post(
            &format!("/vnflcm/v2/vnf_instances/{instance}/{operation}"),
            body,
        )
        .await
    }

    /// Begins an operation and answers the occurrence's id.
    pub async fn begin(&self, instance: &str, operation: &str, body: &Value) -> String {
        let answer = self.ask(instance, operation, body).await;
        assert_eq!(answer.status, 202, "{operation}: {:#}", answer.body);
        answer.located()
    }

    /// Retry, rollback, fail or cancel, as it is answered.
    pub async fn steer(&self, op: &str, verb: &str) -> Answer {
        let path = format!("/vnflcm/v2/vnf_lcm_op_occs/{op}/{verb}");
        self.send(Sent::json(Method::POST, &path, None)).await
    }

    /// Cancels in this mode, as it is answered.
    pub async fn cancel(&self, op: &str, mode: &str) -> Answer {
        let path = format!("/vnflcm/v2/vnf_lcm_op_occs/{op}/cancel");
        self.post(&path, &json!({"cancelMode": mode})).await
    }

    /// An occurrence with everything that Cairn shows of it.
    pub async fn op(&self, op: &str) -> Value {
        self.get(&format!("/cairn/v1/vnf_lcm_op_occs/{op}"))
            .await
            .is(200)
    }

    /// Awaits that an occurrence looks so.
    pub async fn op_until(&self, op: &str, what: &str, passes: impl Fn(&Value) -> bool) -> Value {
        until(SOON, &format!("operation {op}: {what}"), || async {
            let seen = self.op(op).await;
            if passes(&seen) { Ok(seen) } else { Err(seen) }
        })
        .await
    }

    /// Awaits that an occurrence rests, in whatever state.
    pub async fn settled(&self, op: &str) -> Value {
        self.op_until(op, "to rest", |seen| {
            !TRANSITIONAL
                .iter()
                .any(|state| seen["operationState"] == *state)
        })
        .await
    }

    /// Awaits that an occurrence rests in this state.
    ///
    /// # Panics
    /// When it rests in another.
    pub async fn ends(&self, op: &str, state: &str) -> Value {
        let seen = self.settled(op).await;
        assert_eq!(seen["operationState"], state, "{seen:#}");
        seen
    }

    /// Carries an operation out to its successful end.
    pub async fn complete(&self, instance: &str, operation: &str, body: &Value) -> Value {
        let op = self.begin(instance, operation, body).await;
        self.ends(&op, "COMPLETED").await
    }

    /// An instance with everything that Cairn shows of it.
    pub async fn instance(&self, id: &str) -> Value {
        self.get(&format!("/cairn/v1/vnf_instances/{id}"))
            .await
            .is(200)
    }

    /// All events of an instance and its operations.
    pub async fn history(&self, id: &str) -> Vec<Value> {
        let answer = self
            .get(&format!("/cairn/v1/vnf_instances/{id}/history"))
            .await
            .is(200);
        answer["events"].as_array().expect("events").clone()
    }

    /// Replaces the faults.
    pub async fn faults(&self, faults: &Value) {
        self.put("/cairn/v1/faults", faults).await.is(200);
    }
}
