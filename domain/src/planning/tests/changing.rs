//! What a `CHANGE_VNFPKG` applies, makes anew, removes and leaves alone.

use super::*;

fn change(world: World) -> Case {
    case(world, change_params(2))
}

#[test]
fn a_change_applies_what_differs_and_removes_the_rest_when_all_is_ready() {
    let mut steps = told(&change(World::instantiated()).plan());
    steps.sort_by_key(|step| step.split(' ').next().unwrap().parse::<u32>().unwrap());
    assert_eq!(
        steps,
        [
            "0 await-ready Deployment/web … Deployment/cache (5 objects)",
            "0 await-gone StatefulSet/db",
            "1 take-inventory Deployment/cache, Deployment/web",
            "4 apply Role/reader",
            "7 apply ConfigMap/config",
            "9 delete Service/web",
            "10 apply Service/web",
            "13 apply Deployment/web",
            "13 apply Deployment/cache",
            "15 await-ready Deployment/web … Deployment/cache (5 objects)",
            "19 delete StatefulSet/db",
        ]
    );
}

#[test]
fn what_is_made_anew_says_why_and_begins_with_the_live_number() {
    let mut world = World::instantiated();
    for manifest in &mut world.next_manifests {
        if manifest.value["kind"] == "Deployment" {
            manifest.value["spec"]["selector"] = json!("new");
        }
    }
    let mut case = change(world);
    for thing in &mut case.world.cluster.things {
        thing.replicas = thing.replicas.map(|_| 7);
    }
    let plan = case.plan();
    let web = plan.steps.iter().filter(|step| {
        let object = step.action.object();
        object.is_some_and(|object| object.to_string() == "Deployment/web")
    });
    let web: Vec<_> = web.collect();
    assert_eq!(web[0].because.as_deref(), Some("spec.selector: immutable"));
    assert!(matches!(web[0].undo, Undo::Recreate { .. }));
    let Action::Apply { replicas, .. } = &web[1].action else {
        panic!("{web:?}")
    };
    assert_eq!((*replicas, &web[1].undo), (Some(7), &Undo::Delete));
}

#[test]
fn what_does_not_differ_is_not_touched() {
    let mut world = World::instantiated();
    world.next_manifests.clone_from(&world.manifests);
    let plan = change(world).plan();
    assert_eq!(writes(&plan), Vec::<String>::new());
    assert_eq!(plan.objects.len(), 4);
    assert!(plan.objects.iter().all(|managed| managed.uid.is_some()));
}

/// Field case 66: what holds things of others is never removed with the version that names it no more.
#[test]
fn namespaces_definitions_and_volumes_of_the_old_package_are_kept_and_said() {
    let mut world = World::new();
    let kept = [
        "Namespace",
        "CustomResourceDefinition",
        "PersistentVolumeClaim",
    ];
    for kind in kept {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}});
        world.manifests.push(manifest(value));
    }
    world.run(instantiate_params(2));
    let plan = change(world).plan();
    for kind in kept {
        let name = format!("{kind}/x");
        assert!(
            plan.kept.iter().any(|k| k.starts_with(&name)),
            "{:?}",
            plan.kept
        );
        assert!(!writes(&plan).iter().any(|w| w.contains(&name)));
        assert!(plan.objects.iter().any(|o| o.object.to_string() == name));
    }
}

#[test]
fn what_holds_data_is_never_made_anew() {
    let claim = |selector: &str| {
        manifest(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"}, "spec": {"selector": selector}}))
    };
    let mut world = World::new();
    world.manifests.push(claim("a"));
    world.run(instantiate_params(2));
    world.next_manifests.push(claim("b"));
    let case = change(world);
    let refused = case.planned(&case.survey()).unwrap_err();
    assert_eq!(refused.status, 409);
    assert_eq!(
        refused.detail,
        "PersistentVolumeClaim/data cannot be changed to what the package says, and is never made anew for what it holds: spec.selector: immutable"
    );
}

/// A change that is asked for of these VDUs, or of all.
fn change_of(of: Option<Vec<String>>) -> Params {
    let mut params = change_params(2);
    let Params::ChangeVnfpkg { vdus, .. } = &mut params else {
        panic!()
    };
    *vdus = of;
    params
}

#[test]
fn vdus_that_are_not_named_stay_as_they_are() {
    let params = change_of(Some(vec!["CACHE".into()]));
    let case = case(World::instantiated(), params);
    let plan = case.plan();
    let touched = writes(&plan);
    assert!(
        !touched.iter().any(|w| w.contains("Deployment/web")),
        "{touched:?}"
    );
    let web = plan
        .objects
        .iter()
        .find(|o| o.object.to_string() == "Deployment/web");
    let Some(Body::Inline(recorded)) = web.map(|web| &web.manifest) else {
        panic!()
    };
    assert_eq!(recorded, &deployment("web"), "as the old package has it");
}

#[test]
fn a_change_after_a_scale_in_doubt_sets_the_number_of_the_level() {
    let world = scale_in_doubt();
    let set = "14 set-replicas Deployment/web".to_owned();
    // Also of a workload that the request leaves as it is.
    for vdus in [None, Some(vec!["CACHE".to_owned()])] {
        let changed = writes(&case(world.clone(), change_of(vdus)).plan());
        assert!(changed.contains(&set), "{changed:?}");
    }
}
