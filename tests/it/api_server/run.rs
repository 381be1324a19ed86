//! One operation of one instance, through a proxy that disturbs one of its calls.

use crate::operations::vnfcs;
use crate::seed_a::case::{calm, objects, small};
use cairn_tests::client::SOON;
use cairn_tests::place::{Place, list_path};
use cairn_tests::proxy::{Proxy, Rule, Seen, Strike};
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a call may take: what never answers is given up after this.
const CALL: Duration = Duration::from_secs(5);

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Instantiate,
    Scale,
    Heal,
    Terminate,
}

impl Doing {
    fn path(self) -> &'static str {
        match self {
            Self::Instantiate => "instantiate",
            Self::Scale => "scale",
            Self::Heal => "heal",
            Self::Terminate => "terminate",
        }
    }

    /// Living pods after it.
    fn pods(self) -> usize {
        match self {
            Self::Instantiate | Self::Heal => 2,
            Self::Scale => 3,
            Self::Terminate => 0,
        }
    }
}

/// Which calls are disturbed: those of the operation, or those of its rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    On,
    Back,
}

/// What happens to which call.
#[derive(Clone, Debug)]
pub struct Case {
    pub nth: usize,
    pub strike: Strike,
    pub lasting: bool,
    pub way: Way,
}

/// A Cairn, a cluster and a proxy between them, for many runs.
pub struct Stage {
    pub world: World,
    pub proxy: Proxy,
    vnfd: String,
}

impl Stage {
    /// On a simulated cluster. Where rollbacks are to be disturbed, a fault of Cairn's own halts each operation once
    /// all its writes are made.
    pub async fn simulated(doing: Doing, way: Way) -> Self {
        Self::on(Place::simulated().await, doing, way).await
    }

    /// On this cluster.
    pub async fn on(place: Place, doing: Doing, way: Way) -> Self {
        let ground = Ground::new(Kind::Sqlite, place)
            .await
            .expect("SQLite is always there");
        let calls = cairn_kubernetes::Settings {
            call_timeout: CALL,
            ..cairn_kubernetes::Settings::default()
        };
        let world = World::calling(ground, calls, |_| {}).await;
        let proxy = if world.place().is_simulated() {
            Proxy::plain(world.place()).await
        } else {
            Proxy::with_tls(world.place()).await
        };
        // On a busy machine too, a single fault must not use up a clock.
        let clocks = "{progressing: 90s, blocked: 60s, infrastructure: 60s, unclassified: 60s}";
        let vnfd = world.onboard(&small().clocks(clocks)).await;
        if way == Way::Back {
            let operation = doing.path().to_uppercase();
            let halt = json!([{"operation": operation, "at": {"errorPoint": 4}, "action": "fail", "times": 100_000}]);
            world.faults(&halt).await;
        }
        Self { world, proxy, vnfd }
    }
}

/// One operation of one instance.
pub struct Run<'a> {
    stage: &'a Stage,
    doing: Doing,
    name: String,
    instance: String,
    body: Value,
    before: Value,
    objects: Value,
}

impl<'a> Run<'a> {
    /// Makes it give up soon.
    pub fn impatient(mut self) -> Self {
        self.body["additionalParams"]["cairn.clocks"] =
            json!({"blocked": "1s", "infrastructure": "3s", "unclassified": "1s"});
        self
    }

    /// Brings an instance to where the operation can begin.
    pub async fn make(stage: &'a Stage, doing: Doing, name: &str) -> Self {
        let world = &stage.world;
        let name = format!("{name}-{}", world.place().suffix);
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let kube = &world.place().kube;
        kube.post("/api/v1/namespaces", &namespace).await.is(201);
        world
            .place()
            .remove_at_end(format!("/api/v1/namespaces/{name}"));
        let account = list_path("v1", "serviceaccounts", Some(&name)) + "/default";
        kube.until(&account, SOON, "to be there", |_| true).await;
        let instance = world.create(&stage.vnfd).await;
        let first = json!({"flavourId": "default", "additionalParams": {"namespace": name},
            "vimConnectionInfo": stage.proxy.vim(&name)});
        if doing != Doing::Instantiate {
            world.complete(&instance, "instantiate", &first).await;
        }
        let body = match doing {
            Doing::Instantiate => first,
            Doing::Scale => json!({"type": "SCALE_OUT", "aspectId": "web_aspect"}),
            Doing::Heal => json!({}),
            Doing::Terminate => json!({"terminationType": "FORCEFUL"}),
        };
        let before = without_vim(&world.instance(&instance).await);
        let objects = objects_of(world, &name).await;
        stage.proxy.forget(&name);
        Self {
            stage,
            doing,
            name,
            instance,
            body,
            before,
            objects,
        }
    }

