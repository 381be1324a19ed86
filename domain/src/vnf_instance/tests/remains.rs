//! What operations leave in the cluster, and what the record knows of it.

use super::*;
use crate::lcm_op_occ::UndoLog;
use crate::lcm_op_occ::plan::{Action, StepState};
use crate::operation::{ErrorPoint, Leftovers, OperationState};
use crate::testing::{at_point, instance};
use std::collections::BTreeSet;

fn left(world: &World) -> Vec<String> {
    let mut names: Vec<String> = world
        .instance()
        .leftovers
        .iter()
        .map(|left| left.object.to_string())
        .collect();
    names.sort();
    names
}

const ALL: [&str; 4] = [
    "ConfigMap/config",
    "Deployment/web",
    "Service/web",
    "StatefulSet/db",
];

fn given_up_at(mut world: World, params: Params, point: ErrorPoint) -> World {
    world.begin(params).unwrap();
    world.go_until(at_point(point));
    world.fail_here("broken");
    world.fail().unwrap();
    world
}

fn with_leftovers() -> World {
    given_up_at(
        World::new(),
        instantiate_params(2),
        ErrorPoint::PostVimControl,
    )
}

#[test]
fn a_given_up_instantiate_leaves_what_it_made() {
    let world = with_leftovers();
    assert_eq!(left(&world), ALL);
    for managed in &world.instance().leftovers {
        let there = world.cluster.thing(&managed.object.to_string()).unwrap();
        assert_eq!(managed.uid.as_ref(), Some(&there.uid));
    }
    assert_eq!(
        world.instance().leftovers_cluster.as_deref(),
        Some("cluster-1")
    );
}

#[test]
fn leftovers_are_not_forgotten_by_an_operation_that_failed_before_it_had_a_plan() {
    for params in [instantiate_params(2), terminate()] {
        let world = given_up_at(with_leftovers(), params, ErrorPoint::NotifyProcessing);
        assert_eq!(left(&world), ALL);
        assert_eq!(
            world.instance().leftovers_cluster.as_deref(),
            Some("cluster-1")
        );
        assert!(
            world
                .clone()
                .delete()
                .unwrap_err()
                .contains("Deployment/web")
        );
    }
}

#[test]
fn leftovers_are_forgotten_as_far_as_they_are_seen_gone() {
    let mut world = with_leftovers();
    world.begin(terminate()).unwrap();
    world.go_until(at_point(ErrorPoint::InternalProcessing));
    world.fail_here("broken");
    world.fail().unwrap();
    assert_eq!(left(&world), Vec::<String>::new());
    assert_eq!(world.instance().leftovers_cluster, None);
}

#[test]
fn a_partly_undone_instantiate_leaves_what_is_not_undone() {
    let mut world = World::new();
    world.begin(instantiate_params(2)).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world
        .cluster
        .refuse("delete Service/web", "call", "Invalid", 1);
    world.rollback().unwrap();
    world.go_on();
    world.fail().unwrap();
    assert_eq!(left(&world), ALL, "nothing was seen gone yet");
    world.run(terminate());
    assert_eq!(world.cluster.names(), Vec::<String>::new());
    assert!(world.delete().is_ok());
}

#[test]
fn what_a_halted_rollback_has_asked_to_delete_is_left_until_it_is_seen_gone() {
    let halted = |wait: &str| {
        let mut world = World::new();
        world.begin(instantiate_params(2)).unwrap();
        world.go_until(at_point(ErrorPoint::PostVimControl));
        world.fail_here("broken");
        world.rollback().unwrap();
        world.go_until(|op| {
            let awaits = |log: &UndoLog| log.undo.step.action.kind() == wait;
            op.undo
                .iter()
                .any(|log| awaits(log) && log.state != StepState::Open)
        });
        world.fail_here("held by finalizers");
        world.fail().unwrap();
        world
    };
    let world = halted("await-gone");
    assert_eq!(left(&world), ALL);
    assert!(
        world
            .clone()
            .delete()
            .unwrap_err()
            .contains("ConfigMap/config")
    );
    assert_eq!(left(&halted("verify")), Vec::<String>::new());
}

