//! A VNF that is a cluster: its hooks join workers one by one, and register it as a VIM.

use super::{
    begun, counts, halts, job, jobs, jobs_made, leaves, mend, outcome, step_of, unmend, web,
};
use crate::operations::instantiate;
use cairn_tests::package::PackageBuilder;
use cairn_tests::world::{Ground, World};
use serde_json::{Value, json};

/// The Job of a hook, the same for the simulated and the real cluster. Item `worker-3` fails until there is a
/// `ConfigMap` named `mended`; `edge-…`, the name of the VIM, is part of each result.
fn join(vim: &str) -> Value {
    let mut result = registers(vim);
    result["joined"] = json!("$(CAIRN_HOOK_ITEM)");
    let result = result.to_string();
    let script = format!(
        "if [ \"$CAIRN_HOOK_ITEM\" = worker-3 ] && [ ! -e /mended/now ]; then \
         echo \"no route to $CAIRN_HOOK_ITEM\" > /dev/termination-log; exit 1; fi; \
         echo '{}' > /dev/termination-log",
        result.replace("$(CAIRN_HOOK_ITEM)", "a worker")
    );
    job(
        &script,
        &json!({
            "simcluster.cairn.dev/crash": "always",
            "simcluster.cairn.dev/crash-where": "CAIRN_HOOK_ITEM=worker-3",
            "simcluster.cairn.dev/crash-until": "mended",
            "simcluster.cairn.dev/crash-message": "no route to $(CAIRN_HOOK_ITEM)",
            "simcluster.cairn.dev/termination-message": result,
        }),
    )
}

/// What a hook leaves that registers a VIM, whose credentials are in a Secret.
pub fn registers(vim: &str) -> Value {
    json!({"registerVim": {"vimId": vim, "interfaceInfo": {"endpoint": "https://edge.test:6443"},
        "accessFrom": {"secret": "edge"}}})
}

/// The Secret of the credentials.
pub fn edge() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge"},
        "stringData": {"bearer_token": "planted-token"}})
}

/// A cluster in a VNF: three workers join at the end, and the cluster is registered as a VIM.
fn cluster_in_a_vnf(vim: &str) -> PackageBuilder {
    web().manifest(edge()).hook(
        "instantiate_end",
        join(vim),
        "{items: [worker-1, worker-2, worker-3], register_vim: true, result: termination-message}",
    )
}

fn vim_of(world: &World) -> String {
    format!("edge-{}", world.place().suffix)
}

/// A8: two of three workers are installed and the VIM is there already when the hook fails on the third. The retry
/// installs the third alone and uses the VIM.
pub async fn the_third_worker_fails(world: World) {
    let vim = vim_of(&world);
    let known = json!({"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://edge.test:6443/"}, "accessInfo": {"bearer_token": "before"}});
    world.post("/cairn/v1/vims", &known).await.is(201);
    let (id, op, halted) = halts(&world, &cluster_in_a_vnf(&vim)).await;
    assert_eq!(halted["point"], 5, "{halted:#}");
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("item worker-3") && said.contains("no route to worker-3"),
        "{said}"
    );
    let before = jobs(&world).await;
    assert_eq!(before.len(), 3);

    mend(&world).await;
    let remove = step_of(&halted, "remove-hook-jobs");
    world
        .faults(&json!([{"at": {"step": remove, "edge": "before"}, "action": "hold"}]))
        .await;
    world.steer(&op, "retry").await.is(202);
    world
        .op_until(&op, "the hooks to be done", |seen| {
            seen["plan"][remove]["state"] == "started"
        })
        .await;
    let after = jobs(&world).await;
    for (item, same) in [("worker-1", true), ("worker-2", true), ("worker-3", false)] {
        assert_eq!(before[item] == after[item], same, "{item}");
    }
    world.faults(&json!([])).await;
    let done = world.ends(&op, "COMPLETED").await;
    assert_eq!(
        begun(&world, &id, &op).await,
        counts([
            ("instantiate_end, worker-1", 1),
            ("instantiate_end, worker-2", 1),
            ("instantiate_end, worker-3", 2),
        ])
    );
    assert!(jobs_made(&world).is_none_or(|made| made == 4));
    let register = step_of(&done, "register-vim");
    let told = outcome(&world, &id, &op, register).await;
    assert_eq!(told["used"], json!([vim, vim, vim]), "{told:#}");
    let shown = world.get(&format!("/cairn/v1/vims/{vim}")).await.is(200);
    assert_eq!(
        shown["extra"],
        Value::Null,
        "it is not this operation's: {shown:#}"
    );
    assert!(jobs(&world).await.is_empty(), "finished Jobs are removed");
    let instance = world.instance(&id).await.to_string();
    assert!(!instance.contains("cairn-hook"), "{instance}");
    ends_clean(&world, &id, &vim).await;
}

