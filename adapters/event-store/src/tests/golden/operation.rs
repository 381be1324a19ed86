//! Samples of an operation's events; the plans hold every kind of step, undo and state before.

use super::super::fixture::{at, product, started};
use super::instance::members;
use super::{check, check_files};
use cairn_domain::clocks::Clocks;
use cairn_domain::hook::{Moment, ResultFrom};
use cairn_domain::ids::{GrantId, Tenant, VimId};
use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent as Event;
use cairn_domain::lcm_op_occ::event::{AffectedVnfc, ChangeType, Reopened, UndoStep, Wait};
use cairn_domain::lcm_op_occ::plan::{Action, ManagedObject, Outcome, Plan, Step, Undo, Vnfc};
use cairn_domain::object::{Body, Digest, ObjectRef, Uid};
use cairn_domain::operation::{
    AdditionalParams, CancelMode, ErrorPoint, Leftovers, Levels, Params,
};
use cairn_domain::problem::Problem;
use cairn_domain::waits::WaitClass;
use serde_json::json;
use std::collections::BTreeMap;

/// Fails to compile when an event is added, and then wants a sample below.
fn place(event: &Event) -> usize {
    match event {
        Event::OperationStarted { .. } => 0,
        Event::GrantRequested { .. } => 1,
        Event::Granted { .. } => 2,
        Event::GrantRejected { .. } => 3,
        Event::ProcessingStarted { .. } => 4,
        Event::PlanFixed { .. } => 5,
        Event::PlanRevised { .. } => 6,
        Event::PlanRechecked { .. } => 7,
        Event::ErrorPointReached { .. } => 8,
        Event::StepStarted { .. } => 9,
        Event::StepSucceeded { .. } => 10,
        Event::StepFailed { .. } => 11,
        Event::OutcomeUnknown { .. } => 12,
        Event::WaitStarted { .. } => 13,
        Event::WaitChanged { .. } => 14,
        Event::WaitEnded { .. } => 15,
        Event::OperationFailedTemporarily { .. } => 16,
        Event::RetryStarted { .. } => 17,
        Event::RollbackStarted { .. } => 18,
        Event::StepUndoStarted { .. } => 19,
        Event::StepUndone { .. } => 20,
        Event::StepUndoFailed { .. } => 21,
        Event::ReplicasRestored { .. } => 22,
        Event::RollbackVerified { .. } => 23,
        Event::OperationRolledBack { .. } => 24,
        Event::CancelRequested { .. } => 25,
        Event::OperationCancelled { .. } => 26,
        Event::OperationFailed { .. } => 27,
        Event::OperationCompleted { .. } => 28,
        Event::RetryAdvised { .. } => 29,
    }
}

fn object() -> ObjectRef {
    ObjectRef {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("default".into()),
        name: "vdu1".into(),
    }
}

fn uid() -> Uid {
    Uid("uid-1".into())
}

fn body() -> Body {
    Body::Inline(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}}))
}

fn blob() -> Body {
    Body::Blob(Digest("0a1b".into()))
}

pub(crate) fn managed() -> ManagedObject {
    ManagedObject {
        object: object(),
        uid: Some(uid()),
        manifest: blob(),
    }
}

pub(crate) fn vnfc() -> Vnfc {
    Vnfc {
        vdu_id: "VDU1".into(),
        id: "vdu1-5d9c".into(),
        uid: Uid("uid-2".into()),
        namespace: "default".into(),
        workload_kind: "Deployment".into(),
    }
}

pub(crate) fn levels() -> Levels {
    let by = |name: &str, n| BTreeMap::from([(name.to_owned(), n)]);
    Levels {
        scale_status: by("vdu1_aspect", 1),
        max_scale_levels: by("vdu1_aspect", 2),
        vdu_replicas: by("VDU1", 2),
        workloads: BTreeMap::from([("VDU1".to_owned(), "vdu1".to_owned())]),
    }
}

