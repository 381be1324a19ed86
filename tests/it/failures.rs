//! What an operator is told of each class of failure: the words in `docs/operations.md` are those of a run.

use crate::operations::{instantiate, probe};
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::world::World;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Begins an operation that fails so, and answers it as it rests.
type Scenario = fn(&World) -> BoxFuture<'_, Value>;

/// What the first cells of the table name.
const SCENARIOS: &[(&str, Scenario)] = &[
    ("a quota", |world| Box::pin(quota(world))),
    ("an image that is not there", |world| Box::pin(image(world))),
    ("a crash loop", |world| Box::pin(crash_loop(world))),
    ("no node fits", |world| Box::pin(no_node(world))),
    ("an image name that is none", |world| {
        Box::pin(bad_image(world))
    }),
    ("a wrong token", |world| Box::pin(wrong_token(world))),
    ("a missing right", |world| Box::pin(missing_right(world))),
    ("a cluster out of reach", |world| {
        Box::pin(unreachable(world))
    }),
    ("a wrong authority", |world| {
        Box::pin(wrong_authority(world))
    }),
    ("an unknown kind", |world| Box::pin(unknown_kind(world))),
    ("a namespace that is not there", |world| {
        Box::pin(no_namespace(world))
    }),
    ("an object of somebody else", |world| {
        Box::pin(not_ours(world))
    }),
    ("a finalizer", |world| Box::pin(finalizer(world))),
    ("a cancel", |world| Box::pin(cancel(world))),
];

async fn begun(world: &World, package: &PackageBuilder, body: &Value) -> (String, String) {
    let vnfd = world.onboard(package).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", body).await;
    (id, op)
}

async fn halted(world: &World, package: &PackageBuilder, body: &Value) -> Value {
    let (_, op) = begun(world, package, body).await;
    world.ends(&op, "FAILED_TEMP").await
}

fn with_pods(annotations: Value) -> PackageBuilder {
    package().pods(annotations).deployment("web", 1)
}

fn with_spec(change: impl FnOnce(&mut Value)) -> PackageBuilder {
    package()
        .deployment("web", 1)
        .last(|manifest| change(&mut manifest["spec"]["template"]["spec"]))
}

async fn quota(world: &World) -> Value {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-more-pods"},
        "spec": {"hard": {"pods": "1"}}});
    let quotas = world.place().list("v1", "resourcequotas");
    world.place().kube.post(&quotas, &quota).await.is(201);
    halted(world, &package().deployment("web", 2), &instantiate(world)).await
}

async fn image(world: &World) -> Value {
    let pulls = json!({"simcluster.cairn.dev/pull": "fail"});
    halted(world, &with_pods(pulls), &instantiate(world)).await
}

async fn crash_loop(world: &World) -> Value {
    let crashes = json!({"simcluster.cairn.dev/crash": "always"});
    halted(world, &with_pods(crashes), &instantiate(world)).await
}

async fn no_node(world: &World) -> Value {
    let nowhere = with_spec(|spec| spec["nodeSelector"] = json!({"disk": "fast"}));
    halted(world, &nowhere, &instantiate(world)).await
}

async fn bad_image(world: &World) -> Value {
    let bad = with_spec(|spec| spec["containers"][0]["image"] = json!("Not An Image"));
    halted(world, &bad, &instantiate(world)).await
}

fn through(world: &World, change: impl FnOnce(&mut Value)) -> Value {
    let mut body = instantiate(world);
    body["vimConnectionInfo"] = crate::seed_c::vim(world.place(), "wrong-token");
    change(&mut body["vimConnectionInfo"]["vim1"]["interfaceInfo"]);
    body
}

async fn wrong_token(world: &World) -> Value {
    halted(world, &probe(), &through(world, |_| {})).await
}

async fn unreachable(world: &World) -> Value {
    let nobody = through(world, |at| at["endpoint"] = json!("https://127.0.0.1:1"));
    halted(world, &probe(), &nobody).await
}

async fn wrong_authority(world: &World) -> Value {
    let stranger = cairn_simcluster::SimTls::generate(std::net::Ipv4Addr::LOCALHOST.into());
    let pem = stranger.expect("a certificate").ca_pem().to_owned();
    let other = through(world, |at| at["ssl_ca_cert"] = json!(pem));
    halted(world, &probe(), &other).await
}

async fn missing_right(world: &World) -> Value {
    world.place().sim().deny("create", "configmaps", "*");
    halted(
        world,
        &package().config_map("settings"),
        &instantiate(world),
    )
    .await
}

async fn unknown_kind(world: &World) -> Value {
    let unknown = json!({"apiVersion": "v1", "kind": "Gateway", "metadata": {"name": "edge"}});
    halted(world, &package().manifest(unknown), &instantiate(world)).await
}

async fn no_namespace(world: &World) -> Value {
    let mut body = instantiate(world);
    body["additionalParams"]["namespace"] = json!("edge-7");
    halted(world, &package().config_map("settings"), &body).await
}

async fn not_ours(world: &World) -> Value {
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    let maps = world.place().list("v1", "configmaps");
    world.place().kube.post(&maps, &theirs).await.is(201);
    halted(
        world,
        &package().config_map("settings"),
        &instantiate(world),
    )
    .await
}

async fn finalizer(world: &World) -> Value {
    let wanted = package().config_map("settings").last(|manifest| {
        manifest["metadata"]["finalizers"] = json!(["example.com/hold"]);
    });
    let (id, op) = begun(world, &wanted, &instantiate(world)).await;
    world.ends(&op, "COMPLETED").await;
    let body = json!({"terminationType": "FORCEFUL"});
    let op = world.begin(&id, "terminate", &body).await;
    world.ends(&op, "FAILED_TEMP").await
}

