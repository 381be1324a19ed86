//! A crash is not a failure: a process that ends anywhere leaves an operation that goes on by itself, and whose
//! effects happen once.
//!
//! The database and the cluster outlive the process. Each place is struck by a `crash` fault, which ends all of a
//! world in this process as `kill -9` would; the last tests do the same with the program itself.

use cairn_tests::child::Served;
use cairn_tests::client::Client;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::world::{Ground, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Instantiate,
    Scale,
    Heal,
    Terminate,
}

impl Doing {
    fn sol(self) -> &'static str {
        match self {
            Self::Instantiate => "INSTANTIATE",
            Self::Scale => "SCALE",
            Self::Heal => "HEAL",
            Self::Terminate => "TERMINATE",
        }
    }

    fn path(self) -> String {
        self.sol().to_lowercase()
    }

    fn body(self, namespace: &str) -> Value {
        match self {
            Self::Instantiate => {
                json!({"flavourId": "default", "additionalParams": {"namespace": namespace}})
            }
            Self::Scale => json!({"type": "SCALE_OUT", "aspectId": "web_aspect"}),
            Self::Heal => json!({}),
            Self::Terminate => json!({"terminationType": "FORCEFUL"}),
        }
    }
}

fn small() -> PackageBuilder {
    package()
        .config_map("settings")
        .service("web")
        .deployment("web", 1)
}

/// Worlds on one ground, one after the other.
struct Story {
    ground: Arc<Ground>,
    world: Option<World>,
    vnfd: String,
    count: usize,
}

impl Story {
    async fn begin() -> Self {
        let ground = Ground::simple().await;
        let world = World::on(ground.clone()).await;
        let vnfd = world.onboard(&small()).await;
        Self {
            ground,
            world: Some(world),
            vnfd,
            count: 0,
        }
    }

    fn world(&self) -> &World {
        self.world.as_ref().expect("a world")
    }

    /// An instance in a namespace of its own, ready for an operation.
    async fn subject(&mut self, doing: Doing) -> (String, String) {
        self.count += 1;
        let namespace = format!("crash-{}", self.count);
        let made =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        self.ground
            .place
            .sim()
            .create("test", made)
            .expect("a namespace");
        let id = self.world().create(&self.vnfd).await;
        if doing != Doing::Instantiate {
            let body = Doing::Instantiate.body(&namespace);
            self.world().complete(&id, "instantiate", &body).await;
        }
        if doing == Doing::Heal {
            // Somebody deleted what a heal makes again, and its rollback takes away.
            let at = (namespace.as_str(), "settings");
            let gone = self.ground.place.sim().delete(("v1", "ConfigMap"), at);
            gone.expect("the object was there");
        }
        self.ground.place.sim().clear_requests();
        (id, namespace)
    }

    /// After the crash fault has struck: everything ends, and another process begins.
    async fn crash_and_begin_again(&mut self) {
        let mut world = self.world.take().expect("a world");
        world.crash().await;
        let ground = world.kill();
        self.world = Some(World::on(ground).await);
    }

    /// Crashes at one place of the way forward.
    async fn forward(&mut self, doing: Doing, at: &Value) {
        let (id, namespace) = self.subject(doing).await;
        self.world()
            .faults(&json!([{"operation": doing.sol(), "at": at, "action": "crash"}]))
            .await;
        let op = begin_and_crash(self.world(), &id, doing, &namespace).await;
        self.crash_and_begin_again().await;
        let op = if let Some(op) = op {
            op
        } else {
            begun(self.world(), &id).await
        };
        let seen = self.world().settled(&op).await;
        assert_eq!(
            seen["operationState"], "COMPLETED",
            "{doing:?} {at}: {seen:#}"
        );
        let state = &self.world().instance(&id).await["provisioning"]["state"];
        let expected = if doing == Doing::Terminate {
            "AVAILABLE"
        } else {
            "ACTIVE"
        };
        assert_eq!(state, expected, "{doing:?} {at}");
        self.once(&namespace, &format!("{doing:?} {at}"));
    }

