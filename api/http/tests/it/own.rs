//! `/cairn/v1`.

use cairn_domain::ids::{DeliveryId, NodeId, SubscriptionId, VnfInstanceId};
use cairn_domain::operation::ErrorPoint;
use cairn_domain::ports::{Delivery, DeliveryState, Moment, Owner};
use cairn_domain::testing::op;
use cairn_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::fakes::Fakes;
use crate::server::{Server, judge, server, settings};

fn halted() -> Server {
    let story = op().instantiate().failed_at(ErrorPoint::PostVimControl);
    Server::over(Fakes::telling(&story).subscribed(), settings())
}

#[tokio::test]
async fn an_instance_is_shown_as_it_is_and_as_it_was() {
    let server = halted();
    let path = format!("/cairn/v1/vnf_instances/{}", server.fakes.instance_id());
    let body = server.get(&path).await.json();
    judge("VnfInstance", &body);
    assert_eq!(
        body["provisioning"],
        json!({"state": "DEPLOYFAIL", "target": null})
    );
    assert_eq!(body["position"], 41);
    assert_eq!(body["leftovers"], json!([]));

    for query in [
        "?at=2026-01-01T02:00:00.5+02:00",
        "?at=2026-01-01T00%3A00%3A00.500Z",
        "?position=17",
    ] {
        assert_eq!(
            server.get(&format!("{path}{query}")).await.status,
            200,
            "{query}"
        );
    }
    let half_past = Moment::At(Timestamp::parse("2026-01-01T00:00:00.500Z").unwrap());
    assert_eq!(
        *server.fakes.moments.lock().unwrap(),
        [half_past, half_past, Moment::Position(17)]
    );

    for query in [
        "?at=yesterday",
        "?position=-1",
        "?position=x",
        "?at=2026-01-01T00:00:00Z&position=1",
        "?when=now",
        "?at=",
    ] {
        server
            .get(&format!("{path}{query}"))
            .await
            .is_problem(400, "");
    }
    server
        .get("/cairn/v1/vnf_instances/nosuch?position=1")
        .await
        .is_problem(404, "nosuch");
}

#[tokio::test]
async fn the_history_is_told_by_position() {
    let server = halted();
    let id = server.fakes.instance_id();
    let body = server
        .get(&format!("/cairn/v1/vnf_instances/{id}/history"))
        .await
        .json();
    assert_eq!(body["vnfInstanceId"], *id);
    let events = body["events"].as_array().unwrap();
    let positions: Vec<u64> = events
        .iter()
        .map(|e| e["position"].as_u64().unwrap())
        .collect();
    assert!(positions.is_sorted() && !positions.is_empty());
    assert_eq!(events[0]["type"], "OperationStarted");
    assert_eq!(events[0]["data"]["by"], "tester");
    server
        .get(&format!(
            "/cairn/v1/vnf_instances/{id}/history?at=2026-01-01T00:00:00Z"
        ))
        .await
        .is_problem(400, "at is not a query parameter here");
    server
        .get("/cairn/v1/vnf_instances/nosuch/history")
        .await
        .is_problem(404, "nosuch");
}

#[tokio::test]
async fn an_operation_is_shown_with_its_journal() {
    let server = halted();
    let path = format!("/cairn/v1/vnf_lcm_op_occs/{}", server.fakes.op_id());
    let body = server.get(&path).await.json();
    judge("VnfLcmOpOcc", &body);
    assert_eq!(body["point"], 4);
    assert_eq!(body["owner"], Value::Null);
    for member in ["tries", "plan", "waits", "undo", "residue"] {
        assert!(body[member].is_array(), "{member}");
    }
    *server.fakes.owner.lock().unwrap() = Some(Owner {
        node: NodeId::parse("node-1").unwrap(),
        expires_at: Timestamp::from_millis(0),
    });
    assert_eq!(server.get(&path).await.json()["owner"], "node-1");
}