fn actions() -> Vec<Action> {
    vec![
        Action::Apply {
            object: object(),
            manifest: body(),
            replicas: Some(2),
            force_owned: true,
        },
        Action::Create {
            object: object(),
            manifest: blob(),
        },
        Action::Delete {
            object: object(),
            uid: Some(uid()),
            grace_s: Some(30),
        },
        Action::SetReplicas {
            object: object(),
            from: 2,
            to: 3,
        },
        Action::Evict { vnfc: vnfc() },
        Action::AwaitReady {
            objects: vec![object()],
            replaced: vec![uid()],
        },
        Action::AwaitGone {
            objects: vec![(object(), Some(uid()))],
            volumes: true,
        },
        Action::TakeInventory {
            workloads: vec![("VDU1".into(), object())],
        },
        Action::Verify {
            equal: vec![(object(), body())],
            absent: vec![object()],
            replicas: vec![(object(), 2)],
        },
    ]
}

fn undos() -> Vec<Undo> {
    vec![
        Undo::Delete,
        Undo::Restore { body: body() },
        Undo::Recreate { body: blob() },
        Undo::Replicas { from: 2 },
        Undo::Nothing,
        Undo::Impossible {
            why: "it cannot be made again".into(),
        },
    ]
}

fn steps() -> Vec<Step> {
    actions()
        .into_iter()
        .zip(undos().into_iter().cycle())
        .zip(0..)
        .map(|((action, undo), wave)| Step {
            because: matches!(action, Action::Delete { .. }).then(|| "it is immutable".into()),
            residue: if matches!(action, Action::Delete { .. }) {
                vec!["PersistentVolumeClaim/data-x-*: volumes are kept".into()]
            } else {
                Vec::new()
            },
            gates: matches!(action, Action::AwaitReady { .. }),
            ..Step::new(wave, action, undo)
        })
        .collect()
}

fn plan() -> Plan {
    Plan {
        cluster_uid: "cluster-uid".into(),
        namespace: "default".into(),
        steps: steps(),
        workloads: vec![("VDU1".into(), object())],
        levels: Some(levels()),
        objects: vec![managed()],
        removed: vec![managed()],
        workloads_before: vec![("VDU1".into(), object())],
        kept: vec!["PersistentVolumeClaim/data: volumes stay".into()],
        patches: 1,
        inventory: vec![vnfc()],
        rollback_hooks: Vec::new(),
        leftovers: Vec::new(),
    }
}

fn wait(class: WaitClass) -> Wait {
    Wait {
        object: "Pod/vdu1-5d9c".into(),
        class,
        reason: "ImagePullBackOff".into(),
        message: "Back-off pulling image".into(),
        since: at(10),
        until: at(310),
    }
}

fn begun() -> Event {
    match started("o", "i") {
        Event::OperationStarted {
            at,
            id,
            vnf_instance_id,
            by,
            tenant,
            ..
        } => Event::OperationStarted {
            at,
            id,
            vnf_instance_id,
            by,
            tenant,
            request: members(&json!({"flavourId": "simple"})),
            params: Params::Instantiate {
                flavour_id: "simple".into(),
                levels: levels(),
                info: members(&json!({"extensions": {"password": {"$secret": "ref-2"}}})),
            },
            additional: AdditionalParams {
                namespace: Some("default".into()),
                def_files: Some(vec!["Files/kubernetes/deployment.yaml".into()]),
                leftovers: Leftovers::Replace,
                take_over: true,
                delete_volumes: true,
                clocks: Clocks::parse(&json!({"blocked": "2s"})).unwrap(),
            },
            inventory: vec![vnfc()],
        },
        other => other,
    }
}