#[test]
fn an_instantiate_adopts_the_leftovers_or_replaces_them() {
    for (leftovers, same) in [(Leftovers::Adopt, true), (Leftovers::Replace, false)] {
        let mut world = with_leftovers();
        let before = world.cluster.uid_of("Deployment/web");
        world.additional.leftovers = leftovers;
        assert_eq!(
            world.instantiate(),
            OperationState::Completed,
            "{leftovers:?}"
        );
        let after = world.cluster.uid_of("Deployment/web");
        assert_eq!(before == after, same, "{leftovers:?}");
        assert_eq!(left(&world), Vec::<String>::new());
        assert_eq!(
            world.instance().provisioning(),
            (Provisioning::Active, None)
        );
    }
}

#[test]
fn replaced_leftovers_are_there_again_after_a_rollback_and_known() {
    let mut world = with_leftovers();
    world.additional.leftovers = Leftovers::Replace;
    world.begin(instantiate_params(2)).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.rollback().unwrap();
    assert_eq!(world.go_on(), OperationState::RolledBack);
    assert_eq!(left(&world), ALL);
    world.run(terminate());
    assert_eq!(world.cluster.names(), Vec::<String>::new());
}

#[test]
fn a_rollback_over_leftovers_does_not_wait_for_them_to_get_ready() {
    for (leftovers, params) in [
        (Leftovers::Adopt, instantiate_params(2)),
        (Leftovers::Replace, instantiate_params(2)),
        (Leftovers::Adopt, terminate()),
    ] {
        let mut world = with_leftovers();
        world.additional.leftovers = leftovers;
        world.begin(params).unwrap();
        world.go_until(at_point(ErrorPoint::PostVimControl));
        world.fail_here("broken");
        world.rollback().unwrap();
        let undo: Vec<_> = world
            .op()
            .undo
            .iter()
            .map(|log| log.undo.step.action.kind())
            .collect();
        assert!(!undo.contains(&"await-ready"), "{undo:?}");
        assert!(undo.contains(&"verify"), "{undo:?}");
        assert_eq!(world.go_on(), OperationState::RolledBack);
        assert_eq!(left(&world), ALL);
    }
}

#[test]
fn a_rollback_waits_for_what_belonged_to_the_instantiated_vnf() {
    let mut world = World::instantiated();
    world.begin(terminate()).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.rollback().unwrap();
    let mut undo = world.op().undo.iter();
    assert!(undo.any(|log| log.undo.step.action.kind() == "await-ready"));
}

#[test]
fn leftovers_that_were_to_be_replaced_are_not_forgotten_while_they_stand() {
    let mut world = with_leftovers();
    world.additional.leftovers = Leftovers::Replace;
    let mut world = given_up_at(world, instantiate_params(2), ErrorPoint::PreVimControl);
    assert_eq!(world.cluster.names(), ALL);
    assert_eq!(left(&world), ALL);
    assert!(
        world
            .clone()
            .delete()
            .unwrap_err()
            .contains("Deployment/web")
    );
    world.run(terminate());
    assert_eq!(world.cluster.names(), Vec::<String>::new());
}

#[test]
fn leftovers_that_a_partial_rollback_made_again_are_not_forgotten() {
    let mut world = with_leftovers();
    world.additional.leftovers = Leftovers::Replace;
    world.begin(instantiate_params(2)).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.rollback().unwrap();
    world.go_until(|op| {
        op.undo.iter().any(|log| {
            matches!(log.undo.step.action, Action::Apply { .. })
                && matches!(log.state, StepState::Done { .. })
        })
    });
    world.fail_here("broken");
    world.fail().unwrap();
    let there = world.cluster.names();
    assert!(!there.is_empty(), "something was made again");
    let listed = left(&world);
    assert!(there.iter().all(|one| listed.contains(one)), "{listed:?}");
    world.run(terminate());
    assert_eq!(world.cluster.names(), Vec::<String>::new());
    assert!(world.delete().is_ok());
}

#[test]
fn leftovers_without_a_manifest_are_not_orphaned() {
    for (leftovers, there) in [(Leftovers::Adopt, true), (Leftovers::Replace, false)] {
        let mut world = with_leftovers();
        world.additional.leftovers = leftovers;
        world.manifests.retain(|m| m.value["kind"] != "Service");
        assert_eq!(
            world.instantiate(),
            OperationState::Completed,
            "{leftovers:?}"
        );
        assert_eq!(
            world.cluster.thing("Service/web").is_some(),
            there,
            "{leftovers:?}"
        );
        world.run(terminate());
        assert_eq!(world.cluster.names(), Vec::<String>::new(), "{leftovers:?}");
    }
}

