//! One case: an operation that breaks at an error point, and what is done about it.

use crate::operations::vnfcs;
use cairn_simcluster::SimCluster;
use cairn_tests::package::{PackageBuilder, package};
use cairn_tests::world::World;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The operations of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Instantiate,
    ScaleOut,
    ScaleIn,
    ScaleToLevel,
    HealOne,
    HealAll,
    ChangeVnfpkg,
    Terminate,
    ModifyInfo,
}

impl Doing {
    pub const ALL: [Self; 9] = [
        Self::Instantiate,
        Self::ScaleOut,
        Self::ScaleIn,
        Self::ScaleToLevel,
        Self::HealOne,
        Self::HealAll,
        Self::ChangeVnfpkg,
        Self::Terminate,
        Self::ModifyInfo,
    ];

    pub fn path(self) -> &'static str {
        match self {
            Self::Instantiate => "instantiate",
            Self::ScaleOut | Self::ScaleIn => "scale",
            Self::ScaleToLevel => "scale_to_level",
            Self::HealOne | Self::HealAll => "heal",
            Self::ChangeVnfpkg => "change_vnfpkg",
            Self::Terminate => "terminate",
            Self::ModifyInfo => "modify",
        }
    }

    pub fn operation(self) -> &'static str {
        match self {
            Self::Instantiate => "INSTANTIATE",
            Self::ScaleOut | Self::ScaleIn => "SCALE",
            Self::ScaleToLevel => "SCALE_TO_LEVEL",
            Self::HealOne | Self::HealAll => "HEAL",
            Self::ChangeVnfpkg => "CHANGE_VNFPKG",
            Self::Terminate => "TERMINATE",
            Self::ModifyInfo => "MODIFY_INFO",
        }
    }

    /// The state of an instance whose operation of this kind broke.
    fn broken(self) -> &'static str {
        match self {
            Self::Instantiate => "DEPLOYFAIL",
            Self::Terminate => "DELETEFAIL",
            _ => "UPDATEFAIL",
        }
    }
}

/// What is done about the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Retry,
    RetryTwice,
    Rollback,
    Fail,
    CancelGracefully,
    CancelForcefully,
}

impl Way {
    pub const ALL: [Self; 6] = [
        Self::Retry,
        Self::RetryTwice,
        Self::Rollback,
        Self::Fail,
        Self::CancelGracefully,
        Self::CancelForcefully,
    ];

    fn is_cancel(self) -> bool {
        matches!(self, Self::CancelGracefully | Self::CancelForcefully)
    }
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub doing: Doing,
    pub point: u8,
    pub way: Way,
}

/// A case with its instance, ready to break.
pub struct Ready<'a> {
    pub world: &'a World,
    pub case: Case,
    pub instance: String,
    namespace: String,
    body: Value,
    before: Value,
    objects: Value,
}

/// What every case deploys.
pub fn small() -> PackageBuilder {
    package()
        .config_map("settings")
        .config_map("old")
        .service("web")
        .deployment("web", 2)
}

/// What a change of the package changes it to: an object and a pod template that differ, one that must be made
/// anew, one more and one less.
pub fn next(first: &PackageBuilder) -> PackageBuilder {
    let image = |web: &mut Value| {
        web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("cairn.test/web:2");
    };
    first
        .next_version()
        .changed("ConfigMap", "settings", |m| {
            m["data"]["colour"] = json!("red");
        })
        .changed("Deployment", "web", image)
        .changed("Service", "web", |web| {
            web["spec"]["clusterIP"] = json!("None");
        })
        .without("ConfigMap", "old")
        .secret("new", "planted")
}

impl<'a> Ready<'a> {
    /// Brings an instance to where the operation can begin.
    pub async fn make(
        world: &'a World,
        (vnfd, next): (&str, &str),
        case: Case,
        name: &str,
    ) -> Self {
        let namespace = format!("a-{name}");
        let made =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        world
            .place()
            .sim()
            .create("test", made)
            .expect("a namespace");
        let instance = world.create(vnfd).await;
        if case.doing != Doing::Instantiate {
            let body = instantiate(&namespace);
            world.complete(&instance, "instantiate", &body).await;
        }
        if case.doing == Doing::ScaleIn {
            let out = json!({"type": "SCALE_OUT", "aspectId": "web_aspect"});
            world.complete(&instance, "scale", &out).await;
        }
        let seen = world.instance(&instance).await;
        let body = body(case.doing, &namespace, &seen, next);
        let before = calm(&seen);
        let objects = objects(world, &namespace);
        Self {
            world,
            case,
            instance,
            namespace,
            body,
            before,
            objects,
        }
    }

