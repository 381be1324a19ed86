//! The `Version` and `Accept` headers.

use axum::body::Body;
use axum::http::Request;
use cairn_http::HttpSettings;

use crate::fakes::Fakes;
use crate::server::{Answer, Server, judge, server, settings};

const LIST: &str = "/vnflcm/v2/vnf_instances";

async fn with(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(Request::builder().uri(path), |r, (name, value)| {
            r.header(*name, *value)
        });
    server.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn the_version_is_demanded_of_lifecycle_management_alone() {
    let server = server();
    with(&server, LIST, &[])
        .await
        .is_problem(400, "Version: 2.0.0");
    for (version, status) in [
        ("2.0.0", 200),
        ("2.0.0-impl:example.com:x:1", 200),
        ("1", 406),
        ("9.9.9", 406),
        ("2.1.0", 406),
        ("", 406),
    ] {
        let answer = with(&server, LIST, &[("version", version)]).await;
        assert_eq!(answer.status, status, "{version}");
        assert_eq!(answer.header("version"), Some("2.0.0"));
    }
    for path in [
        "/vnflcm/api_versions",
        "/vnflcm/v2/api_versions",
        "/vnfpkgm/v2/vnf_packages",
        "/cairn/v1/vims",
    ] {
        assert_eq!(with(&server, path, &[]).await.status, 200, "{path}");
    }
    assert_eq!(
        with(&server, "/vnfpkgm/v2/vnf_packages", &[("Version", "2.4.0")])
            .await
            .status,
        200
    );
    assert_eq!(
        with(&server, "/vnfpkgm/v2/vnf_packages", &[("Version", "3.0.0")])
            .await
            .status,
        406
    );
    assert_eq!(
        with(&server, "/vnfpkgm/v1/vnf_packages", &[("Version", "1.0.0")])
            .await
            .status,
        200
    );
    assert_eq!(
        with(&server, "/cairn/v1/vims", &[("Version", "9.9.9")])
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_lenient_server_takes_a_missing_version_but_no_wrong_one() {
    let lenient = Server::over(
        Fakes::default(),
        HttpSettings {
            lenient: true,
            ..settings()
        },
    );
    let answer = with(&lenient, LIST, &[]).await;
    assert_eq!(
        (answer.status, answer.header("version")),
        (200, Some("2.0.0"))
    );
    assert_eq!(
        with(&lenient, LIST, &[("Version", "1.0.0")]).await.status,
        406
    );
}

#[tokio::test]
async fn the_versions_resource_says_what_is_spoken() {
    let body = server().get("/vnflcm/v2/api_versions").await.json();
    judge("ApiVersionInformation", &body);
    assert_eq!(body["apiVersions"][0]["version"], "2.0.0");
    assert_eq!(body["uriPrefix"], "https://gw.example/vnfm/vnflcm/v2");
}

#[tokio::test]
async fn nothing_is_given_that_was_not_accepted() {
    let server = server();
    for (accept, status) in [
        ("*/*", 200),
        ("application/json", 200),
        ("text/html, application/*;q=0.1", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
    ] {
        let answer = with(&server, LIST, &[("Version", "2.0.0"), ("Accept", accept)]).await;
        assert_eq!(answer.status, status, "{accept}");
    }
}
