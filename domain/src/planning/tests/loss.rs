//! What holds data, or what others use, is never deleted to make room for another one.

use super::*;
use crate::operation::{ErrorPoint, Leftovers, OperationState};

const KEPT: [&str; 4] = [
    "Namespace",
    "CustomResourceDefinition",
    "PersistentVolume",
    "PersistentVolumeClaim",
];

fn holder(kind: &str, selector: &str) -> Manifest {
    manifest(
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "data"},
        "spec": {"selector": selector}}),
    )
}

fn change_selector(world: &mut World) {
    for manifest in &mut world.manifests {
        if manifest.value["metadata"]["name"] == "data" {
            manifest.value["spec"]["selector"] = json!("b");
        }
    }
}

/// An instantiate that was given up when all was written.
fn with_leftovers(kind: &str) -> World {
    let mut world = World::new();
    world.manifests.push(holder(kind, "a"));
    world.begin(instantiate_params(2)).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.fail().unwrap();
    world
}

fn replacing(mut world: World) -> World {
    world.additional.leftovers = Leftovers::Replace;
    world
}

#[test]
fn an_instantiate_never_makes_a_volume_anew_that_a_terminate_kept() {
    let mut world = World::new();
    world.manifests.push(holder("PersistentVolumeClaim", "a"));
    world.run(instantiate_params(2));
    world.run(terminate(false));
    let before = world.cluster.thing("PersistentVolumeClaim/data").cloned();
    let before = before.expect("a terminate keeps it").uid;
    change_selector(&mut world);
    assert_eq!(world.run(instantiate_params(2)), OperationState::FailedTemp);
    let error = world.op().error.clone().unwrap();
    assert_eq!(
        (error.status, error.detail.as_str()),
        (
            409,
            "PersistentVolumeClaim/data cannot be changed to what the package says, and is never made anew for what it holds: spec.selector: immutable"
        )
    );
    assert!(!world.op().has_written());
    world.rollback().unwrap();
    assert_eq!(world.go_on(), OperationState::RolledBack);
    let after = world.cluster.thing("PersistentVolumeClaim/data").cloned();
    assert_eq!(after.map(|claim| claim.uid), Some(before));
}

#[test]
fn leftovers_that_hold_what_would_be_lost_are_refused_where_they_differ() {
    for kind in KEPT {
        for replace in [false, true] {
            let mut world = with_leftovers(kind);
            change_selector(&mut world);
            if replace {
                world = replacing(world);
            }
            let case = case(world, instantiate_params(2));
            let refused = case.planned(&case.survey()).unwrap_err();
            let named = format!("{kind}/data cannot be changed");
            assert!(refused.detail.starts_with(&named), "{}", refused.detail);
            assert_eq!(refused.status, 409);
        }
    }
}

#[test]
fn replacing_leftovers_adopts_what_would_be_lost() {
    for kind in KEPT {
        let name = format!("{kind}/data");
        let world = replacing(with_leftovers(kind));
        let before = world.cluster.thing(&name).unwrap().uid.clone();
        let plan = case(world, instantiate_params(2)).plan();
        assert!(writes(&plan).contains(&"0 delete Deployment/web".to_owned()));
        assert!(!writes(&plan).contains(&format!("0 delete {name}")));
        let found = |o: &&ManagedObject| o.object.to_string() == name;
        let recorded = plan.objects.iter().find(found).unwrap();
        assert_eq!(recorded.uid, Some(before), "{name}");
        let mut applies = plan.steps.iter().filter(|s| s.action.subject() == name);
        let apply = applies.next().unwrap();
        assert!(matches!(apply.undo, Undo::Restore { .. }), "{apply:?}");
    }
}

#[test]
fn replacing_leftovers_keeps_what_would_be_lost_also_without_a_manifest_and_says_so() {
    for kind in KEPT {
        let name = format!("{kind}/data");
        let mut world = replacing(with_leftovers(kind));
        world.manifests.retain(|m| m.value["kind"] != kind);
        let plan = case(world, instantiate_params(2)).plan();
        assert!(!writes(&plan).contains(&format!("0 delete {name}")));
        assert!(plan.objects.iter().any(|o| o.object.to_string() == name));
        assert!(
            plan.kept.iter().any(|kept| kept.starts_with(&name)),
            "{:?}",
            plan.kept
        );
    }
}
