//! The rights of `docs/rbac.yaml` are enough to instantiate, scale, heal, roll back and terminate on the real cluster,
//! and without any Cairn says which it lacks before it touches anything.

use crate::hooks::job;
use crate::operations::{instantiate, level, nothing_left, probe, replicas, vnfcs};
use crate::seed_c::vim;
use cairn_tests::client::SOON;
use cairn_tests::kube::Kube;
use cairn_tests::place::{Place, list_path};
use cairn_tests::until::until;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::{Value, json};
use std::path::Path;

/// The version of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A Cairn beside the real cluster, and the namespace in which the document's `ServiceAccount` lives.
async fn world() -> Option<(World, String)> {
    let place = Place::real().await?;
    let accounts = apply_document(&place).await;
    let ground = Ground::new(Kind::Sqlite, place)
        .await
        .expect("SQLite is always there");
    Some((World::on(ground).await, accounts))
}

/// The objects of the document, each name with the test's suffix, so that tests do not meet on one cluster.
fn document(suffix: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rbac.yaml");
    let text = std::fs::read_to_string(path).expect("docs/rbac.yaml can be read");
    let own = |name: &mut Value| {
        let text = name.as_str().expect("a name");
        *name = json!(format!("{text}-{suffix}"));
    };
    let parse = |part: &str| {
        let mut object: Value = serde_saphyr::from_str(part).expect("each part is YAML");
        for pointer in [
            "/metadata/name",
            "/metadata/namespace",
            "/roleRef/name",
            "/subjects/0/name",
            "/subjects/0/namespace",
        ] {
            if let Some(name) = object.pointer_mut(pointer) {
                own(name);
            }
        }
        object
    };
    text.split("\n---\n").map(parse).collect()
}

/// Makes the objects of the document and answers the namespace of its `ServiceAccount`.
async fn apply_document(place: &Place) -> String {
    let mut accounts = String::new();
    for object in document(&place.suffix) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let plural = match text("/kind").expect("a kind") {
            "Namespace" => "namespaces",
            "ServiceAccount" => "serviceaccounts",
            "ClusterRole" => "clusterroles",
            "ClusterRoleBinding" => "clusterrolebindings",
            other => panic!("docs/rbac.yaml holds a {other}, which this test does not know"),
        };
        let namespace = text("/metadata/namespace");
        let version = text("/apiVersion").expect("a version");
        let list = list_path(version, plural, namespace);
        if let Some(namespace) = namespace {
            namespace.clone_into(&mut accounts);
        } else {
            let name = text("/metadata/name").expect("a name");
            place.remove_at_end(format!("{list}/{name}"));
        }
        place.kube.post(&list, &object).await.is(201);
    }
    accounts
}

