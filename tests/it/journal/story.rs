//! Random stories against a model: commands, failures, cancellations and ends of processes in any order.
//!
//! The model knows three things of an instance: whether it is instantiated, at which level, and whether its last
//! operation is halted or was given up. From that alone it says which command is accepted, how it may end, and what
//! the instance shows. A story that the product tells otherwise is shrunk, and its seed is kept in
//! `tests/it/journal/story.seeds`.

use super::holds::{owed, rows_are_folds, told_in_order};
use super::scenario::{delivered, world};
use axum::http::Method;
use cairn_tests::client::{SOON, Sent};
use cairn_tests::cuts::{Cut, Knife, Side};
use cairn_tests::heard::Heard;
use cairn_tests::package::package;
use cairn_tests::until::until;
use cairn_tests::world::{Ground, Template, World};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use serde_json::{Value, json};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many stories are told.
const STORIES: u32 = 40;
/// No new one begins after this time.
const ENOUGH: Duration = Duration::from_secs(25);
/// Levels go from 0 to this.
const HIGHEST: u32 = 4;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Instantiate,
    ScaleOut,
    ScaleIn,
    ToLevel(u32),
    Heal,
    Terminate,
    Modify,
    Retry,
    Rollback,
    Fail,
}

/// What befalls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    /// The try fails when it has passed this error point.
    AtPoint(u8),
    /// The try fails around this step, or undo step, if there is one.
    AtStep(usize, bool),
    /// It is cancelled when it has passed this error point, by force or not.
    Cancelled(u8, bool),
    /// The process ends at this call, if it makes so many.
    Ends(Cut),
}

type Move = (What, Trouble);

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let what = prop_oneof![
        3 => Just(What::Instantiate),
        2 => Just(What::ScaleOut),
        1 => Just(What::ScaleIn),
        1 => (0..=HIGHEST).prop_map(What::ToLevel),
        2 => Just(What::Heal),
        2 => Just(What::Terminate),
        1 => Just(What::Modify),
        4 => Just(What::Retry),
        3 => Just(What::Rollback),
        2 => Just(What::Fail),
    ];
    let side = any::<bool>().prop_map(|after| if after { Side::After } else { Side::Before });
    let trouble = prop_oneof![
        3 => Just(Trouble::None),
        2 => (1..=7_u8).prop_map(Trouble::AtPoint),
        2 => (0..6_usize, any::<bool>()).prop_map(|(step, after)| Trouble::AtStep(step, after)),
        1 => (1..=7_u8, any::<bool>()).prop_map(|(point, force)| Trouble::Cancelled(point, force)),
        3 => (0..25_usize, side).prop_map(|(call, side)| Trouble::Ends(Cut { call, side })),
    ];
    let later = proptest::collection::vec((what, trouble.clone()), 2..7);
    // Nothing but a modification can be asked of an instance before this.
    (trouble, later).prop_map(|(trouble, mut later)| {
        later.insert(0, (What::Instantiate, trouble));
        later
    })
}

/// Where an instance rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rests {
    Free,
    Halted(What),
    GivenUp(What),
}

/// All that decides what comes next.
#[derive(Clone, Debug)]
struct Model {
    instantiated: bool,
    level: u32,
    rests: Rests,
    /// Where it rested before the operation that is halted.
    before: Rests,
}

impl Model {
    fn new() -> Self {
        Self {
            instantiated: false,
            level: 0,
            rests: Rests::Free,
            before: Rests::Free,
        }
    }

    /// How a command is answered.
    fn answer(&self, what: What) -> u16 {
        let legal = match (self.rests, what) {
            (Rests::Halted(_), What::Fail) => return 200,
            (_, What::Modify) | (Rests::Halted(_), What::Retry | What::Rollback) => true,
            (_, What::Retry | What::Rollback | What::Fail) | (Rests::Halted(_), _) => false,
            (Rests::GivenUp(What::Instantiate), _) => {
                matches!(what, What::Instantiate | What::Terminate)
            }
            (Rests::GivenUp(What::Terminate), _) => matches!(what, What::Heal | What::Terminate),
            (Rests::Free | Rests::GivenUp(_), _) => {
                self.instantiated != (what == What::Instantiate)
            }
        };
        let beyond = what == What::ScaleOut && self.level == HIGHEST
            || what == What::ScaleIn && self.level == 0;
        match (legal, beyond) {
            (false, _) => 409,
            (true, true) => 422,
            (true, false) => 202,
        }
    }

