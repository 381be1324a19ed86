//! A VNF is changed to another version of its package: over all objects, with the replicas that it has, and back.

mod field;
mod refused;
mod sampled;

use crate::clusters::real;
use crate::operations::{instantiate, level, replicas, vnfcs};
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use sampled::Sampler;
use serde_json::{Map, Value, json};

/// What tells the simulated cluster that the image cannot be had.
const PULL: &str = "simcluster.cairn.dev/pull";

/// The first version.
pub fn first() -> PackageBuilder {
    package()
        .config_map("settings")
        .config_map("old")
        .secret("credentials", "planted")
        .service("web")
        .deployment("web", 2)
        .workload("StatefulSet", "db", 1)
}

/// The next one: another colour and image, one workload and one permission more, one object less.
pub fn second(first: &PackageBuilder) -> PackageBuilder {
    first
        .next_version()
        .changed("ConfigMap", "settings", |m| {
            m["data"] = json!({"colour": "red"});
        })
        .changed("Deployment", "web", |web| image(web, "cairn.test/web:2"))
        .without("ConfigMap", "old")
        .manifest(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        )
        .deployment("cache", 1)
}

/// Sets the image of a workload's container.
pub fn image(workload: &mut Value, image: &str) {
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
}

/// Gives a workload an image that cannot be had, on either cluster.
pub fn broken(workload: &mut Value) {
    image(workload, "cairn.test/none-such:1");
    workload["spec"]["template"]["metadata"]["annotations"] = json!({PULL: "fail"});
}

/// A world with an instance of the first version, and the VNFD of the next one.
pub struct Changing {
    pub world: World,
    pub id: String,
    pub next: String,
}

impl Changing {
    /// Instantiates `first` and onboards `next`.
    pub async fn begin(world: World, first: &PackageBuilder, next: &PackageBuilder) -> Self {
        let vnfd = world.onboard(first).await;
        let next = world.onboard(next).await;
        let id = world.create(&vnfd).await;
        world
            .complete(&id, "instantiate", &instantiate(&world))
            .await;
        Self { world, id, next }
    }

    /// Asks for the change.
    pub async fn ask(&self) -> String {
        let body = json!({"vnfdId": self.next});
        self.world.begin(&self.id, "change_vnfpkg", &body).await
    }

    /// Changes it.
    pub async fn complete(&self) -> Value {
        let op = self.ask().await;
        self.world.ends(&op, "COMPLETED").await
    }

    /// Begins a change that fails, and rolls it back; answers the operation.
    pub async fn fails_and_is_rolled_back(&self) -> Value {
        let op = self.ask().await;
        self.world.ends(&op, "FAILED_TEMP").await;
        self.world.steer(&op, "rollback").await.is(202);
        self.world.ends(&op, "ROLLED_BACK").await
    }

    /// An object of the test's namespace, which must exist.
    pub async fn object(&self, api_version: &str, plural: &str, name: &str) -> Value {
        let path = self.world.place().path(api_version, plural, name);
        self.world.place().kube.get(&path).await.is(200)
    }

    /// Whether an object of the test's namespace exists.
    pub async fn exists(&self, api_version: &str, plural: &str, name: &str) -> bool {
        let path = self.world.place().path(api_version, plural, name);
        self.world.place().read(&path).await.is_some()
    }

    /// Everything of ours in the namespace, as section "as before" compares it.
    pub async fn picture(&self) -> Value {
        let place = self.world.place();
        let mut all = Map::new();
        for (version, plural) in [
            ("v1", "configmaps"),
            ("v1", "secrets"),
            ("v1", "services"),
            ("v1", "persistentvolumeclaims"),
            ("apps/v1", "deployments"),
            ("apps/v1", "statefulsets"),
            ("rbac.authorization.k8s.io/v1", "roles"),
        ] {
            let path = format!(
                "{}?labelSelector=cairn.dev%2Fvnf-instance-id",
                place.list(version, plural)
            );
            let listed = place.kube.get(&path).await.is(200);
            for object in listed["items"].as_array().expect("a list") {
                let name = object["metadata"]["name"].as_str().expect("a name");
                all.insert(format!("{plural}/{name}"), compared(object));
            }
        }
        Value::Object(all)
    }
}