    /// The fault that breaks it.
    pub fn fault(&self) -> Value {
        json!({
            "operation": self.case.doing.operation(),
            "vnfInstanceId": self.instance,
            "at": {"errorPoint": self.case.point},
            "action": if self.case.way.is_cancel() { "hold" } else { "fail" },
            "times": if self.case.way == Way::RetryTwice { 2 } else { 1 },
        })
    }

    /// Runs it to its end and checks everything that must hold.
    pub async fn run(&self) {
        let asked = self.begin().await;
        let op = asked.as_str();
        if self.case.way.is_cancel() {
            self.cancel(op).await;
        }
        let broken = self.world.settled(op).await;
        self.is_told(&broken);
        if self.case.point == 0 || self.case.doing == Doing::ModifyInfo {
            return self.undone_by_itself(op, &broken).await;
        }
        assert_eq!(
            broken["operationState"], "FAILED_TEMP",
            "{:?} {broken:#}",
            self.case
        );
        let halted = self.world.instance(&self.instance).await;
        assert_eq!(
            halted["provisioning"],
            json!({"state": self.case.doing.broken(), "target": null}),
            "{:?}",
            self.case
        );
        match self.case.way {
            Way::Retry | Way::RetryTwice => self.retry(op).await,
            Way::Rollback | Way::CancelGracefully | Way::CancelForcefully => {
                self.rollback(op).await;
            }
            Way::Fail => self.fail(op).await,
        }
    }

    pub async fn begin(&self) -> String {
        self.world
            .begin(&self.instance, self.case.doing.path(), &self.body)
            .await
    }

    async fn cancel(&self, op: &str) {
        let point = i64::from(self.case.point);
        let what = format!("to be held at point {point}");
        self.world
            .op_until(op, &what, |seen| seen["point"] == point)
            .await;
        let mode = if self.case.way == Way::CancelForcefully {
            "FORCEFUL"
        } else {
            "GRACEFUL"
        };
        self.world.cancel(op, mode).await.is(202);
    }

    /// The error names where it broke, or that it was cancelled.
    fn is_told(&self, broken: &Value) {
        let detail = broken["error"]["detail"]
            .as_str()
            .unwrap_or_default()
            .to_lowercase();
        let expected = if self.case.way.is_cancel() {
            "cancel".to_owned()
        } else {
            format!("error point {}", self.case.point)
        };
        assert!(detail.contains(&expected), "{:?}: {broken:#}", self.case);
    }

    /// At point 0 and for `MODIFY_INFO`: `ROLLED_BACK`, nothing can be called, the same request succeeds.
    async fn undone_by_itself(&self, op: &str, broken: &Value) {
        assert_eq!(
            broken["operationState"], "ROLLED_BACK",
            "{:?}: {broken:#}",
            self.case
        );
        for verb in ["retry", "rollback", "fail"] {
            self.world.steer(op, verb).await.is(409);
        }
        self.world.cancel(op, "FORCEFUL").await.is(409);
        self.as_before().await;
        let mut again = self.begin().await;
        if self.case.way == Way::RetryTwice {
            // The second fault strikes the second request.
            self.world.ends(&again, "ROLLED_BACK").await;
            again = self.begin().await;
        }
        let done = self.world.ends(&again, "COMPLETED").await;
        self.as_if_nothing_had_been(&done).await;
    }

    async fn retry(&self, op: &str) {
        self.world.steer(op, "retry").await.is(202);
        if self.case.way == Way::RetryTwice {
            self.world.ends(op, "FAILED_TEMP").await;
            self.world.steer(op, "retry").await.is(202);
        }
        let done = self.world.ends(op, "COMPLETED").await;
        let tries = done["tries"].as_array().expect("tries");
        let failures = if self.case.way == Way::RetryTwice {
            2
        } else {
            1
        };
        assert_eq!(tries.len(), failures + 1, "{:?}: {done:#}", self.case);
        for told in &tries[..failures] {
            let cause = told["cause"]["detail"].as_str().unwrap_or_default();
            assert!(
                cause.contains(&format!("error point {}", self.case.point)),
                "{told:#}"
            );
        }
        assert_eq!(
            done.get("error").unwrap_or(&Value::Null),
            &Value::Null,
            "{done:#}"
        );
        self.as_if_nothing_had_been(&done).await;
    }