/// A token of a `ServiceAccount`.
async fn token(place: &Place, namespace: &str, name: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600}});
    let made = place.kube.post(&path, &body).await.is(201);
    made["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

/// Awaits that the cluster has heard of every role of the document.
async fn granted(place: &Place, token: &str) {
    let kube = place.kube.with_token(Some(token));
    for object in document(&place.suffix) {
        if object["kind"] != "ClusterRole" {
            continue;
        }
        for rule in object["rules"].as_array().expect("rules") {
            let resource = rule["resources"][0].as_str().expect("a resource");
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let asked = json!({"group": rule["apiGroups"][0], "resource": resource,
                "subresource": subresource, "verb": rule["verbs"][0]});
            until(SOON, &format!("{asked} to be granted"), || {
                allowed(&kube, &asked)
            })
            .await;
        }
    }
}

async fn allowed(kube: &Kube, asked: &Value) -> Result<(), Value> {
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = kube.post(path, &body).await;
    if answer.body["status"]["allowed"] == true {
        Ok(())
    } else {
        Err(answer.body)
    }
}

/// A scale that a quota stops is rolled back.
async fn failed_scale(world: &World, id: &str) {
    let place = world.place();
    // Pods that the heal evicted count in a quota as long as they are there.
    let rest = |pods: &Value| {
        let mut items = pods["items"].as_array().expect("pods").iter();
        items.all(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    };
    let list = place.list("v1", "pods");
    let pods = place
        .kube
        .until(&list, SOON, "none to be ending", rest)
        .await;
    let there = pods["items"].as_array().expect("pods").len();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-more-pods"},
        "spec": {"hard": {"pods": there.to_string()}}});
    let list = place.list("v1", "resourcequotas");
    place.kube.post(&list, &quota).await.is(201);
    let path = place.path("v1", "resourcequotas", "no-more-pods");
    let counts = |quota: &Value| quota["status"]["used"].is_object();
    place.kube.until(&path, SOON, "to count", counts).await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    let op = world.begin(id, "scale", &out).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains("no-more-pods"), "{detail}");
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    place.kube.delete(&path, &json!({})).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_are_enough_on_the_real_cluster() {
    let Some((world, accounts)) = world().await else {
        return;
    };
    let name = format!("cairn-{}", world.place().suffix);
    let token = token(world.place(), &accounts, &name).await;
    granted(world.place(), &token).await;

    let hook = job("true", &json!({}));
    let package = probe()
        .hook(
            "instantiate_end",
            hook.clone(),
            "{result: {secret: credentials}}",
        )
        .hook("terminate_start", hook, "{}");
    let vnfd = world.onboard(&package).await;
    let id = world.create(&vnfd).await;
    let mut body = instantiate(&world);
    body["vimConnectionInfo"] = vim(world.place(), &token);
    world.complete(&id, "instantiate", &body).await;
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    world.complete(&id, "scale", &out).await;
    let before = vnfcs(&world.instance(&id).await);
    world.complete(&id, "heal", &json!({})).await;
    assert_eq!(vnfcs(&world.instance(&id).await).len(), before.len());
    failed_scale(&world, &id).await;
    assert_eq!(level(&world.instance(&id).await, "web_aspect"), 1);
    assert_eq!(replicas(&world, "deployments", "web").await, 2);
    let gently = json!({"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1});
    world.complete(&id, "terminate", &gently).await;
    nothing_left(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rights_the_missing_one_is_named_and_nothing_touched_on_the_real_cluster() {
    let Some((world, accounts)) = world().await else {
        return;
    };
    let place = world.place();
    let list = list_path("v1", "serviceaccounts", Some(&accounts));
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}});
    place.kube.post(&list, &account).await.is(201);
    let token = token(place, &accounts, "nobody").await;

    let vnfd = world.onboard(&probe()).await;
    let id = world.create(&vnfd).await;
    let mut body = instantiate(&world);
    body["vimConnectionInfo"] = vim(place, &token);
    let op = world.begin(&id, "instantiate", &body).await;
    lacks(&world, &op, "cannot get resource \"namespaces\"").await;

    // It may look now, and still not write.
    let name = format!("nobody-looks-{}", place.suffix);
    let looks = json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]});
    let bound = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": accounts}]});
    for (plural, object) in [("clusterroles", looks), ("clusterrolebindings", bound)] {
        let list = list_path(RBAC, plural, None);
        place.remove_at_end(format!("{list}/{name}"));
        place.kube.post(&list, &object).await.is(201);
    }
    let nobody = place.kube.with_token(Some(&token));
    let asked = json!({"resource": "namespaces", "verb": "get"});
    until(SOON, "namespaces to be seen", || allowed(&nobody, &asked)).await;
    world.steer(&op, "retry").await.is(202);
    let missing = format!(
        "no permission to create configmaps in namespace {}",
        place.namespace
    );
    lacks(&world, &op, &missing).await;
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
}

/// The operation halts for want of a permission that it names, and nothing was made.
async fn lacks(world: &World, op: &str, missing: &str) {
    let halted = world.ends(op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(detail.contains(missing), "{detail}");
    nothing_left(world).await;
}
