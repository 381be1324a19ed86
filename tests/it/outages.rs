//! What the program stands on fails: the database is cut off in mid-append, restarted; the clock jumps; replicas
//! come and die. An operation goes on when it can, and nothing happens twice.

mod clocks;

use crate::operations::instantiate;
use axum::http::Method;
use cairn_db::testing::TestDatabase;
use cairn_tests::child::Served;
use cairn_tests::client::{Client, SOON, Sent};
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::Place;
use cairn_tests::receiver::Receiver;
use cairn_tests::until::until;
use cairn_tests::wire::Wire;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn small() -> PackageBuilder {
    package()
        .config_map("settings")
        .service("web")
        .deployment("web", 1)
}

async fn on_postgres() -> Option<Arc<Ground>> {
    Ground::new(Kind::Postgres, Place::simulated().await).await
}

/// Asks until it is accepted, as an NFVO does whose answer was lost: the key makes all these one request.
async fn persist(client: &Client, instance: &str, operation: &str, body: &Value) -> String {
    let path = format!("/vnflcm/v2/vnf_instances/{instance}/{operation}");
    let sent = Sent::json(Method::POST, &path, Some(body));
    let sent = sent.header("idempotency-key", &format!("{instance}-{operation}"));
    until(SOON, &format!("{operation} to be accepted"), || async {
        match client.try_send(sent.clone()).await {
            Some(answer) if answer.status == 202 => Ok(answer.located()),
            Some(answer) => {
                assert!(answer.status >= 500, "{}: {:#}", answer.status, answer.body);
                Err(format!("{} {}", answer.status, answer.body))
            }
            None => Err("no answer".to_owned()),
        }
    })
    .await
}

/// Awaits the end of an operation, also from a server that cannot answer now.
async fn ends(client: &Client, op: &str, state: &str) -> Value {
    let path = format!("/cairn/v1/vnf_lcm_op_occs/{op}");
    let seen = until(SOON, &format!("operation {op} to rest"), || async {
        let sent = Sent::json(Method::GET, &path, None);
        let Some(answer) = client.try_send(sent).await else {
            return Err(Value::Null);
        };
        let state = answer.body["operationState"].as_str();
        let rests = matches!(
            state,
            Some("COMPLETED" | "FAILED_TEMP" | "FAILED" | "ROLLED_BACK")
        );
        if rests {
            Ok(answer.body)
        } else {
            Err(answer.body)
        }
    })
    .await;
    assert_eq!(seen["operationState"], state, "{seen:#}");
    seen
}

/// Nothing in this history happened twice: each stream is counted without a gap, and each step began once.
fn is_told_once(history: &[Value]) {
    let mut sequences: BTreeMap<String, u64> = BTreeMap::new();
    let mut begun: BTreeMap<String, usize> = BTreeMap::new();
    for event in history {
        let stream = event["aggregateId"].as_str().expect("an id").to_owned();
        let expected = sequences.entry(stream.clone()).or_insert(0);
        *expected += 1;
        assert_eq!(event["sequence"], *expected, "{event:#}");
        let name = event["type"].as_str().expect("a name");
        if ["OperationStarted", "OperationCompleted", "PlanFixed"].contains(&name) {
            *begun.entry(format!("{stream} {name}")).or_insert(0) += 1;
        }
        if name == "StepStarted" {
            let step = &event["data"]["step"];
            *begun.entry(format!("{stream} step {step}")).or_insert(0) += 1;
        }
    }
    for (what, times) in begun {
        assert_eq!(times, 1, "{what}");
    }
}

/// What made something did so once, whoever asked.
fn is_made_once(ground: &Ground) {
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for request in ground.place.sim().requests() {
        if request.is_effect() && request.status == 201 && request.method != "GET" {
            let lasting = !request.path.ends_with("reviews") && !request.path.ends_with("/events");
            if lasting && request.manager.starts_with("cairn") {
                *made.entry(request.path).or_insert(0) += 1;
            }
        }
    }
    assert!(!made.is_empty());
    for (path, times) in made {
        assert_eq!(times, 1, "{path}");
    }
}