    /// Crashes at one place of the way back.
    async fn back(&mut self, doing: Doing, at: &Value) {
        let (id, namespace) = self.subject(doing).await;
        let before = self.world().instance(&id).await["provisioning"].clone();
        let faults = json!([
            {"operation": doing.sol(), "at": {"errorPoint": 4}, "action": "fail"},
            {"operation": doing.sol(), "at": at, "action": "crash"}
        ]);
        self.world().faults(&faults).await;
        let op = self
            .world()
            .begin(&id, &doing.path(), &doing.body(&namespace))
            .await;
        self.world().ends(&op, "FAILED_TEMP").await;
        self.ground.place.sim().clear_requests();
        self.world().steer(&op, "rollback").await.is(202);
        self.crash_and_begin_again().await;
        let seen = self.world().settled(&op).await;
        assert_eq!(
            seen["operationState"], "ROLLED_BACK",
            "{doing:?} {at}: {seen:#}"
        );
        assert_eq!(
            self.world().instance(&id).await["provisioning"],
            before,
            "{doing:?} {at}"
        );
        self.once(&namespace, &format!("rollback of {doing:?} {at}"));
    }

    /// Nothing was made, scaled, evicted or deleted twice.
    fn once(&self, namespace: &str, what: &str) {
        let inside = format!("/namespaces/{namespace}/");
        let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
        for request in self.ground.place.sim().requests() {
            let makes = request.status == 201
                || request.method == "DELETE"
                || request.path.ends_with("/scale");
            if request.is_effect() && makes && request.path.contains(&inside) {
                *counted.entry((request.method, request.path)).or_default() += 1;
            }
        }
        for ((method, path), times) in counted {
            assert_eq!(times, 1, "{what}: {method} {path}");
        }
    }

    /// How many steps an operation has, forward and back, found by doing it once.
    async fn measure(&mut self, doing: Doing) -> (usize, usize) {
        let (id, namespace) = self.subject(doing).await;
        let fault = json!([{"operation": doing.sol(), "at": {"errorPoint": 4}, "action": "fail"}]);
        self.world().faults(&fault).await;
        let op = self
            .world()
            .begin(&id, &doing.path(), &doing.body(&namespace))
            .await;
        let halted = self.world().ends(&op, "FAILED_TEMP").await;
        self.world().steer(&op, "rollback").await.is(202);
        let undone = self.world().ends(&op, "ROLLED_BACK").await;
        let count = |list: &Value| list.as_array().expect("a list").len();
        (count(&halted["plan"]), count(&undone["undo"]))
    }
}

/// The crash may come before the answer does.
async fn begin_and_crash(
    world: &Client,
    id: &str,
    doing: Doing,
    namespace: &str,
) -> Option<String> {
    let path = format!("/vnflcm/v2/vnf_instances/{id}/{}", doing.path());
    let body = doing.body(namespace);
    let sent = cairn_tests::client::Sent::json(axum::http::Method::POST, &path, Some(&body));
    let answer =
        tokio::time::timeout(std::time::Duration::from_secs(20), world.try_send(sent)).await;
    let answer = answer.ok().flatten()?;
    assert_eq!(answer.status, 202, "{:#}", answer.body);
    Some(answer.located())
}

/// The answer of the request was lost with the process; what it began is in the records.
async fn begun(client: &Client, id: &str) -> String {
    let events = client.history(id).await;
    let begun = events
        .iter()
        .rev()
        .find(|event| event["type"] == "OperationStarted");
    let op = &begun.expect("an operation was begun")["vnfLcmOpOccId"];
    op.as_str().expect("an id").to_owned()
}

async fn at_every_point(doing: Doing) {
    let mut story = Story::begin().await;
    for point in 0..=7 {
        story.forward(doing, &json!({"errorPoint": point})).await;
    }
}

async fn at_every_step(doing: Doing) {
    let mut story = Story::begin().await;
    let (steps, _) = story.measure(doing).await;
    assert!(steps > 0);
    for step in 0..steps {
        for edge in ["before", "after"] {
            story
                .forward(doing, &json!({"step": step, "edge": edge}))
                .await;
        }
    }
}

