//! Bodies that are wrong: the answer says where, and nothing reaches the commands.

use axum::body::{Body, Bytes};
use axum::http::Method;
use futures::{StreamExt, stream};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::server::{Answer, call, server};

const SCALE: &str = "/vnflcm/v2/vnf_instances/i-1/scale";

async fn raw(content_type: Option<&str>, body: impl Into<Body>) -> Answer {
    let server = server();
    let mut request = call(Method::POST, SCALE);
    if let Some(kind) = content_type {
        request = request.header("Content-Type", kind);
    }
    let answer = server.send(request.body(body.into()).unwrap()).await;
    assert!(server.fakes.asked.lock().unwrap().is_empty());
    answer
}

const JSON: Option<&str> = Some("application/json");

#[tokio::test]
async fn what_is_not_json_is_told_with_its_place() {
    raw(JSON, "{\"type\": \"SCALE_OUT\",\n oops}")
        .await
        .is_problem(400, "line 2 column 2");
    raw(JSON, "{").await.is_problem(400, "line 1");
    raw(JSON, vec![0xff, 0xfe])
        .await
        .is_problem(400, "not JSON");
    raw(JSON, "[".repeat(100_000))
        .await
        .is_problem(400, "recursion");
    raw(JSON, "{} {}").await.is_problem(400, "trailing");
}

#[tokio::test]
async fn a_well_formed_body_of_the_wrong_shape_names_the_member() {
    let server = server();
    for (body, says) in [
        (json!([]), "must be a JSON object"),
        (json!("x"), "must be a JSON object"),
        (json!({}), "type is missing"),
        (json!({"type": "SCALE_OUT"}), "aspectId is missing"),
        (
            json!({"type": "SCALE_UP", "aspectId": "a"}),
            "SCALE_OUT, SCALE_IN",
        ),
        (
            json!({"type": "SCALE_OUT", "aspectId": ["a"]}),
            "aspectId must be a text",
        ),
        (
            json!({"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": "2"}),
            "numberOfSteps",
        ),
        (
            json!({"type": "SCALE_OUT", "aspectId": "a", "additionalParams": "x"}),
            "additionalParams must be an object",
        ),
    ] {
        server.post(SCALE, &body).await.is_problem(422, says);
    }
    assert!(server.fakes.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_absent_body_is_missing_its_members() {
    raw(None, Body::empty())
        .await
        .is_problem(422, "type is missing");
}

#[tokio::test]
async fn only_json_is_taken() {
    raw(Some("application/x-www-form-urlencoded"), "{}")
        .await
        .is_problem(415, "application/json");
    raw(Some("application/merge-patch+json"), "{}")
        .await
        .is_problem(415, "application/json");
    raw(None, "{}").await.is_problem(415, "application/json");
    raw(Some("Application/JSON; charset=UTF-8"), "{}")
        .await
        .is_problem(422, "type is missing");
}

#[tokio::test]
async fn a_megabyte_is_the_limit_announced_or_not() {
    let large = format!("{{\"type\": \"{}\"}}", "x".repeat(1024 * 1024));
    raw(JSON, large.clone())
        .await
        .is_problem(413, "1048576 bytes");
    let pieces = large
        .into_bytes()
        .chunks(1000)
        .map(|c| Ok::<_, Infallible>(Bytes::copy_from_slice(c)))
        .collect::<Vec<_>>();
    raw(JSON, Body::from_stream(stream::iter(pieces)))
        .await
        .is_problem(413, "1048576 bytes");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_coming_is_cut() {
    let stalled = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"{")) });
    let body = Body::from_stream(stalled.chain(stream::pending()));
    raw(JSON, body)
        .await
        .is_problem(408, "did not come in time");
}

/// Sends a long body to a path and says how many of its pieces were taken.
async fn pieces_taken(path: &str, expect: bool, status: u16) -> usize {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = taken.clone();
    let pieces = stream::iter(0..3000).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(Bytes::from_static(&[b' '; 1024]))
    });
    let mut request = call(Method::POST, path)
        .header("Content-Type", "application/json")
        .header("Content-Length", "3072000");
    if expect {
        request = request.header("Expect", "100-continue");
    }
    let request = request.body(Body::from_stream(pieces)).unwrap();
    server().send(request).await.is_problem(status, "");
    taken.load(Ordering::Relaxed)
}

#[tokio::test]
async fn what_is_refused_is_read_to_its_end_so_that_the_answer_arrives() {
    for (path, status) in [(SCALE, 413), ("/nosuch", 404), ("/cairn/v1/vims/v", 405)] {
        assert_eq!(pieces_taken(path, false, status).await, 3000, "{path}");
        // It waited to be asked, and was not.
        assert_eq!(pieces_taken(path, true, status).await, 0, "{path}");
    }
}