#[test]
fn leftovers_in_one_cluster_are_no_reason_to_refuse_another_once_they_are_gone() {
    let mut world = given_up_at(
        World::new(),
        instantiate_params(2),
        ErrorPoint::PreVimControl,
    );
    world.cluster.uid = "cluster-2".into();
    assert_eq!(world.instantiate(), OperationState::Completed);
    let mut world = with_leftovers();
    world.cluster.uid = "cluster-2".into();
    assert_eq!(world.instantiate(), OperationState::FailedTemp);
}

#[test]
fn a_heal_after_a_given_up_terminate_makes_everything_again() {
    let mut world = World::instantiated();
    let mut world = {
        world.begin(terminate()).unwrap();
        world.go_until(at_point(ErrorPoint::PostVimControl));
        world.fail_here("broken");
        world.fail().unwrap();
        world
    };
    assert_eq!(
        world.instance().provisioning(),
        (Provisioning::DeleteFail, None)
    );
    assert_eq!(world.run(heal()), OperationState::Completed);
    assert_eq!(
        world.instance().provisioning(),
        (Provisioning::Active, None)
    );
    assert_eq!(world.cluster.names(), ALL);
    assert_eq!(
        world.cluster.thing("Deployment/web").unwrap().replicas,
        Some(2)
    );
    let info = world.instance().instantiated.clone().unwrap();
    for managed in &info.objects {
        let there = world.cluster.thing(&managed.object.to_string()).unwrap();
        assert_eq!(managed.uid.as_ref(), Some(&there.uid));
    }
}

#[test]
fn a_given_up_heal_leaves_the_uids_of_what_it_made_on_record() {
    let mut world = World::instantiated();
    world.cluster.take_away("ConfigMap/config");
    let mut world = given_up_at(world, heal(), ErrorPoint::PostVimControl);
    let there = world.cluster.uid_of("ConfigMap/config");
    let info = world.instance().instantiated.clone().unwrap();
    let recorded = info
        .objects
        .iter()
        .find(|o| o.object.kind == "ConfigMap")
        .unwrap();
    assert_eq!(recorded.uid, Some(there));
    world.run(terminate());
    assert_eq!(world.cluster.names(), Vec::<String>::new());
}

#[test]
fn a_scale_after_one_that_was_given_up_sets_the_replicas_of_its_level() {
    let world = given_up_at(World::instantiated(), scale(4), ErrorPoint::PostVimControl);
    assert_eq!(world.instance().scale_in_doubt, doubted(&["WEB"]));
    for params in [scale_to_level(2), heal()] {
        let mut world = world.clone();
        assert_eq!(
            world.cluster.thing("Deployment/web").unwrap().replicas,
            Some(4)
        );
        assert_eq!(world.run(params), OperationState::Completed);
        assert_eq!(
            world.cluster.thing("Deployment/web").unwrap().replicas,
            Some(2)
        );
        assert_eq!(world.instance().scale_in_doubt, doubted(&[]));
    }
}

fn doubted(vdus: &[&str]) -> BTreeSet<String> {
    vdus.iter().map(|vdu| (*vdu).to_owned()).collect()
}