    async fn rollback(&self, op: &str) {
        self.world.steer(op, "rollback").await.is(202);
        self.world.ends(op, "ROLLED_BACK").await;
        self.as_before().await;
    }

    async fn fail(&self, op: &str) {
        self.world.steer(op, "fail").await.is(200);
        self.world.ends(op, "FAILED").await;
        let state = &self.world.instance(&self.instance).await["provisioning"];
        assert_eq!(
            state,
            &json!({"state": self.case.doing.broken(), "target": null}),
            "{:?}",
            self.case
        );
        // What was given up can be asked for again; a VNFC that was replaced by then has another id.
        let now = self.world.instance(&self.instance).await;
        let next = self.body["vnfdId"].as_str().unwrap_or_default();
        let body = body(self.case.doing, &self.namespace, &now, next);
        let path = self.case.doing.path();
        let again = self.world.begin(&self.instance, path, &body).await;
        let done = self.world.ends(&again, "COMPLETED").await;
        self.ends_well(&done).await;
    }

    /// Instance and cluster are as they were before the operation.
    pub async fn as_before(&self) {
        let after = calm(&self.world.instance(&self.instance).await);
        assert_eq!(after, self.before, "{:?}", self.case);
        assert_eq!(
            objects(self.world, &self.namespace),
            self.objects,
            "{:?}",
            self.case
        );
    }

    pub async fn as_if_nothing_had_been(&self, done: &Value) {
        self.ends_well(done).await;
        self.each_effect_once();
    }

    /// Instance, cluster and resource changes are those of a run without failure.
    pub async fn ends_well(&self, done: &Value) {
        let after = self.world.instance(&self.instance).await;
        let pods = vnfcs(&after).len();
        let (state, count) = match self.case.doing {
            Doing::Terminate => ("AVAILABLE", 0),
            Doing::Instantiate
            | Doing::HealOne
            | Doing::HealAll
            | Doing::ChangeVnfpkg
            | Doing::ModifyInfo
            | Doing::ScaleIn => ("ACTIVE", 2),
            Doing::ScaleOut => ("ACTIVE", 3),
            Doing::ScaleToLevel => ("ACTIVE", 4),
        };
        assert_eq!(
            after["provisioning"],
            json!({"state": state, "target": null}),
            "{:?}",
            self.case
        );
        assert_eq!(pods, count, "{:?}: {after:#}", self.case);
        let changed = changes(done);
        let expected = self.expected_changes();
        if self.case.way != Way::Fail {
            assert_eq!(changed, expected, "{:?}: {done:#}", self.case);
        }
        if self.case.doing == Doing::ChangeVnfpkg {
            self.is_the_next_version(&after);
        }
    }

    /// Record and cluster are those of the package that was changed to, and nothing else.
    fn is_the_next_version(&self, after: &Value) {
        assert_eq!(after["vnfdId"], self.body["vnfdId"], "{:?}", self.case);
        assert_eq!(after["vnfSoftwareVersion"], "2.0", "{:?}", self.case);
        let now = objects(self.world, &self.namespace);
        let mut names: Vec<&str> = now
            .as_object()
            .expect("a map")
            .keys()
            .map(String::as_str)
            .collect();
        // Kubernetes puts it into every namespace.
        names.retain(|name| *name != "ConfigMap/kube-root-ca.crt");
        let expected = [
            "ConfigMap/settings",
            "Deployment/web",
            "Secret/new",
            "Service/web",
            "pods",
        ];
        assert_eq!(names, expected, "{:?}", self.case);
        assert_eq!(now["ConfigMap/settings"]["data"]["colour"], "red");
        let pods = &now["Deployment/web"]["spec"]["template"]["spec"];
        assert_eq!(pods["containers"][0]["image"], "cairn.test/web:2");
    }

