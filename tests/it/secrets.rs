//! Secrets appear nowhere: what is planted is looked for in everything that Cairn says, writes or keeps.

use cairn_tests::child::Served;
use cairn_tests::client::Client;
use cairn_tests::package::package;
use cairn_tests::receiver::Receiver;
use cairn_tests::world::Ground;
use serde_json::{Value, json};

const WRONG_TOKEN: &str = "planted-wrong-token-1";
const PASSWORD: &str = "planted-password-2";
const PIN: &str = "planted-pin-3";
const CALLBACK: &str = "planted-callback-4";
const MANIFEST: &str = "planted-manifest-5";
const CONFIGURED: &str = "planted-vim-6";

/// Everything that can be read over HTTP.
async fn everything(
    client: &Client,
    id: &str,
    ops: &[String],
    subscription: &str,
) -> Vec<(String, String)> {
    let mut paths: Vec<String> = [
        "/vnflcm/v2/vnf_instances",
        "/vnflcm/v2/vnf_lcm_op_occs",
        "/vnflcm/v2/subscriptions",
        "/cairn/v1/vims",
        "/metrics",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(format!("/vnflcm/v2/vnf_instances/{id}"));
    paths.push(format!("/cairn/v1/vnf_instances/{id}"));
    paths.push(format!("/cairn/v1/vnf_instances/{id}/history"));
    paths.push(format!("/cairn/v1/subscriptions/{subscription}/deliveries"));
    for op in ops {
        paths.push(format!("/vnflcm/v2/vnf_lcm_op_occs/{op}"));
        paths.push(format!("/cairn/v1/vnf_lcm_op_occs/{op}"));
    }
    let mut read = Vec::new();
    for path in paths {
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {:#}", answer.body);
        read.push((path, answer.body.to_string()));
    }
    read
}

/// Begins with a wrong token, mends it, goes on; answers the instance and its operations.
async fn story(client: &Client, ground: &Ground) -> (String, Vec<String>) {
    let builder = package()
        .sensitive("subscriberPin")
        .secret("credentials", MANIFEST)
        .deployment("web", 1);
    let vnfd = client.onboard(&builder).await;
    let id = client.create(&vnfd).await;
    let body = json!({"flavourId": "default", "vimConnectionInfo": crate::seed_c::vim(&ground.place, WRONG_TOKEN),
        "additionalParams": {"namespace": ground.place.namespace, "adminPassword": PASSWORD,
            "subscriberPin": PIN}});
    let op = client.begin(&id, "instantiate", &body).await;
    client.ends(&op, "FAILED_TEMP").await;
    let token = ground.place.kube.token.clone().expect("a token");
    let patch = json!({"vimConnectionInfo": crate::seed_c::vim(&ground.place, &token)});
    let modified = client.begin(&id, "modify", &patch).await;
    client.ends(&modified, "COMPLETED").await;
    client.steer(&op, "retry").await.is(202);
    client.ends(&op, "COMPLETED").await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect", "additionalParams": {"apiToken": PASSWORD}});
    let scaled = client.begin(&id, "scale", &out).await;
    client.ends(&scaled, "COMPLETED").await;
    (id, vec![op, modified, scaled])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_planted_is_found_nowhere() {
    let ground = Ground::simple().await;
    let receiver = Receiver::start().await;
    let served = Served::start(&ground, &[]).await;
    let client = &served.client;
    let body = json!({"callbackUri": receiver.uri(), "authentication": {"authType": ["BASIC"],
        "paramsBasic": {"userName": "nfvo", "password": CALLBACK}}});
    let made = client.post("/vnflcm/v2/subscriptions", &body).await.is(201);
    let subscription = made["id"].as_str().expect("an id").to_owned();
    let mut vim = crate::seed_c::vim(&ground.place, CONFIGURED)["vim1"].clone();
    vim["vimId"] = json!("elsewhere");
    client.post("/cairn/v1/vims", &vim).await.is(201);
    let (id, ops) = story(client, &ground).await;
    receiver.accepted_are(8).await;

    let mut said = everything(client, &id, &ops, &subscription).await;
    said.push(("the log".to_owned(), served.log()));
    let notifications = receiver
        .told()
        .into_iter()
        .map(|told| told.body)
        .collect::<Vec<Value>>();
    said.push((
        "notifications".to_owned(),
        Value::from(notifications).to_string(),
    ));
    let database = ground
        .database
        .folder()
        .expect("SQLite has a folder")
        .to_owned();
    for file in std::fs::read_dir(database).expect("a folder").flatten() {
        let bytes = std::fs::read(file.path()).expect("a file");
        said.push((
            file.path().display().to_string(),
            String::from_utf8_lossy(&bytes).into_owned(),
        ));
    }
    let token = ground.place.kube.token.clone().expect("a token");
    for secret in [
        WRONG_TOKEN,
        PASSWORD,
        PIN,
        CALLBACK,
        MANIFEST,
        CONFIGURED,
        &token,
    ] {
        for (place, text) in &said {
            // A package is no secret: its bytes lie in the database as they were uploaded, compressed.
            assert!(!text.contains(secret), "{secret} is in {place}");
        }
    }
    assert!(!served.log().is_empty(), "the log was looked at");
}
