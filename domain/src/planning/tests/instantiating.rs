//! What an INSTANTIATE applies, in which order, and how each of it is undone.

use super::*;

#[test]
fn an_instantiate_applies_in_waves_by_kind() {
    let mut world = World::new();
    let widget =
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "widgets"}});
    world
        .manifests
        .extend([widget, hpa, account, definition].map(manifest));
    let mut order = writes(&case(world, instantiate_params(2)).plan());
    order.sort();
    assert_eq!(
        order,
        [
            "1 apply CustomResourceDefinition/widgets",
            "2 apply ServiceAccount/s",
            "3 apply ConfigMap/config",
            "4 apply Service/web",
            "5 apply Deployment/web",
            "5 apply StatefulSet/db",
            "6 apply HorizontalPodAutoscaler/h",
            "8 apply Widget/w",
        ]
    );
}

#[test]
fn manifests_that_are_named_are_applied_in_their_order_and_removed_the_other_way_round() {
    let named = AdditionalParams {
        def_files: Some(vec!["a".into()]),
        ..Default::default()
    };
    let mut world = with(named, World::new());
    let case1 = case(world.clone(), instantiate_params(1));
    let order = [
        "Deployment/web",
        "ConfigMap/config",
        "StatefulSet/db",
        "Service/web",
    ];
    let applied: Vec<String> = (1..)
        .zip(order)
        .map(|(wave, name)| format!("{wave} apply {name}"))
        .collect();
    assert_eq!(writes(&case1.plan()), applied);
    world.run(instantiate_params(1));
    let mut removed = writes(&case(world, terminate(false)).plan());
    removed.sort();
    let expected: Vec<String> = (0..)
        .zip(order.iter().rev())
        .map(|(wave, name)| format!("{wave} delete {name}"))
        .collect();
    assert_eq!(removed, expected);
}

#[test]
fn an_instantiate_gives_each_workload_the_replicas_of_its_level() {
    let plan = case(World::new(), instantiate_params(3)).plan();
    for step in &plan.steps {
        if let Action::Apply {
            object,
            replicas,
            force_owned,
            ..
        } = &step.action
        {
            let expected = match object.to_string().as_str() {
                "Deployment/web" => Some(3),
                "StatefulSet/db" => Some(1),
                _ => None,
            };
            assert_eq!((*replicas, *force_owned), (expected, false), "{object}");
        }
    }
    assert_eq!(plan.levels, Some(levels(3)));
    assert_eq!(plan.workloads.len(), 2);
    assert_eq!(plan.objects.len(), 4);
}

#[test]
fn undo_is_planned_by_what_was_there() {
    let mut case = case(World::new(), instantiate_params(1));
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "widgets"}});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "metadata": {"name": "r"}});
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"}});
    case.world.manifests = [
        deployment("web"),
        deployment("old"),
        definition,
        review,
        binding,
    ]
    .into_iter()
    .map(manifest)
    .collect();
    let mut survey = case.survey();
    let before = Body::Inline(json!({"kind": "Deployment", "spec": {"replicas": 7}}));
    survey.items[1].pre = PreState::Ours {
        uid: crate::object::Uid("u".into()),
        operation_id: None,
        body: before.clone(),
        deleting: false,
        failed: false,
        replicas: Some(7),
    };
    survey.items[4].kind = KindFacts {
        create_only: true,
        scalable: false,
    };
    let plan = case.planned(&survey).unwrap();
    let undo: Vec<&Undo> = plan.steps.iter().map(|step| &step.undo).take(5).collect();
    assert_eq!(undo[0], &Undo::Delete);
    assert_eq!(undo[1], &Undo::Restore { body: before });
    assert!(
        matches!(undo[2], Undo::Impossible { .. }),
        "definitions are never deleted"
    );
    assert_eq!(undo[3], &Undo::Nothing, "a review leaves nothing");
    assert!(matches!(undo[4], Undo::Impossible { why } if why == "Binding can only be created"));
    // What can only be created is none of the VNF's objects.
    assert_eq!(plan.objects.len(), 3);
    let waves: Vec<u32> = plan.steps[3..5].iter().map(|step| step.wave).collect();
    assert!(
        waves.iter().all(|wave| *wave >= 1),
        "nothing is made before leftovers are removed"
    );
}

#[test]
fn what_cannot_be_changed_in_place_is_replaced_and_undone_the_other_way_round() {
    let case = case(World::new(), instantiate_params(1));
    let mut survey = case.survey();
    survey.items[0].needs_recreate = Some("spec.selector is immutable".into());
    survey.items[0].pre = PreState::Ours {
        uid: crate::object::Uid("old".into()),
        operation_id: None,
        body: Body::Inline(deployment("web")),
        deleting: false,
        failed: false,
        replicas: Some(1),
    };
    let plan = case.planned(&survey).unwrap();
    assert_eq!(
        told(&plan)[..2],
        ["0 delete Deployment/web", "5 apply Deployment/web"]
    );
    // The number of replicas is restored too, whoever had set it.
    let mut before = deployment("web");
    before["spec"]["replicas"] = 1.into();
    let body = Body::Inline(before);
    assert_eq!(plan.steps[0].undo, Undo::Recreate { body });
    assert_eq!(plan.steps[1].undo, Undo::Delete);
    assert_eq!(plan.objects[0].uid, None, "the new one has another UID");
}