    /// Takes in that a command came to rest so.
    fn rest(&mut self, what: What, state: &str) {
        if what == What::Modify {
            return;
        }
        let operation = match (what, self.rests) {
            (What::Retry | What::Rollback | What::Fail, Rests::Halted(operation)) => operation,
            (operation, rests) => {
                self.before = rests;
                operation
            }
        };
        self.rests = match state {
            "COMPLETED" => {
                self.done(operation);
                Rests::Free
            }
            "ROLLED_BACK" => self.before,
            "FAILED" => Rests::GivenUp(operation),
            _ => Rests::Halted(operation),
        };
    }

    fn done(&mut self, operation: What) {
        match operation {
            What::Instantiate => (self.instantiated, self.level) = (true, 0),
            What::Terminate => self.instantiated = false,
            What::ScaleOut => self.level += 1,
            What::ScaleIn => self.level -= 1,
            What::ToLevel(level) => self.level = level,
            What::Heal | What::Modify | What::Retry | What::Rollback | What::Fail => {}
        }
    }

    /// What the instance shows.
    fn shows(&self) -> &'static str {
        match self.rests {
            Rests::Free if self.instantiated => "ACTIVE",
            Rests::Free => "AVAILABLE",
            Rests::Halted(What::Instantiate) | Rests::GivenUp(What::Instantiate) => "DEPLOYFAIL",
            Rests::Halted(What::Terminate) | Rests::GivenUp(What::Terminate) => "DELETEFAIL",
            Rests::Halted(_) | Rests::GivenUp(_) => "UPDATEFAIL",
        }
    }
}

/// In which states a command that was accepted may come to rest.
fn ends((what, trouble): Move) -> &'static [&'static str] {
    match (what, trouble) {
        (What::Fail, _) => &["FAILED"],
        (What::Rollback, Trouble::AtStep(..)) => &["ROLLED_BACK", "FAILED_TEMP"],
        (What::Rollback, _) | (What::Modify, Trouble::AtPoint(_) | Trouble::Cancelled(..)) => {
            &["ROLLED_BACK"]
        }
        (What::Modify, _) | (_, Trouble::None | Trouble::Ends(_)) => &["COMPLETED"],
        (_, Trouble::AtPoint(_) | Trouble::Cancelled(..)) => &["FAILED_TEMP"],
        (_, Trouble::AtStep(..)) => &["COMPLETED", "FAILED_TEMP"],
    }
}

/// The faults that trouble a move.
fn faults((what, trouble): Move) -> Value {
    match trouble {
        Trouble::None | Trouble::Ends(_) => json!([]),
        Trouble::AtPoint(point) => json!([{"at": {"errorPoint": point}, "action": "fail"}]),
        Trouble::AtStep(step, after) => {
            let key = if what == What::Rollback {
                "undoStep"
            } else {
                "step"
            };
            let edge = if after { "after" } else { "before" };
            json!([{"at": {key: step, "edge": edge}, "action": "fail"}])
        }
        Trouble::Cancelled(point, _) => {
            json!([{"at": {"errorPoint": point}, "action": "hold"}])
        }
    }
}

/// What every story begins with.
struct Beginning {
    template: Template,
    instance: String,
    namespace: String,
}

async fn beginning() -> Beginning {
    let ground = Ground::simple().await;
    let world = world(ground.clone(), &Knife::new(None), &Heard::default()).await;
    let vnfd = world
        .onboard(
            &package()
                .pods(json!({"simcluster.cairn.dev/ready-after": "0ms",
                    "simcluster.cairn.dev/terminate-after": "0ms"}))
                .config_map("settings")
                .deployment("web", 1),
        )
        .await;
    let subscription = json!({"callbackUri": "http://127.0.0.1:9/"});
    let made = world.post("/vnflcm/v2/subscriptions", &subscription).await;
    let instance = world.create(&vnfd).await;
    delivered(&world, &made.located(), 1).await;
    let namespace = ground.place.namespace.clone();
    world.end().await;
    Beginning {
        template: ground.keep().await,
        instance,
        namespace,
    }
}

