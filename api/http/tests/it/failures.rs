//! Every way in which a request can fail, and its status.

use cairn_domain::ports::{CommandError, PortError};
use cairn_domain::problem::Problem;
use cairn_http::HttpSettings;
use serde_json::json;
use std::time::Duration;

use crate::fakes::{Fakes, Mood};
use crate::server::{Server, settings};

const RETRY: &str = "/vnflcm/v2/vnf_lcm_op_occs/o-1/retry";

#[tokio::test]
async fn each_refusal_has_its_status() {
    let port = |error| CommandError::Port(error);
    for (error, status, says) in [
        (
            CommandError::NotFound("there is none".into()),
            404,
            "there is none",
        ),
        (
            CommandError::NotNow("use rollback".into()),
            409,
            "use rollback",
        ),
        (CommandError::Changed { is: 7 }, 412, "\"7\""),
        (
            CommandError::Invalid(Problem::new(422, "aspectId: no such aspect")),
            422,
            "aspectId",
        ),
        (
            CommandError::Invalid(Problem::new(400, "filter/x")),
            400,
            "filter/x",
        ),
        (
            port(PortError::Refused(Problem::new(409, "in use"))),
            409,
            "in use",
        ),
        (port(PortError::Conflict("c".into())), 503, "try again"),
        (port(PortError::Fenced), 503, "try again"),
        (
            port(PortError::Unavailable("no connection".into())),
            503,
            "no connection",
        ),
        (
            port(PortError::Corrupt("row 7 holds secrets".into())),
            500,
            "cannot be read",
        ),
    ] {
        let server = Server::over(Fakes::default().answering(Err(error)), settings());
        let answer = server.post(RETRY, &json!({})).await;
        answer.is_problem(status, says);
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
        assert!(!String::from_utf8_lossy(&answer.bytes).contains("row 7"));
    }
}

#[tokio::test]
async fn a_status_that_is_no_failure_never_leaves_as_one() {
    let odd = CommandError::Invalid(Problem::new(200, "odd"));
    let server = Server::over(Fakes::default().answering(Err(odd)), settings());
    server.post(RETRY, &json!({})).await.is_problem(500, "odd");
}

#[tokio::test]
async fn a_defect_is_a_problem_that_shows_nothing() {
    let server = Server::over(
        Fakes {
            mood: Mood::Panicking,
            ..Fakes::default()
        },
        settings(),
    );
    let answer = server.post(RETRY, &json!({})).await;
    answer.is_problem(500, "its log says more");
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("hunter2"));
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_answered() {
    let server = Server::over(
        Fakes {
            mood: Mood::Silent,
            ..Fakes::default()
        },
        settings(),
    );
    let answer = server.post(RETRY, &json!({})).await;
    answer.is_problem(503, "no answer within 30 s");
}

#[tokio::test]
async fn beyond_the_limit_requests_are_sent_away_but_health_is_answered() {
    let narrow = HttpSettings {
        max_in_flight: 1,
        request_timeout: Duration::from_mins(1),
        ..settings()
    };
    let server = Server::over(
        Fakes {
            mood: Mood::Silent,
            ..Fakes::default()
        },
        narrow,
    );
    let nothing = json!({});
    let first = server.post(RETRY, &nothing);
    let second = async {
        let answer = server.get("/cairn/v1/vims").await;
        (answer, server.get("/healthz").await.status)
    };
    tokio::select! {
        biased;
        _ = first => panic!("the first request is never answered"),
        (refused, health) = second => {
            refused.is_problem(503, "too many");
            assert_eq!(health, 200);
        }
    }
}

#[tokio::test]
async fn reads_fail_as_readably() {
    let down = Server::over(
        Fakes {
            down: true,
            ..Fakes::default()
        },
        settings(),
    );
    down.get("/vnflcm/v2/vnf_instances")
        .await
        .is_problem(503, "the database is down");
    let server = crate::server::server();
    server
        .get("/vnflcm/v2/vnf_instances/nosuch")
        .await
        .is_problem(404, "nosuch");
    server
        .get("/vnflcm/v2/vnf_lcm_op_occs/nosuch")
        .await
        .is_problem(404, "nosuch");
    server
        .get("/vnflcm/v2/subscriptions/nosuch")
        .await
        .is_problem(404, "nosuch");
    server
        .get("/vnflcm/v2/vnf_instances/a%20b")
        .await
        .is_problem(404, "a b");
    server
        .get("/vnflcm/v2/vnf_instances/%ff")
        .await
        .is_problem(400, "");
}