/// A8 as it was reported: the failure is at error point 6, when everything was done already.
pub async fn all_is_done_when_it_fails(world: World) {
    let vim = vim_of(&world);
    let vnfd = world.onboard(&cluster_in_a_vnf(&vim)).await;
    let id = world.create(&vnfd).await;
    mend(&world).await;
    let fault = json!([{"at": {"errorPoint": 6}, "action": "fail", "times": 2}]);
    world.faults(&fault).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    for _ in 0..2 {
        world.ends(&op, "FAILED_TEMP").await;
        world.steer(&op, "retry").await.is(202);
    }
    let done = world.ends(&op, "COMPLETED").await;
    let workers = [1, 2, 3].map(|n| format!("instantiate_end, worker-{n}"));
    let once = workers.iter().map(|name| (name.clone(), 1)).collect();
    assert_eq!(begun(&world, &id, &op).await, once);
    assert!(jobs_made(&world).is_none_or(|made| made == 3));
    let told = outcome(&world, &id, &op, step_of(&done, "register-vim")).await;
    assert_eq!(told["registered"], json!([vim, vim, vim]), "{told:#}");
    let shown = world.get(&format!("/cairn/v1/vims/{vim}")).await.is(200);
    assert_eq!(shown["extra"]["registeredBy"], op.as_str());
    assert!(!shown.to_string().contains("planted-token"));
    let history = json!(world.history(&id).await).to_string();
    assert!(!history.contains("planted-token"));
    ends_clean(&world, &id, &vim).await;
}

/// Nothing of the VNF is left after its terminate; the VIM stays until it is taken off.
async fn ends_clean(world: &World, id: &str, vim: &str) {
    unmend(world).await;
    let forceful = json!({"terminationType": "FORCEFUL"});
    world.complete(id, "terminate", &forceful).await;
    assert!(jobs(world).await.is_empty());
    world.delete(&format!("/cairn/v1/vims/{vim}")).await.is(204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vim_at_another_endpoint_is_a_conflict_that_names_both() {
    let world = World::simple().await;
    let vim = vim_of(&world);
    let known = json!({"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://other.test:6443"}, "accessInfo": {"bearer_token": "t"}});
    world.post("/cairn/v1/vims", &known).await.is(201);
    mend(&world).await;
    let (_, op, halted) = halts(&world, &cluster_in_a_vnf(&vim)).await;
    let said = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        said.contains("https://other.test:6443") && said.contains("https://edge.test:6443"),
        "{said}"
    );
    assert_eq!(halted["error"]["status"], 409);
    // The other one taken off, a retry registers; a rollback takes only its own off again.
    world.delete(&format!("/cairn/v1/vims/{vim}")).await.is(204);
    world
        .faults(&json!([{"at": {"errorPoint": 6}, "action": "fail"}]))
        .await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "FAILED_TEMP").await;
    world.get(&format!("/cairn/v1/vims/{vim}")).await.is(200);
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    world.get(&format!("/cairn/v1/vims/{vim}")).await.is(404);
    assert!(jobs(&world).await.is_empty());
}

