//! What is heard by the other end, and what counts as its answer.

use crate::address::AddressRules;
use crate::callbacks::{HttpCallbacks, Limits, without_roots};
use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::any;
use cairn_domain::ids::{SubscriptionId, Tenant};
use cairn_domain::ports::{CallbackAnswer, Callbacks, PortError, PortResult, Vault};
use cairn_domain::secret::{SealedSecret, Secret, SecretRef};
use cairn_domain::subscription::{CallbackAuth, LccnSubscription, Verbosity};
use cairn_domain::time::Timestamp;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct OneSecret;

#[async_trait]
impl Vault for OneSecret {
    async fn put(&self, _: &[SealedSecret]) -> PortResult<()> {
        Ok(())
    }
    async fn reveal(&self, reference: &SecretRef) -> PortResult<Secret> {
        match reference.0.as_str() {
            "ref-1" => Ok(Secret::new("hunter2")),
            _ => Err(PortError::Corrupt("it is missing".into())),
        }
    }
}

type Heard = Arc<Mutex<Vec<(Method, HeaderMap, String)>>>;

/// A receiver that answers `/<status>` with that status, `/hang` never.
struct Receiver {
    base: String,
    heard: Heard,
}

async fn receiver() -> Receiver {
    let heard = Heard::default();
    let router = Router::new()
        .route("/{answer}", any(answer))
        .with_state(heard.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    #[expect(
        clippy::disallowed_methods,
        reason = "the receiver is another process in real life"
    )]
    tokio::spawn(async move { axum::serve(listener, router).await });
    Receiver { base, heard }
}

async fn answer(
    State(heard): State<Heard>,
    axum::extract::Path(path): axum::extract::Path<String>,
    method: Method,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    heard.lock().unwrap().push((method, headers, body));
    if path == "hang" {
        std::future::pending::<()>().await;
    }
    let status = path
        .parse()
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap();
    (status, [("Location", "/204"), ("Retry-After", "7")])
}

fn callbacks(rules: AddressRules) -> HttpCallbacks {
    let limits = Limits {
        send: Duration::from_millis(300),
        test: Duration::from_millis(300),
        ..Limits::default()
    };
    HttpCallbacks::with_limits(Arc::new(OneSecret), rules, limits).unwrap()
}

const LOOPBACK: AddressRules = AddressRules {
    allow_private: false,
    allow_loopback: true,
};

fn basic() -> CallbackAuth {
    CallbackAuth::Basic {
        user_name: "listener".into(),
        password: SecretRef("ref-1".into()),
    }
}

fn subscription(callback_uri: String, auth: CallbackAuth) -> LccnSubscription {
    LccnSubscription {
        id: SubscriptionId::parse("s-1").unwrap(),
        tenant: Tenant::default_tenant(),
        created_at: Timestamp::from_millis(0),
        callback_uri,
        filter: None,
        verbosity: Verbosity::Full,
        auth,
        deleted: false,
    }
}