#[test]
fn a_given_up_scale_leaves_in_doubt_what_it_may_have_set_and_nothing_else() {
    let early = given_up_at(World::instantiated(), scale(4), ErrorPoint::PreVimControl);
    assert_eq!(early.instance().scale_in_doubt, doubted(&[]));
    let late = given_up_at(early, scale(4), ErrorPoint::PostVimControl);
    assert_eq!(late.instance().scale_in_doubt, doubted(&["WEB"]));
    // Also the next one, which has set nothing, does not end the doubt.
    let again = given_up_at(late, scale(4), ErrorPoint::PreVimControl);
    assert_eq!(again.instance().scale_in_doubt, doubted(&["WEB"]));

    let mut undone = World::instantiated();
    undone.begin(scale(4)).unwrap();
    undone.go_until(at_point(ErrorPoint::PostVimControl));
    undone.fail_here("broken");
    undone.rollback().unwrap();
    undone.go_until(|op| {
        let mut restored = op.undo.iter();
        restored.any(|log| matches!(log.state, StepState::Done { .. }))
    });
    undone.fail_here("broken");
    undone.fail().unwrap();
    assert_eq!(undone.instance().scale_in_doubt, doubted(&[]));

    let mut refused = World::instantiated();
    let call = "set-replicas Deployment/web";
    refused.cluster.refuse(call, "call", "Invalid", 1);
    assert_eq!(refused.run(scale(4)), OperationState::FailedTemp);
    refused.fail().unwrap();
    assert_eq!(refused.instance().scale_in_doubt, doubted(&[]));

    let mut silent = World::instantiated();
    silent.cluster.lose_answer(call, true);
    silent.cluster.refuse(call, "call", "Invalid", 1);
    assert_eq!(silent.run(scale(4)), OperationState::FailedTemp);
    silent.fail().unwrap();
    assert_eq!(silent.instance().scale_in_doubt, doubted(&["WEB"]));
}

#[test]
fn a_given_up_scale_of_an_older_cairn_leaves_all_numbers_in_doubt() {
    let world = given_up_at(World::instantiated(), scale(4), ErrorPoint::PostVimControl);
    let mut history = world.instance_history().to_vec();
    let Some(VnfInstanceEvent::OperationReleased { scale_in_doubt, .. }) = history.last_mut()
    else {
        panic!("{history:?}")
    };
    assert_eq!(scale_in_doubt.take(), Some(doubted(&["WEB"])));
    let instance = crate::root::replay::<VnfInstance>(&history).unwrap();
    assert_eq!(instance.scale_in_doubt, doubted(&["DB", "WEB"]));
}

#[test]
fn scale_status_changes_only_when_a_scale_completes() {
    let level = |world: &World| {
        world
            .instance()
            .instantiated
            .as_ref()
            .unwrap()
            .levels
            .scale_status["web"]
    };
    let story = instance().instantiated();
    assert_eq!(level(&story.world), 1);
    assert_eq!(level(&story.clone().scaled_to(4).world), 3);
    let given_up = given_up_at(story.world, scale(5), ErrorPoint::VnfConfigEnd);
    assert_eq!(level(&given_up), 1);
}

#[test]
fn an_inventory_that_finds_the_recorded_pods_is_no_event() {
    let mut world = World::instantiated();
    let known = world.instance_history().len();
    let vnfcs = world.instance().vnfcs().to_vec();
    let at = Timestamp::from_millis(0);
    world
        .tell_instance(VnfInstanceCommand::ObserveVnfcs {
            at,
            vnfcs: vnfcs.clone(),
        })
        .unwrap();
    assert_eq!(world.instance_history().len(), known);
    let fewer = vnfcs[1..].to_vec();
    world
        .tell_instance(VnfInstanceCommand::ObserveVnfcs {
            at,
            vnfcs: fewer.clone(),
        })
        .unwrap();
    assert_eq!(world.instance().vnfcs(), fewer);
}

#[test]
fn an_instance_remembers_a_bounded_number_of_its_operations() {
    let mut world = World::new();
    for _ in 0..OPERATIONS_KEPT + 5 {
        world.run(rename());
    }
    assert_eq!(world.instance().operations.len(), OPERATIONS_KEPT);
    assert_eq!(world.instance().operations.last(), Some(&world.op().id));
}

#[test]
fn an_operation_that_does_not_hold_the_instance_changes_nothing() {
    let mut world = World::instantiated();
    let op = world.op().id.clone();
    let at = Timestamp::from_millis(0);
    let late = VnfInstanceCommand::Complete {
        at,
        op: op.clone(),
        effect: Effect::Terminated,
        hook_jobs_removed: false,
    };
    let refused = world.tell_instance(late).unwrap_err();
    assert_eq!(
        refused,
        format!("operation {op} does not hold the VNF instance")
    );
    assert!(world.instance().instantiated.is_some());
}

/// A VNF whose Service was changed by somebody in a field that cannot be changed back.
fn drifted() -> World {
    let mut world = World::instantiated();
    let mut things = world.cluster.things.iter_mut();
    let service = things.find(|thing| thing.object.kind == "Service").unwrap();
    service.body["spec"]["selector"] = json!("drifted");
    world
}