/// A story as it is told.
struct Story<'a> {
    beginning: &'a Beginning,
    ground: Arc<Ground>,
    heard: Heard,
    knife: Knife,
    world: Option<World>,
    model: Model,
    /// The operation that can be retried, rolled back or given up.
    op: Option<String>,
    count: usize,
}

impl<'a> Story<'a> {
    async fn begin(beginning: &'a Beginning) -> Self {
        let (ground, heard) = (beginning.template.ground(), Heard::default());
        let knife = Knife::new(None);
        let world = world(ground.clone(), &knife, &heard).await;
        Self {
            beginning,
            ground,
            heard,
            knife,
            world: Some(world),
            model: Model::new(),
            op: None,
            count: 0,
        }
    }

    fn world(&self) -> &World {
        self.world.as_ref().expect("a world")
    }

    async fn begin_again(&mut self) {
        if let Some(world) = self.world.take() {
            drop(world.kill());
        }
        self.knife = Knife::new(None);
        self.world = Some(world(self.ground.clone(), &self.knife, &self.heard).await);
    }

    /// The request of a command; `None` where there is no operation to speak of.
    fn request(&self, what: What) -> Option<Sent> {
        let params = json!({"namespace": self.beginning.namespace});
        let aspect = "web_aspect";
        let (verb, body) = match what {
            What::Instantiate => (
                "instantiate",
                json!({"flavourId": "default", "additionalParams": params}),
            ),
            What::ScaleOut => ("scale", json!({"type": "SCALE_OUT", "aspectId": aspect})),
            What::ScaleIn => ("scale", json!({"type": "SCALE_IN", "aspectId": aspect})),
            What::ToLevel(level) => (
                "scale_to_level",
                json!({"scaleInfo": [{"aspectId": aspect, "scaleLevel": level}]}),
            ),
            What::Heal => ("heal", json!({})),
            What::Terminate => ("terminate", json!({"terminationType": "FORCEFUL"})),
            What::Modify => (
                "",
                json!({"vnfInstanceDescription": format!("{}", self.count)}),
            ),
            What::Retry => return self.steer("retry"),
            What::Rollback => return self.steer("rollback"),
            What::Fail => return self.steer("fail"),
        };
        let path = format!("/vnflcm/v2/vnf_instances/{}", self.beginning.instance);
        let (method, path) = if what == What::Modify {
            (Method::PATCH, path)
        } else {
            (Method::POST, format!("{path}/{verb}"))
        };
        Some(self.keyed(Sent::json(method, &path, Some(&body))))
    }

    fn steer(&self, verb: &str) -> Option<Sent> {
        let path = format!("/vnflcm/v2/vnf_lcm_op_occs/{}/{verb}", self.op.as_ref()?);
        Some(self.keyed(Sent::json(Method::POST, &path, None)))
    }

    fn keyed(&self, sent: Sent) -> Sent {
        sent.header("idempotency-key", &format!("move-{}", self.count))
    }

    /// One move: asked, troubled, come to rest, and looked at.
    async fn tell(&mut self, told: Move) {
        let (what, trouble) = told;
        self.count += 1;
        let Some(request) = self.request(what) else {
            return;
        };
        let expected = self.model.answer(what);
        self.world().faults(&faults(told)).await;
        self.knife.arm(match trouble {
            Trouble::Ends(cut) if expected < 300 => Some(cut),
            _ => None,
        });
        let asked = tokio::select! {
            () = self.knife.struck() => None,
            answer = self.world().send(request.clone()) => Some(answer),
        };
        let answer = if let Some(answer) = asked {
            answer
        } else {
            self.begin_again().await;
            self.world().send(request).await
        };
        assert_eq!(
            answer.status, expected,
            "{told:?} {:?}: {:#}",
            self.model, answer.body
        );
        if expected >= 300 {
            return self.look().await;
        }
        let op = match answer.header("location") {
            "" => self.op.clone().expect("an operation"),
            _ => answer.located(),
        };
        let moves_on = !matches!(what, What::Rollback | What::Fail);
        if let (Trouble::Cancelled(point, force), true) = (trouble, moves_on) {
            self.cancel(&op, point, force).await;
        }
        let seen = tokio::select! {
            () = self.knife.struck() => None,
            seen = self.world().settled(&op) => Some(seen),
        };
        let seen = if let Some(seen) = seen {
            seen
        } else {
            self.begin_again().await;
            self.world().settled(&op).await
        };
        let state = seen["operationState"].as_str().expect("a state");
        let allowed = ends(told);
        assert!(
            allowed.contains(&state),
            "{told:?} {:?}: {seen:#}",
            self.model
        );
        if what != What::Modify {
            self.op = Some(op);
        }
        self.model.rest(what, state);
        self.look().await;
    }