/// Instantiates and scales on a database that fails as `Wire` does.
async fn through(wire: &Wire, ground: &Arc<Ground>) {
    let url = wire.url(&ground.store().database);
    let world = World::with(ground.clone(), |settings| settings.store.database = url).await;
    let vnfd = world.onboard(&small()).await;
    let id = world.create(&vnfd).await;
    wire.strike_every(3);
    let op = persist(&world, &id, "instantiate", &instantiate(&world)).await;
    ends(&world, &op, "COMPLETED").await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    let op = persist(&world, &id, "scale", &out).await;
    ends(&world, &op, "COMPLETED").await;
    wire.strike_every(0);
    assert!(wire.struck() >= 6, "{} COMMITs were struck", wire.struck());
    is_told_once(&world.history(&id).await);
    is_made_once(ground);
    let state = &world.instance(&id).await["provisioning"]["state"];
    assert_eq!(state, "ACTIVE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_is_cut_off_at_its_commit_is_looked_for_and_not_made_twice() {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let wire = Wire::to(&ground.store().database).await;
    through(&wire, &ground).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_out_of_reach_for_longer_than_a_lease_is_waited_for() {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let wire = Wire::to(&ground.store().database).await;
    let url = wire.url(&ground.store().database);
    let world = World::with(ground.clone(), |settings| settings.store.database = url).await;
    let (id, op) = waiting(&world).await;
    wire.down(true);
    let answer = world.ask(&id, "heal", &json!({})).await;
    assert_eq!(answer.status, 503, "{:#}", answer.body);
    // By the database's own clock, which runs on.
    let database = ground.database.open().await;
    until(SOON, "the lease to lapse", || async {
        let sql = "SELECT op_id FROM work WHERE needed = 1 AND expires_at < \
                   (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let lapsed = database.fetch_all(sql, Vec::new()).await.expect("rows");
        if lapsed.is_empty() {
            Err("it runs on")
        } else {
            Ok(())
        }
    })
    .await;
    database.close().await;
    wire.down(false);
    ends(&world, &op, "COMPLETED").await;
    is_told_once(&world.history(&id).await);
    is_made_once(&ground);
}

/// An instantiate that waits for pods which take some seconds.
async fn waiting(world: &World) -> (String, String) {
    let slow = package()
        .clocks("{progressing: 3h, blocked: 1s, infrastructure: 1s, unclassified: 1s}")
        .pods(json!({"simcluster.cairn.dev/ready-after": "6s"}))
        .config_map("settings")
        .deployment("web", 1);
    let vnfd = world.onboard(&slow).await;
    let id = world.create(&vnfd).await;
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    world
        .op_until(&op, "to wait", |seen| {
            seen["waits"]
                .as_array()
                .is_some_and(|waits| !waits.is_empty())
        })
        .await;
    (id, op)
}

/// Holds an instantiate at an error point.
async fn held(world: &World, point: u8) -> (String, String) {
    let vnfd = world.onboard(&small()).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"at": {"errorPoint": point}, "action": "hold"}]))
        .await;
    let op = world.begin(&id, "instantiate", &instantiate(world)).await;
    world
        .op_until(&op, "to be held", |seen| seen["point"] == point)
        .await;
    (id, op)
}

/// A PostgreSQL of a test's own, in a folder that goes with it.
struct OwnPostgres {
    folder: PathBuf,
}

impl OwnPostgres {
    fn new() -> Option<Self> {
        if std::env::var_os(cairn_db::testing::WITHOUT_POSTGRES).is_some() {
            eprintln!("left out, as {} says", cairn_db::testing::WITHOUT_POSTGRES);
            return None;
        }
        let folder = tempfile::TempDir::new().expect("a temporary folder").keep();
        Some(Self {
            folder: folder.join("postgres"),
        })
    }

    fn run(&self, script: &str, flags: &[&str]) -> String {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("postgres");
        let ran = Command::new(scripts.join(script))
            .arg("--dir")
            .arg(&self.folder)
            .args(flags)
            .output()
            .expect("the script can be run");
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        said.lines().last().unwrap_or_default().to_owned()
    }

    /// Starts it, again with its data; its URL.
    fn up(&self) -> String {
        self.run("up", &["--fsync"])
    }