fn compared(object: &Value) -> Value {
    let mut object = object.clone();
    let labels = object["metadata"]["labels"].clone();
    object["metadata"] = json!({"labels": labels});
    let members = object.as_object_mut().expect("an object");
    members.remove("status");
    object
}

/// An instance of which only what a change may change is left.
async fn record(changing: &Changing) -> Value {
    let instance = changing.world.instance(&changing.id).await;
    let mut info = instance["instantiatedVnfInfo"].clone();
    info["vnfcResourceInfo"] = json!(vnfcs(&instance).len());
    json!({"vnfdId": instance["vnfdId"], "software": instance["vnfSoftwareVersion"], "info": info,
        "provisioning": instance["provisioning"], "leftovers": instance["leftovers"]})
}

/// `IN_USE` or `NOT_IN_USE` of the package of a VNFD, with its id.
async fn usage(world: &World, vnfd: &str) -> (String, String) {
    let all = world.get("/vnfpkgm/v2/vnf_packages").await.is(200);
    let found = all.as_array().expect("a list").iter();
    let mut found = found.filter(|package| package["vnfdId"] == vnfd);
    let package = found.next().expect("the package");
    let text = |name: &str| package[name].as_str().expect("a text").to_owned();
    (text("id"), text("usageState"))
}

/// Disables a package and asks for its deletion.
async fn delete_package(world: &World, id: &str) -> u16 {
    use cairn_tests::client::Sent;
    let path = format!("/vnfpkgm/v2/vnf_packages/{id}");
    let disable = json!({"operationalState": "DISABLED"});
    let sent = Sent::json(reqwest::Method::PATCH, &path, Some(&disable));
    let disabled = world.send(sent).await.status;
    assert!(disabled == 200 || disabled == 409, "{disabled}");
    world.delete(&path).await.status
}

async fn story(world: World) {
    let one = first();
    let changing = Changing::begin(world, &one, &second(&one)).await;
    let (world, id) = (&changing.world, &changing.id);
    let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
    world.complete(id, "scale", &out).await;
    let before = world.instance(id).await;
    let link = &before["_links"]["changeCurrentVnfPkg"]["href"];
    assert!(
        link.as_str().is_some_and(|l| l.ends_with("/change_vnfpkg")),
        "{before:#}"
    );
    let db = changing.object("apps/v1", "statefulsets", "db").await;

    let sampler = Sampler::of(world, "deployments", "web");
    let done = changing.complete().await;
    assert_eq!(sampler.end().await, [3], "the number never changed");

    let modified = &done["modificationsTriggeredByVnfPkgChange"];
    assert_eq!(
        (&modified["vnfdId"], &modified["vnfSoftwareVersion"]),
        (&json!(changing.next), &json!("2.0")),
        "{done:#}"
    );
    assert!(done.get("changedInfo").is_none(), "{done:#}");
    let after = world.instance(id).await;
    assert_eq!(after["vnfdId"], changing.next);
    assert_eq!(
        after["provisioning"],
        json!({"state": "ACTIVE", "target": null})
    );
    assert_eq!(level(&after, "web_aspect"), 1);
    assert_eq!(level(&after, "cache_aspect"), 0);
    assert_eq!(vnfcs(&after).len(), 5, "{after:#}");
    let settings = changing.object("v1", "configmaps", "settings").await;
    assert_eq!(settings["data"], json!({"colour": "red"}));
    assert!(!changing.exists("v1", "configmaps", "old").await);
    assert!(
        changing
            .exists("rbac.authorization.k8s.io/v1", "roles", "reader")
            .await
    );
    let untouched = changing.object("apps/v1", "statefulsets", "db").await;
    for field in ["uid", "generation", "annotations"] {
        assert_eq!(
            untouched["metadata"][field], db["metadata"][field],
            "{field}"
        );
    }
    rolled(&before, &after);
    goes_on(&changing).await;
}

