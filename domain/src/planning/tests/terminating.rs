//! What a TERMINATE removes, in which order, and what it leaves.

use super::*;

#[test]
fn a_terminate_goes_backwards_and_keeps_volumes_and_definitions() {
    let mut world = World::new();
    let claim =
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "widgets"}});
    let widget =
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}});
    world
        .manifests
        .extend([claim, definition, widget].map(manifest));
    world.instantiate();
    let plan = case(world.clone(), terminate(false)).plan();
    let mut order = writes(&plan);
    order.sort();
    assert_eq!(
        order,
        [
            "0 delete Widget/w",
            "3 delete Deployment/web",
            "3 delete StatefulSet/db",
            "4 delete Service/web",
            "5 delete ConfigMap/config",
        ]
    );
    let mut kept = plan.kept.clone();
    kept.sort();
    assert_eq!(
        kept,
        [
            "CustomResourceDefinition/widgets: kept, for custom resources of others would go with it",
            "PersistentVolumeClaim/data: volumes are kept unless cairn.deleteVolumes is true",
        ]
    );
    let volumes = AdditionalParams {
        delete_volumes: true,
        ..Default::default()
    };
    let plan = case(with(volumes, world), terminate(true)).plan();
    assert!(writes(&plan).contains(&"5 delete PersistentVolumeClaim/data".to_owned()));
    for step in &plan.steps {
        match &step.action {
            Action::Delete { grace_s, uid, .. } => {
                assert_eq!((*grace_s, uid.is_some()), (Some(0), true));
                assert!(matches!(step.undo, Undo::Recreate { .. }));
            }
            Action::AwaitGone { volumes, .. } => assert!(volumes),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_terminate_leaves_alone_what_belongs_to_others_and_waits_for_what_is_gone() {
    let mut world = World::instantiated();
    world.cluster.take_away("Service/web");
    world.cluster.take_away("ConfigMap/config");
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}});
    world.cluster.put_foreign(&foreign);
    let plan = case(world, terminate(false)).plan();
    let mut order = writes(&plan);
    order.sort();
    assert_eq!(
        order,
        ["0 delete Deployment/web", "0 delete StatefulSet/db"]
    );
    let Some(Action::AwaitGone { objects, .. }) = plan.steps.last().map(|s| &s.action) else {
        panic!()
    };
    let mut awaited: Vec<_> = objects
        .iter()
        .map(|(o, uid)| (o.to_string(), uid.is_some()))
        .collect();
    awaited.sort();
    let expected = [
        ("Deployment/web", true),
        ("Service/web", false),
        ("StatefulSet/db", true),
    ];
    assert_eq!(
        awaited,
        expected.map(|(name, known)| (name.to_owned(), known))
    );
}
