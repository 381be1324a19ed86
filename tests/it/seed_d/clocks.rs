//! How long is waited is said by the server, by the package, and by the request; the narrowest wins.

use super::rows::claim;
use crate::operations::instantiate;
use cairn_domain::clocks::Clocks;
use cairn_tests::package::package;
use cairn_tests::world::{Ground, World};
use serde_json::{Value, json};

/// Milliseconds between two times of one wait.
fn between(wait: &Value) -> i64 {
    let millis = |member: &str| {
        let text = wait[member].as_str().expect("a time");
        let (_, time) = text.split_once('T').expect("RFC 3339");
        let parts: Vec<i64> = time
            .trim_end_matches('Z')
            .split([':', '.'])
            .map(|part| part.parse().expect("a number"))
            .collect();
        ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1000 + parts[3]
    };
    // Over midnight it begins anew.
    (millis("until") - millis("since")).rem_euclid(24 * 3600 * 1000)
}

/// The clock of a claim that nothing binds, in milliseconds, with these settings.
async fn clock(server: Option<&str>, package_says: Option<&str>, request: Option<Value>) -> i64 {
    let ground = Ground::simple().await;
    let world = World::with(ground, |settings| {
        if let Some(server) = server {
            let mut clocks = Clocks::default();
            clocks.set("infrastructure", server).expect("a clock");
            settings.clocks = clocks;
        }
    })
    .await;
    let clocks = package_says.map_or_else(
        || "{blocked: 1s}".to_owned(),
        |says| format!("{{infrastructure: {says}}}"),
    );
    let stuck = package()
        .clocks(&clocks)
        .manifest(claim("data", None, "500Gi"));
    let vnfd = world.onboard(&stuck).await;
    let id = world.create(&vnfd).await;
    let mut body = instantiate(&world);
    if let Some(request) = request {
        body["additionalParams"]["cairn.clocks"] = json!({"infrastructure": request});
    }
    let op = world.begin(&id, "instantiate", &body).await;
    let seen = world
        .op_until(&op, "to wait", |seen| {
            seen["waits"][0]["reason"] == "Unbound"
        })
        .await;
    assert_eq!(seen["operationState"], "PROCESSING");
    let wait = &seen["waits"][0];
    assert_eq!(
        wait["object"], "PersistentVolumeClaim/data",
        "what it waits for: {wait:#}"
    );
    world.cancel(&op, "FORCEFUL").await.is(202);
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(halted["error"]["detail"].to_string().contains("data"));
    between(wait)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_narrowest_clock_wins() {
    let (default, server, package, request, zero) = tokio::join!(
        clock(None, None, None),
        clock(Some("4m"), None, None),
        clock(Some("4m"), Some("3m"), None),
        clock(Some("4m"), Some("3m"), Some(json!("2m"))),
        // Field case 41: zero is no time-out at all, it is no setting.
        clock(None, None, Some(json!(0))),
    );
    assert_eq!(
        [default, server, package, request, zero],
        [300_000, 240_000, 180_000, 120_000, 300_000]
    );
}

/// Field case 41: what is no clock is refused, whatever else the request holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_clock_is_refused() {
    let world = World::simple().await;
    let vnfd = world.onboard(&package().config_map("x")).await;
    let id = world.create(&vnfd).await;
    for bad in [
        json!(-1),
        json!("-1s"),
        json!("9999h"),
        json!("soon"),
        json!(u64::MAX),
    ] {
        let mut body = instantiate(&world);
        body["additionalParams"]["cairn.clocks"] = json!({"infrastructure": bad});
        let refused = world.ask(&id, "instantiate", &body).await;
        assert_eq!(refused.status, 422, "{bad}: {:#}", refused.body);
        assert!(refused.detail().contains("infrastructure"), "{bad}");
    }
    assert_eq!(
        world.instance(&id).await["provisioning"]["state"],
        "AVAILABLE"
    );
}
