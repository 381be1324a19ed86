//! An answer over HTTP, of a cluster or of Cairn.

use axum::http::HeaderMap;
use serde_json::Value;

/// An answer as it came.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its JSON, or its text as a JSON string; null without a body.
    pub body: Value,
}

impl Answer {
    /// Made of the parts as they came.
    #[must_use]
    pub fn of(status: u16, headers: HeaderMap, bytes: &[u8]) -> Self {
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
        };
        Self {
            status,
            headers,
            body,
        }
    }

    /// The body, if the status is this one.
    ///
    /// # Panics
    /// On another status.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        reason = "it is an assertion; the body is a by-product"
    )]
    pub fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }

    /// The body, if the status says success.
    ///
    /// # Panics
    /// On another status.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        reason = "it is an assertion; the body is a by-product"
    )]
    pub fn ok(self) -> Value {
        assert!(
            (200..300).contains(&self.status),
            "{}: {:#}",
            self.status,
            self.body
        );
        self.body
    }

    /// `message` of a Kubernetes Status.
    #[must_use]
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// `reason` of a Kubernetes Status.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }

    /// `detail` of a `ProblemDetails`.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }

    /// A header as text; empty where it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The last part of `Location`: an id.
    ///
    /// # Panics
    /// Without one.
    #[track_caller]
    #[must_use]
    pub fn located(&self) -> String {
        let location = self.header("location");
        let id = location.rsplit('/').next().unwrap_or_default();
        assert!(
            !id.is_empty(),
            "{}: no Location; {:#}",
            self.status,
            self.body
        );
        id.to_owned()
    }
}