    /// Kills it as a power cut does.
    fn kill(&self) {
        let pid = self.folder.join("server/data/postmaster.pid");
        let pid = std::fs::read_to_string(pid).expect("the server's pid");
        let pid = pid.lines().next().expect("a line").to_owned();
        let killed = Command::new("kill").args(["-9", &pid]).status();
        assert!(killed.expect("kill runs").success());
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run("down", &[]);
        }
        let parent = self.folder.parent().expect("a folder");
        if let Err(failed) = std::fs::remove_dir_all(parent) {
            eprintln!("{}: {failed}", parent.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgresql_that_is_killed_and_started_again_has_lost_nothing() {
    let Some(own) = OwnPostgres::new() else {
        return;
    };
    let database = TestDatabase::postgres_at(&own.up()).await;
    let ground = Ground::with_database(Place::simulated().await, database);
    let world = World::on(ground.clone()).await;
    let (id, op) = waiting(&world).await;
    own.kill();
    // What serves a connection outlives the postmaster for a moment.
    until(SOON, "the database to be missed", || async {
        let answer = world.get("/readyz").await;
        if answer.status == 503 {
            Ok(())
        } else {
            Err(answer.body)
        }
    })
    .await;
    own.up();
    ends(&world, &op, "COMPLETED").await;
    is_told_once(&world.history(&id).await);
    is_made_once(&ground);
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    world.complete(&id, "scale", &out).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_starts_in_mid_operation_changes_nothing() {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let first = World::on(ground.clone()).await;
    let (id, op) = held(&first, 4).await;
    let (history, owner) = (
        first.history(&id).await,
        first.op(&op).await["owner"].clone(),
    );
    let second = World::on(ground.clone()).await;
    // It has claimed and done what is its own, so it has looked for more.
    let vnfd = second.onboard(&package().config_map("other")).await;
    let its = second.create(&vnfd).await;
    second
        .complete(&its, "instantiate", &instantiate(&second))
        .await;
    assert_eq!(second.history(&id).await, history);
    assert_eq!(second.op(&op).await["owner"], owner);
    first.delete("/cairn/v1/faults").await;
    first.end().await;
    second.ends(&op, "COMPLETED").await;
    is_made_once(&ground);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_all_replicas_died_a_subscriber_gets_what_is_missing_in_order() {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let world = World::on(ground.clone()).await;
    let receiver = Receiver::start().await;
    let subscription = json!({"callbackUri": receiver.uri()});
    world
        .post("/vnflcm/v2/subscriptions", &subscription)
        .await
        .is(201);
    let (id, op) = held(&world, 4).await;
    // Created, STARTING, PROCESSING.
    receiver.accepted_are(3).await;
    receiver.answer_always(Some(503));
    let second = World::on(ground.clone()).await;
    world.cancel(&op, "FORCEFUL").await.is(202);
    world.ends(&op, "FAILED_TEMP").await;
    drop(world.kill());
    drop(second.kill());
    receiver.answer_always(None);
    let third = World::on(ground.clone()).await;
    third.steer(&op, "rollback").await.is(202);
    third.ends(&op, "ROLLED_BACK").await;
    let accepted = receiver.accepted_are(6).await;
    let states: Vec<&Value> = accepted.iter().map(|one| &one["operationState"]).collect();
    let expected = [
        "STARTING",
        "PROCESSING",
        "FAILED_TEMP",
        "ROLLING_BACK",
        "ROLLED_BACK",
    ];
    assert_eq!(states[1..], expected, "{id}");
    let mut ids: Vec<&str> = accepted
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), accepted.len());
}

/// Replicas that are killed in turn while they work, each replaced by a new one.
async fn killed_in_turn(replicas: usize, seed: u64) {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let mut alive = Vec::new();
    for _ in 0..replicas {
        alive.push(Served::start(&ground, &[]).await);
    }
    let slow = small().pods(json!({"simcluster.cairn.dev/ready-after": "1500ms"}));
    let vnfd = alive[0].client.onboard(&slow.deployment("slow", 1)).await;
    let mut ops = Vec::new();
    for index in 0..6 {
        let namespace = format!("killed-{index}");
        let made =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        ground
            .place
            .sim()
            .create("test", made)
            .expect("a namespace");
        let client = &alive[index % replicas].client;
        let id = client.create(&vnfd).await;
        let body = json!({"flavourId": "default", "additionalParams": {"namespace": namespace}});
        ops.push((id.clone(), persist(client, &id, "instantiate", &body).await));
    }
    let mut drawn = seed;
    for _ in 0..replicas {
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let length = u64::try_from(replicas).expect("a few");
        let victim = usize::try_from((drawn >> 33) % length).expect("an index");
        alive.swap_remove(victim).kill().await;
        alive.push(Served::start(&ground, &[]).await);
    }
    for (id, op) in &ops {
        let client = &alive[0].client;
        ends(client, op, "COMPLETED").await;
        is_told_once(&client.history(id).await);
    }
    is_made_once(&ground);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_killed_in_turn_lose_and_double_nothing() {
    killed_in_turn(2, 0x5eed_0002).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_killed_in_turn_lose_and_double_nothing() {
    killed_in_turn(3, 0x5eed_0003).await;
}

/// Well below the lease of 10 s: it was given back, and has not lapsed.
const HANDED_OVER: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_gets_sigterm_hands_over_while_it_waits() {
    let Some(ground) = on_postgres().await else {
        return;
    };
    let mut first = Served::start(&ground, &[]).await;
    let never = package()
        .clocks("{progressing: 3h, blocked: 3h, infrastructure: 3h, unclassified: 3h}")
        .pods(json!({"simcluster.cairn.dev/ready-after": "never"}))
        .deployment("web", 1);
    let vnfd = first.client.onboard(&never).await;
    let id = first.client.create(&vnfd).await;
    let body =
        json!({"flavourId": "default", "additionalParams": {"namespace": ground.place.namespace}});
    let op = first.client.begin(&id, "instantiate", &body).await;
    let waits = |seen: &Value| {
        seen["waits"]
            .as_array()
            .is_some_and(|waits| !waits.is_empty())
            && !seen["owner"].is_null()
    };
    let before = first.client.op_until(&op, "to wait", waits).await["owner"].clone();
    let second = Served::start(&ground, &[]).await;
    first.signal("TERM").await;
    let began = Instant::now();
    let other = |seen: &Value| !seen["owner"].is_null() && seen["owner"] != before;
    second.client.op_until(&op, "another owner", other).await;
    let took = began.elapsed();
    println!("handed over {} ms after SIGTERM", took.as_millis());
    assert!(took < HANDED_OVER, "{took:?}");
    assert!(first.ended(SOON).await, "it ended well");
    second.client.cancel(&op, "FORCEFUL").await.is(202);
    second.client.ends(&op, "FAILED_TEMP").await;
}