    async fn cancel(&self, op: &str, point: u8, force: bool) {
        until(SOON, "it to be held", || async {
            let all = self.world().get("/cairn/v1/faults").await.is(200);
            if all[0]["times"] == 0 {
                Ok(())
            } else {
                Err(all)
            }
        })
        .await;
        let seen = self.world().op(op).await;
        assert_eq!(seen["point"], point, "{seen:#}");
        let mode = if force { "FORCEFUL" } else { "GRACEFUL" };
        self.world().cancel(op, mode).await.is(202);
    }

    /// What holds at every rest.
    async fn look(&self) {
        let (world, id) = (self.world(), &self.beginning.instance);
        let instance = world.instance(id).await;
        let shows = json!({"state": self.model.shows(), "target": null});
        assert_eq!(
            instance["provisioning"], shows,
            "{:?}: {instance:#}",
            self.model
        );
        let path = format!(
            "/cairn/v1/vnf_instances/{id}?position={}",
            instance["position"]
        );
        assert_eq!(world.get(&path).await.is(200), instance);
        if self.model.rests == Rests::Free && self.model.instantiated {
            let level = &instance["instantiatedVnfInfo"]["scaleStatus"][0]["scaleLevel"];
            assert_eq!(*level, self.model.level, "{instance:#}");
            let pods = crate::operations::vnfcs(&instance).len();
            let wanted = usize::try_from(self.model.level + 1).expect("a few");
            assert_eq!(pods, wanted, "{instance:#}");
        }
        let Some(op) = &self.op else { return };
        let links = world.op(op).await["_links"].clone();
        let halted = matches!(self.model.rests, Rests::Halted(_));
        for verb in ["retry", "rollback", "fail"] {
            assert_eq!(links.get(verb).is_some(), halted, "{verb}: {links:#}");
        }
        assert_eq!(links.get("cancel"), None, "{links:#}");
    }

    /// At the end every notification has come once, in order, and nothing is left to be done.
    async fn end(mut self) {
        let id = &self.beginning.instance;
        let history = self.world().history(id).await;
        // The creation was told before the story began.
        let owed = &owed(&history)[1..];
        told_in_order(&self.heard.different(owed.len()).await, owed);
        let world = self.world.take().expect("a world");
        world.end().await;
        if let Some(op) = &self.op {
            rows_are_folds(&self.ground, id, op).await;
        }
    }
}

#[test]
fn every_story_is_told_as_the_model_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let beginning = runtime.block_on(beginning());
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/it/journal/story.seeds");
    let config = Config {
        cases: STORIES,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(seeds))),
        max_shrink_iters: 60,
        ..Config::default()
    };
    let began = Instant::now();
    let told = Cell::new(0);
    let story = |moves: Vec<Move>| {
        if began.elapsed() > ENOUGH {
            return Ok(());
        }
        runtime.block_on(async {
            let mut story = Story::begin(&beginning).await;
            for one in moves {
                story.tell(one).await;
            }
            story.end().await;
        });
        told.set(told.get() + 1);
        Ok(())
    };
    TestRunner::new(config)
        .run(&moves(), story)
        .unwrap_or_else(|failed| panic!("{failed}"));
    assert!(told.get() > 2, "{} stories were told", told.get());
}
