//! The table, from recorded histories.

use super::{Account, table};
use cairn_api_types::cairn::HistoryDto;
use cairn_domain::history::{Envelope, EventBody, StreamId};
use cairn_domain::ids::{GrantId, Tenant, VnfInstanceId, VnfLcmOpOccId, VnfPkgId, VnfdId};
use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent as Op;
use cairn_domain::lcm_op_occ::event::{AffectedVnfc, ChangeType, UndoStep, Wait};
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, Plan, Step, Undo, Vnfc};
use cairn_domain::object::{ObjectRef, Uid};
use cairn_domain::operation::{AdditionalParams, CancelMode, ErrorPoint, Levels, Params};
use cairn_domain::problem::Problem;
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::{VnfInfo, VnfInstanceEvent, VnfProduct};
use cairn_domain::waits::WaitClass;
use serde_json::{Map, Value, json};

/// 2026-01-31T12:00:00Z.
const NOON: i64 = 1_769_860_800_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(NOON + ms)
}

fn instance() -> VnfInstanceId {
    VnfInstanceId::parse("5c1f0000").unwrap()
}

fn by() -> (String, Tenant) {
    ("anonymous".to_owned(), Tenant::default_tenant())
}

/// The account that a server or the database gives of these events.
fn account(events: Vec<EventBody>) -> Account {
    let envelopes: Vec<Envelope> = (1..)
        .zip(events)
        .map(|(position, body)| Envelope {
            position,
            recorded_at: body.at(),
            stream: match &body {
                EventBody::VnfLcmOpOcc(_) => {
                    StreamId::VnfLcmOpOcc(VnfLcmOpOccId::parse("2f1c9a00").unwrap())
                }
                EventBody::VnfInstance(_) | EventBody::LccnSubscription(_) => {
                    StreamId::VnfInstance(instance())
                }
            },
            sequence: position,
            vnf_instance_id: Some(instance()),
            body,
        })
        .collect();
    let history = serde_json::to_value(HistoryDto::of(&instance(), &envelopes)).unwrap();
    let events = history["events"].as_array().unwrap().clone();
    Account {
        id: instance().to_string(),
        events,
        then: None,
    }
}

fn told(operation: Vec<Op>) -> String {
    table(&account(
        operation.into_iter().map(EventBody::VnfLcmOpOcc).collect(),
    ))
}

fn frontend() -> ObjectRef {
    ObjectRef {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("default".into()),
        name: "frontend".into(),
    }
}

fn step(wave: u32, action: Action, undo: Undo) -> Step {
    Step::new(wave, action, undo)
}

fn set(from: u32, to: u32) -> Action {
    Action::SetReplicas {
        object: frontend(),
        from,
        to,
    }
}

fn await_ready() -> Step {
    step(
        1,
        Action::AwaitReady {
            objects: vec![frontend()],
            replaced: Vec::new(),
        },
        Undo::Nothing,
    )
}

fn vnfc(id: &str) -> Vnfc {
    Vnfc {
        vdu_id: "FRONTEND".into(),
        id: id.into(),
        uid: Uid(id.into()),
        namespace: "default".into(),
        workload_kind: "Deployment".into(),
    }
}

fn scale_started(ms: i64) -> Op {
    let (by, tenant) = by();
    let scale_status = [("frontend_aspect".to_owned(), 2)].into();
    Op::OperationStarted {
        at: at(ms),
        id: VnfLcmOpOccId::parse("2f1c9a00").unwrap(),
        vnf_instance_id: instance(),
        by,
        tenant,
        request: Map::new(),
        params: Params::Scale {
            levels: Levels {
                scale_status,
                ..Levels::default()
            },
            aspect_id: "frontend_aspect".into(),
            out: true,
        },
        additional: AdditionalParams::default(),
        inventory: Vec::new(),
    }
}

fn granted(ms: i64) -> Vec<Op> {
    let attempt = 1;
    vec![
        Op::ErrorPointReached {
            at: at(ms),
            point: ErrorPoint::Initial,
            attempt,
        },
        Op::GrantRequested { at: at(ms) },
        Op::Granted {
            at: at(ms + 2),
            grant_id: GrantId::parse("g").unwrap(),
        },
        Op::ProcessingStarted { at: at(ms + 2) },
        Op::ErrorPointReached {
            at: at(ms + 2),
            point: ErrorPoint::PostVimControl,
            attempt,
        },
    ]
}