fn recorded(world: &World, name: &str) -> Option<crate::object::Uid> {
    let info = world.instance().instantiated.as_ref().unwrap();
    let mut objects = info.objects.iter();
    let found = objects.find(|managed| managed.object.to_string() == name);
    found.unwrap().uid.clone()
}

#[test]
fn what_was_to_be_made_anew_and_was_not_touched_keeps_its_uid_on_record() {
    let before = recorded(&drifted(), "Service/web");
    assert!(before.is_some());
    for params in [heal(), change()] {
        let mut halted = drifted();
        halted.begin(params).unwrap();
        halted.go_until(at_point(ErrorPoint::PreVimControl));
        let planned = halted.op().known_objects();
        let mut planned = planned.iter().filter(|o| o.object.kind == "Service");
        assert_eq!(planned.next().unwrap().uid, None, "it is to be made anew");
        halted.fail_here("broken");
        let mut given_up = halted.clone();
        given_up.fail().unwrap();
        assert_eq!(recorded(&given_up, "Service/web"), before);
        halted.rollback().unwrap();
        assert_eq!(halted.go_on(), OperationState::RolledBack);
        assert_eq!(recorded(&halted, "Service/web"), before);
    }
}

#[test]
fn what_a_given_up_operation_deleted_to_make_it_anew_has_no_uid_on_record() {
    let mut world = drifted();
    world.begin(heal()).unwrap();
    world.go_until(|op| {
        op.steps.iter().any(|log| {
            matches!(log.step.action, Action::Delete { .. })
                && matches!(log.state, StepState::Done { .. })
        })
    });
    world.fail_here("broken");
    world.fail().unwrap();
    assert_eq!(recorded(&world, "Service/web"), None);
    assert_eq!(world.run(heal()), OperationState::Completed);
    let there = world.cluster.uid_of("Service/web");
    assert_eq!(recorded(&world, "Service/web"), Some(there));
}

#[test]
fn leftovers_that_a_given_up_terminate_has_seen_absent_are_not_left() {
    let mut world = with_leftovers();
    world.cluster.take_away("Service/web");
    world.begin(terminate()).unwrap();
    world.go_until(at_point(ErrorPoint::PreVimControl));
    let mut at_once = world.clone();
    at_once.fail_here("broken");
    at_once.fail().unwrap();
    let stand = ["ConfigMap/config", "Deployment/web", "StatefulSet/db"];
    assert_eq!(left(&at_once), stand);

    // One more vanishes before its turn comes; the others are marked for deletion, and seen by nobody yet.
    world.cluster.hold("StatefulSet/db");
    world.cluster.take_away("Deployment/web");
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    let mut undone = world.clone();
    world.fail().unwrap();
    assert_eq!(left(&world), ["ConfigMap/config", "StatefulSet/db"]);

    // What a rollback has made again is there.
    undone.cluster.let_go();
    undone.rollback().unwrap();
    undone.go_until(|op| {
        let mut undo = op.undo.iter();
        undo.any(|log| log.undo.step.action.kind() == "verify" && log.state == StepState::Started)
    });
    undone.fail_here("broken");
    undone.fail().unwrap();
    assert_eq!(left(&undone), stand);
    assert_eq!(undone.cluster.names(), stand);
}

#[test]
fn what_was_left_and_is_made_again_by_a_rollback_is_left_under_the_uid_it_has() {
    let mut changed = given_up_at(World::instantiated(), change(), ErrorPoint::PostVimControl);
    changed.begin(heal()).unwrap();
    let mut replaced = with_leftovers();
    replaced.additional.leftovers = Leftovers::Replace;
    replaced.begin(instantiate_params(2)).unwrap();
    for mut world in [changed, replaced] {
        world.go_until(at_point(ErrorPoint::InternalProcessing));
        world.fail_here("broken");
        world.rollback().unwrap();
        assert_eq!(world.go_on(), OperationState::RolledBack);
        let leftovers = &world.instance().leftovers;
        assert!(leftovers.len() >= 2);
        for managed in leftovers {
            let there = world.cluster.thing(&managed.object.to_string()).unwrap();
            assert_eq!(managed.uid.as_ref(), Some(&there.uid), "{}", managed.object);
        }
    }
}
