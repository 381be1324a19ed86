//! When the hooks of each operation run: each of their items once, before the effects, after them, or around the undo.

use super::{broken, jobs, leaves, web};
use crate::operations::{instantiate, vnfcs};
use cairn_domain::hook::{Moment, OPERATIONS, stem};
use cairn_domain::operation::Operation;
use cairn_simcluster::RequestRecord;
use cairn_tests::client::SOON;
use cairn_tests::package::PackageBuilder;
use cairn_tests::until::until;
use cairn_tests::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Items of hooks that are listed in the package.
const LISTED: [&str; 2] = ["a", "b"];

/// A package with hooks at all moments of all operations that have any; those of a package change run this.
fn hooked(mut package: PackageBuilder, change: &Value) -> PackageBuilder {
    for operation in OPERATIONS {
        for (ending, moment) in Moment::ENDINGS {
            let job = if operation == "change_vnfpkg" {
                change.clone()
            } else {
                leaves("")
            };
            let inputs = if is_per_vnfc(operation, moment) {
                "{items: {per: vnfc, vdu: WEB}}"
            } else {
                "{items: [a, b], parallel: true}"
            };
            package = package.hook(&format!("{operation}{ending}"), job, inputs);
        }
    }
    package
}

/// Before an instantiate there is no VNFC, and after a terminate neither.
fn is_per_vnfc(operation: &str, moment: Moment) -> bool {
    moment == Moment::Start && operation != "instantiate"
}

