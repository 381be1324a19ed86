//! Entity tags and dates.

use axum::body::Body;
use axum::http::Method;
use cairn_domain::ids::VnfLcmOpOccId;
use cairn_domain::ports::{Accepted, Request};
use serde_json::json;

use crate::fakes::Fakes;
use crate::server::{Answer, Server, call, settings};

fn running() -> Server {
    let op = VnfLcmOpOccId::parse("o-1").unwrap();
    Server::over(
        Fakes::running().answering(Ok(Accepted::Operation(op))),
        settings(),
    )
}

async fn patch(server: &Server, name: &str, value: &str) -> Answer {
    let path = format!("/vnflcm/v2/vnf_instances/{}", server.fakes.instance_id());
    let request = call(Method::PATCH, &path)
        .header("Content-Type", "application/merge-patch+json")
        .header(name, value)
        .body(Body::from(json!({"metadata": {}}).to_string()))
        .unwrap();
    server.send(request).await
}

#[tokio::test]
async fn an_instance_is_read_with_its_tag_and_date() {
    let server = running();
    let answer = server
        .get(&format!(
            "/vnflcm/v2/vnf_instances/{}",
            server.fakes.instance_id()
        ))
        .await;
    assert_eq!(answer.header("etag"), Some("\"5\""));
    let date = answer.header("last-modified").unwrap();
    assert!(
        date.starts_with("Thu, 01 Jan 2026 00:") && date.ends_with(" GMT"),
        "{date}"
    );
}

#[tokio::test]
async fn a_change_goes_on_only_where_the_condition_holds() {
    for (name, value, version) in [
        ("If-Match", "\"5\"", Some(5)),
        ("If-Match", "\"4\", \"5\"", Some(5)),
        ("If-Match", "*", Some(5)),
        ("If-Match", "\"4\"", None),
        ("If-Match", "W/\"5\"", None),
        ("If-Match", "nonsense", None),
        (
            "If-Unmodified-Since",
            "Fri, 01 Jan 2100 00:00:00 GMT",
            Some(5),
        ),
        ("If-Unmodified-Since", "Wed, 01 Jan 2020 00:00:00 GMT", None),
    ] {
        let server = running();
        let answer = patch(&server, name, value).await;
        let asked = server.fakes.asked.lock().unwrap().pop();
        if version.is_none() {
            answer.is_problem(412, "ETag is \"5\"");
            assert!(asked.is_none());
            continue;
        }
        assert_eq!(answer.status, 202, "{name}: {value}");
        let Some((_, Request::StartOperation { if_match, .. })) = asked else {
            panic!("another request");
        };
        assert_eq!(if_match, version);
    }
}

#[tokio::test]
async fn a_date_that_is_none_is_ignored() {
    assert_eq!(
        patch(&running(), "If-Unmodified-Since", "yesterday")
            .await
            .status,
        202
    );
}

#[tokio::test]
async fn a_deletion_obeys_conditions_too() {
    let server = running();
    let path = format!("/vnflcm/v2/vnf_instances/{}", server.fakes.instance_id());
    let request = call(Method::DELETE, &path)
        .header("If-Match", "\"1\"")
        .body(Body::empty())
        .unwrap();
    server.send(request).await.is_problem(412, "ETag");
}
