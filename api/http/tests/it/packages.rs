//! `vnfpkgm`, in both major versions.

use axum::body::Body;
use axum::http::Method;
use serde_json::json;
use std::io::Read;

use crate::fakes::Fakes;
use crate::server::{Answer, Server, call, judge, server, settings};

async fn upload(server: &Server, path: &str, kind: &str, content: &'static [u8]) -> Answer {
    let request = call(Method::PUT, &format!("{path}/package_content"))
        .header("Content-Type", kind)
        .body(Body::from(content))
        .unwrap();
    server.send(request).await
}

async fn accepting(server: &Server, path: &str, accept: &str) -> Answer {
    server
        .send(
            call(Method::GET, path)
                .header("Accept", accept)
                .body(Body::empty())
                .unwrap(),
        )
        .await
}

/// Creates a package and returns its path.
async fn created(server: &Server, major: &str) -> String {
    let list = format!("/vnfpkgm/{major}/vnf_packages");
    let answer = server
        .post(&list, &json!({"userDefinedData": {"a": "b"}}))
        .await;
    assert_eq!(answer.status, 201);
    let body = answer.json();
    judge("VnfPkgInfo", &body);
    assert_eq!(
        (&body["onboardingState"], &body["operationalState"]),
        (&json!("CREATED"), &json!("DISABLED"))
    );
    assert_eq!(body["userDefinedData"], json!({"a": "b"}));
    let path = format!("{list}/{}", body["id"].as_str().unwrap());
    assert_eq!(
        answer.header("location").unwrap(),
        format!("https://gw.example/vnfm{path}")
    );
    path
}

#[tokio::test]
async fn a_package_is_created_filled_read_and_deleted_in_both_versions() {
    for major in ["v1", "v2"] {
        let server = server();
        let path = created(&server, major).await;
        upload(&server, &path, "application/zip", b"PK...")
            .await
            .is_accepted(None);
        let body = server.get(&path).await.json();
        judge("VnfPkgInfo", &body);
        assert_eq!(
            (&body["onboardingState"], &body["operationalState"]),
            (&json!("ONBOARDED"), &json!("ENABLED"))
        );
        assert_eq!(
            (&body["vnfdId"], &body["usageState"]),
            (&json!("vnfd-1"), &json!("NOT_IN_USE"))
        );
        assert_eq!(
            body["_links"]["vnfd"]["href"],
            format!("https://gw.example/vnfm{path}/vnfd")
        );

        server
            .delete(&path)
            .await
            .is_problem(409, "disable it first");
        let answer = server
            .patch(&path, &json!({"operationalState": "DISABLED"}))
            .await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"operationalState": "DISABLED"}))
        );
        let data = json!({"userDefinedData": {"site": "west"}});
        let answer = server.patch(&path, &data).await;
        assert_eq!((answer.status, answer.json()), (200, data));
        let seen = server.get(&path).await.json();
        assert_eq!(
            (&seen["userDefinedData"]["site"], &seen["operationalState"]),
            (&json!("west"), &json!("DISABLED"))
        );
        server
            .patch(&path, &json!({}))
            .await
            .is_problem(422, "operationalState, userDefinedData");
        assert_eq!(server.delete(&path).await.status, 204);
        server.get(&path).await.is_problem(404, "");
    }
}

#[tokio::test]
async fn a_refused_package_says_why() {
    let server = server();
    let path = created(&server, "v2").await;
    upload(&server, &path, "application/zip", b"nonsense")
        .await
        .is_accepted(None);
    let body = server.get(&path).await.json();
    judge("VnfPkgInfo", &body);
    assert_eq!(body["onboardingState"], "ERROR");
    assert_eq!(body["onboardingFailureDetails"]["detail"], "not a zip");
}

#[tokio::test]
async fn uploads_are_checked_before_they_are_read() {
    let server = server();
    let path = created(&server, "v2").await;
    upload(&server, &path, "application/json", b"{}")
        .await
        .is_problem(415, "application/zip");
    upload(&server, &path, "application/zip", b"")
        .await
        .is_problem(400, "empty");
    upload(
        &server,
        "/vnfpkgm/v2/vnf_packages/nosuch",
        "application/zip",
        b"PK",
    )
    .await
    .is_problem(404, "nosuch");
    let huge = call(Method::PUT, &format!("{path}/package_content"))
        .header("Content-Type", "application/zip")
        .header("Content-Length", "300000000")
        .body(Body::from("PK"))
        .unwrap();
    server.send(huge).await.is_problem(413, "67108864 bytes");
    server
        .patch(&path, &json!({"operationalState": "ON"}))
        .await
        .is_problem(422, "ENABLED, DISABLED");
}

#[tokio::test]
async fn files_come_in_the_type_that_is_accepted() {
    let server = server();
    let path = created(&server, "v2").await;
    server
        .get(&format!("{path}/vnfd"))
        .await
        .is_problem(409, "ONBOARDED");
    upload(&server, &path, "application/zip", b"PK")
        .await
        .is_accepted(None);

    let text = accepting(
        &server,
        &format!("{path}/vnfd"),
        "text/plain, application/zip;q=0.5",
    )
    .await;
    assert_eq!(text.header("content-type"), Some("text/plain"));
    assert!(text.bytes.starts_with(b"tosca_definitions_version"));
    let packed = accepting(&server, &format!("{path}/vnfd"), "application/zip").await;
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(packed.bytes)).unwrap();
    let names: Vec<String> = archive
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    assert_eq!(
        names,
        ["Definitions/vnfd.yaml", "TOSCA-Metadata/TOSCA.meta"]
    );
    let mut content = String::new();
    archive
        .by_index(0)
        .unwrap()
        .read_to_string(&mut content)
        .unwrap();
    assert_eq!(content, "Definitions/vnfd.yaml");
    accepting(&server, &format!("{path}/vnfd"), "image/png")
        .await
        .is_problem(406, "text/plain");

    let csar = server.get(&format!("{path}/package_content")).await;
    assert_eq!(
        (csar.header("content-type"), csar.bytes.as_slice()),
        (Some("application/zip"), &b"PK-content"[..])
    );
    let file = server
        .get(&format!("{path}/artifacts/Files/kubernetes/web.yaml"))
        .await;
    assert_eq!(file.bytes, b"Files/kubernetes/web.yaml");
    for absent in [
        "nosuch.yaml",
        "..%2f..%2fetc%2fpasswd",
        "Files/../../etc/passwd",
    ] {
        server
            .get(&format!("{path}/artifacts/{absent}"))
            .await
            .is_problem(404, "");
    }
}

#[tokio::test]
async fn lists_are_filtered_and_know_what_is_in_use() {
    let server = Server::over(Fakes::running(), settings());
    let path = created(&server, "v2").await;
    upload(&server, &path, "application/zip", b"PK")
        .await
        .is_accepted(None);
    server.fakes.packages.lock().unwrap()[0].id =
        cairn_domain::ids::VnfPkgId::parse("pkg-1").unwrap();
    let found = server
        .get("/vnfpkgm/v1/vnf_packages?filter=(eq,vnfdId,vnfd-1)")
        .await
        .json();
    judge("VnfPkgInfo", &found[0]);
    assert_eq!(found[0]["usageState"], "IN_USE");
    assert_eq!(
        server
            .get("/vnfpkgm/v2/vnf_packages?filter=(eq,vnfdId,other)")
            .await
            .json(),
        json!([])
    );
    server
        .get("/vnfpkgm/v2/vnf_packages?filter=(eq,colour,red)")
        .await
        .is_problem(400, "colour");
}
