//! Bad input is answered early and clearly, as a problem, and nothing is lost or begun.

use crate::operations::instantiate;
use axum::http::Method;
use cairn_tests::answer::Answer;
use cairn_tests::client::Sent;
use cairn_tests::package::package;
use cairn_tests::world::World;
use serde_json::{Value, json};

/// A refusal with this status that says these words.
#[track_caller]
fn refused(answer: &Answer, status: u16, words: &[&str]) {
    assert_eq!(answer.status, status, "{:#}", answer.body);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.body["status"], json!(status));
    for word in words {
        assert!(
            answer.detail().contains(word),
            "{word}: {}",
            answer.detail()
        );
    }
}

async fn raw(world: &World, method: Method, path: &str, body: &[u8], media: &str) -> Answer {
    let mut sent = Sent::json(method, path, None).header("content-type", media);
    sent.body = body.to_vec();
    world.send(sent).await
}

const INSTANCES: &str = "/vnflcm/v2/vnf_instances";
const JSON: &str = "application/json";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_a_request_is_refused_by_the_frame() {
    let world = World::simple().await;
    refused(
        &raw(&world, Method::POST, INSTANCES, b"{\"vnfdId\": ", JSON).await,
        400,
        &["line 1"],
    );
    refused(
        &raw(&world, Method::POST, INSTANCES, b"{}", "text/plain").await,
        415,
        &[],
    );
    let large = vec![b' '; 1024 * 1024 + 1];
    refused(
        &raw(&world, Method::POST, INSTANCES, &large, JSON).await,
        413,
        &[],
    );
    refused(&world.get("/vnflcm/v2/nothing").await, 404, &[]);
    refused(
        &world.get("/vnflcm/v2/vnf_instances/none-such").await,
        404,
        &[],
    );
    refused(&world.delete(INSTANCES).await, 405, &[]);
    let other = Sent::json(Method::GET, INSTANCES, None).header("version", "9.9.9");
    refused(&world.send(other).await, 406, &[]);
    let mut without = Sent::json(Method::GET, INSTANCES, None);
    without.headers.clear();
    refused(&world.send(without).await, 400, &["Version"]);
    refused(
        &world.get(&format!("{INSTANCES}?filter=nonsense")).await,
        400,
        &[],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_unknown_or_out_of_range_is_named() {
    let world = World::simple().await;
    refused(&world.post(INSTANCES, &json!({})).await, 422, &["vnfdId"]);
    refused(
        &world.post(INSTANCES, &json!({"vnfdId": "none-such"})).await,
        422,
        &["none-such"],
    );
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    refused(
        &world.ask(&id, "instantiate", &json!({})).await,
        422,
        &["flavourId"],
    );
    let flavour = json!({"flavourId": "large"});
    refused(
        &world.ask(&id, "instantiate", &flavour).await,
        422,
        &["large", "default"],
    );
    let level = json!({"flavourId": "default", "instantiationLevelId": "huge"});
    refused(&world.ask(&id, "instantiate", &level).await, 422, &["huge"]);
    let clock =
        json!({"flavourId": "default", "additionalParams": {"cairn.clocks": {"blocked": "-1s"}}});
    refused(
        &world.ask(&id, "instantiate", &clock).await,
        422,
        &["blocked"],
    );
    assert!(
        world
            .history(&id)
            .await
            .iter()
            .all(|event| event["type"] != "OperationStarted")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_instance_has_not_or_may_not_reach_is_named() {
    let world = World::simple().await;
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let scale = |kind: &str, aspect: &str, steps: Value| json!({"type": kind, "aspectId": aspect, "numberOfSteps": steps});
    for (body, words) in [
        (
            scale("SCALE_OUT", "none", json!(1)),
            &["none", "web_aspect"][..],
        ),
        (scale("SCALE_OUT", "web_aspect", json!(5)), &["4"][..]),
        (scale("SCALE_IN", "web_aspect", json!(1)), &["0"][..]),
        (
            scale("SCALE_UP", "web_aspect", json!(1)),
            &["SCALE_OUT", "SCALE_IN"][..],
        ),
        (
            scale("SCALE_OUT", "web_aspect", json!(0)),
            &["numberOfSteps"][..],
        ),
        (
            scale("SCALE_OUT", "web_aspect", json!("many")),
            &["numberOfSteps"][..],
        ),
    ] {
        refused(&world.ask(&id, "scale", &body).await, 422, words);
    }
    let heal = json!({"vnfcInstanceId": ["none-such"]});
    refused(&world.ask(&id, "heal", &heal).await, 422, &["none-such"]);
    refused(
        &world.ask(&id, "terminate", &json!({})).await,
        422,
        &["terminationType"],
    );
    let kind = json!({"terminationType": "SUDDEN"});
    refused(
        &world.ask(&id, "terminate", &kind).await,
        422,
        &["terminationType", "FORCEFUL", "GRACEFUL"],
    );
    assert_eq!(world.instance(&id).await["provisioning"]["state"], "ACTIVE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_is_none_ends_in_error_with_the_reason() {
    let world = World::simple().await;
    for content in [
        b"no zip at all".to_vec(),
        b"PK\x03\x04 and then nothing".to_vec(),
    ] {
        let seen = world.upload(content).await;
        assert_eq!(seen["onboardingState"], "ERROR");
        let why = seen["onboardingFailureDetails"]["detail"]
            .as_str()
            .expect("a detail");
        assert!(!why.is_empty());
    }
    let mut wrong = package().config_map("x").csar();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 0xff;
    assert_eq!(world.upload(wrong).await["onboardingState"], "ERROR");
}

/// What only the cluster can say ends in `FAILED_TEMP` with nothing touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_cluster_does_not_know_fails_before_the_first_write() {
    let world = World::simple().await;
    let unknown =
        json!({"apiVersion": "example.org/v1", "kind": "Nothing", "metadata": {"name": "x"}});
    let vnfd = world
        .onboard(&package().config_map("x").manifest(unknown))
        .await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"].to_string().contains("Nothing"),
        "{halted:#}"
    );
    crate::operations::nothing_left(&world).await;

    let vnfd = world.onboard(&package().config_map("x")).await;
    let id = world.create(&vnfd).await;
    let nowhere = json!({"flavourId": "default", "additionalParams": {"namespace": "none-such"}});
    let op = world.begin(&id, "instantiate", &nowhere).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"].to_string().contains("none-such"),
        "{halted:#}"
    );
    let mut other = instantiate(&world);
    let id = world.create(&vnfd).await;
    other["vimConnectionInfo"] = crate::seed_c::vim(world.place(), "any");
    // A certificate, but of nobody that signed the server's.
    let stranger = cairn_simcluster::SimTls::generate(std::net::Ipv4Addr::LOCALHOST.into())
        .expect("a certificate");
    other["vimConnectionInfo"]["vim1"]["interfaceInfo"]["ssl_ca_cert"] = json!(stranger.ca_pem());
    let op = world.begin(&id, "instantiate", &other).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"].to_string().contains("ertificate"),
        "{halted:#}"
    );
}

/// First whether the request can be read, then whether there is what it is about, then whether it may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_judged_before_what_it_is_about() {
    let world = World::simple().await;
    for (id, found) in [("none-such", 404), (&*unused(&world).await, 409)] {
        let path = format!("{INSTANCES}/{id}/scale");
        let cut = raw(&world, Method::POST, &path, b"{\"type\": \"SCALE", JSON).await;
        refused(&cut, 400, &["line 1"]);
        let other = raw(&world, Method::POST, &path, b"{}", "text/plain").await;
        refused(&other, 415, &[]);
        let shapeless = world.post(&path, &json!({"type": "SCALE_OUT"})).await;
        refused(&shapeless, 422, &["aspectId"]);
        let asked = json!({"type": "SCALE_OUT", "aspectId": "none-such"});
        refused(&world.post(&path, &asked).await, found, &[]);
    }
}

/// An instance that is not instantiated.
async fn unused(world: &World) -> String {
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    world.create(&vnfd).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_is_no_pem_is_refused_at_once() {
    let world = World::simple().await;
    let id = unused(&world).await;
    for bad in [
        "/etc/ssl/ca.pem",
        "",
        "-----BEGIN CERTIFICATE-----\nno base64!\n-----END CERTIFICATE-----",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    ] {
        let mut vims = crate::seed_c::vim(world.place(), "any");
        vims["vim1"]["interfaceInfo"]["ssl_ca_cert"] = json!(bad);
        let mut body = instantiate(&world);
        body["vimConnectionInfo"] = vims.clone();
        let answer = world.ask(&id, "instantiate", &body).await;
        refused(&answer, 422, &["vim1", "ssl_ca_cert", "PEM"]);
        let answer = world.post("/cairn/v1/vims", &vims["vim1"]).await;
        refused(&answer, 422, &["ssl_ca_cert", "PEM"]);
    }
    assert_eq!(
        world.instance(&id).await["provisioning"]["state"],
        "AVAILABLE"
    );
}
