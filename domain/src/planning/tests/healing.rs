//! What a HEAL evicts, restores and waits for.

use super::*;

#[test]
fn a_heal_of_some_evicts_them_and_waits_for_their_workload() {
    let world = World::instantiated();
    let db = world
        .instance()
        .vnfcs()
        .iter()
        .find(|v| v.vdu_id == "DB")
        .unwrap()
        .clone();
    let plan = case(world, heal(vec![db.id.clone()])).plan();
    assert_eq!(writes(&plan), ["1000000 evict Pod/db-0"]);
    let Action::AwaitReady { objects, replaced } = &plan.steps[1].action else {
        panic!()
    };
    assert_eq!(
        objects.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["StatefulSet/db"]
    );
    assert_eq!(replaced, &[db.uid]);
}

#[test]
fn a_heal_of_some_that_are_gone_already_waits_for_their_replacement() {
    let mut world = World::instantiated();
    let web = world
        .instance()
        .vnfcs()
        .iter()
        .find(|v| v.vdu_id == "WEB")
        .unwrap()
        .clone();
    world.cluster.perform(&Action::Evict { vnfc: web.clone() });
    let plan = case(world, heal(vec![web.id])).plan();
    assert_eq!(writes(&plan), Vec::<String>::new());
    assert_eq!(told(&plan)[0], "0 await-ready Deployment/web");
}

#[test]
fn a_heal_of_all_restores_every_object_then_replaces_every_pod() {
    let mut world = World::instantiated();
    world.cluster.take_away("Service/web");
    let plan = case(world, heal(Vec::new())).plan();
    let evicted = writes(&plan)
        .iter()
        .filter(|w| w.starts_with("1000000 evict"))
        .count();
    assert_eq!((evicted, plan.steps.len()), (3, 4 + 3 + 2));
    for step in &plan.steps {
        if let Action::Apply {
            object,
            force_owned,
            ..
        } = &step.action
        {
            assert!(force_owned, "a heal takes back what our manager owned");
            let created = object.kind == "Service";
            assert_eq!(step.undo == Undo::Delete, created, "{object}");
        }
    }
}
