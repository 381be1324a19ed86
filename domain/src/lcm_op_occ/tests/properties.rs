//! Random commands, sensible or not, in any order: what must always hold holds.

use super::*;
use crate::lcm_op_occ::next::{Next, next};
use crate::operation::{Operation, Params};
use crate::testing::levels;
use crate::vnf_instance::{Provisioning, Standing, VnfInstance};
use proptest::prelude::*;
use serde_json::json;

/// What may happen next.
#[derive(Clone, Debug)]
enum Move {
    Begin(u8),
    Turns(u8),
    Retry,
    Rollback,
    Fail,
    Cancel(bool),
    EndTry,
    Previous,
    LoseAnswer,
    Refuse(u8),
    TakeAway(u8),
    Delete,
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (0u8..7).prop_map(Move::Begin),
        8 => (1u8..40).prop_map(Move::Turns),
        2 => Just(Move::Retry),
        2 => Just(Move::Rollback),
        1 => Just(Move::Fail),
        1 => any::<bool>().prop_map(Move::Cancel),
        2 => Just(Move::EndTry),
        1 => Just(Move::Previous),
        1 => Just(Move::LoseAnswer),
        1 => (0u8..4).prop_map(Move::Refuse),
        1 => (0u8..4).prop_map(Move::TakeAway),
        1 => Just(Move::Delete),
    ]
}

const THINGS: [&str; 4] = [
    "ConfigMap/config",
    "Service/web",
    "Deployment/web",
    "StatefulSet/db",
];

fn params(kind: u8) -> Params {
    match kind {
        0 => instantiate_params(2),
        1 => Params::Scale {
            levels: levels(4),
            aspect_id: "web".into(),
            out: true,
        },
        2 => Params::ScaleToLevel { levels: levels(1) },
        3 => Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        },
        4 => Params::Heal {
            vnfcs: vec!["db-0".into()],
            cause: None,
        },
        5 => Params::Terminate {
            forceful: true,
            graceful_timeout_s: None,
        },
        _ => Params::ModifyInfo {
            changes: serde_json::Map::from_iter([("metadata".to_owned(), json!({"n": 1}))]),
        },
    }
}

/// Does it; a refusal is an answer.
fn make(world: &mut World, begun: &mut bool, one: &Move) {
    let thing = |n: u8| THINGS[usize::from(n) % THINGS.len()];
    match one {
        Move::Begin(kind) => *begun |= world.begin(params(*kind)).is_ok(),
        Move::LoseAnswer => world.cluster.lose_answer("apply Deployment/web", true),
        Move::Refuse(n) => {
            let call = format!(
                "{} {}",
                if *n % 2 == 0 { "apply" } else { "delete" },
                thing(*n)
            );
            world.cluster.refuse(&call, "call", "QuotaExceeded", 2);
        }
        Move::TakeAway(n) => world.cluster.take_away(thing(*n)),
        Move::Delete => drop(world.delete()),
        _ if !*begun => {}
        Move::Turns(n) => {
            for _ in 0..*n {
                world.turn();
            }
        }
        Move::Retry => drop(world.retry()),
        Move::Rollback => drop(world.rollback()),
        Move::Fail => drop(world.fail()),
        Move::Cancel(forceful) => {
            let mode = if *forceful {
                CancelMode::Forceful
            } else {
                CancelMode::Graceful
            };
            drop(world.cancel(mode));
        }
        Move::EndTry => {
            let problem = crate::problem::Problem::new(500, "broken");
            drop(world.tell(Command::EndTry {
                at: later(),
                step: None,
                problem,
            }));
        }
        Move::Previous => world.back_to_previous(),
    }
}

fn check(world: &World, begun: bool) {
    let instance = world.instance();
    let ops: Vec<&VnfLcmOpOcc> = if begun { world.ops() } else { Vec::new() };
    let open: Vec<_> = ops.iter().filter(|op| !op.state.is_final()).collect();
    let holders: Vec<_> = instance
        .claim
        .iter()
        .map(|claim| &claim.op)
        .chain(&instance.beside)
        .collect();
    assert_eq!(
        open.len(),
        holders.len(),
        "an operation that is not final holds the instance"
    );
    for op in &open {
        assert!(holders.contains(&&op.id), "{} holds it", op.id);
        let rests = next(op) == Next::Rest;
        assert_eq!(
            op.state.is_transitional(),
            !rests,
            "{} moves or rests",
            op.id
        );
    }
    if instance.beside.is_some() {
        let beside = open
            .iter()
            .filter(|op| op.operation() == Operation::ModifyInfo)
            .count();
        assert!(
            beside >= 1,
            "only a MODIFY_INFO runs beside a halted operation"
        );
    }
    for op in &ops {
        let state = op.state;
        assert!(
            state != OperationState::FailedTemp || op.error.is_some(),
            "a halt has a cause"
        );
        assert!(
            op.cancel.is_none() || state.is_transitional(),
            "no cancel outlives its state"
        );
        assert!(
            op.waits.is_empty() || state.is_transitional(),
            "no wait outlives its state"
        );
    }
    check_provisioning(instance);
}

fn check_provisioning(instance: &VnfInstance) {
    let (word, target) = instance.provisioning();
    let moves = matches!(
        word,
        Provisioning::Deploying | Provisioning::Updating | Provisioning::Deleting
    );
    assert_eq!(target.is_some(), moves, "{word}");
    let instantiated = instance.instantiated.is_some();
    match instance.standing {
        Standing::Available | Standing::DeployFail => assert!(!instantiated),
        Standing::Active | Standing::UpdateFail => assert!(instantiated),
        Standing::DeleteFail => {}
    }
    assert!(
        instance.leftovers.is_empty() || !instantiated,
        "leftovers are of what is not there"
    );
}

/// The state is the fold of the events, also through JSON, as it is stored.
fn check_history(world: &World) {
    let stored = |event: &VnfLcmOpOccEvent| -> VnfLcmOpOccEvent {
        serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap()
    };
    let folded = world
        .history()
        .iter()
        .map(stored)
        .fold(None, |s, e| super::super::evolve(s, &e));
    assert_eq!(folded.as_ref(), Some(world.op()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_in_whatever_order_the_invariants_hold(
        moves in prop::collection::vec(a_move(), 1..40)
    ) {
        let mut world = World::new();
        let mut begun = false;
        for one in &moves {
            make(&mut world, &mut begun, one);
            check(&world, begun);
        }
        if begun {
            check_history(&world);
        }
    }

    /// Any event may follow any other in a broken log: folding it is total.
    #[test]
    fn folding_never_panics(moves in prop::collection::vec(any::<prop::sample::Index>(), 1..80)) {
        let mut events = op().instantiate().failed_at(ErrorPoint::PostVimControl).rolled_back().history();
        events.extend(op().terminate().failed_at(ErrorPoint::VnfConfigEnd).retried().history());
        events.extend(op().scale_out().at(ErrorPoint::PreVimControl).cancelled(CancelMode::Forceful).history());
        let mut state = None;
        for place in &moves {
            state = super::super::evolve(state, place.get(&events));
            if let Some(op) = &state {
                let _what: Next = next(op);
                let _left = op.leftovers();
                let _undo = super::super::undo::list(op);
            }
        }
    }
}