fn plan() -> Op {
    let plan = Plan {
        cluster_uid: "c".into(),
        namespace: "default".into(),
        steps: vec![
            step(0, set(2, 3), Undo::Replicas { from: 2 }),
            await_ready(),
        ],
        workloads: Vec::new(),
        levels: None,
        objects: Vec::new(),
        removed: Vec::new(),
        workloads_before: Vec::new(),
        kept: Vec::new(),
        patches: 0,
        inventory: Vec::new(),
        rollback_hooks: Vec::new(),
        leftovers: Vec::new(),
    };
    Op::PlanFixed { at: at(20), plan }
}

fn quota(since: i64) -> Wait {
    Wait {
        object: "Deployment/frontend".into(),
        class: WaitClass::Blocked,
        reason: "QuotaExceeded".into(),
        message: "quota no-more-pods,\n\u{1b}[31mpods used 2 of 2".into(),
        since: at(since),
        until: at(since + 30_000),
    }
}

fn blocked() -> Vec<Op> {
    let detail =
        "Deployment/frontend QuotaExceeded: quota no-more-pods, pods used 2 of 2 (waited 30 s)";
    let problem = Problem::new(500, detail);
    let begun = [scale_started(0)].into_iter().chain(granted(1)).chain([
        plan(),
        Op::StepStarted {
            at: at(30),
            step: 0,
        },
        Op::StepSucceeded {
            at: at(40),
            step: 0,
            outcome: Outcome::ReplicasSet { from: 2, to: 3 },
        },
        Op::StepStarted {
            at: at(50),
            step: 1,
        },
        Op::WaitStarted {
            at: at(123),
            wait: quota(123),
        },
        Op::StepFailed {
            at: at(30_123),
            step: 1,
            problem: problem.clone(),
            class: WaitClass::Blocked,
        },
        Op::OperationFailedTemporarily {
            at: at(30_123),
            problem,
        },
    ]);
    begun.collect()
}