#[tokio::test]
async fn a_vim_is_registered_with_its_credentials_sealed() {
    let server = server();
    let body = json!({"vimId": "west", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://a:6443", "ssl_ca_cert": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"}, "accessInfo": {"bearer_token": "hunter2"}});
    let answer = server.post("/cairn/v1/vims", &body).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (201, Some("https://gw.example/vnfm/cairn/v1/vims/west"))
    );
    let shown = json!({"vimId": "west", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://a:6443", "ssl_ca_cert": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"}});
    assert_eq!(answer.json(), shown);
    assert_eq!(server.fakes.sealed.lock().unwrap()[0].1.reveal(), "hunter2");
    assert!(!format!("{:?}", server.fakes.vims.lock().unwrap()).contains("hunter2"));
    assert_eq!(server.get("/cairn/v1/vims/west").await.json(), shown);
    assert_eq!(server.get("/cairn/v1/vims").await.json(), json!([shown]));
    let rotated = json!({"accessInfo": {"bearer_token": "hunter3"}});
    let answer = server.patch("/cairn/v1/vims/west", &rotated).await;
    assert_eq!((answer.status, answer.json()), (200, shown.clone()));
    assert_eq!(server.fakes.sealed.lock().unwrap()[1].1.reveal(), "hunter3");
    server
        .patch("/cairn/v1/vims/west", &json!({}))
        .await
        .is_problem(422, "interfaceInfo, accessInfo");
    server
        .patch("/cairn/v1/vims/west", &json!({"vimType": "kubernetes"}))
        .await
        .is_problem(422, "vimType is not a member");
    server
        .patch("/cairn/v1/vims/nosuch", &rotated)
        .await
        .is_problem(404, "");
    assert_eq!(server.delete("/cairn/v1/vims/west").await.status, 204);
    server
        .get("/cairn/v1/vims/west")
        .await
        .is_problem(404, "west");
    server
        .delete("/cairn/v1/vims/west")
        .await
        .is_problem(404, "");
}

#[tokio::test]
async fn a_vim_that_cannot_be_used_is_refused_by_member() {
    let interface = json!({"endpoint": "https://a"});
    for (body, says) in [
        (json!({"interfaceInfo": interface}), "vimType is missing"),
        (
            json!({"vimType": "OPENSTACK", "interfaceInfo": interface}),
            "not supported",
        ),
        (
            json!({"vimType": "kubernetes", "interfaceInfo": {}}),
            "interfaceInfo/endpoint is missing",
        ),
        (
            json!({"vimType": "kubernetes", "interfaceInfo": interface, "colour": 1}),
            "colour is not a member",
        ),
        (
            json!({"vimType": "kubernetes", "interfaceInfo": interface, "accessInfo": {"client_key": "hunter2"}}),
            "client_certificate",
        ),
        (
            json!({"vimType": "kubernetes", "interfaceInfo": interface, "vimId": "a/b"}),
            "vimId",
        ),
    ] {
        let answer = server().post("/cairn/v1/vims", &body).await;
        answer.is_problem(422, says);
        assert!(!String::from_utf8_lossy(&answer.bytes).contains("hunter2"));
    }
}

#[tokio::test]
async fn deliveries_are_read_and_sent_again() {
    let server = halted();
    server.fakes.deliveries.lock().unwrap().push(Delivery {
        id: DeliveryId::parse("d-1").unwrap(),
        subscription: SubscriptionId::parse("s-1").unwrap(),
        position: 3,
        notification_id: "n-1".into(),
        instance: VnfInstanceId::parse("i-1").unwrap(),
        op: None,
        operation_state: None,
        state: DeliveryState::GivenUp,
        tries: 9,
        created_at: Timestamp::from_millis(0),
        last_tried_at: Some(Timestamp::from_millis(5)),
        last_answer: Some(302),
        next_try_at: None,
    });
    let path = "/cairn/v1/subscriptions/s-1/deliveries";
    assert_eq!(
        server.get(path).await.json(),
        json!([{"id": "d-1", "notificationId": "n-1", "position": 3, "vnfInstanceId": "i-1",
            "vnfLcmOpOccId": null, "operationState": null, "state": "GIVEN_UP", "tries": 9,
            "lastTriedAt": "1970-01-01T00:00:00.005Z", "lastAnswer": 302, "nextTryAt": null}])
    );
    server
        .post(&format!("{path}/d-1/resend"), &json!({}))
        .await
        .is_accepted(None);
    server
        .post(&format!("{path}/d-2/resend"), &json!({}))
        .await
        .is_problem(404, "d-2");
    server
        .get("/cairn/v1/subscriptions/nosuch/deliveries")
        .await
        .is_problem(404, "nosuch");
}

#[tokio::test]
async fn faults_are_there_only_when_enabled() {
    server()
        .get("/cairn/v1/faults")
        .await
        .is_problem(404, "--enable-faults");
    let server = Server::over(
        Fakes {
            faults_enabled: true,
            ..Fakes::default()
        },
        settings(),
    );
    let faults = json!([
        {"operation": "SCALE", "at": {"errorPoint": 3}, "action": "fail", "times": 2},
        {"at": {"step": 2, "edge": "before"}, "action": "crash", "times": 1},
        {"vnfInstanceId": "i-1", "at": {"state": "STARTING"}, "action": "hold", "times": 1},
        {"at": {"undoStep": 0, "edge": "after"}, "action": "fail", "times": 1},
    ]);
    let answer = server.put("/cairn/v1/faults", &faults).await;
    assert_eq!((answer.status, answer.json()), (200, faults.clone()));
    assert_eq!(server.get("/cairn/v1/faults").await.json(), faults);
    for wrong in [
        json!({"faults": []}),
        json!([{"at": {"errorPoint": 3}, "action": "fail", "colour": 1}]),
        json!([{"at": {"errorPoint": 9}, "action": "fail"}]),
        json!([{"at": {"errorPoint": 3, "edge": "after"}, "action": "fail"}]),
        json!([{"at": {"errorPoint": 3}, "action": "explode"}]),
        json!([{"action": "fail"}]),
    ] {
        server
            .put("/cairn/v1/faults", &wrong)
            .await
            .is_problem(422, "");
    }
    assert_eq!(server.get("/cairn/v1/faults").await.json(), faults);
    assert_eq!(server.delete("/cairn/v1/faults").await.status, 204);
    assert_eq!(server.get("/cairn/v1/faults").await.json(), json!([]));
}