/// A crash before and after each effect of an instantiate with hooks: every item runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_crash_runs_a_hook_twice() {
    let ground = Ground::simple().await;
    let world = World::on(ground.clone()).await;
    mend(&world).await;
    let vim = vim_of(&world);
    let package = cluster_in_a_vnf(&vim).hook("instantiate_start", leaves(""), "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let begin = world.begin(&id, "instantiate", &instantiate(&world)).await;
    let steps = world.ends(&begin, "COMPLETED").await["plan"]
        .as_array()
        .expect("a plan")
        .len();
    ends_clean(&world, &id, &vim).await;
    let mut ground = world.end().await;
    for step in 0..steps {
        for edge in ["before", "after"] {
            let mut world = World::on(ground).await;
            mend(&world).await;
            let made = jobs_made(&world).expect("it is simulated");
            let id = world.create(&vnfd).await;
            world
                .faults(&json!([{"at": {"step": step, "edge": edge}, "action": "crash"}]))
                .await;
            let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
            world.crash().await;
            ground = world.kill();
            world = World::on(ground).await;
            let done = world.ends(&op, "COMPLETED").await;
            assert_eq!(done["tries"].as_array().expect("tries").len(), 1);
            assert_eq!(
                jobs_made(&world).expect("it is simulated") - made,
                4,
                "step {step} {edge}"
            );
            ends_clean(&world, &id, &vim).await;
            ground = world.end().await;
        }
    }
}

/// The VNF, and its next version, which registers a VIM at this moment of the change.
fn changed_to_a_cluster(vim: &str, ending: &str) -> (PackageBuilder, PackageBuilder) {
    let first = web().manifest(edge());
    let result = registers(vim).to_string();
    let next = first
        .next_version()
        .changed("ConfigMap", "settings", |m| {
            m["data"] = json!({"colour": "red"});
        })
        .config_map("more")
        .hook(
            &format!("change_vnfpkg_{ending}"),
            leaves(&result),
            "{register_vim: true, result: termination-message}",
        );
    (first, next)
}

/// What a change of the package registered, its rollback takes off; also where that halts before or after any of its
/// steps and then goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vim_that_a_package_change_registered_goes_with_its_rollback_wherever_that_halts() {
    let world = World::simple().await;
    let vim = vim_of(&world);
    let path = format!("/cairn/v1/vims/{vim}");
    for ending in ["start", "end"] {
        let (first, next) = changed_to_a_cluster(&vim, ending);
        let vnfd = world.onboard(&first).await;
        let change = json!({"vnfdId": world.onboard(&next).await});
        let id = world.create(&vnfd).await;
        world
            .complete(&id, "instantiate", &instantiate(&world))
            .await;
        // All of it is undone at once first, which says how many steps there are.
        let mut halts = vec![None];
        while let Some(halt) = halts.pop() {
            let mut faults = vec![json!({"at": {"errorPoint": 6}, "action": "fail"})];
            faults.extend(halt.map(
                |(step, edge)| json!({"at": {"undoStep": step, "edge": edge}, "action": "fail"}),
            ));
            world.faults(&Value::from(faults)).await;
            let op = world.begin(&id, "change_vnfpkg", &change).await;
            world.ends(&op, "FAILED_TEMP").await;
            let shown = world.get(&path).await.is(200);
            assert_eq!(shown["extra"]["registeredBy"], op.as_str());
            world.steer(&op, "rollback").await.is(202);
            if halt.is_some() {
                world.ends(&op, "FAILED_TEMP").await;
                world.steer(&op, "rollback").await.is(202);
            }
            let undone = world.ends(&op, "ROLLED_BACK").await;
            let gone = world.get(&path).await;
            assert_eq!(gone.status, 404, "{ending} {halt:?}: {:#}", gone.body);
            assert!(jobs(&world).await.is_empty(), "{ending} {halt:?}");
            assert_eq!(world.instance(&id).await["vnfdId"], vnfd.as_str());
            if halt.is_none() {
                let steps = undone["undo"].as_array().expect("a list").len();
                assert!(steps > 3, "{undone:#}");
                let both = |step| ["before", "after"].map(|edge| Some((step, edge)));
                halts.extend((0..steps).flat_map(both));
            }
        }
        let forceful = json!({"terminationType": "FORCEFUL"});
        world.complete(&id, "terminate", &forceful).await;
    }
}