#[test]
fn a_scale_that_a_quota_blocks_and_its_rollback() {
    let (by, tenant) = by();
    let undo = vec![
        UndoStep {
            undoes: Some(0),
            step: step(0, set(3, 2), Undo::Nothing),
        },
        UndoStep {
            undoes: None,
            step: await_ready(),
        },
    ];
    let mut events = blocked();
    events.extend([
        Op::RollbackStarted {
            at: at(60_000),
            by,
            tenant,
            undo,
        },
        Op::StepUndoStarted {
            at: at(60_010),
            undo: 0,
        },
        Op::StepUndone {
            at: at(60_020),
            undo: 0,
            outcome: Outcome::ReplicasSet { from: 3, to: 2 },
        },
        Op::ReplicasRestored {
            at: at(60_020),
            resource: frontend(),
            from: 3,
            to: 2,
        },
        Op::StepUndoStarted {
            at: at(60_030),
            undo: 1,
        },
        Op::StepUndone {
            at: at(60_040),
            undo: 1,
            outcome: Outcome::Ready,
        },
        Op::RollbackVerified { at: at(60_050) },
        Op::OperationRolledBack {
            at: at(60_060),
            problem: Problem::new(500, "the quota"),
            inventory: None,
            residue: vec!["PersistentVolumeClaim/x: in use".into()],
        },
    ]);
    insta::assert_snapshot!(told(events), @r#"
    VNF instance 5c1f0000
    2026-01-31, times in UTC
    12:00:00.000  SCALE 2f1c  try 1  asked by anonymous: frontend_aspect out to level 2  → STARTING
    12:00:00.003  SCALE 2f1c  try 1  granted
    12:00:00.003  SCALE 2f1c  try 1  → PROCESSING
    12:00:00.020  SCALE 2f1c  try 1  planned: set-replicas Deployment/frontend; await-ready Deployment/frontend (undo: 1 × set replicas back)
    12:00:00.040  SCALE 2f1c  try 1  set replicas of Deployment/frontend from 2 to 3
    12:00:00.123  SCALE 2f1c  try 1  waits up to 30 s (blocked): Deployment/frontend QuotaExceeded: quota no-more-pods, [31mpods used 2 of 2
    12:00:30.123  SCALE 2f1c  try 1  waited 30 s: Deployment/frontend QuotaExceeded: quota no-more-pods, pods used 2 of 2 (await-ready Deployment/frontend, point 4)  → FAILED_TEMP
    12:01:00.000  SCALE 2f1c  try 1  rollback asked by anonymous, planned: set-replicas Deployment/frontend; await-ready Deployment/frontend  → ROLLING_BACK
    12:01:00.020  SCALE 2f1c  try 1  replicas of Deployment/frontend restored: 3 → 2
    12:01:00.040  SCALE 2f1c  try 1  ready: Deployment/frontend
    12:01:00.050  SCALE 2f1c  try 1  verified: the cluster is as before
    12:01:00.060  SCALE 2f1c  try 1  undone after: the quota; stays behind: PersistentVolumeClaim/x: in use  → ROLLED_BACK
    "#);
}

#[test]
fn a_retry_that_is_still_at_work() {
    let (by, tenant) = by();
    let mut events = blocked();
    events.extend([
        Op::RetryAdvised {
            at: at(40_000),
            reason: "the quota was raised".into(),
        },
        Op::RetryStarted {
            at: at(43_200_000),
            by,
            tenant,
        },
        Op::StepStarted {
            at: at(43_200_010),
            step: 1,
        },
        Op::OutcomeUnknown {
            at: at(43_200_020),
            step: 1,
            why: "connection reset".into(),
        },
        Op::WaitStarted {
            at: at(43_200_030),
            wait: quota(43_200_030),
        },
        Op::WaitEnded {
            at: at(43_202_030),
            object: "Deployment/frontend".into(),
        },
    ]);
    insta::assert_snapshot!(told(events), @r#"
    VNF instance 5c1f0000
    2026-01-31, times in UTC
    12:00:00.000  SCALE 2f1c  try 1  asked by anonymous: frontend_aspect out to level 2  → STARTING
    12:00:00.003  SCALE 2f1c  try 1  granted
    12:00:00.003  SCALE 2f1c  try 1  → PROCESSING
    12:00:00.020  SCALE 2f1c  try 1  planned: set-replicas Deployment/frontend; await-ready Deployment/frontend (undo: 1 × set replicas back)
    12:00:00.040  SCALE 2f1c  try 1  set replicas of Deployment/frontend from 2 to 3
    12:00:00.123  SCALE 2f1c  try 1  waits up to 30 s (blocked): Deployment/frontend QuotaExceeded: quota no-more-pods, [31mpods used 2 of 2
    12:00:30.123  SCALE 2f1c  try 1  waited 30 s: Deployment/frontend QuotaExceeded: quota no-more-pods, pods used 2 of 2 (await-ready Deployment/frontend, point 4)  → FAILED_TEMP
    12:00:40.000  SCALE 2f1c  try 1  a retry would go on: the quota was raised
    2026-02-01, times in UTC
    00:00:00.000  SCALE 2f1c  try 2  retry asked by anonymous  → PROCESSING
    00:00:00.020  SCALE 2f1c  try 2  the answer was lost, the cluster is read: await-ready Deployment/frontend (connection reset)
    00:00:00.030  SCALE 2f1c  try 2  waits up to 30 s (blocked): Deployment/frontend QuotaExceeded: quota no-more-pods, [31mpods used 2 of 2
    00:00:02.030  SCALE 2f1c  try 2  waited 2 s, over: Deployment/frontend QuotaExceeded
    00:00:00.010  SCALE 2f1c  try 2  begun, without a result so far: await-ready Deployment/frontend
    "#);
}

#[test]
fn a_cancelled_operation_that_is_given_up() {
    let ((by, tenant), (again, same)) = (by(), by());
    let detail = "cancelled gracefully in PROCESSING";
    let mut events: Vec<Op> = [scale_started(0)].into_iter().chain(granted(1)).collect();
    events.extend([
        Op::CancelRequested {
            at: at(10),
            by,
            tenant,
            mode: CancelMode::Graceful,
        },
        Op::OperationCancelled {
            at: at(11),
            mode: CancelMode::Graceful,
        },
        Op::OperationFailedTemporarily {
            at: at(11),
            problem: Problem::new(409, detail),
        },
        Op::OperationFailed {
            at: at(20),
            by: again,
            tenant: same,
        },
    ]);
    insta::assert_snapshot!(told(events), @r#"
    VNF instance 5c1f0000
    2026-01-31, times in UTC
    12:00:00.000  SCALE 2f1c  try 1  asked by anonymous: frontend_aspect out to level 2  → STARTING
    12:00:00.003  SCALE 2f1c  try 1  granted
    12:00:00.003  SCALE 2f1c  try 1  → PROCESSING
    12:00:00.010  SCALE 2f1c  try 1  cancel (GRACEFUL) asked by anonymous
    12:00:00.011  SCALE 2f1c  try 1  failed: cancelled gracefully in PROCESSING (point 4)  → FAILED_TEMP
    12:00:00.020  SCALE 2f1c  try 1  given up by anonymous  → FAILED
    "#);
}

#[test]
fn results_of_one_append_share_a_line() {
    let made = |step| Op::StepSucceeded {
        at: at(40),
        step,
        outcome: Outcome::Applied {
            uid: Uid("u".into()),
            created: true,
            overridden: Vec::new(),
        },
    };
    let change = |change_type, id| AffectedVnfc {
        change_type,
        vnfc: vnfc(id),
    };
    let changes = vec![
        change(ChangeType::Removed, "old"),
        change(ChangeType::Added, "new"),
    ];
    let completed = Op::OperationCompleted {
        at: at(50),
        resource_changes: changes,
        changed_info: None,
        residue: Vec::new(),
    };
    let events = vec![scale_started(0), plan(), made(0), made(1), completed];
    insta::assert_snapshot!(told(events), @r#"
    VNF instance 5c1f0000
    2026-01-31, times in UTC
    12:00:00.000  SCALE 2f1c  try 1  asked by anonymous: frontend_aspect out to level 2  → STARTING
    12:00:00.020  SCALE 2f1c  try 1  planned: set-replicas Deployment/frontend; await-ready Deployment/frontend (undo: 1 × set replicas back)
    12:00:00.040  SCALE 2f1c  try 1  made Deployment/frontend, Deployment/frontend
    12:00:00.050  SCALE 2f1c  try 1  added new; removed old  → COMPLETED
    "#);
}

#[test]
fn an_instance_and_events_that_this_version_does_not_know() {
    let (by, tenant) = by();
    let created = VnfInstanceEvent::VnfIdentifierCreated {
        at: at(0),
        id: instance(),
        by,
        tenant,
        product: VnfProduct {
            vnfd_id: VnfdId::parse("vnfd").unwrap(),
            vnf_pkg_id: VnfPkgId::parse("pkg").unwrap(),
            vnf_provider: "Cairn".into(),
            vnf_product_name: "Signalling".into(),
            vnf_software_version: "1.0.0".into(),
            vnfd_version: "1".into(),
        },
        info: VnfInfo {
            vnf_instance_name: Some("one".into()),
            ..VnfInfo::default()
        },
    };
    let mut account = account(vec![EventBody::VnfInstance(created)]);
    account.events.push(
        json!({"position": 2, "recordedAt": "2026-02-01T00:00:00.000Z",
        "type": "SomethingNew", "data": {"who": "knows"}}),
    );
    let then: Value = json!({
        "vnfInstanceName": "one", "vnfProductName": "Signalling", "vnfSoftwareVersion": "1.0.0",
        "vnfProvider": "Cairn", "vnfdId": "vnfd", "instantiationState": "INSTANTIATED",
        "instantiatedVnfInfo": {
            "flavourId": "standard",
            "scaleStatus": [{"aspectId": "frontend_aspect", "scaleLevel": 1}],
            "vnfcResourceInfo": [{"id": "frontend-1", "vduId": "FRONTEND"}]},
        "metadata": {"site": "north"}, "position": 2, "leftovers": ["Deployment/x"],
        "provisioning": {"state": "UPDATING", "target": "ACTIVE"},
    });
    account.then = Some((at(86_400_000), then));
    insta::assert_snapshot!(table(&account), @r#"
    VNF instance 5c1f0000
    2026-01-31, times in UTC
    12:00:00.000  instance         created "one" by anonymous: Signalling 1.0.0 of Cairn, vnfdId vnfd  → NOT_INSTANTIATED
    2026-02-01, times in UTC
    00:00:00.000  instance         SomethingNew

    The instance at 2026-02-01T12:00:00.000Z (position 2)
      name            one
      product         Signalling 1.0.0 of Cairn, vnfdId vnfd
      state           INSTANTIATED, UPDATING → ACTIVE
      flavour         standard
      scale status    frontend_aspect at level 1
      VNFC            frontend-1 (FRONTEND)
      metadata        {"site":"north"}
      left behind     Deployment/x
    "#);
}