async fn cancel(world: &World) -> Value {
    let never = json!({"simcluster.cairn.dev/ready-after": "never"});
    let (_, op) = begun(world, &with_pods(never), &instantiate(world)).await;
    // On a busy machine it tells for a moment what comes before that: a call without an answer, a rollout without pods.
    let waits = |seen: &Value| seen["waits"][0]["reason"] == "NotReady";
    world.op_until(&op, "to wait for the pod", waits).await;
    world.cancel(&op, "GRACEFUL").await.is(202);
    world.ends(&op, "FAILED_TEMP").await
}

/// The rows of the table, as their cells.
fn rows() -> Vec<Vec<String>> {
    let text = crate::docs::read("docs/operations.md");
    let (_, table) = text
        .split_once("| what is in the way | class | `error.detail` |")
        .expect("docs/operations.md has the table");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = row.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

/// Whether a text is what a pattern says, `…` standing for anything.
fn is_told(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    for (index, part) in pattern.split('…').enumerate() {
        match rest.find(part) {
            Some(0) => rest = &rest[part.len()..],
            Some(at) if index > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty() || pattern.ends_with('…')
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failure_is_told_in_the_documented_words() {
    let rows = rows();
    let told = futures::future::join_all(SCENARIOS.iter().map(|(name, scenario)| async move {
        let world = World::simple().await;
        let seen = scenario(&world).await;
        (
            *name,
            seen["error"]["detail"]
                .as_str()
                .expect("a detail")
                .to_owned(),
        )
    }))
    .await;
    let wrong: Vec<String> = told
        .iter()
        .filter(|(name, detail)| {
            !rows
                .iter()
                .any(|row| row[0] == *name && is_told(row[2].trim_matches('`'), detail))
        })
        .map(|(name, detail)| format!("| {name} | | `{detail}` |"))
        .collect();
    assert!(
        wrong.is_empty(),
        "docs/operations.md should say\n{}",
        wrong.join("\n")
    );
    assert_eq!(rows.len(), SCENARIOS.len(), "each row is of a run");
}

/// What is documented of a state: its legal calls and what an operator looks at, times left out.
fn shown(seen: &Value) -> String {
    let links = seen["_links"].as_object().expect("links");
    let calls: Vec<&str> = ["retry", "rollback", "fail", "cancel"]
        .into_iter()
        .filter(|call| links.contains_key(*call))
        .collect();
    let waits = seen["waits"].as_array().expect("waits").iter();
    let waits: Vec<Value> = waits
        .map(|wait| {
            assert!(
                wait["since"].is_string() && wait["until"].is_string(),
                "{wait:#}"
            );
            json!({"object": wait["object"], "class": wait["class"], "reason": wait["reason"]})
        })
        .collect();
    let open = |list: &str| {
        let steps = seen[list].as_array().expect("steps").iter();
        steps.filter(|step| step["state"] != "done").count()
    };
    format!(
        "{:<12} calls: {}; point {}; steps open: {}, to undo: {}; waits: {}; error: {}",
        seen["operationState"].as_str().expect("a state"),
        if calls.is_empty() {
            "none".to_owned()
        } else {
            calls.join(", ")
        },
        seen["point"],
        open("plan"),
        open("undo"),
        Value::from(waits),
        seen["error"]["detail"].as_str().unwrap_or("none"),
    )
}

/// One operation through the states, as an operator sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_state_looks_as_documented() {
    let world = World::simple().await;
    let clocks = "{progressing: 90s, blocked: 60s, infrastructure: 1s, unclassified: 1s}";
    let wanted = package()
        .clocks(clocks)
        .config_map("settings")
        .deployment("web", 1);
    let hold = |at: Value| json!([{"at": at, "action": "hold"}]);
    world.faults(&hold(json!({"errorPoint": 0}))).await;
    let (id, op) = begun(&world, &wanted, &instantiate(&world)).await;
    let mut lines = Vec::new();
    let at_point = |seen: &Value| seen["point"] == 0;
    lines.push(shown(&world.op_until(&op, "to be held", at_point).await));
    world.place().sim().freeze_controllers(true);
    world.faults(&json!([])).await;
    // On a busy machine it may tell for a moment that a call is not answered yet.
    let waits = |seen: &Value| {
        let reason = seen["waits"][0]["reason"].as_str();
        reason.is_some_and(|reason| reason != "AnswerOutstanding")
    };
    lines.push(shown(&world.op_until(&op, "to wait", waits).await));
    world.cancel(&op, "GRACEFUL").await.is(202);
    lines.push(shown(&world.ends(&op, "FAILED_TEMP").await));
    world.place().sim().freeze_controllers(false);
    let settings = world.place().path("v1", "configmaps", "settings");
    let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
    let kube = &world.place().kube;
    kube.merge(&settings, &finalizers(json!(["example.com/hold"])))
        .await
        .is(200);
    world.steer(&op, "rollback").await.is(202);
    // At first the Deployment is waited for too.
    let stopped =
        |seen: &Value| seen["waits"][0]["reason"] == "Finalizers" && seen["waits"][1].is_null();
    lines.push(shown(&world.op_until(&op, "to be held up", stopped).await));
    kube.merge(&settings, &finalizers(Value::Null))
        .await
        .is(200);
    lines.push(shown(&world.ends(&op, "ROLLED_BACK").await));
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    lines.push(shown(&world.ends(&op, "COMPLETED").await));
    let text = crate::docs::read("docs/operations.md");
    let missing: Vec<&String> = lines
        .iter()
        .filter(|line| !text.lines().any(|documented| is_told(documented, line)))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/operations.md should say\n{missing:#?}"
    );
}
