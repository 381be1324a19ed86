//! What single faults of the way to the cluster must not do.

use crate::operations::{instantiate, vnfcs};
use cairn_tests::client::SOON;
use cairn_tests::package::package;
use cairn_tests::place::Place;
use cairn_tests::proxy::{Proxy, Rule, Strike};
use cairn_tests::until::until;
use cairn_tests::world::{Ground, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// What tells the simulated cluster when a pod becomes ready.
const READY_AFTER: &str = "simcluster.cairn.dev/ready-after";

/// A request that leads through the proxy.
fn through(world: &World, proxy: &Proxy, run: &str) -> Value {
    let mut body = instantiate(world);
    body["vimConnectionInfo"] = proxy.vim(run);
    body
}

/// How often an event of this type stands in a history.
async fn count(world: &World, id: &str, kind: &str) -> usize {
    let history = world.history(id).await;
    history.iter().filter(|event| event["type"] == kind).count()
}

/// Field case 74: 429 is obeyed and never a try.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_operations_obey_a_cluster_that_wants_every_third_call_later() {
    let world = World::simple().await;
    let proxy = Proxy::plain(world.place()).await;
    let vnfd = world.onboard(&package().config_map("settings")).await;
    proxy.strike(
        Rule::new("busy", Strike::TooMany(Some(1)))
            .every(3)
            .after(2),
    );
    let mut ops = Vec::new();
    for index in 0..20 {
        let namespace = format!("busy-{index}");
        let made =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        world
            .place()
            .sim()
            .create("test", made)
            .expect("a namespace");
        let id = world.create(&vnfd).await;
        let mut body = through(&world, &proxy, "busy");
        body["additionalParams"]["namespace"] = json!(namespace);
        ops.push((world.begin(&id, "instantiate", &body).await, id));
    }
    for (op, id) in &ops {
        let done = world.ends(op, "COMPLETED").await;
        assert_eq!(done["tries"].as_array().map(Vec::len), Some(1), "{done:#}");
        assert_eq!(count(&world, id, "OutcomeUnknown").await, 0);
    }
    let seen = proxy.seen("busy");
    let refused = seen.iter().filter(|one| one.struck).count();
    assert!(refused >= 20, "{refused} of {} calls", seen.len());
}

