//! The tasks of SOL003: what reaches the commands, and what the client gets.

use cairn_domain::ids::{SubscriptionId, VnfInstanceId, VnfLcmOpOccId};
use cairn_domain::operation::{CancelMode, ErrorPoint, Operation};
use cairn_domain::ports::{Accepted, Request};
use cairn_domain::testing::op;
use serde_json::{Value, json};

use crate::fakes::Fakes;
use crate::server::{Server, call, judge, server, settings};

const INSTANCES: &str = "/vnflcm/v2/vnf_instances";
const OP: &str = "https://gw.example/vnfm/vnflcm/v2/vnf_lcm_op_occs/o-1";

fn started() -> Server {
    let op = VnfLcmOpOccId::parse("o-1").unwrap();
    Server::over(
        Fakes::default().answering(Ok(Accepted::Operation(op))),
        settings(),
    )
}

#[tokio::test]
async fn each_task_is_handed_on_and_answered_with_its_place() {
    for (task, operation, body) in [
        (
            "instantiate",
            Operation::Instantiate,
            json!({"flavourId": "simple", "additionalParams": {"namespace": "n"}}),
        ),
        (
            "scale",
            Operation::Scale,
            json!({"type": "SCALE_OUT", "aspectId": "web"}),
        ),
        (
            "scale_to_level",
            Operation::ScaleToLevel,
            json!({"scaleInfo": [{"aspectId": "web", "scaleLevel": 2}]}),
        ),
        (
            "heal",
            Operation::Heal,
            json!({"vnfcInstanceId": ["web-0"]}),
        ),
        (
            "change_vnfpkg",
            Operation::ChangeVnfpkg,
            json!({"vnfdId": "vnfd-2", "additionalParams": {"upgrade_type": "RollingUpdate"}}),
        ),
        (
            "terminate",
            Operation::Terminate,
            json!({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 5}),
        ),
    ] {
        let server = started();
        server
            .post(&format!("{INSTANCES}/i-1/{task}"), &body)
            .await
            .is_accepted(Some(OP));
        let (caller, request) = server.fakes.only_request();
        assert_eq!(
            (caller.by.as_str(), caller.tenant.as_str()),
            ("anonymous", "default")
        );
        let expected = Request::StartOperation {
            id: VnfInstanceId::parse("i-1").unwrap(),
            operation,
            body: body.as_object().unwrap().clone(),
            if_match: None,
        };
        assert_eq!(request, expected);
    }
}

#[tokio::test]
async fn a_patch_is_a_modification_in_both_media_types() {
    for kind in [
        "application/merge-patch+json",
        "application/json; charset=utf-8",
    ] {
        let server = started();
        let patch = json!({"vnfInstanceName": null, "metadata": {"a": 1}});
        let request = call(axum::http::Method::PATCH, &format!("{INSTANCES}/i-1"))
            .header("Content-Type", kind)
            .body(patch.to_string().into())
            .unwrap();
        server.send(request).await.is_accepted(Some(OP));
        let (
            _,
            Request::StartOperation {
                operation: Operation::ModifyInfo,
                body,
                ..
            },
        ) = server.fakes.only_request()
        else {
            panic!("another request");
        };
        assert_eq!(Value::Object(body), patch);
    }
}

#[tokio::test]
async fn an_instance_is_created_and_shown_at_once() {
    let fakes = Fakes::running();
    let id = VnfInstanceId::parse(fakes.instance_id()).unwrap();
    let server = Server::over(
        fakes.answering(Ok(Accepted::Instance(id.clone()))),
        settings(),
    );
    let answer = server
        .post(
            INSTANCES,
            &json!({"vnfdId": "vnfd-1", "vnfInstanceName": "west", "newer": true}),
        )
        .await;
    assert_eq!(answer.status, 201);
    judge("VnfInstance", &answer.json());
    let place = format!("https://gw.example/vnfm{INSTANCES}/{id}");
    assert_eq!(answer.header("location"), Some(place.as_str()));
    assert_eq!(answer.json()["_links"]["self"]["href"], place);
}

#[tokio::test]
async fn a_deletion_has_no_body() {
    let server = server();
    let answer = server.delete(&format!("{INSTANCES}/i-1")).await;
    assert_eq!((answer.status, answer.bytes.len()), (204, 0));
    assert_eq!(answer.header("version"), Some("2.0.0"));
    let (_, Request::DeleteInstance { if_match: None, .. }) = server.fakes.only_request() else {
        panic!("another request");
    };
}