fn body(operation: Operation, world: &World, next: &str) -> Value {
    match operation {
        Operation::Instantiate => instantiate(world),
        Operation::Scale => json!({"type": "SCALE_OUT", "aspectId": "web_aspect"}),
        Operation::ScaleToLevel => {
            json!({"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 0}]})
        }
        Operation::Heal => json!({}),
        Operation::ChangeVnfpkg => json!({"vnfdId": next}),
        Operation::Terminate => json!({"terminationType": "FORCEFUL"}),
        Operation::ModifyInfo => panic!("it has no hooks"),
    }
}

/// The hook and item of each Job, by its name.
fn hooks_of(steps: &Value) -> BTreeMap<String, String> {
    let steps = steps.as_array().expect("a list").iter();
    let runs = steps.filter(|step| step["kind"] == "run-hook");
    let told = runs.map(|step| step["object"].as_str().expect("a text"));
    told.map(|object| {
        let (job, hook) = object.split_once(" (").expect("the hook in brackets");
        let job = job.strip_prefix("Job/").expect("a Job");
        (job.to_owned(), hook.trim_end_matches(')').to_owned())
    })
    .collect()
}

/// What the cluster saw, in order: each Job of a hook as it was made, by hook and item; and `effect` for a run of
/// others.
fn seen(requests: &[RequestRecord], hooks: &BTreeMap<String, String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for request in requests {
        if !request.is_effect() || !request.path.contains("/namespaces/") {
            continue;
        }
        match request.path.split_once("/jobs/") {
            Some((_, job)) if request.status == 201 => seen.push(hooks[job].clone()),
            // Finished Jobs are removed.
            Some(_) => {}
            None if seen.last().is_some_and(|last| last == "effect") => {}
            None => seen.push("effect".to_owned()),
        }
    }
    seen
}

/// The hooks of one instance.
struct Hooked<'a> {
    world: &'a World,
    id: String,
    operation: Operation,
    body: Value,
}

impl Hooked<'_> {
    fn named(&self, ending: &str, items: &[String]) -> Vec<String> {
        let stem = stem(self.operation).expect("it has hooks");
        let mut named: Vec<String> = items
            .iter()
            .map(|item| format!("{stem}{ending}, {item}"))
            .collect();
        named.sort();
        named
    }

    /// The Jobs before the effects, and those after them, each made once; and none is left.
    async fn ran(&self, op: &Value, steps: &str, before: &[String], after: &[String]) {
        let requests = self.world.place().sim().requests();
        let mut seen = seen(&requests, &hooks_of(&op[steps]));
        let effects = seen.iter().filter(|one| *one == "effect").count();
        assert_eq!(effects, 1, "hooks run among the effects: {seen:#?}");
        // Items run in order, or at the same time.
        let at = seen.iter().position(|one| one == "effect");
        let mut ran_after = seen.split_off(at.expect("it has effects"));
        ran_after.remove(0);
        ran_after.sort();
        seen.sort();
        assert_eq!((seen.as_slice(), ran_after.as_slice()), (before, after));
        assert!(jobs(self.world).await.is_empty(), "{op:#}");
    }

    /// Each begins at the error point that is documented for it.
    async fn began_at_their_points(&self, op: &Value) {
        let plan = op["plan"].as_array().expect("a plan");
        let mut point = Value::Null;
        for event in self.world.history(&self.id).await {
            if event["vnfLcmOpOccId"] != op["id"] {
                continue;
            }
            if event["type"] == "ErrorPointReached" {
                point = event["data"]["point"].clone();
            }
            let step = event["data"]["step"].as_u64();
            if event["type"] != "StepStarted" {
                continue;
            }
            let step = usize::try_from(step.expect("an index")).expect("small");
            if plan[step]["kind"] == "run-hook" {
                let object = plan[step]["object"].as_str().expect("a text");
                let documented = if object.contains("_start") { 2 } else { 5 };
                assert_eq!(point, documented, "{object}");
            }
        }
    }

    async fn runs_them(&self) {
        let (world, id) = (self.world, &self.id);
        let path = stem(self.operation).expect("it has hooks");
        let listed = LISTED.map(str::to_owned);
        world
            .faults(&json!([{"at": {"errorPoint": 4}, "action": "fail"}]))
            .await;
        let op = world.begin(id, path, &self.body).await;
        world.ends(&op, "FAILED_TEMP").await;
        world.place().sim().clear_requests();
        world.steer(&op, "rollback").await.is(202);
        let undone = world.ends(&op, "ROLLED_BACK").await;
        let (before, after) = (
            self.named("_rollback_start", &listed),
            self.named("_rollback_end", &listed),
        );
        self.ran(&undone, "undo", &before, &after).await;

        // Kubernetes chose which pods the rollback left.
        let vnfcs = vnfcs(&world.instance(id).await);
        let of_vnfcs: Vec<String> = vnfcs
            .iter()
            .map(|vnfc| vnfc["id"].as_str().expect("an id").to_owned())
            .collect();
        let starting = if is_per_vnfc(path, Moment::Start) {
            assert!(!of_vnfcs.is_empty());
            self.named("_start", &of_vnfcs)
        } else {
            self.named("_start", &listed)
        };
        world.place().sim().clear_requests();
        let done = world.complete(id, path, &self.body).await;
        self.ran(&done, "plan", &starting, &self.named("_end", &listed))
            .await;
        self.began_at_their_points(&done).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hook_of_every_operation_runs_once_and_at_its_moment() {
    let world = World::simple().await;
    // The hooks of a package change are those of the package that is changed to.
    let first = world.onboard(&hooked(web(), &broken())).await;
    let next = web()
        .next_version()
        .changed("ConfigMap", "settings", |settings| {
            settings["data"]["colour"] = json!("red");
        });
    let next = world.onboard(&hooked(next, &leaves(""))).await;
    let id = world.create(&first).await;
    for operation in Operation::ALL {
        if stem(operation).is_none() {
            continue;
        }
        if operation == Operation::Heal {
            // So that there is something to do, and to undo.
            let path = world.place().path("v1", "configmaps", "settings");
            world.place().kube.delete(&path, &json!({})).await.ok();
            world.place().kube.gone(&path, SOON).await;
        }
        let hooked = Hooked {
            world: &world,
            id: id.clone(),
            operation,
            body: body(operation, &world, &next),
        };
        hooked.runs_them().await;
    }
    until(SOON, "the pods of hooks to be gone", || async {
        let place = world.place();
        let pods = place.sim().list("v1", "Pod", &place.namespace);
        if pods.is_empty() { Ok(()) } else { Err(pods) }
    })
    .await;
}