    /// Runs it with nothing in its way and counts its calls.
    pub async fn undisturbed(&self, way: Way) -> usize {
        let op = self.begin().await;
        match way {
            Way::On => {
                self.stage.world.ends(&op, "COMPLETED").await;
            }
            Way::Back => {
                self.halt_and_roll_back(&op, None).await;
                self.stage.world.ends(&op, "ROLLED_BACK").await;
                self.as_before().await;
            }
        }
        self.calls().len()
    }

    /// Runs it with this in its way and checks everything that must hold.
    pub async fn disturbed(&self, case: &Case, calls: usize) {
        let rule = Rule::new(&self.name, case.strike.clone()).after(case.nth);
        let rule = if case.lasting {
            rule.lasting()
        } else {
            rule.times(1)
        };
        let op = match case.way {
            Way::On => {
                self.stage.proxy.strike(rule);
                self.begin().await
            }
            Way::Back => {
                let op = self.begin().await;
                self.halt_and_roll_back(&op, Some(rule)).await;
                op
            }
        };
        let seen = self.stage.world.settled(&op).await;
        let bound = if case.lasting {
            10 * calls + 600
        } else {
            3 * calls + 100
        };
        let all = self.calls().len();
        assert!(
            all <= bound,
            "{all} calls where {calls} are usual: {seen:#}"
        );
        self.is_told(case).await;
        self.stage.proxy.calm(&self.name);
        if case.lasting {
            self.goes_on(case, &op, &seen).await;
        } else {
            let state = if case.way == Way::On {
                "COMPLETED"
            } else {
                "ROLLED_BACK"
            };
            assert_eq!(seen["operationState"], state, "{case:?}: {seen:#}");
            let tries = seen["tries"].as_array().map_or(0, Vec::len);
            assert!(
                tries <= 1,
                "one call is no reason for another try: {seen:#}"
            );
        }
        match (
            case.way,
            self.stage.world.op(&op).await["operationState"].as_str(),
        ) {
            (Way::On, Some("COMPLETED")) => self.is_done().await,
            (_, Some("ROLLED_BACK")) => self.as_before().await,
            other => panic!("{case:?}: {other:?}"),
        }
        self.each_effect_once(case);
    }

    /// After the cause is gone: on or back, whichever is its turn.
    async fn goes_on(&self, case: &Case, op: &str, seen: &Value) {
        let world = &self.stage.world;
        let halted = seen["operationState"] == "FAILED_TEMP";
        if !halted {
            return;
        }
        let detail = seen["error"]["detail"].as_str().unwrap_or_default();
        assert!(!detail.is_empty(), "{case:?}: {seen:#}");
        if case.way == Way::On && case.nth.is_multiple_of(2) {
            world.steer(op, "retry").await.is(202);
            world.ends(op, "COMPLETED").await;
        } else {
            world.steer(op, "rollback").await.is(202);
            world.ends(op, "ROLLED_BACK").await;
        }
    }

    async fn begin(&self) -> String {
        self.stage
            .world
            .begin(&self.instance, self.doing.path(), &self.body)
            .await
    }

    async fn halt_and_roll_back(&self, op: &str, rule: Option<Rule>) {
        let world = &self.stage.world;
        world.ends(op, "FAILED_TEMP").await;
        self.stage.proxy.calm(&self.name);
        self.stage.proxy.forget(&self.name);
        if let Some(rule) = rule {
            self.stage.proxy.strike(rule);
        }
        world.steer(op, "rollback").await.is(202);
        world.settled(op).await;
    }

    /// Its calls, without watches.
    fn calls(&self) -> Vec<Seen> {
        let mut all = self.stage.proxy.seen(&self.name);
        all.retain(|seen| !seen.is_watch());
        all
    }

