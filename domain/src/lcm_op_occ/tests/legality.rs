//! Every state × every call, for each kind of operation (SOL003 5.6.2.3), as a golden table; and every state ×
//! every command stays on the table of transitions.

use super::super::decide::decide;
use super::super::fold::evolve;
use super::*;
use crate::announce::entered;
use crate::lcm_op_occ::plan::{Outcome, Plan};
use crate::operation::{Operation, Params};
use crate::problem::Problem;
use crate::testing::OpStory;
use crate::testing::golden::assert_golden;
use crate::waits::WaitClass;
use std::fmt::Write;

/// An operation in each state that it can come to, made from events.
fn every_state(story: &OpStory) -> Vec<(String, VnfLcmOpOcc)> {
    let fresh = story.clone().begun();
    let mut states = Vec::new();
    if fresh.state() == OperationState::Starting {
        states.push(fresh.clone());
        states.push(story.clone().at(ErrorPoint::PreVimControl));
        let halted = story.clone().failed_at(ErrorPoint::PostVimControl);
        states.push(halted.clone().rolling_back());
        states.push(halted.clone().rolled_back());
        states.push(halted.clone().given_up());
        states.push(halted);
    } else {
        states.push(fresh.clone());
        states.push(story.clone().failed_at(ErrorPoint::PreVimControl));
    }
    states.push(story.clone().completed());
    let mut named = Vec::new();
    for story in states {
        let op = story.op().clone();
        if op.state.is_transitional() {
            for mode in [CancelMode::Graceful, CancelMode::Forceful] {
                let mut cancelled = story.clone();
                cancelled.world.cancel(mode).unwrap();
                let name = format!("{}, cancel {mode:?} pending", op.state);
                named.push((name.to_uppercase(), cancelled.op().clone()));
            }
        }
        named.push((op.state.to_string(), op));
    }
    named.sort_by_key(|(name, op)| (order(op.state), name.clone()));
    named
}

fn order(state: OperationState) -> usize {
    OperationState::ALL
        .iter()
        .position(|known| *known == state)
        .unwrap()
}

#[test]
fn every_call_in_every_state_is_as_the_golden_table_says() {
    let mut table = String::from("# operation | state | call | outcome\n");
    for (kind, story) in OpStory::every_kind() {
        for (name, op) in every_state(&story) {
            for (call, command) in calls() {
                let outcome = match decide(Some(&op), command) {
                    Ok(events) => {
                        let after = events.iter().fold(Some(op.clone()), evolve).unwrap();
                        format!("{} → {}", super::names(&events).join(", "), after.state)
                    }
                    Err(refused) => format!("409 {refused}"),
                };
                writeln!(table, "{kind} | {name} | {call} | {outcome}").unwrap();
            }
        }
    }
    assert_golden("legal-calls.txt", &table);
}

#[test]
fn there_is_a_legal_call_in_every_state_that_is_not_final() {
    for (kind, story) in OpStory::every_kind() {
        for (name, op) in every_state(&story)
            .into_iter()
            .filter(|(_, op)| op.cancel.is_none())
        {
            let legal = calls()
                .into_iter()
                .any(|(_, call)| decide(Some(&op), call).is_ok());
            assert_eq!(legal, !op.state.is_final(), "{kind} in {name}");
        }
    }
}

fn same_plan(op: &VnfLcmOpOcc) -> Plan {
    Plan {
        cluster_uid: "cluster-1".into(),
        namespace: "default".into(),
        steps: op.steps.iter().map(|log| log.step.clone()).collect(),
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
    }
}