fn forward() -> Vec<Event> {
    let problem = Problem::new(500, "quota exceeded").titled("Forbidden");
    vec![
        begun(),
        Event::GrantRequested { at: at(1) },
        Event::Granted {
            at: at(2),
            grant_id: GrantId::parse("g").unwrap(),
        },
        Event::GrantRejected { at: at(3), problem },
        Event::ProcessingStarted { at: at(4) },
        Event::PlanFixed {
            at: at(5),
            plan: plan(),
        },
        Event::PlanRevised {
            at: at(6),
            plan: plan(),
            carried: vec![Some(0), None],
        },
        Event::PlanRechecked {
            at: at(7),
            reopened: vec![Reopened {
                step: 1,
                why: "it was deleted".into(),
            }],
        },
        Event::ErrorPointReached {
            at: at(8),
            point: ErrorPoint::PreVimControl,
            attempt: 2,
        },
    ]
}

fn steps_and_waits() -> Vec<Event> {
    let problem = Problem::new(500, "quota exceeded").titled("Forbidden");
    vec![
        Event::StepStarted { at: at(9), step: 0 },
        Event::StepSucceeded {
            at: at(10),
            step: 0,
            outcome: Outcome::Applied {
                uid: uid(),
                created: true,
                overridden: vec!["kubectl-set: .spec.replicas".into()],
            },
        },
        Event::StepFailed {
            at: at(11),
            step: 1,
            problem: problem.clone(),
            class: WaitClass::Blocked,
        },
        Event::OutcomeUnknown {
            at: at(12),
            step: 1,
            why: "connection reset".into(),
        },
        Event::WaitStarted {
            at: at(13),
            wait: wait(WaitClass::Progressing),
        },
        Event::WaitChanged {
            at: at(14),
            wait: wait(WaitClass::Infrastructure),
        },
        Event::WaitEnded {
            at: at(15),
            object: "Pod/vdu1-5d9c".into(),
        },
        Event::OperationFailedTemporarily {
            at: at(16),
            problem,
        },
    ]
}

fn after_a_halt() -> Vec<Event> {
    let problem = Problem::new(500, "quota exceeded");
    let (by, tenant) = ("anonymous".to_owned(), Tenant::default_tenant());
    let undo = steps()
        .into_iter()
        .enumerate()
        .map(|(index, step)| UndoStep {
            undoes: (index % 2 == 0).then_some(index),
            step,
        })
        .collect();
    vec![
        Event::RetryStarted {
            at: at(17),
            by: by.clone(),
            tenant: tenant.clone(),
        },
        Event::RollbackStarted {
            at: at(18),
            by,
            tenant,
            undo,
        },
        Event::StepUndoStarted {
            at: at(19),
            undo: 0,
        },
        Event::StepUndone {
            at: at(20),
            undo: 0,
            outcome: Outcome::Deleted { was_absent: true },
        },
        Event::StepUndoFailed {
            at: at(21),
            undo: 1,
            problem,
            class: WaitClass::Unclassified,
        },
        Event::ReplicasRestored {
            at: at(22),
            resource: object(),
            from: 3,
            to: 2,
        },
        Event::RollbackVerified { at: at(23) },
    ]
}

fn ends() -> Vec<Event> {
    let (by, tenant) = ("anonymous".to_owned(), Tenant::default_tenant());
    vec![
        Event::OperationRolledBack {
            at: at(24),
            problem: Problem::new(500, "quota exceeded"),
            inventory: Some(vec![vnfc()]),
            residue: vec!["CustomResourceDefinition/x: never removed".into()],
        },
        Event::CancelRequested {
            at: at(25),
            by: by.clone(),
            tenant: tenant.clone(),
            mode: CancelMode::Forceful,
        },
        Event::OperationCancelled {
            at: at(26),
            mode: CancelMode::Graceful,
        },
        Event::OperationFailed {
            at: at(27),
            by,
            tenant,
        },
        Event::OperationCompleted {
            at: at(28),
            resource_changes: vec![AffectedVnfc {
                change_type: ChangeType::Added,
                vnfc: vnfc(),
            }],
            changed_info: Some(members(&json!({"vnfInstanceName": "core"}))),
            residue: vec!["PersistentVolumeClaim/data: volumes stay".into()],
        },
        Event::RetryAdvised {
            at: at(29),
            reason: "the quota was raised".into(),
        },
    ]
}

