//! Every resource with every method: what is there answers, all else is 405 with `Allow`, or 404.

use axum::body::Body;
use axum::http::Method;

use crate::fakes::Fakes;
use crate::server::{Server, call, server, settings};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

const ROUTES: &[(&str, &[&str])] = &[
    ("/vnflcm/api_versions", &["GET"]),
    ("/vnflcm/v2/api_versions", &["GET"]),
    ("/vnflcm/v2/vnf_instances", &["GET", "POST"]),
    ("/vnflcm/v2/vnf_instances/i", &["GET", "PATCH", "DELETE"]),
    ("/vnflcm/v2/vnf_instances/i/instantiate", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/scale", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/scale_to_level", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/heal", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/terminate", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/change_flavour", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/operate", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/change_ext_conn", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/change_vnfpkg", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/create_snapshot", &["POST"]),
    ("/vnflcm/v2/vnf_instances/i/revert_to_snapshot", &["POST"]),
    ("/vnflcm/v2/vnf_lcm_op_occs", &["GET"]),
    ("/vnflcm/v2/vnf_lcm_op_occs/o", &["GET"]),
    ("/vnflcm/v2/vnf_lcm_op_occs/o/retry", &["POST"]),
    ("/vnflcm/v2/vnf_lcm_op_occs/o/rollback", &["POST"]),
    ("/vnflcm/v2/vnf_lcm_op_occs/o/fail", &["POST"]),
    ("/vnflcm/v2/vnf_lcm_op_occs/o/cancel", &["POST"]),
    ("/vnflcm/v2/subscriptions", &["GET", "POST"]),
    ("/vnflcm/v2/subscriptions/s", &["GET", "DELETE"]),
    ("/vnfpkgm/api_versions", &["GET"]),
    ("/vnfpkgm/v1/api_versions", &["GET"]),
    ("/vnfpkgm/v2/api_versions", &["GET"]),
    ("/vnfpkgm/v1/vnf_packages", &["GET", "POST"]),
    ("/vnfpkgm/v2/vnf_packages", &["GET", "POST"]),
    ("/vnfpkgm/v2/vnf_packages/p", &["GET", "PATCH", "DELETE"]),
    (
        "/vnfpkgm/v2/vnf_packages/p/package_content",
        &["GET", "PUT"],
    ),
    ("/vnfpkgm/v2/vnf_packages/p/vnfd", &["GET"]),
    (
        "/vnfpkgm/v2/vnf_packages/p/artifacts/Files/a.yaml",
        &["GET"],
    ),
    ("/cairn/v1/vnf_instances/i", &["GET"]),
    ("/cairn/v1/vnf_instances/i/history", &["GET"]),
    ("/cairn/v1/vnf_lcm_op_occs/o", &["GET"]),
    ("/cairn/v1/vims", &["GET", "POST"]),
    ("/cairn/v1/vims/v", &["GET", "PATCH", "DELETE"]),
    ("/cairn/v1/subscriptions/s/deliveries", &["GET"]),
    ("/cairn/v1/subscriptions/s/deliveries/d/resend", &["POST"]),
    ("/cairn/v1/faults", &["GET", "PUT", "DELETE"]),
    ("/healthz", &["GET"]),
    ("/readyz", &["GET"]),
    ("/metrics", &["GET"]),
];

#[tokio::test]
async fn each_resource_takes_its_methods_and_refuses_all_others() {
    let server = server();
    for (path, allowed) in ROUTES {
        for method in METHODS {
            let request = call(Method::from_bytes(method.as_bytes()).unwrap(), path);
            let answer = server.send(request.body(Body::empty()).unwrap()).await;
            if allowed.contains(&method) {
                assert_ne!(answer.status, 405, "{method} {path}");
                assert!(answer.status < 500, "{method} {path} {}", answer.status);
                if answer.status >= 400 {
                    answer.is_problem(answer.status, "");
                }
            } else {
                answer.is_problem(405, "Allow");
                let allow = answer.header("allow").unwrap();
                assert!(
                    allowed.iter().all(|method| allow.contains(method)),
                    "{path}: {allow}"
                );
            }
            let versioned = path.starts_with("/vnflcm") || path.starts_with("/vnfpkgm");
            assert_eq!(
                answer.header("version").is_some(),
                versioned,
                "{method} {path}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    for path in [
        "/",
        "/vnflcm",
        "/vnflcm/v2",
        "/vnflcm/v2/nosuch",
        "/vnflcm/v2/vnf_instances/i/explode",
        "/vnfpkgm/v3/x",
        "/cairn/v2/vims",
    ] {
        server().get(path).await.is_problem(404, "no such resource");
    }
}

#[tokio::test]
async fn tasks_that_no_vnf_supports_say_so() {
    let answer = server()
        .post("/vnflcm/v2/vnf_instances/i/operate", &serde_json::json!({}))
        .await;
    answer.is_problem(404, "does not support the task operate");
}

#[tokio::test]
async fn every_answer_is_counted() {
    let server = server();
    server.get("/healthz").await;
    server.get("/nosuch").await;
    assert_eq!(*server.fakes.answered.lock().unwrap(), [200, 404]);
}

#[tokio::test]
async fn health_and_readiness_are_apart() {
    let down = Server::over(
        Fakes {
            down: true,
            ..Fakes::default()
        },
        settings(),
    );
    assert_eq!(down.get("/healthz").await.status, 200);
    let unready = down.get("/readyz").await;
    unready.is_problem(503, "the database is down");
    assert_eq!(unready.header("retry-after"), Some("1"));
    assert_eq!(server().get("/readyz").await.status, 200);
    assert_eq!(server().get("/metrics").await.bytes, b"cairn_up 1\n");
}