async fn at_every_undo_step(doing: Doing) {
    let mut story = Story::begin().await;
    let (_, steps) = story.measure(doing).await;
    assert!(steps > 0, "{doing:?} has something to undo");
    for step in 0..steps {
        for edge in ["before", "after"] {
            story
                .back(doing, &json!({"undoStep": step, "edge": edge}))
                .await;
        }
    }
}

macro_rules! crashes {
    ($($name:ident: $at:ident($doing:ident),)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $at(Doing::$doing).await;
            }
        )+
    };
}

crashes! {
    an_instantiate_goes_on_after_a_crash_at_any_error_point: at_every_point(Instantiate),
    a_scale_goes_on_after_a_crash_at_any_error_point: at_every_point(Scale),
    a_heal_goes_on_after_a_crash_at_any_error_point: at_every_point(Heal),
    a_terminate_goes_on_after_a_crash_at_any_error_point: at_every_point(Terminate),
    an_instantiate_goes_on_after_a_crash_around_any_effect: at_every_step(Instantiate),
    a_scale_goes_on_after_a_crash_around_any_effect: at_every_step(Scale),
    a_heal_goes_on_after_a_crash_around_any_effect: at_every_step(Heal),
    a_terminate_goes_on_after_a_crash_around_any_effect: at_every_step(Terminate),
    the_rollback_of_an_instantiate_goes_on_after_a_crash: at_every_undo_step(Instantiate),
    the_rollback_of_a_scale_goes_on_after_a_crash: at_every_undo_step(Scale),
    the_rollback_of_a_heal_goes_on_after_a_crash: at_every_undo_step(Heal),
    the_rollback_of_a_terminate_goes_on_after_a_crash: at_every_undo_step(Terminate),
}

/// The program itself, struck by its own fault.
async fn program_crashes(doing: Doing, at: Value) {
    let ground = Ground::simple().await;
    let namespace = ground.place.namespace.clone();
    let mut served = Served::start(&ground, &["--enable-faults"]).await;
    let vnfd = served.client.onboard(&small()).await;
    let id = served.client.create(&vnfd).await;
    if doing != Doing::Instantiate {
        served
            .client
            .complete(&id, "instantiate", &Doing::Instantiate.body(&namespace))
            .await;
    }
    served
        .client
        .faults(&json!([{"operation": doing.sol(), "at": at, "action": "crash"}]))
        .await;
    let told = begin_and_crash(&served.client, &id, doing, &namespace).await;
    assert!(
        !served.ended(cairn_tests::client::SOON).await,
        "it did not end well"
    );
    let served = Served::start(&ground, &[]).await;
    let op = if let Some(op) = told {
        op
    } else {
        begun(&served.client, &id).await
    };
    served.client.ends(&op, "COMPLETED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_goes_on_with_what_it_did_when_it_crashed() {
    let step = |step: u32, edge: &str| json!({"step": step, "edge": edge});
    tokio::join!(
        program_crashes(Doing::Instantiate, step(0, "after")),
        program_crashes(Doing::Scale, json!({"errorPoint": 4})),
        program_crashes(Doing::Heal, step(0, "after")),
        program_crashes(Doing::Terminate, step(0, "before")),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_killed_while_it_works_goes_on() {
    let ground = Ground::simple().await;
    let served = Served::start(&ground, &["--enable-faults"]).await;
    let vnfd = served.client.onboard(&small()).await;
    let id = served.client.create(&vnfd).await;
    served
        .client
        .faults(&json!([{"at": {"step": 1, "edge": "after"}, "action": "hold"}]))
        .await;
    let body = Doing::Instantiate.body(&ground.place.namespace);
    let op = served.client.begin(&id, "instantiate", &body).await;
    let path = ground.place.path("v1", "services", "web");
    ground
        .place
        .kube
        .until(&path, cairn_tests::client::SOON, "the effect", |_| true)
        .await;
    served.kill().await;
    let served = Served::start(&ground, &[]).await;
    served.client.ends(&op, "COMPLETED").await;
}