#[tokio::test]
async fn only_204_is_acceptance_and_redirects_are_not_followed() {
    let receiver = receiver().await;
    let callbacks = callbacks(LOOPBACK);
    for status in [200, 202, 204, 302, 307, 401, 500] {
        let subscription = subscription(format!("{}/{status}", receiver.base), CallbackAuth::None);
        let answer = callbacks.send(&subscription, &json!({"id": "n-1"})).await;
        let expected = match status {
            204 => CallbackAnswer::Accepted,
            other => CallbackAnswer::Status {
                status: other,
                retry_after_ms: Some(7_000),
            },
        };
        assert_eq!(answer, expected, "{status}");
    }
    let heard = receiver.heard.lock().unwrap();
    assert_eq!(
        heard.len(),
        7,
        "each was called once, and no redirect was followed"
    );
    let (method, headers, body) = &heard[0];
    assert_eq!((method, body.as_str()), (&Method::POST, r#"{"id":"n-1"}"#));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["version"], "2.0.0");
    assert!(headers.get("authorization").is_none());
}

#[tokio::test]
async fn basic_is_sent_from_the_vault() {
    let receiver = receiver().await;
    let callbacks = callbacks(LOOPBACK);
    let known = subscription(format!("{}/204", receiver.base), basic());
    assert_eq!(
        callbacks.send(&known, &json!({})).await,
        CallbackAnswer::Accepted
    );
    assert_eq!(
        receiver.heard.lock().unwrap()[0].1["authorization"],
        "Basic bGlzdGVuZXI6aHVudGVyMg=="
    );
    let unknown = CallbackAuth::Basic {
        user_name: "u".into(),
        password: SecretRef("gone".into()),
    };
    let answer = callbacks
        .send(
            &subscription(format!("{}/204", receiver.base), unknown),
            &json!({}),
        )
        .await;
    assert!(matches!(answer, CallbackAnswer::NoAnswer { .. }));
    assert_eq!(receiver.heard.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn silence_is_no_answer() {
    let receiver = receiver().await;
    let callbacks = callbacks(LOOPBACK);
    for uri in [
        format!("{}/hang", receiver.base),
        "http://127.0.0.1:1/cb".to_owned(),
    ] {
        let answer = callbacks
            .send(&subscription(uri, basic()), &json!({}))
            .await;
        let CallbackAnswer::NoAnswer { why } = answer else {
            panic!("{answer:?}")
        };
        assert!(!why.is_empty() && !why.contains("hunter2"), "{why}");
    }
}

#[tokio::test]
async fn inner_addresses_are_never_called() {
    let receiver = receiver().await;
    let port = receiver.base.rsplit(':').next().unwrap().to_owned();
    let callbacks = callbacks(AddressRules::default());
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "10.255.255.1",
    ] {
        let uri = format!("http://{host}:{port}/204");
        let answer = callbacks
            .send(&subscription(uri.clone(), CallbackAuth::None), &json!({}))
            .await;
        let CallbackAnswer::NoAnswer { why } = answer else {
            panic!("{uri}: {answer:?}")
        };
        assert!(why.contains("not allowed"), "{uri}: {why}");
        let refused = callbacks
            .test(&uri, &CallbackAuth::None, None)
            .await
            .unwrap_err();
        let PortError::Refused(problem) = refused else {
            panic!("{uri}")
        };
        assert_eq!(problem.status, 422);
    }
    assert!(receiver.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_name_is_called_where_its_addresses_are_allowed() {
    let receiver = receiver().await;
    let named = receiver.base.replace("127.0.0.1", "localhost");
    let answer = callbacks(LOOPBACK)
        .send(
            &subscription(format!("{named}/204"), CallbackAuth::None),
            &json!({}),
        )
        .await;
    assert_eq!(answer, CallbackAnswer::Accepted);
}

#[tokio::test]
async fn a_callback_is_tested_by_get_and_must_answer_204() {
    let receiver = receiver().await;
    let callbacks = callbacks(LOOPBACK);
    let password = Secret::new("hunter2");
    callbacks
        .test(&format!("{}/204", receiver.base), &basic(), Some(&password))
        .await
        .unwrap();
    {
        let heard = receiver.heard.lock().unwrap();
        assert_eq!(heard[0].0, Method::GET);
        assert_eq!(
            heard[0].1["authorization"],
            "Basic bGlzdGVuZXI6aHVudGVyMg=="
        );
    }
    for (path, says) in [
        ("200", "200 instead of 204"),
        ("302", "302 instead"),
        ("500", "500"),
        ("hang", "not answered"),
    ] {
        let refused = callbacks
            .test(
                &format!("{}/{path}", receiver.base),
                &CallbackAuth::None,
                None,
            )
            .await;
        let Err(PortError::Refused(problem)) = refused else {
            panic!("{path} was taken")
        };
        assert_eq!(problem.status, 422);
        assert!(problem.detail.contains(says), "{}", problem.detail);
    }
}

#[tokio::test]
async fn without_root_certificates_http_is_still_called() {
    let receiver = receiver().await;
    // Installs the TLS provider, as the process does.
    drop(callbacks(LOOPBACK));
    let client = without_roots(LOOPBACK, Limits::default()).unwrap();
    let answer = client
        .get(format!("{}/204", receiver.base))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status().as_u16(), 204);
}