/// Field case 77: credentials expire in a long operation.
async fn renewed(token_file: bool) {
    let place = Place::simulated().await;
    let proxy = Proxy::with_tls(&place).await;
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let (file, token) = (
        folder.path().join("kubeconfig"),
        folder.path().join("token"),
    );
    let write = |run: &str| {
        let mut config: Value = serde_json::from_str(&proxy.kubeconfig(run)).expect("JSON");
        if token_file {
            config["users"][0]["user"] = json!({"tokenFile": token});
            std::fs::write(&token, run).expect("a token file");
        }
        std::fs::write(&file, config.to_string()).expect("a kubeconfig");
    };
    write("first");
    let world = World::on(Ground::by_kubeconfig(place, file.clone()).await).await;
    let clocks = "{progressing: 90s, blocked: 60s, infrastructure: 60s, unclassified: 1s}";
    let slow = package().clocks(clocks).pods(json!({READY_AFTER: "never"}));
    let vnfd = world.onboard(&slow.deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    for (old, new) in [("first", "second"), ("second", "third")] {
        world
            .op_until(&op, "to wait for its pods", |seen| seen["point"] == 4)
            .await;
        until(SOON, "the credentials to be used", || async {
            if proxy.seen(old).is_empty() {
                Err("not yet")
            } else {
                Ok(())
            }
        })
        .await;
        proxy.revoke(old);
        // Somebody writes it anew and is seen in the middle of that.
        std::fs::write(&file, "").expect("a kubeconfig");
        let told = |seen: &Value| seen["waits"].to_string().contains("kubeconfig");
        world.op_until(&op, "to say what is wrong", told).await;
        write(new);
    }
    until(SOON, "the last credentials to be used", || async {
        if proxy.seen("third").is_empty() {
            Err("not yet")
        } else {
            Ok(())
        }
    })
    .await;
    let place = world.place();
    let pods = place.sim().list("v1", "Pod", &place.namespace);
    let name = pods[0]["metadata"]["name"].as_str().expect("a name");
    let ready = json!({"metadata": {"annotations": {READY_AFTER: null}}});
    let at = (place.namespace.as_str(), name);
    let patched = place.sim().patch("test", ("v1", "Pod"), at, &ready);
    patched.expect("the pod becomes ready");
    let done = world.ends(&op, "COMPLETED").await;
    assert_eq!(done["tries"].as_array().map(Vec::len), Some(1), "{done:#}");
    let told = world.history(&id).await;
    for secret in ["first", "second", "third"] {
        let text = json!(told).to_string();
        assert!(
            !text.contains(&format!("\"{secret}\"")),
            "a token in the history"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_replaced_in_the_kubeconfig_is_read_in_mid_operation() {
    renewed(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_file_that_is_replaced_is_read_in_mid_operation() {
    renewed(true).await;
}

/// Field case 6: a call that never returns is given up within 10 s, and its late effect is found by the retry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_answer_is_cancelled_and_its_late_effect_changes_nothing() {
    let world = World::simple().await;
    let proxy = Proxy::plain(world.place()).await;
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    // The first of them is the dry-run.
    let late = Rule::new("late", Strike::Late(Duration::from_secs(8)));
    proxy.strike(
        late.method("PATCH")
            .path("/deployments/web")
            .after(1)
            .times(1),
    );
    let op = world
        .begin(&id, "instantiate", &through(&world, &proxy, "late"))
        .await;
    let waiting = world
        .op_until(&op, "to say that it waits for an answer", |seen| {
            seen["waits"][0]["reason"] == "AnswerOutstanding"
        })
        .await;
    let wait = &waiting["waits"][0];
    assert_eq!(
        (&wait["object"], &wait["class"]),
        (&json!("Deployment/web"), &json!("progressing"))
    );
    assert!(wait["until"].as_str() > wait["since"].as_str(), "{wait:#}");

    let asked = Instant::now();
    world.cancel(&op, "FORCEFUL").await.is(202);
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "{:?}",
        asked.elapsed()
    );
    let detail = halted["error"]["detail"].to_string();
    assert!(detail.to_lowercase().contains("cancel"), "{detail}");
    assert!(
        detail.contains("Deployment/web"),
        "it says what it was waiting for: {detail}"
    );

    let before = world.history(&id).await.len();
    let path = world.place().path("apps/v1", "deployments", "web");
    let made = world
        .place()
        .kube
        .until(&path, SOON, "to be made late", |_| true)
        .await;
    let events = world.history(&id).await;
    assert_eq!(
        events.len(),
        before,
        "a late answer changes nothing: {events:#?}"
    );
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    let kept = world.place().read(&path).await.expect("it is there");
    assert_eq!(
        kept["metadata"]["uid"], made["metadata"]["uid"],
        "it is adopted, not made again"
    );
}

/// Checks write nothing, so that a graceful cancel need not wait for their answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_without_an_answer_are_cancelled_gracefully_at_once() {
    let world = World::simple().await;
    let proxy = Proxy::plain(world.place()).await;
    let vnfd = world.onboard(&package().config_map("settings")).await;
    let id = world.create(&vnfd).await;
    let silent = Strike::Silence(cairn_tests::proxy::When::Before);
    proxy.strike(Rule::new("silent", silent).after(3));
    let op = world
        .begin(&id, "instantiate", &through(&world, &proxy, "silent"))
        .await;
    world
        .op_until(&op, "to say that it waits for an answer", |seen| {
            seen["waits"][0]["reason"] == "AnswerOutstanding"
                && seen["waits"][0]["object"] == "cluster"
        })
        .await;
    let asked = Instant::now();
    world.cancel(&op, "GRACEFUL").await.is(202);
    world.ends(&op, "FAILED_TEMP").await;
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
}

/// A list of pods that is older than what the controllers say is not recorded as the truth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_list_of_pods_is_read_again() {
    let world = World::simple().await;
    let proxy = Proxy::plain(world.place()).await;
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let id = world.create(&vnfd).await;
    let body = through(&world, &proxy, "stale");
    world.complete(&id, "instantiate", &body).await;
    // The first list, of before the scale, is told until an inventory has taken it for the present.
    let old = Rule::new("stale", Strike::Stale)
        .method("GET")
        .path("/pods");
    proxy.strike(old.after(1));
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    let op = world.begin(&id, "scale", &out).await;
    let seen = world
        .op_until(&op, "to see that the list is old", |seen| {
            seen["waits"][0]["reason"] == "ReplicasDiffer" || seen["operationState"] == "COMPLETED"
        })
        .await;
    assert_eq!(seen["operationState"], "PROCESSING", "{seen:#}");
    let message = seen["waits"][0]["message"].as_str().expect("a message");
    assert!(
        message.contains("counts 2 pods and 1 are listed"),
        "{message}"
    );
    proxy.calm("stale");
    world.ends(&op, "COMPLETED").await;
    assert_eq!(vnfcs(&world.instance(&id).await).len(), 2);
}

/// Field case 76: whatever becomes of watches, the periodic look finds what they should have told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_say_nothing_or_the_wrong_thing_delay_and_change_nothing() {
    let world = World::simple().await;
    let proxy = Proxy::plain(world.place()).await;
    let vnfd = world.onboard(&package().deployment("web", 1)).await;
    let strikes = [
        ("cut", Strike::Cut),
        ("expired", Strike::Expired),
        ("bookmarks", Strike::Bookmarks),
        ("swallow", Strike::Swallow),
        ("refused", Strike::TooMany(Some(1))),
        (
            "broken",
            Strike::Status(500, cairn_tests::proxy::When::Before),
        ),
    ];
    for (run, _) in &strikes {
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": run}});
        world
            .place()
            .sim()
            .create("test", made)
            .expect("a namespace");
    }
    // Nothing is ready before each watch has been disturbed.
    world.place().sim().freeze_controllers(true);
    let begun = strikes.into_iter().map(|(run, strike)| {
        let (world, proxy, vnfd) = (&world, &proxy, &vnfd);
        async move {
            proxy.strike(Rule::new(run, strike).watches());
            let id = world.create(vnfd).await;
            let mut body = through(world, proxy, run);
            body["additionalParams"]["namespace"] = json!(run);
            let op = world.begin(&id, "instantiate", &body).await;
            until(SOON, &format!("{run} to strike"), || async {
                let struck = proxy.seen(run).iter().any(|one| one.struck);
                if struck { Ok(()) } else { Err(proxy.seen(run)) }
            })
            .await;
            (run, id, op)
        }
    });
    let begun = futures::future::join_all(begun).await;
    world.place().sim().freeze_controllers(false);
    for (run, id, op) in begun {
        let done = world.ends(&op, "COMPLETED").await;
        assert_eq!(
            done["tries"].as_array().map(Vec::len),
            Some(1),
            "{run}: {done:#}"
        );
        assert_eq!(vnfcs(&world.instance(&id).await).len(), 1, "{run}");
        let seen = proxy.seen(run);
        assert!(seen.len() < 400, "{run}: {} calls", seen.len());
    }
}

/// Field case 16: the text of a cluster may be of any length; a state can be saved all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_ten_megabytes_is_cut_and_the_operation_halts() {
    let world = World::simple().await;
    let proxy = Proxy::plain(world.place()).await;
    let vnfd = world.onboard(&package().config_map("settings")).await;
    let ten = Strike::Wordy(10 * 1024 * 1024);
    for (run, rule) in [
        (
            "read",
            Rule::new("read", ten.clone())
                .method("GET")
                .path("/configmaps/settings"),
        ),
        (
            "written",
            Rule::new("written", ten.clone())
                .method("PATCH")
                .path("/configmaps/settings")
                .after(1),
        ),
    ] {
        proxy.strike(rule);
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": run}});
        world
            .place()
            .sim()
            .create("test", made)
            .expect("a namespace");
        let id = world.create(&vnfd).await;
        let mut body = through(&world, &proxy, run);
        body["additionalParams"]["namespace"] = json!(run);
        let op = world.begin(&id, "instantiate", &body).await;
        let halted = world.ends(&op, "FAILED_TEMP").await;
        let detail = halted["error"]["detail"].as_str().expect("a detail");
        assert!(
            detail.contains("no no") && detail.len() < 10_000,
            "{} bytes",
            detail.len()
        );
        let history = json!(world.history(&id).await).to_string();
        assert!(history.len() < 200_000, "{run}: {} bytes", history.len());
        proxy.calm(run);
        world.steer(&op, "retry").await.is(202);
        world.ends(&op, "COMPLETED").await;
    }
}