#[tokio::test]
async fn error_handling_is_accepted_without_a_place() {
    let id = || VnfLcmOpOccId::parse("o-1").unwrap();
    for (task, body, expected) in [
        ("retry", json!({}), Request::Retry(id())),
        ("rollback", json!({}), Request::Rollback(id())),
        (
            "cancel",
            json!({"cancelMode": "GRACEFUL"}),
            Request::Cancel(id(), CancelMode::Graceful),
        ),
        (
            "cancel",
            json!({"cancelMode": "FORCEFUL"}),
            Request::Cancel(id(), CancelMode::Forceful),
        ),
    ] {
        let server = server();
        server
            .post(&format!("/vnflcm/v2/vnf_lcm_op_occs/o-1/{task}"), &body)
            .await
            .is_accepted(None);
        assert_eq!(server.fakes.only_request().1, expected);
    }
}

#[tokio::test]
async fn a_task_without_a_body_needs_no_content_type() {
    let server = server();
    let request = call(
        axum::http::Method::POST,
        "/vnflcm/v2/vnf_lcm_op_occs/o-1/retry",
    );
    server
        .send(request.body(axum::body::Body::empty()).unwrap())
        .await
        .is_accepted(None);
    let server = started();
    let request = call(axum::http::Method::POST, &format!("{INSTANCES}/i-1/heal"));
    server
        .send(request.body(axum::body::Body::empty()).unwrap())
        .await
        .is_accepted(Some(OP));
}

#[tokio::test]
async fn fail_shows_the_occurrence() {
    let story = op()
        .instantiate()
        .failed_at(ErrorPoint::PostVimControl)
        .given_up();
    let server = Server::over(Fakes::telling(&story), settings());
    let path = format!("/vnflcm/v2/vnf_lcm_op_occs/{}/fail", server.fakes.op_id());
    let answer = server.post(&path, &json!({})).await;
    assert_eq!(answer.status, 200);
    judge("VnfLcmOpOcc", &answer.json());
    assert_eq!(answer.json()["operationState"], "FAILED");
}

#[tokio::test]
async fn an_idempotency_key_is_handed_on() {
    let server = started();
    let body = json!({"flavourId": "f"});
    let send = |key: &str| {
        call(
            axum::http::Method::POST,
            &format!("{INSTANCES}/i-1/instantiate"),
        )
        .header("Content-Type", "application/json")
        .header("Idempotency-Key", key)
        .body(axum::body::Body::from(body.to_string()))
        .unwrap()
    };
    server.send(send("k-1")).await.is_accepted(Some(OP));
    assert_eq!(
        server.fakes.only_request().0.idempotency_key.as_deref(),
        Some("k-1")
    );
    server
        .send(send(&"k".repeat(256)))
        .await
        .is_problem(400, "Idempotency-Key");
}

#[tokio::test]
async fn a_subscription_is_created_or_found_again() {
    let id = || SubscriptionId::parse("s-1").unwrap();
    let place = "https://gw.example/vnfm/vnflcm/v2/subscriptions/s-1";
    let body = json!({"callbackUri": "https://nfvo.example/cb", "authentication": {"authType": ["BASIC"],
        "paramsBasic": {"userName": "listener", "password": "hunter2"}}});

    let server = Server::over(
        Fakes::default()
            .subscribed()
            .answering(Ok(Accepted::Subscription(id()))),
        settings(),
    );
    let answer = server.post("/vnflcm/v2/subscriptions", &body).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (201, Some(place))
    );
    judge("LccnSubscription", &answer.json());
    let text = answer.json().to_string();
    for hidden in ["authentication", "listener", "hunter2", "ref-1"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }

    let server = Server::over(
        Fakes::default().answering(Ok(Accepted::SameSubscription(id()))),
        settings(),
    );
    let answer = server.post("/vnflcm/v2/subscriptions", &body).await;
    assert_eq!(
        (answer.status, answer.header("location"), answer.bytes.len()),
        (303, Some(place), 0)
    );

    let server = crate::server::server();
    let wrong = json!({"callbackUri": "https://a/", "filter": {"colour": 1}});
    server
        .post("/vnflcm/v2/subscriptions", &wrong)
        .await
        .is_problem(400, "filter/colour");
    assert!(server.fakes.asked.lock().unwrap().is_empty());
    assert_eq!(
        server.delete("/vnflcm/v2/subscriptions/s-1").await.status,
        204
    );
}
