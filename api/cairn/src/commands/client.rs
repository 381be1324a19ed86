//! The HTTP client of the commands that ask a server.

use anyhow::{Context, bail};
use reqwest::{Method, Url};
use serde_json::Value;
use std::time::Duration;

/// Longest time for one request.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Longest time until a connection stands.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest answer that is read, in bytes: 64 MiB, some 100,000 events.
const LONGEST: usize = 64 * 1024 * 1024;

/// A server by its base address.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `Location`, if there is one.
    pub location: Option<String>,
    /// The JSON body, null where there is none.
    pub body: Value,
}

impl Client {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    ///
    /// An address that is none.
    pub fn of(base: &str) -> anyhow::Result<Self> {
        let parsed = Url::parse(base).with_context(|| format!("{base} is no address"))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            bail!("{base} is no http or https address");
        }
        let builder = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT);
        // A server on this machine is never behind a proxy.
        let here = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let builder = if here { builder.no_proxy() } else { builder };
        Ok(Self {
            http: builder.build()?,
            base: parsed,
        })
    }

    /// GET of a path, given by its segments.
    ///
    /// # Errors
    ///
    /// No answer, or one that is not JSON.
    pub async fn get(&self, path: &[&str], query: Option<(&str, &str)>) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, query, Body::None).await
    }

    /// A request with a JSON body.
    ///
    /// # Errors
    ///
    /// No answer, or one that is not JSON.
    pub async fn json(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
    ) -> anyhow::Result<Answer> {
        self.send(method, path, None, Body::Json(body)).await
    }

    /// A request without a body.
    ///
    /// # Errors
    ///
    /// No answer, or one that is not JSON.
    pub async fn bare(&self, method: Method, path: &[&str]) -> anyhow::Result<Answer> {
        self.send(method, path, None, Body::None).await
    }

    /// PUT of a zip.
    ///
    /// # Errors
    ///
    /// No answer, or one that is not JSON.
    pub async fn put_zip(&self, path: &[&str], zip: Vec<u8>) -> anyhow::Result<Answer> {
        self.send(Method::PUT, path, None, Body::Zip(zip)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: Option<(&str, &str)>,
        body: Body<'_>,
    ) -> anyhow::Result<Answer> {
        let url = self.url(path, query)?;
        let request = self
            .http
            .request(method.clone(), url.clone())
            .header("version", "2.0.0");
        let request = match body {
            Body::None => request,
            Body::Json(json) if method == Method::PATCH => request
                .header("content-type", "application/merge-patch+json")
                .body(json.to_string()),
            Body::Json(json) => request.json(json),
            Body::Zip(zip) => request.header("content-type", "application/zip").body(zip),
        };
        let response = request
            .send()
            .await
            .with_context(|| format!("{method} {url}"))?;
        read(response)
            .await
            .with_context(|| format!("{method} {url}"))
    }

    fn url(&self, path: &[&str], query: Option<(&str, &str)>) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{} has no path", self.base))?
            .pop_if_empty()
            .extend(path);
        if let Some((name, value)) = query {
            url.query_pairs_mut().append_pair(name, value);
        }
        Ok(url)
    }
}

enum Body<'a> {
    None,
    Json(&'a Value),
    Zip(Vec<u8>),
}

async fn read(mut response: reqwest::Response) -> anyhow::Result<Answer> {
    let status = response.status().as_u16();
    let location = response
        .headers()
        .get("location")
        .and_then(|l| l.to_str().ok())
        .map(str::to_owned);
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > LONGEST {
            bail!("the answer is longer than {LONGEST} bytes");
        }
        bytes.extend_from_slice(&chunk);
    }
    let body = if bytes.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&bytes).with_context(|| {
            let start: String = String::from_utf8_lossy(&bytes).chars().take(200).collect();
            format!("the server answered {status}, not JSON: {start}")
        })?
    };
    Ok(Answer {
        status,
        location,
        body,
    })
}

impl Answer {
    /// The answer, if it is success.
    ///
    /// # Errors
    ///
    /// What the server refused, in its words.
    pub fn success(self) -> anyhow::Result<Self> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        bail!(
            "the server answered {}: {}",
            self.status,
            self.body["detail"].as_str().unwrap_or("without a reason")
        )
    }

    /// Last segment of `Location`: the id of what was made.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub fn made(&self) -> anyhow::Result<String> {
        let location = self
            .location
            .as_deref()
            .context("the answer has no Location")?;
        let id = location.rsplit('/').next().filter(|id| !id.is_empty());
        id.map(str::to_owned)
            .with_context(|| format!("Location {location} names nothing"))
    }
}