/// All pods of the changed workload are others, all of the one that was not changed are the same.
fn rolled(before: &Value, after: &Value) {
    let of = |instance: &Value, vdu: &str| -> Vec<Value> {
        let all = vnfcs(instance).into_iter();
        all.filter(|vnfc| vnfc["vduId"] == vdu)
            .map(|vnfc| vnfc["id"].clone())
            .collect()
    };
    assert_eq!(of(before, "DB"), of(after, "DB"));
    let old = of(before, "WEB");
    assert!(of(after, "WEB").iter().all(|id| !old.contains(id)));
}

/// What comes after works on the new package.
async fn goes_on(changing: &Changing) {
    let (world, id) = (&changing.world, &changing.id);
    let scale = json!({"type": "SCALE_OUT", "aspectId": "cache_aspect"});
    world.complete(id, "scale", &scale).await;
    assert_eq!(replicas(world, "deployments", "cache").await, 2);
    world.complete(id, "heal", &json!({})).await;
    let settings = changing.object("v1", "configmaps", "settings").await;
    assert_eq!(settings["data"], json!({"colour": "red"}));
    let end = json!({"terminationType": "FORCEFUL"});
    world.complete(id, "terminate", &end).await;
    crate::operations::nothing_left(world).await;
}

async fn undone(world: World, kind: &str, name: &str) {
    let one = first();
    let two = second(&one).changed(kind, name, broken);
    let changing = Changing::begin(world, &one, &two).await;
    let (picture, record_before) = (changing.picture().await, record(&changing).await);
    let op = changing.ask().await;
    let halted = changing.world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains("none-such") || detail.contains("mage"),
        "{halted:#}"
    );
    assert_eq!(
        changing.world.instance(&changing.id).await["provisioning"]["state"],
        "UPDATEFAIL"
    );
    assert_eq!(usage(&changing.world, &changing.next).await.1, "IN_USE");
    changing.world.steer(&op, "rollback").await.is(202);
    let ended = changing.world.ends(&op, "ROLLED_BACK").await;
    assert!(
        ended.get("modificationsTriggeredByVnfPkgChange").is_none(),
        "{ended:#}"
    );
    assert_eq!(changing.picture().await, picture);
    assert_eq!(record(&changing).await, record_before);
    let history = changing.world.history(&changing.id).await;
    let verified = history.iter().any(|e| e["type"] == "RollbackVerified");
    assert!(verified, "it was compared");
    let instance = changing.world.instance(&changing.id).await;
    for vnfc in vnfcs(&instance) {
        let pod = vnfc["id"].as_str().expect("a name");
        let pod = changing.object("v1", "pods", pod).await;
        let conditions = pod["status"]["conditions"].as_array().expect("conditions");
        let ready = conditions.iter().find(|c| c["type"] == "Ready");
        assert_eq!(ready.expect("a condition")["status"], "True", "{pod:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_goes_over_all_objects_on_sqlite_and_the_simulated_cluster() {
    story(World::simple().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_goes_over_all_objects_on_postgresql_and_the_simulated_cluster() {
    let place = Place::simulated().await;
    let Some(ground) = Ground::new(Kind::Postgres, place).await else {
        return;
    };
    story(World::on(ground).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_goes_over_all_objects_on_the_real_cluster() {
    let Some(world) = real().await else {
        return;
    };
    story(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_with_a_bad_image_is_undone() {
    undone(World::simple().await, "Deployment", "web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_with_a_bad_image_is_undone_on_the_real_cluster() {
    let Some(world) = real().await else {
        return;
    };
    undone(world, "Deployment", "web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_with_a_bad_image_is_undone() {
    undone(World::simple().await, "StatefulSet", "db").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_with_a_bad_image_is_undone_on_the_real_cluster() {
    let Some(world) = real().await else {
        return;
    };
    undone(world, "StatefulSet", "db").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_is_in_use_from_the_beginning_of_the_change_until_it_is_not() {
    let one = first();
    let two = second(&one).changed("Deployment", "web", broken);
    let changing = Changing::begin(World::simple().await, &one, &two).await;
    let world = &changing.world;
    let (next, used) = usage(world, &changing.next).await;
    assert_eq!(used, "NOT_IN_USE");
    let op = changing.ask().await;
    world.ends(&op, "FAILED_TEMP").await;
    assert_eq!(delete_package(world, &next).await, 409);
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    assert_eq!(delete_package(world, &next).await, 204);

    let good = world.onboard(&second(&one)).await;
    let (old, used) = usage(world, &one.vnfd_id).await;
    assert_eq!(used, "IN_USE");
    let body = json!({"vnfdId": good});
    world.complete(&changing.id, "change_vnfpkg", &body).await;
    assert_eq!(delete_package(world, &old).await, 204);
    let (new, _) = usage(world, &good).await;
    assert_eq!(delete_package(world, &new).await, 409);
}

/// After FAILED the record says the old package, and a heal makes the cluster say so too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_given_up_is_healed_or_made_again() {
    let one = first();
    let two = second(&one)
        .changed("Deployment", "web", broken)
        .changed("Service", "web", |web| {
            web["spec"]["clusterIP"] = json!("None");
        });
    let changing = Changing::begin(World::simple().await, &one, &two).await;
    let (world, id) = (&changing.world, &changing.id);
    let picture = changing.picture().await;
    let op = changing.ask().await;
    world.ends(&op, "FAILED_TEMP").await;
    world.steer(&op, "fail").await.is(200);
    let failed = world.instance(id).await;
    assert_eq!(failed["provisioning"]["state"], "UPDATEFAIL");
    assert_eq!(failed["vnfdId"], one.vnfd_id);
    let leftovers = failed["leftovers"].as_array().expect("a list");
    assert!(leftovers.contains(&json!("Role/reader")), "{failed:#}");

    world.complete(id, "heal", &json!({})).await;
    let mut healed = changing.picture().await;
    // The Service was made anew, with another address.
    for part in ["clusterIP", "clusterIPs"] {
        healed["services/web"]["spec"][part] = picture["services/web"]["spec"][part].clone();
    }
    assert_eq!(healed, picture);
    assert_eq!(world.instance(id).await["leftovers"], json!([]));

    let op = changing.ask().await;
    world.ends(&op, "FAILED_TEMP").await;
    world.steer(&op, "fail").await.is(200);
    let good = second(&one);
    let vnfd = world.onboard(&good).await;
    let body = json!({"vnfdId": vnfd});
    world.complete(id, "change_vnfpkg", &body).await;
    let after = world.instance(id).await;
    assert_eq!(
        (&after["vnfdId"], &after["leftovers"]),
        (&json!(vnfd), &json!([]))
    );
}

/// As `OpenStack` Tacker's client asks for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_made_for_tacker_changes_the_vdus_that_it_names() {
    let one = package().deployment("web", 2).deployment("other", 1);
    let two = one
        .next_version()
        .changed("Deployment", "web", |web| image(web, "cairn.test/web:2"))
        .changed("Deployment", "other", |other| {
            image(other, "cairn.test/web:2");
        });
    let changing = Changing::begin(World::simple().await, &one, &two).await;
    let body = json!({"vnfdId": changing.next, "additionalParams": {
        "upgrade_type": "RollingUpdate",
        "lcm-operation-coordinate-new-vnf": "./Scripts/coordinate_new_vnf.py",
        "lcm-kubernetes-def-files": ["Files/kubernetes/000.yaml", "Files/kubernetes/001.yaml"],
        "vdu_params": [{"vdu_id": "WEB"}]}});
    changing
        .world
        .complete(&changing.id, "change_vnfpkg", &body)
        .await;
    let image = |of: Value| of["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    let web = changing.object("apps/v1", "deployments", "web").await;
    let other = changing.object("apps/v1", "deployments", "other").await;
    assert_eq!(
        (image(web), image(other)),
        (json!("cairn.test/web:2"), json!("cairn.test/web:1"))
    );
}
