//! Records that operations rely on: packages that became unreadable, VIMs whose credentials change, another cluster
//! under the same name, events of a newer Cairn.

use crate::operations::{instantiate, nothing_left};
use crate::seed_c::vim;
use cairn_simcluster::RequestRecord;
use cairn_tests::client::Sent;
use cairn_tests::package::package;
use cairn_tests::place::Place;
use cairn_tests::until::until;
use cairn_tests::world::{Ground, Kind, World, execute};
use serde_json::{Value, json};
use std::time::Duration;

fn forceful() -> Value {
    json!({"terminationType": "FORCEFUL", "additionalParams": {"reason": "planted-reason"}})
}

/// On both databases; PostgreSQL only where the tests have one.
async fn on_both() -> Vec<World> {
    let mut worlds = vec![World::simple().await];
    if let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await {
        worlds.push(World::on(ground).await);
    }
    worlds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_patches_of_one_package_at_one_time_none_is_lost() {
    for world in on_both().await {
        let vnfd = world.onboard(&package().config_map("a")).await;
        let path = package_of(&world, &vnfd).await;
        let patches = (0..8).map(|n| world.send(adding(&path, &format!("key{n}"))));
        for answer in futures::future::join_all(patches).await {
            answer.is(200);
        }
        let shown = world.get(&path).await.is(200);
        let data = shown["userDefinedData"].as_object().expect("a mapping");
        assert_eq!(data.len(), 8, "{data:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_during_an_upload_is_not_lost() {
    for world in on_both().await {
        let made = world.post("/vnfpkgm/v2/vnf_packages", &json!({})).await;
        let id = made.is(201)["id"].as_str().expect("an id").to_owned();
        let path = format!("/vnfpkgm/v2/vnf_packages/{id}");
        let content = format!("{path}/package_content");
        let mut upload = Sent::json(axum::http::Method::PUT, &content, None);
        upload = upload.header("content-type", "application/zip");
        upload.body = package().config_map("a").csar();
        let (taken, patched) = tokio::join!(world.send(upload), world.send(adding(&path, "mine")));
        taken.is(202);
        patched.is(200);
        let shown = world.get(&path).await.is(200);
        assert_eq!(shown["onboardingState"], "ONBOARDED");
        assert_eq!(shown["userDefinedData"], json!({"mine": true}));
    }
}

/// A PATCH of a package that adds to its `userDefinedData`.
fn adding(path: &str, key: &str) -> Sent {
    let mut data = serde_json::Map::new();
    data.insert(key.to_owned(), json!(true));
    let body = json!({"userDefinedData": data});
    let sent = Sent::json(axum::http::Method::PATCH, path, Some(&body));
    sent.header("content-type", "application/merge-patch+json")
}

/// The package of a VNFD, by its path.
async fn package_of(world: &World, vnfd: &str) -> String {
    let all = world.get("/vnfpkgm/v2/vnf_packages").await.is(200);
    let mut all = all.as_array().expect("a list").iter();
    let found = all
        .find(|one| one["vnfdId"] == vnfd)
        .expect("it is onboarded");
    format!(
        "/vnfpkgm/v2/vnf_packages/{}",
        found["id"].as_str().expect("an id")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vnf_whose_package_is_disabled_or_unreadable_can_be_terminated() {
    let world = World::simple().await;
    for unreadable in [false, true] {
        let vnfd = world
            .onboard(&package().config_map("a").deployment("web", 1))
            .await;
        let id = world.create(&vnfd).await;
        world
            .complete(&id, "instantiate", &instantiate(&world))
            .await;
        let path = package_of(&world, &vnfd).await;
        let disable = json!({"operationalState": "DISABLED"});
        let mut sent =
            cairn_tests::client::Sent::json(axum::http::Method::PATCH, &path, Some(&disable));
        sent = sent.header("content-type", "application/merge-patch+json");
        world.send(sent).await.is(200);
        if unreadable {
            let database = world.ground.database.open().await;
            let pkg = path.rsplit('/').next().expect("an id");
            execute(
                &database,
                "UPDATE packages SET record = '{}' WHERE id = $1",
                pkg,
            )
            .await;
            database.close().await;
            let scale = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
            assert_eq!(world.ask(&id, "scale", &scale).await.status, 500);
        }
        world.complete(&id, "terminate", &forceful()).await;
        nothing_left(&world).await;
        let history = Value::from(world.history(&id).await).to_string();
        assert_eq!(
            history.contains("planted-reason"),
            !unreadable,
            "what is secret only the descriptor could say"
        );
        world
            .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
            .await
            .is(204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_a_vim_is_rotated_while_an_instance_uses_it() {
    let world = World::simple().await;
    let kube = &world.place().kube;
    let path = "/cairn/v1/vims/west";
    let registration = json!({"vimId": "west", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": kube.server, "ssl_ca_cert": kube.ca_pem},
        "accessInfo": {"bearer_token": "expired-token"}});
    world.post("/cairn/v1/vims", &registration).await.is(201);
    let vnfd = world.onboard(&package().config_map("a")).await;
    let id = world.create(&vnfd).await;
    let mut body = instantiate(&world);
    body["vimConnectionInfo"] =
        json!({"site": {"vimId": "west", "vimType": "ETSINFV.KUBERNETES.V_1"}});
    let op = world.begin(&id, "instantiate", &body).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert!(
        halted["error"]["detail"].to_string().contains("401"),
        "{halted:#}"
    );
    let used = world.delete(path).await;
    assert_eq!(used.status, 409);
    assert!(used.detail().contains(&id), "{}", used.detail());

    let token = kube.token.clone().expect("a token");
    let rotated = json!({"accessInfo": {"bearer_token": token}});
    let mut sent = cairn_tests::client::Sent::json(axum::http::Method::PATCH, path, Some(&rotated));
    sent = sent.header("content-type", "application/merge-patch+json");
    let answer = world.send(sent).await.is(200);
    assert!(!answer.to_string().contains(&token));
    assert_eq!(answer["interfaceInfo"], registration["interfaceInfo"]);
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    world.complete(&id, "terminate", &forceful()).await;
    world
        .delete(&format!("/vnflcm/v2/vnf_instances/{id}"))
        .await
        .is(204);
    world.delete(path).await.is(204);
}

/// A PATCH names a VIM from its completion on; one that is gone by then is not named by any record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_does_not_come_to_name_a_vim_that_was_deleted_meanwhile() {
    let world = World::simple().await;
    let path = "/cairn/v1/vims/west";
    let kube = &world.place().kube;
    let registration = json!({"vimId": "west", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": kube.server, "ssl_ca_cert": kube.ca_pem},
        "accessInfo": {"bearer_token": kube.token}});
    world.post("/cairn/v1/vims", &registration).await.is(201);
    let vnfd = world.onboard(&package().config_map("a")).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([{"operation": "MODIFY_INFO", "at": {"errorPoint": 1}, "action": "hold", "times": 1}]))
        .await;
    let named = json!({"site": {"vimId": "west", "vimType": "ETSINFV.KUBERNETES.V_1"}});
    let op = world
        .begin(&id, "modify", &json!({"vimConnectionInfo": named}))
        .await;
    world
        .op_until(&op, "to be held", |seen| seen["point"] == 1)
        .await;
    world.delete(path).await.is(204);
    world.faults(&json!([])).await;
    // Nothing was changed, so there is nothing to go on with or to undo.
    let refused = world.ends(&op, "ROLLED_BACK").await;
    let detail = refused["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("VIM west"), "{detail}");
    let shown = world.instance(&id).await;
    assert_eq!(shown.get("vimConnectionInfo"), None, "{shown:#}");

    world.post("/cairn/v1/vims", &registration).await.is(201);
    world
        .complete(&id, "modify", &json!({"vimConnectionInfo": named}))
        .await;
    let shown = world.instance(&id).await;
    assert_eq!(shown["vimConnectionInfo"]["site"]["vimId"], "west");
    assert_eq!(world.delete(path).await.status, 409, "it is named now");
}

/// Whether Cairn sent it, and not to ask what it may do.
fn is_ours(request: &RequestRecord) -> bool {
    request.manager.starts_with("cairn") && !request.path.ends_with("reviews")
}

/// On another cluster nothing is missing: it is the wrong place, and that is what is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_cluster_is_told_before_what_is_missing_there() {
    let world = World::simple().await;
    let other = Place::simulated().await;
    let token = |place: &Place| place.kube.token.clone().expect("a token");
    let vnfd = world
        .onboard(&package().config_map("a").deployment("web", 1))
        .await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    let moved = json!({"vimConnectionInfo": vim(&other, &token(&other))});
    world.complete(&id, "modify", &moved).await;
    for (operation, body) in [("heal", json!({})), ("terminate", forceful())] {
        let op = world.begin(&id, operation, &body).await;
        let halted = world.ends(&op, "FAILED_TEMP").await;
        let detail = halted["error"]["detail"].as_str().expect("a detail");
        assert!(detail.contains("another cluster"), "{operation}: {detail}");
        assert!(
            !detail.contains("Missing") && !detail.contains("does not exist"),
            "{detail}"
        );
        // Nothing was written, so nothing is to be undone.
        world.steer(&op, "rollback").await.is(202);
        world.ends(&op, "ROLLED_BACK").await;
        let written = other.sim().requests().into_iter();
        let written: Vec<_> = written
            .filter(|one| one.is_effect() && is_ours(one))
            .collect();
        assert!(written.is_empty(), "{operation}: {written:#?}");
    }
    let home = json!({"vimConnectionInfo": vim(world.place(), &token(world.place()))});
    world.complete(&id, "modify", &home).await;
    world.complete(&id, "terminate", &forceful()).await;
    nothing_left(&world).await;
    let there = other
        .kube
        .get(&other.list("v1", "configmaps"))
        .await
        .is(200);
    let names = there["items"].as_array().expect("a list").iter();
    assert!(names.into_iter().all(|map| map["metadata"]["name"] != "a"));
}

/// A replica that is older than what was written stops before it, says so, and leaves the work to newer ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_replica_stops_before_what_a_newer_one_wrote() {
    let ground = Ground::simple().await;
    let world = World::on(ground.clone()).await;
    let vnfd = world.onboard(&package().config_map("a")).await;
    let id = world.create(&vnfd).await;
    world.get("/readyz").await.is(200);
    let database = ground.database.open().await;
    execute(
        &database,
        "INSERT INTO events (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata, \
         position, recorded_at, vnf_instance_id) SELECT aggregate_type, aggregate_id, sequence + 1, 'VnfTeleported', \
         '1.0', '{\"VnfTeleported\": {}}', '{}', position + 1, recorded_at, vnf_instance_id FROM events \
         WHERE aggregate_id = $1",
        &id,
    )
    .await;
    execute(
        &database,
        "UPDATE log_position SET position = position + 1 WHERE $1 = $1",
        "any",
    )
    .await;
    database.close().await;
    let told = until(Duration::from_secs(20), "the replica to notice", || async {
        let answer = world.get("/readyz").await;
        if answer.status == 503 {
            Ok(answer)
        } else {
            Err(answer.body)
        }
    })
    .await;
    assert!(told.detail().contains("older"), "{}", told.detail());
    assert!(told.detail().contains("VnfTeleported"), "{}", told.detail());
    let read = world.get(&format!("/vnflcm/v2/vnf_instances/{id}")).await;
    assert_eq!(read.status, 503, "rather no answer than an old one");
    world.get("/healthz").await.is(200);
}

/// Of a change to a package and the deletion of that package one wins, and the other is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_is_not_deleted_under_an_instance_that_is_changed_to_it() {
    let world = World::simple().await;
    let wanted = || package().config_map("a");
    let vnfd = world.onboard(&wanted()).await;
    let id = world.create(&vnfd).await;
    world
        .complete(&id, "instantiate", &instantiate(&world))
        .await;
    for _ in 0..6 {
        let next = world.onboard(&wanted()).await;
        let path = package_of(&world, &next).await;
        let disable = json!({"operationalState": "DISABLED"});
        let mut disabling =
            cairn_tests::client::Sent::json(axum::http::Method::PATCH, &path, Some(&disable));
        disabling = disabling.header("content-type", "application/merge-patch+json");
        let change = json!({"vnfdId": next});
        let deleting = async {
            world.send(disabling).await.is(200);
            world.delete(&path).await
        };
        let (changed, deleted) = tokio::join!(world.ask(&id, "change_vnfpkg", &change), deleting);
        match changed.status {
            202 => {
                assert_eq!(deleted.status, 409, "{:#}", deleted.body);
                world.ends(&changed.located(), "COMPLETED").await;
                world.get(&path).await.is(200);
            }
            422 => assert_eq!(deleted.status, 204, "{:#}", deleted.body),
            other => panic!("{other}: {:#}", changed.body),
        }
    }
}
