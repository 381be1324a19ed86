//! What is carried out, and the ground that each schedule begins with.

use crate::seed_a::case::{Doing, body, calm, instantiate, next, objects_in};
use axum::http::Method;
use cairn::wiring::Before;
use cairn_tests::client::Sent;
use cairn_tests::cuts::Knife;
use cairn_tests::heard::Heard;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::twice::Twice;
use cairn_tests::until::until;
use cairn_tests::world::{Conditions, Ground, Template, World};
use serde_json::{Value, json};
use std::sync::Arc;

/// Forward, or back after a failure with all effects made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Forward,
    Back,
}

/// An operation and its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub doing: Doing,
    pub way: Way,
}

impl Scenario {
    /// All there are; `MODIFY_INFO` rolls itself back and cannot be told to.
    pub fn all() -> Vec<Self> {
        let both = |doing| [Way::Forward, Way::Back].map(|way| Self { doing, way });
        let all = Doing::ALL.into_iter().flat_map(both);
        all.filter(|one| (one.doing, one.way) != (Doing::ModifyInfo, Way::Back))
            .collect()
    }

    /// The state that it ends in.
    pub fn end(self) -> &'static str {
        match self.way {
            Way::Forward => "COMPLETED",
            Way::Back => "ROLLED_BACK",
        }
    }
}

/// A scenario up to the request that begins it.
pub struct Prepared {
    pub scenario: Scenario,
    pub instance: String,
    pub namespace: String,
    /// Begins it; it carries a key, so that it can be sent again when its answer was lost.
    pub request: Sent,
    /// How instance and objects looked before the operation.
    pub before: (Value, Value),
    /// The log's end before the request.
    pub position: u64,
    /// Whether every step is done twice.
    pub twice: bool,
    template: Template,
}

fn probe() -> PackageBuilder {
    package()
        .pods(json!({"simcluster.cairn.dev/ready-after": "0ms",
            "simcluster.cairn.dev/terminate-after": "0ms"}))
        .config_map("settings")
        .service("web")
        .deployment("web", 2)
}

/// A world of a schedule: its calls are counted, its subscriber outlives it.
pub async fn world(ground: Arc<Ground>, knife: &Knife, heard: &Heard) -> World {
    World::under(ground, conditions(knife, heard), |_| {}).await
}

fn conditions(knife: &Knife, heard: &Heard) -> Conditions {
    let (log, cluster) = (knife.clone(), knife.clone());
    Conditions {
        before: Before {
            log: Some(Box::new(move |inner| log.before_log(inner))),
            callbacks: Some(Arc::new(heard.clone())),
            ..Before::default()
        },
        cluster: Some(Box::new(move |routes| cluster.before_cluster(routes))),
        threads: 1,
        ..Conditions::default()
    }
}

impl Prepared {
    /// Brings an instance to where the scenario begins, once for all schedules.
    pub async fn new(scenario: Scenario) -> Self {
        let doing = scenario.doing;
        let ground = Ground::simple().await;
        let namespace = ground.place.namespace.clone();
        let world = world(ground.clone(), &Knife::new(None), &Heard::default()).await;
        let first = probe();
        let vnfd = world.onboard(&first).await;
        let second = match doing {
            Doing::ChangeVnfpkg => world.onboard(&next(&first)).await,
            _ => String::new(),
        };
        let subscription = json!({"callbackUri": "http://127.0.0.1:9/"});
        let made = world.post("/vnflcm/v2/subscriptions", &subscription).await;
        let subscription = made.located();
        let instance = world.create(&vnfd).await;
        if doing != Doing::Instantiate {
            let body = instantiate(&namespace);
            world.complete(&instance, "instantiate", &body).await;
        }
        if doing == Doing::ScaleIn {
            let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
            world.complete(&instance, "scale", &out).await;
        }
        if doing == Doing::HealAll {
            // Somebody deleted what a heal makes again, and its rollback takes away.
            let at = (namespace.as_str(), "settings");
            let gone = ground.place.sim().delete(("v1", "ConfigMap"), at);
            gone.expect("the object was there");
        }
        let seen = world.instance(&instance).await;
        let before = (calm(&seen), objects_in(ground.place.sim(), &namespace));
        let asked = body(doing, &namespace, &seen, &second);
        let request = match scenario.way {
            Way::Forward => forward(&instance, doing, &asked),
            Way::Back => {
                let fault = json!([{"at": {"errorPoint": 4}, "action": "fail"}]);
                world.faults(&fault).await;
                let op = world.begin(&instance, doing.path(), &asked).await;
                world.ends(&op, "FAILED_TEMP").await;
                Sent::json(
                    Method::POST,
                    &format!("/vnflcm/v2/vnf_lcm_op_occs/{op}/rollback"),
                    None,
                )
            }
        };
        let history = world.history(&instance).await;
        delivered(&world, &subscription, super::holds::owed(&history).len()).await;
        let position = history.last().expect("events")["position"].as_u64();
        world.end().await;
        Self {
            scenario,
            instance,
            namespace,
            request: request.header("idempotency-key", "the-one-request"),
            before,
            position: position.expect("a position"),
            twice: false,
            template: ground.keep().await,
        }
    }

    /// A world of one of its schedules.
    pub async fn world(&self, ground: Arc<Ground>, knife: &Knife, heard: &Heard) -> World {
        let mut conditions = conditions(knife, heard);
        if self.twice {
            conditions.before.platform = Some(Box::new(|inner| Arc::new(Twice(inner))));
        }
        World::under(ground, conditions, |_| {}).await
    }

    /// A ground that begins where the scenario does.
    pub fn ground(&self) -> Arc<Ground> {
        self.template.ground()
    }
}

fn forward(instance: &str, doing: Doing, body: &Value) -> Sent {
    let path = format!("/vnflcm/v2/vnf_instances/{instance}");
    if doing == Doing::ModifyInfo {
        return Sent::json(Method::PATCH, &path, Some(body));
    }
    Sent::json(
        Method::POST,
        &format!("{path}/{}", doing.path()),
        Some(body),
    )
}

/// Awaits that all that was owed so far was delivered and is recorded so.
pub async fn delivered(world: &World, subscription: &str, count: usize) {
    let path = format!("/cairn/v1/subscriptions/{subscription}/deliveries");
    until(cairn_tests::client::SOON, "all to be delivered", || async {
        let all = world.get(&path).await.is(200);
        let done = all.as_array().expect("a list").iter();
        let done = done.filter(|one| one["state"] == "DELIVERED").count();
        if done == count { Ok(()) } else { Err(all) }
    })
    .await;
}