#[test]
fn events_of_operations() {
    let samples = [forward(), steps_and_waits(), after_a_halt(), ends()].concat();
    for (index, event) in samples.iter().enumerate() {
        assert_eq!(place(event), index, "a sample of each event, in order");
        check("VnfLcmOpOcc", event.name(), event);
    }
    assert_eq!(samples.len(), 30);
    check_files("VnfLcmOpOcc", &samples.iter().map(Event::name).collect());
}

/// The steps of hooks, their undo and their outcomes.
#[test]
fn hooks() {
    let vim = || VimId::parse("edge").unwrap();
    let run = |at, item: Option<&str>, result| Action::RunHook {
        hook: "instantiate_end".into(),
        at,
        item: item.map(str::to_owned),
        object: object(),
        manifest: body(),
        clock_ms: item.map(|_| 5000),
        result,
        registers_vim: true,
    };
    let actions = vec![
        run(Moment::Start, None, ResultFrom::Optional),
        run(Moment::End, Some("one"), ResultFrom::TerminationMessage),
        run(Moment::RollbackStart, None, ResultFrom::Secret("s".into())),
        Action::RegisterVim {
            hook: "instantiate_end".into(),
            at: Moment::End,
            jobs: vec!["cairn-hook-1".into()],
        },
        Action::UnregisterVim { vims: vec![vim()] },
        Action::RemoveHookJobs {
            namespace: "default".into(),
        },
    ];
    let steps: Vec<Step> = actions
        .into_iter()
        .zip(0..)
        .map(|(action, wave)| Step::new(wave, action, Undo::Unregister))
        .collect();
    let planned = Plan {
        rollback_hooks: steps.clone(),
        steps,
        ..plan()
    };
    check("Parts", "PlanWithHooks", &planned);
    let outcomes = vec![
        Outcome::HookSucceeded {
            uid: uid(),
            result: Some(json!({"nodes": 3})),
        },
        Outcome::VimsRegistered {
            registered: vec![vim()],
            used: Vec::new(),
        },
        Outcome::VimsUnregistered {
            residue: vec!["VIM edge: used".into()],
        },
    ];
    check("Parts", "OutcomesOfHooks", &outcomes);
}

/// What came of steps, and what was asked, are enums of their own inside one event: each of their forms is kept.
#[test]
fn outcomes_and_params() {
    let outcomes = [
        Outcome::Created,
        Outcome::ReplicasSet { from: 1, to: 2 },
        Outcome::Evicted { was_absent: false },
        Outcome::Kept {
            why: "volumes stay".into(),
        },
        Outcome::Ready,
        Outcome::Gone {
            residue: vec!["Namespace/x: foreign objects live in it".into()],
        },
        Outcome::Inventory {
            vnfcs: vec![vnfc()],
        },
        Outcome::Verified,
    ];
    check("Parts", "Outcomes", &outcomes.to_vec());
    let params = [
        Params::Scale {
            levels: levels(),
            aspect_id: "vdu1_aspect".into(),
            out: true,
        },
        Params::ScaleToLevel { levels: levels() },
        Params::Heal {
            vnfcs: vec!["vdu1-5d9c".into()],
            cause: Some("alarm".into()),
        },
        Params::ChangeVnfpkg {
            product: product(),
            levels: levels(),
            info: members(&json!({"extensions": {"mtu": 1500}})),
            vdus: Some(vec!["VDU1".into()]),
        },
        Params::ModifyInfo {
            changes: members(&json!({"vnfInstanceName": null})),
        },
        Params::Terminate {
            forceful: true,
            graceful_timeout_s: Some(10),
        },
    ];
    check("Parts", "Params", &params.to_vec());
}
