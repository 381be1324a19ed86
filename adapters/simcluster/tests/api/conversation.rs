//! How the tests talk to the cluster.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use cairn_simcluster::{SimCluster, SimOptions};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// How long a test waits for something that must come.
pub const SOON: Duration = Duration::from_secs(10);

pub const APPLY: &str = "application/apply-patch+yaml";
pub const MERGE: &str = "application/merge-patch+json";

pub struct Cluster {
    pub sim: SimCluster,
}

pub struct Answer {
    pub code: u16,
    pub body: Value,
}

impl Cluster {
    /// A fresh cluster whose default namespace is furnished.
    pub async fn ready() -> Self {
        let cluster = Self {
            sim: SimCluster::new(SimOptions::default()),
        };
        cluster
            .until(|sim| {
                sim.get("v1", "ServiceAccount", "default", "default")
                    .is_some()
            })
            .await;
        cluster
    }

    pub async fn until(&self, check: impl FnMut(&SimCluster) -> bool) {
        self.sim
            .wait_until(SOON, check)
            .await
            .expect("what the test waits for never came");
    }

    pub async fn raw(&self, request: Request<Body>) -> Response {
        self.sim.router().oneshot(request).await.unwrap()
    }

    pub async fn send(&self, method: &str, path: &str, media: &str, body: &Value) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", "test/1");
        if !media.is_empty() {
            request = request.header("content-type", media);
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            Body::from(body.to_string())
        };
        let response = self.raw(request.body(body).unwrap()).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Answer {
            code,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", body).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, "application/json", body).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, MERGE, body).await
    }

    pub async fn apply(&self, path: &str, manager: &str, body: &Value) -> Answer {
        self.send(
            "PATCH",
            &format!("{path}?fieldManager={manager}"),
            APPLY,
            body,
        )
        .await
    }

    pub async fn delete(&self, path: &str, policy: &str) -> Answer {
        let body = json!({"propagationPolicy": policy});
        self.send("DELETE", path, "application/json", &body).await
    }

    pub fn pods(&self) -> Vec<Value> {
        self.sim.list("v1", "Pod", "default")
    }

    /// Waits until the deployment has this many available pods of its current template.
    pub async fn available(&self, name: &str, number: i64) {
        self.until(|sim| {
            let Some(found) = sim.get("apps/v1", "Deployment", "default", name) else {
                return false;
            };
            let status = &found["status"];
            status["observedGeneration"] == found["metadata"]["generation"]
                && status["availableReplicas"].as_i64().unwrap_or(0) == number
                && status["updatedReplicas"].as_i64().unwrap_or(0) == number
                && status["replicas"].as_i64().unwrap_or(0) == number
        })
        .await;
    }
}

pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A deployment whose pods behave as the annotations say.
pub fn deployment(name: &str, replicas: i64, image: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}, "annotations": annotations},
                "spec": {"containers": [{"name": "main", "image": image}]}}}})
}

/// The reason for which the first container of a pod waits.
pub fn waits_for(pod: &Value) -> &str {
    pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
        .as_str()
        .unwrap_or("")
}