    fn expected_changes(&self) -> BTreeMap<String, usize> {
        let of =
            |pairs: &[(&str, usize)]| pairs.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        match self.case.doing {
            Doing::Instantiate | Doing::ScaleToLevel => of(&[("ADDED", 2)]),
            Doing::ScaleOut => of(&[("ADDED", 1)]),
            Doing::ScaleIn => of(&[("REMOVED", 1)]),
            Doing::HealOne => of(&[("ADDED", 1), ("REMOVED", 1)]),
            Doing::HealAll | Doing::ChangeVnfpkg => of(&[("ADDED", 2), ("REMOVED", 2)]),
            Doing::Terminate => of(&[("REMOVED", 2)]),
            Doing::ModifyInfo => of(&[]),
        }
    }

    /// Counts what reached the cluster: nothing was made, scaled, evicted or deleted twice.
    fn each_effect_once(&self) {
        let inside = format!("/namespaces/{}/", self.namespace);
        let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
        for request in self.world.place().sim().requests() {
            let makes = request.status == 201
                || request.method == "DELETE"
                || request.path.ends_with("/scale");
            if request.is_effect() && makes && request.path.contains(&inside) {
                *counted.entry((request.method, request.path)).or_default() += 1;
            }
        }
        for ((method, path), times) in counted {
            // Bringing the instance there made or scaled it once already.
            let again = match self.case.doing {
                Doing::ScaleIn => path.ends_with("/scale"),
                Doing::ChangeVnfpkg => method == "PATCH" && path.contains("/services/"),
                _ => false,
            };
            let allowed = if again { 2 } else { 1 };
            assert!(
                times <= allowed,
                "{:?}: {method} {path} {times} times",
                self.case
            );
        }
    }
}

pub fn instantiate(namespace: &str) -> Value {
    json!({"flavourId": "default", "additionalParams": {"namespace": namespace}})
}

pub fn body(doing: Doing, namespace: &str, instance: &Value, next: &str) -> Value {
    match doing {
        Doing::Instantiate => instantiate(namespace),
        Doing::ScaleOut => json!({"type": "SCALE_OUT", "aspectId": "web_aspect"}),
        Doing::ScaleIn => json!({"type": "SCALE_IN", "aspectId": "web_aspect"}),
        Doing::ScaleToLevel => json!({"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 2}]}),
        Doing::HealOne => json!({"vnfcInstanceId": [vnfcs(instance)[0]["id"]]}),
        Doing::HealAll => json!({}),
        Doing::ChangeVnfpkg => json!({"vnfdId": next}),
        Doing::Terminate => json!({"terminationType": "FORCEFUL"}),
        Doing::ModifyInfo => json!({"vnfInstanceDescription": "changed"}),
    }
}

/// How many VNFCs changed in which way.
pub fn changes(done: &Value) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    let changed = done["resourceChanges"]["affectedVnfcs"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for change in changed {
        let kind = change["changeType"].as_str().expect("a text").to_owned();
        *counted.entry(kind).or_default() += 1;
    }
    counted
}

/// An instance without what differs between two that are the same: positions, and pods' names.
pub fn calm(instance: &Value) -> Value {
    let mut calm = instance.clone();
    let pods = vnfcs(instance).len();
    if let Some(members) = calm.as_object_mut() {
        members.remove("position");
        if let Some(info) = members
            .get_mut("instantiatedVnfInfo")
            .and_then(Value::as_object_mut)
        {
            info.insert("vnfcResourceInfo".to_owned(), json!(pods));
        }
    }
    calm
}

/// The objects of a namespace, without what differs between two that are the same.
pub fn objects(world: &World, namespace: &str) -> Value {
    objects_in(world.place().sim(), namespace)
}

/// The same of a cluster by itself.
pub fn objects_in(sim: &SimCluster, namespace: &str) -> Value {
    let mut found = Map::new();
    for (version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("apps/v1", "Deployment"),
    ] {
        for object in sim.list(version, kind, namespace) {
            let name = object["metadata"]["name"]
                .as_str()
                .expect("a name")
                .to_owned();
            let labels = object["metadata"]["labels"].clone();
            let mut object = object;
            let members = object.as_object_mut().expect("an object");
            members.remove("status");
            members.insert("metadata".to_owned(), json!({"labels": labels}));
            // A Service that is made again gets another address.
            if let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("clusterIP");
                spec.remove("clusterIPs");
            }
            found.insert(format!("{kind}/{name}"), object);
        }
    }
    let pods = sim.list("v1", "Pod", namespace);
    let living = pods
        .iter()
        .filter(|pod| pod["metadata"].get("deletionTimestamp").is_none());
    found.insert("pods".to_owned(), json!(living.count()));
    Value::Object(found)
}
