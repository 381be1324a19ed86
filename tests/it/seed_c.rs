//! Seed case C: a failed deployment does not lock the instance. Every cell of the DEPLOYFAIL table, over HTTP.

use crate::operations::{level, nothing_left};
use cairn_tests::answer::Answer;
use cairn_tests::package::package;
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use futures::StreamExt as _;
use serde_json::{Value, json};

/// What an NFVO can ask of an instance: the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Modify,
    Instantiate,
    Scale,
    Heal,
    Terminate,
    Delete,
}

const COLUMNS: [Ask; 6] = [
    Ask::Modify,
    Ask::Instantiate,
    Ask::Scale,
    Ask::Heal,
    Ask::Terminate,
    Ask::Delete,
];

/// Where an instance stands: the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Available,
    Deploying,
    Updating,
    Deleting,
    UndoingDeploy,
    UndoingUpdate,
    UndoingDelete,
    Modifying,
    DeployFailHalted,
    DeployFailWithLeftovers,
    DeployFailWithout,
    Active,
    UpdateFailHalted,
    UpdateFailed,
    DeleteFailHalted,
    DeleteFailed,
}

/// Row, its provisioning state and target, and the answers by column.
type Row = (Stands, &'static str, Option<&'static str>, [u16; 6]);

const TABLE: &[Row] = &[
    (
        Stands::Available,
        "AVAILABLE",
        None,
        [202, 202, 409, 409, 409, 204],
    ),
    (
        Stands::Deploying,
        "DEPLOYING",
        Some("ACTIVE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::Updating,
        "UPDATING",
        Some("ACTIVE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::Deleting,
        "DELETING",
        Some("AVAILABLE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::UndoingDeploy,
        "DEPLOYING",
        Some("AVAILABLE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::UndoingUpdate,
        "UPDATING",
        Some("ACTIVE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::UndoingDelete,
        "DELETING",
        Some("ACTIVE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::Modifying,
        "UPDATING",
        Some("ACTIVE"),
        [409, 409, 409, 409, 409, 409],
    ),
    (
        Stands::DeployFailHalted,
        "DEPLOYFAIL",
        None,
        [202, 409, 409, 409, 409, 409],
    ),
    (
        Stands::DeployFailWithLeftovers,
        "DEPLOYFAIL",
        None,
        [202, 202, 409, 409, 202, 409],
    ),
    (
        Stands::DeployFailWithout,
        "DEPLOYFAIL",
        None,
        [202, 202, 409, 409, 202, 204],
    ),
    (
        Stands::Active,
        "ACTIVE",
        None,
        [202, 409, 202, 202, 202, 409],
    ),
    (
        Stands::UpdateFailHalted,
        "UPDATEFAIL",
        None,
        [202, 409, 409, 409, 409, 409],
    ),
    (
        Stands::UpdateFailed,
        "UPDATEFAIL",
        None,
        [202, 409, 202, 202, 202, 409],
    ),
    (
        Stands::DeleteFailHalted,
        "DELETEFAIL",
        None,
        [202, 409, 409, 409, 409, 409],
    ),
    (
        Stands::DeleteFailed,
        "DELETEFAIL",
        None,
        [202, 409, 409, 202, 202, 409],
    ),
];

impl Stands {
    /// The operation that brings it there, the point at which it breaks, and whether it is held there.
    fn broken_by(self) -> Option<(&'static str, u8, bool)> {
        match self {
            Self::Available | Self::Active => None,
            Self::Deploying => Some(("INSTANTIATE", 3, true)),
            Self::Updating => Some(("SCALE", 3, true)),
            Self::Deleting => Some(("TERMINATE", 3, true)),
            Self::Modifying => Some(("MODIFY_INFO", 1, true)),
            Self::UndoingDeploy | Self::DeployFailHalted | Self::DeployFailWithLeftovers => {
                Some(("INSTANTIATE", 4, false))
            }
            Self::DeployFailWithout => Some(("INSTANTIATE", 2, false)),
            Self::UndoingUpdate | Self::UpdateFailHalted | Self::UpdateFailed => {
                Some(("SCALE", 4, false))
            }
            Self::UndoingDelete | Self::DeleteFailHalted | Self::DeleteFailed => {
                Some(("TERMINATE", 4, false))
            }
        }
    }

    fn is_undone(self) -> bool {
        matches!(
            self,
            Self::UndoingDeploy | Self::UndoingUpdate | Self::UndoingDelete
        )
    }

    fn is_given_up(self) -> bool {
        matches!(
            self,
            Self::DeployFailWithLeftovers
                | Self::DeployFailWithout
                | Self::UpdateFailed
                | Self::DeleteFailed
        )
    }

    fn is_deployed_first(self) -> bool {
        !matches!(
            self,
            Self::Available
                | Self::Deploying
                | Self::UndoingDeploy
                | Self::DeployFailHalted
                | Self::DeployFailWithLeftovers
                | Self::DeployFailWithout
        )
    }
}

/// An instance on its way to a row.
struct Subject {
    row: &'static Row,
    /// The columns that are asked of it: all that are refused, or one that is accepted.
    columns: Vec<usize>,
    id: String,
    namespace: String,
}

impl Subject {
    fn body(&self, ask: Ask) -> Value {
        match ask {
            Ask::Modify => json!({"vnfInstanceName": "other"}),
            Ask::Instantiate => {
                json!({"flavourId": "default", "additionalParams": {"namespace": self.namespace}})
            }
            Ask::Scale => json!({"type": "SCALE_OUT", "aspectId": "web_aspect"}),
            Ask::Heal | Ask::Delete => json!({}),
            Ask::Terminate => json!({"terminationType": "FORCEFUL"}),
        }
    }

    async fn ask(&self, world: &World, ask: Ask) -> Answer {
        let path = match ask {
            Ask::Delete => {
                return world
                    .delete(&format!("/vnflcm/v2/vnf_instances/{}", self.id))
                    .await;
            }
            Ask::Modify => "modify",
            Ask::Instantiate => "instantiate",
            Ask::Scale => "scale",
            Ask::Heal => "heal",
            Ask::Terminate => "terminate",
        };
        world.ask(&self.id, path, &self.body(ask)).await
    }

    fn faults(&self) -> Vec<Value> {
        let Some((operation, point, held)) = self.row.0.broken_by() else {
            return Vec::new();
        };
        let fault = |at: Value, holds: bool| {
            json!({"operation": operation, "vnfInstanceId": self.id, "at": at,
            "action": if holds { "hold" } else { "fail" }, "times": 1})
        };
        let mut faults = vec![fault(json!({"errorPoint": point}), held)];
        if self.row.0.is_undone() {
            faults.push(fault(json!({"undoStep": 0, "edge": "before"}), true));
        }
        faults
    }

    async fn bring(&self, world: &World) {
        let Some((operation, point, held)) = self.row.0.broken_by() else {
            return;
        };
        let ask = match operation {
            "INSTANTIATE" => Ask::Instantiate,
            "SCALE" => Ask::Scale,
            "MODIFY_INFO" => Ask::Modify,
            _ => Ask::Terminate,
        };
        let answer = self.ask(world, ask).await;
        assert_eq!(answer.status, 202, "{:?}: {:#}", self.row.0, answer.body);
        let op = answer.located();
        if held {
            world
                .op_until(&op, "to be held", |seen| seen["point"] == i64::from(point))
                .await;
        } else {
            let halted = world.ends(&op, "FAILED_TEMP").await;
            links_are(&halted, &["fail", "retry", "rollback"]);
        }
        if self.row.0.is_undone() {
            world.steer(&op, "rollback").await.is(202);
            let begun = |seen: &Value| seen["undo"][0]["state"] == "started";
            let held = world.op_until(&op, "to be held", begun).await;
            links_are(&held, &["cancel"]);
        }
        if self.row.0.is_given_up() {
            world.steer(&op, "fail").await.is(200);
            links_are(&world.ends(&op, "FAILED").await, &[]);
        }
    }

    /// Asks, and checks the answer and what it changed.
    async fn judge(&self, world: &World) {
        let (row, state, target, answers) = self.row;
        let before = world.instance(&self.id).await;
        assert_eq!(
            before["provisioning"],
            json!({"state": state, "target": target}),
            "{row:?}"
        );
        for column in &self.columns {
            let (ask, expected) = (COLUMNS[*column], answers[*column]);
            let answer = self.ask(world, ask).await;
            assert_eq!(
                answer.status, expected,
                "{row:?} {ask:?}: {:#}",
                answer.body
            );
            if expected == 409 {
                self.refusal_helps(ask, &answer);
                assert_eq!(
                    world.instance(&self.id).await,
                    before,
                    "{row:?} {ask:?}: a 409 changes nothing"
                );
            } else if expected == 202 {
                let done = world.ends(&answer.located(), "COMPLETED").await;
                assert!(done.get("error").is_none_or(Value::is_null), "{done:#}");
                self.came_right(world, ask).await;
            } else {
                world
                    .get(&format!("/vnflcm/v2/vnf_instances/{}", self.id))
                    .await
                    .is(404);
            }
        }
    }

    /// A 409 says what to do instead.
    fn refusal_helps(&self, ask: Ask, answer: &Answer) {
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let needed: &[&str] = match (self.row.0, ask) {
            (Stands::DeployFailHalted, Ask::Instantiate) => &["retry"],
            (Stands::DeployFailHalted, Ask::Terminate) => &["rollback"],
            (Stands::DeployFailWithLeftovers, Ask::Delete) => {
                &["ConfigMap/settings", "Deployment/web"]
            }
            _ => &[],
        };
        for word in needed {
            assert!(
                answer.detail().contains(word),
                "{:?} {ask:?}: {}",
                self.row.0,
                answer.detail()
            );
        }
        assert!(!answer.detail().is_empty());
    }

    async fn came_right(&self, world: &World, ask: Ask) {
        let after = world.instance(&self.id).await;
        let state = match ask {
            Ask::Instantiate | Ask::Scale | Ask::Heal => "ACTIVE",
            Ask::Terminate => "AVAILABLE",
            // A change of names repairs nothing.
            Ask::Modify | Ask::Delete => self.row.1,
        };
        assert_eq!(
            after["provisioning"],
            json!({"state": state, "target": null}),
            "{:?} {ask:?}",
            self.row.0
        );
        if ask == Ask::Terminate {
            let left = world
                .place()
                .sim()
                .list("apps/v1", "Deployment", &self.namespace);
            assert_eq!(left, Vec::<Value>::new());
        }
        if ask == Ask::Scale {
            assert_eq!(level(&after, "web_aspect"), 1);
        }
    }
}

/// `_links` lists exactly the legal calls.
fn links_are(op: &Value, legal: &[&str]) {
    let links = op["_links"].as_object().expect("links");
    let calls = ["cancel", "fail", "retry", "rollback"]
        .into_iter()
        .filter(|call| links.contains_key(*call));
    assert_eq!(calls.collect::<Vec<_>>(), legal, "{op:#}");
}

/// All refused columns of a row on one instance, and one instance for each that is accepted.
fn subjects() -> Vec<(&'static Row, Vec<usize>)> {
    let of = |row: &'static Row| {
        let (refused, accepted): (Vec<_>, Vec<_>) =
            (0..6).partition(|column| row.3[*column] == 409);
        let one = (!refused.is_empty()).then_some((row, refused));
        one.into_iter()
            .chain(accepted.into_iter().map(move |column| (row, vec![column])))
    };
    TABLE.iter().flat_map(of).collect()
}

async fn every_cell(world: World) {
    let vnfd = world
        .onboard(&package().config_map("settings").deployment("web", 1))
        .await;
    let (world, vnfd) = (&world, &vnfd);
    let subjects: Vec<Subject> = futures::stream::iter(subjects().into_iter().enumerate())
        .map(|(index, (row, columns))| async move {
            let namespace = format!("c-{index}");
            let made =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            world
                .place()
                .sim()
                .create("test", made)
                .expect("a namespace");
            let id = world.create(vnfd).await;
            let subject = Subject {
                row,
                columns,
                id,
                namespace,
            };
            if row.0.is_deployed_first() {
                let body = subject.body(Ask::Instantiate);
                world.complete(&subject.id, "instantiate", &body).await;
            }
            subject
        })
        .buffered(8)
        .collect()
        .await;
    let faults: Vec<Value> = subjects.iter().flat_map(Subject::faults).collect();
    world.faults(&Value::from(faults)).await;
    futures::stream::iter(&subjects)
        .for_each_concurrent(8, |subject| async move {
            subject.bring(world).await;
            subject.judge(world).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_of_the_deployfail_table_holds() {
    every_cell(World::simple().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_of_the_deployfail_table_holds_on_postgresql() {
    let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await else {
        return;
    };
    every_cell(World::on(ground).await).await;
}

/// `vimConnectionInfo` that leads to the test's cluster with this token.
pub fn vim(place: &Place, token: &str) -> Value {
    json!({"vim1": {"vimId": "here", "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": place.kube.server, "ssl_ca_cert": place.kube.ca_pem},
        "accessInfo": {"bearer_token": token}}})
}

async fn wrong_token(world: World) {
    let vnfd = world
        .onboard(&package().config_map("settings").deployment("web", 1))
        .await;
    let id = world.create(&vnfd).await;
    let mut body = crate::operations::instantiate(&world);
    body["vimConnectionInfo"] = vim(world.place(), "wrong-token");
    let op = world.begin(&id, "instantiate", &body).await;
    let halted = world.ends(&op, "FAILED_TEMP").await;
    let detail = halted["error"]["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("401") || detail.to_lowercase().contains("unauthorized"),
        "{detail}"
    );
    assert!(!halted.to_string().contains("wrong-token"));
    nothing_left(&world).await;

    let token = world.place().kube.token.clone().expect("a token");
    let patch = json!({"vimConnectionInfo": vim(world.place(), &token)});
    world.complete(&id, "modify", &patch).await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    let instance = world.instance(&id).await;
    assert_eq!(instance["instantiationState"], "INSTANTIATED");
    assert!(
        !instance.to_string().contains(&token),
        "secrets are not shown"
    );
    world
        .complete(&id, "terminate", &json!({"terminationType": "FORCEFUL"}))
        .await;
    nothing_left(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_mended_by_a_patch_and_a_retry() {
    wrong_token(World::simple().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_mended_by_a_patch_and_a_retry_on_the_real_cluster() {
    let Some(world) = crate::clusters::real().await else {
        return;
    };
    wrong_token(world).await;
}

/// While a PATCH runs beside a halted operation, that operation waits: it would go on with values that change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_patch_runs_the_halted_operation_is_not_steered() {
    let world = World::simple().await;
    let vnfd = world.onboard(&package().config_map("settings")).await;
    let id = world.create(&vnfd).await;
    world
        .faults(&json!([
            {"operation": "INSTANTIATE", "at": {"errorPoint": 4}, "action": "fail", "times": 1},
            {"operation": "MODIFY_INFO", "at": {"errorPoint": 1}, "action": "hold", "times": 1}]))
        .await;
    let body = crate::operations::instantiate(&world);
    let op = world.begin(&id, "instantiate", &body).await;
    world.ends(&op, "FAILED_TEMP").await;
    let patch = world
        .begin(&id, "modify", &json!({"vnfInstanceName": "new"}))
        .await;
    world
        .op_until(&patch, "to be held", |seen| seen["point"] == 1)
        .await;
    let halted = world.op(&op).await;
    for verb in ["retry", "rollback", "fail"] {
        let answer = world.steer(&op, verb).await;
        assert_eq!(answer.status, 409, "{verb}: {:#}", answer.body);
        assert!(!answer.detail().is_empty());
    }
    assert_eq!(world.op(&op).await, halted, "a 409 changes nothing");
    let vnfd_id = json!({"vnfdId": "another"});
    assert_eq!(world.patch(&id, &vnfd_id).await.status, 409);
    world.faults(&json!([])).await;
    world.ends(&patch, "COMPLETED").await;
    world.steer(&op, "retry").await.is(202);
    world.ends(&op, "COMPLETED").await;
    let instance = world.instance(&id).await;
    assert_eq!(instance["vnfInstanceName"], "new");
    assert_eq!(instance["provisioning"]["state"], "ACTIVE");
}