    /// The history tells a lost answer to a write, and every wait has a reason and a clock.
    async fn is_told(&self, case: &Case) {
        let history = self.stage.world.history(&self.instance).await;
        for event in &history {
            let wait = &event["data"]["wait"];
            if wait.is_object() {
                let says =
                    |member: &str| wait[member].as_str().is_some_and(|text| !text.is_empty());
                assert!(
                    says("object") && says("reason") && says("class"),
                    "{event:#}"
                );
                let permanent = wait["class"] == "permanent";
                assert!(
                    permanent || wait["until"].as_str() > wait["since"].as_str(),
                    "{event:#}"
                );
            }
        }
        let lost = match case.strike {
            Strike::Reset(_) | Strike::Half | Strike::Silence(_) => true,
            Strike::Status(code, _) => code >= 500,
            _ => false,
        };
        let calls = self.calls();
        let struck: Vec<&Seen> = calls.iter().filter(|seen| seen.struck).collect();
        assert!(
            !struck.is_empty() || calls.len() <= case.nth,
            "{case:?} struck nothing"
        );
        if lost && struck.iter().any(|seen| seen.is_write()) {
            let told = history
                .iter()
                .any(|event| event["type"] == "OutcomeUnknown");
            assert!(told, "{case:?}: {struck:?}");
        }
    }

    /// What the operation is for has come about.
    async fn is_done(&self) {
        let world = &self.stage.world;
        let after = world.instance(&self.instance).await;
        let state = if self.doing == Doing::Terminate {
            "AVAILABLE"
        } else {
            "ACTIVE"
        };
        assert_eq!(
            after["provisioning"],
            json!({"state": state, "target": null}),
            "{after:#}"
        );
        assert_eq!(vnfcs(&after).len(), self.doing.pods(), "{after:#}");
        let objects = objects_of(world, &self.name).await;
        assert_eq!(objects["pods"], json!(self.doing.pods()), "{objects:#}");
    }

    /// Instance and cluster are as they were before the operation.
    async fn as_before(&self) {
        let after = without_vim(&self.stage.world.instance(&self.instance).await);
        assert_eq!(after, self.before);
        assert_eq!(
            objects_of(&self.stage.world, &self.name).await,
            self.objects
        );
    }

    /// Nothing was made, scaled, evicted or deleted twice.
    fn each_effect_once(&self, case: &Case) {
        let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
        for seen in self.calls() {
            let makes =
                seen.status == 201 || seen.method == "DELETE" || seen.path.ends_with("/scale");
            if makes && seen.is_effect() {
                let key = (seen.method.to_string(), seen.path);
                *counted.entry(key).or_default() += 1;
            }
        }
        // What a halted operation did and its rollback undid may look alike.
        let allowed = if case.lasting { 2 } else { 1 };
        for ((method, path), times) in counted {
            assert!(times <= allowed, "{case:?}: {method} {path} {times} times");
        }
    }
}

/// An instance without its connection, which an instantiate that was rolled back leaves behind.
fn without_vim(instance: &Value) -> Value {
    let mut seen = calm(instance);
    if let Some(members) = seen.as_object_mut() {
        members.remove("vimConnectionInfo");
    }
    seen
}

/// The objects of a namespace without what differs between two that are the same, and the number of its pods.
async fn objects_of(world: &World, namespace: &str) -> Value {
    if world.place().is_simulated() {
        let mut found = objects(world, namespace);
        // Every namespace gets it, some time after it was made.
        if let Some(members) = found.as_object_mut() {
            members.remove("ConfigMap/kube-root-ca.crt");
        }
        return found;
    }
    let mut found = serde_json::Map::new();
    for (version, plural) in [
        ("v1", "configmaps"),
        ("v1", "services"),
        ("apps/v1", "deployments"),
        ("v1", "pods"),
    ] {
        let path = list_path(version, plural, Some(namespace));
        let listed = world.place().kube.get(&path).await.is(200);
        let living = listed["items"].as_array().cloned().unwrap_or_default();
        let names = living
            .iter()
            .filter(|object| object["metadata"].get("deletionTimestamp").is_none())
            .map(|object| object["metadata"]["name"].clone())
            .filter(|name| name != "kube-root-ca.crt");
        let told = if plural == "pods" {
            json!(names.count())
        } else {
            names.collect()
        };
        found.insert(plural.to_owned(), told);
    }
    Value::Object(found)
}