/// Everything that can be asked, also what only a runner asks, sensible or not.
fn every_command(op: &VnfLcmOpOcc) -> Vec<Command> {
    let at = later();
    let mut all: Vec<Command> = calls().into_iter().map(|(_, call)| call).collect();
    let plan = same_plan(op);
    let problem = Problem::new(500, "cause");
    all.extend([
        Command::RequestGrant { at },
        Command::Grant {
            at,
            grant_id: crate::ids::GrantId::parse("grant").unwrap(),
        },
        Command::RejectGrant {
            at,
            problem: problem.clone(),
        },
        Command::FixPlan { at, plan },
        Command::RecheckPlan {
            at,
            reopened: Vec::new(),
        },
        Command::LoseAnswer {
            at,
            step: 0,
            why: "silence".into(),
        },
        Command::Obstruct {
            at,
            obstacles: Vec::new(),
        },
        Command::EndTry {
            at,
            step: None,
            problem: problem.clone(),
        },
        Command::EndTry {
            at,
            step: Some((0, WaitClass::Blocked)),
            problem,
        },
        Command::CarryOutCancel { at },
        Command::Complete { at },
        Command::FinishRollback { at },
        Command::Advise {
            at,
            reason: "it came".into(),
        },
    ]);
    for point in ErrorPoint::ALL {
        all.push(Command::ReachPoint { at, point });
    }
    for step in 0..=op.steps.len().max(op.undo.len()) {
        all.push(Command::Begin {
            at,
            steps: vec![step],
        });
        all.push(Command::Finish {
            at,
            step,
            outcome: Outcome::Ready,
        });
    }
    all
}

/// Every command in every state either is refused or moves along the transition table, one state at a time.
#[test]
fn decisions_stay_on_the_transition_table() {
    for (kind, story) in OpStory::every_kind() {
        for (name, op) in every_state(&story) {
            for command in every_command(&op) {
                let Ok(events) = decide(Some(&op), command.clone()) else {
                    continue;
                };
                let mut now = op.clone();
                for event in &events {
                    let before = now.state;
                    now = evolve(Some(now), event).unwrap();
                    let says = format!("{kind} {name}: {command:?} → {}", event.name());
                    match entered(event) {
                        Some(state) => {
                            assert_eq!(now.state, state, "{says}");
                            assert!(before.may_become(state), "{says}");
                        }
                        None => assert_eq!(now.state, before, "{says}"),
                    }
                }
            }
        }
    }
}

#[test]
fn a_final_operation_accepts_nothing_that_changes_it() {
    for (kind, story) in OpStory::every_kind() {
        for (name, op) in every_state(&story)
            .into_iter()
            .filter(|(_, op)| op.state.is_final())
        {
            for command in every_command(&op) {
                let decided = decide(Some(&op), command.clone()).unwrap_or_default();
                assert_eq!(decided, Vec::new(), "{kind} in {name}: {command:?}");
            }
        }
    }
}

#[test]
fn only_modify_info_begins_in_processing_and_undoes_itself() {
    for (kind, story) in OpStory::every_kind() {
        let fresh = story.clone().begun();
        let modifies = fresh.op().operation() == Operation::ModifyInfo;
        let begins = if modifies {
            OperationState::Processing
        } else {
            OperationState::Starting
        };
        assert_eq!(fresh.state(), begins, "{kind}");
        let failed = story.failed_at(ErrorPoint::NotifyProcessing);
        let ends = if modifies {
            OperationState::RolledBack
        } else {
            OperationState::FailedTemp
        };
        assert_eq!(failed.state(), ends, "{kind}");
    }
}

#[test]
fn a_refused_grant_ends_in_rolled_back_and_frees_the_instance() {
    let mut story = op().instantiate().begun();
    let problem = Problem::new(403, "no licence");
    story
        .world
        .tell(Command::RejectGrant {
            at: later(),
            problem,
        })
        .unwrap();
    let told = names(&story.history());
    assert_eq!(
        told[told.len() - 2..],
        ["GrantRejected", "OperationRolledBack"]
    );
    assert!(story.world.instance().claim.is_none());
    assert!(story.world.begin(instantiate_params(1)).is_ok());
}

#[test]
fn an_operation_exists_once() {
    let story = op().terminate().begun();
    let again = Command::Start {
        at: later(),
        id: story.op().id.clone(),
        vnf_instance_id: story.op().vnf_instance_id.clone(),
        by: "tester".into(),
        tenant: story.op().tenant.clone(),
        request: serde_json::Map::new(),
        params: Params::Terminate {
            forceful: true,
            graceful_timeout_s: None,
        },
        additional: crate::operation::AdditionalParams::default(),
        inventory: Vec::new(),
    };
    assert_eq!(
        decide(Some(story.op()), again),
        Err(super::super::Rejection::Exists)
    );
    let retry = calls().remove(0).1;
    assert_eq!(decide(None, retry), Err(super::super::Rejection::NotFound));
}
