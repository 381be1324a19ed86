//! Plans: every choice is made before the first write, and the choices are these.

mod loss;

use super::*;
use crate::lcm_op_occ::plan::{Action, Plan, PreState, Undo};
use crate::operation::{AdditionalParams, Levels, Operation, Params};
use crate::ports::{KindFacts, Survey, SurveyRequest};
use crate::problem::Problem;
use crate::testing::{
    World, at_point, change_params, deployment, instantiate_params, levels, manifest,
};
use serde_json::json;

/// An operation that is about to be planned.
struct Case {
    world: World,
    recorded: Vec<Value>,
}

fn case(mut world: World, params: Params) -> Case {
    world.begin(params).unwrap();
    world.go_until(at_point(crate::operation::ErrorPoint::VnfConfigStart));
    let objects = world
        .instance()
        .instantiated
        .iter()
        .flat_map(|info| &info.objects);
    let recorded = objects
        .map(|managed| match &managed.manifest {
            Body::Inline(value) => value.clone(),
            Body::Blob(_) => Value::Null,
        })
        .collect();
    Case { world, recorded }
}

impl Case {
    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            op: self.world.op(),
            instance: self.world.instance(),
            manifests: self.world.manifests_of(self.world.op()),
            recorded: &self.recorded,
            hooks: &[],
        }
    }

    fn request(&self) -> SurveyRequest {
        survey_request(&self.inputs())
    }

    fn survey(&self) -> Survey {
        self.world.cluster.survey(&self.request())
    }

    fn planned(&self, survey: &Survey) -> Result<Plan, Problem> {
        plan(&self.inputs(), survey, &mut |value| {
            Body::Inline(value.clone())
        })
    }

    fn plan(&self) -> Plan {
        self.planned(&self.survey()).unwrap()
    }
}

/// `wave kind subject` of the steps.
fn told(plan: &Plan) -> Vec<String> {
    let one = |s: &crate::lcm_op_occ::plan::Step| {
        format!("{} {} {}", s.wave, s.action.kind(), s.action.subject())
    };
    plan.steps.iter().map(one).collect()
}

/// The same without the settling steps.
fn writes(plan: &Plan) -> Vec<String> {
    told(plan)
        .into_iter()
        .filter(|t| !t.contains("await") && !t.contains("inventory"))
        .collect()
}

fn terminate(forceful: bool) -> Params {
    Params::Terminate {
        forceful,
        graceful_timeout_s: None,
    }
}

fn heal(vnfcs: Vec<String>) -> Params {
    Params::Heal { vnfcs, cause: None }
}

fn with(additional: AdditionalParams, mut world: World) -> World {
    world.additional = additional;
    world
}

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

#[test]
fn a_scale_sets_only_the_numbers_that_change() {
    let scale = |web| Params::ScaleToLevel {
        levels: levels(web),
    };
    let plan = case(World::instantiated(), scale(4)).plan();
    assert_eq!(writes(&plan), ["0 set-replicas Deployment/web"]);
    assert_eq!(plan.steps[0].undo, Undo::Replicas { from: 2 });
    let same = case(World::instantiated(), scale(2)).plan();
    assert_eq!(writes(&same), Vec::<String>::new());
    assert_eq!(told(&same).len(), 1, "the pods are counted all the same");
}

#[test]
fn a_scale_reads_the_live_number_not_the_recorded_one() {
    let mut world = World::instantiated();
    let object = world
        .cluster
        .thing("Deployment/web")
        .unwrap()
        .object
        .clone();
    world.cluster.perform(&Action::SetReplicas {
        object,
        from: 2,
        to: 5,
    });
    let plan = case(world, Params::ScaleToLevel { levels: levels(3) }).plan();
    assert_eq!(plan.steps[0].undo, Undo::Replicas { from: 5 });
}

#[test]
fn a_scale_asks_only_for_what_it_changes() {
    let case = case(
        World::instantiated(),
        Params::ScaleToLevel { levels: levels(4) },
    );
    let request = case.request();
    let scaled: Vec<String> = request.scaled.iter().map(ToString::to_string).collect();
    assert_eq!(scaled, ["Deployment/web"]);
    assert_eq!(request.reads.len(), 1);
    assert!(request.skip_dry_run && request.items.is_empty());
}

#[test]
fn a_scale_of_what_is_gone_or_has_no_replicas_is_refused_before_the_first_write() {
    let mut world = World::instantiated();
    world.cluster.take_away("Deployment/web");
    let case1 = case(world, Params::ScaleToLevel { levels: levels(4) });
    let gone = case1.planned(&case1.survey()).unwrap_err();
    assert_eq!(gone.status, 409);
    assert!(
        gone.detail.contains("heal the VNF instance first"),
        "{}",
        gone.detail
    );
    let case2 = case(
        World::instantiated(),
        Params::ScaleToLevel { levels: levels(4) },
    );
    let mut survey = case2.survey();
    if let PreState::Ours { replicas, .. } = &mut survey.reads[0].pre {
        *replicas = None;
    }
    let refused = case2.planned(&survey).unwrap_err();
    assert_eq!(
        refused.detail,
        "Deployment/web cannot be scaled: its kind has no replicas"
    );
}

#[test]
fn a_scale_in_doubt_sets_all_numbers() {
    let mut world = World::instantiated();
    world
        .begin(Params::ScaleToLevel { levels: levels(4) })
        .unwrap();
    world.go_until(at_point(crate::operation::ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.fail().unwrap();
    let mut order = writes(&case(world.clone(), Params::ScaleToLevel { levels: levels(2) }).plan());
    order.sort();
    assert_eq!(
        order,
        [
            "0 set-replicas Deployment/web",
            "0 set-replicas StatefulSet/db"
        ]
    );
    let healed = writes(&case(world, heal(Vec::new())).plan());
    assert!(
        healed.contains(&"14 set-replicas Deployment/web".to_owned()),
        "{healed:?}"
    );
}

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

#[test]
fn a_plan_names_its_cluster_and_the_pods_that_there_were() {
    let case = case(World::instantiated(), terminate(false));
    let plan = case.plan();
    assert_eq!(plan.cluster_uid, "cluster-1");
    assert_eq!(plan.inventory, case.world.instance().vnfcs());
    let other = Survey {
        cluster_uid: "cluster-2".into(),
        ..case.survey()
    };
    let refused = case.planned(&other).unwrap_err();
    assert_eq!(refused.title.as_deref(), Some("Another cluster"));
    assert!(refused.detail.contains("cluster-1") && refused.detail.contains("cluster-2"));
}

#[test]
fn objects_without_a_namespace_go_where_the_request_or_the_record_says() {
    let case1 = case(World::new(), instantiate_params(1));
    assert_eq!(case1.inputs().namespace(), "default");
    let named = AdditionalParams {
        namespace: Some("telco".into()),
        ..Default::default()
    };
    let mut world = with(named, World::new());
    let case2 = case(world.clone(), instantiate_params(1));
    assert_eq!(case2.inputs().namespace(), "telco");
    world.run(instantiate_params(1));
    world.additional = AdditionalParams::default();
    assert_eq!(case(world, terminate(false)).inputs().namespace(), "telco");
}

#[test]
fn autoscalers_of_a_package_name_what_they_target() {
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
    let found = autoscaled(&[manifest(hpa), manifest(deployment("web"))]);
    assert_eq!(found, [("Deployment/web".to_owned(), "h".to_owned())]);
}

#[test]
fn every_operation_has_a_plan_of_its_kind() {
    let none = Levels::default();
    for (params, world) in [
        (instantiate_params(1), World::new()),
        (
            Params::ScaleToLevel { levels: levels(3) },
            World::instantiated(),
        ),
        (heal(Vec::new()), World::instantiated()),
        (terminate(true), World::instantiated()),
    ] {
        let operation = params.operation();
        let plan = case(world, params).plan();
        let after = plan.levels.clone().unwrap_or_default();
        assert_eq!(
            after == none,
            operation == Operation::Terminate,
            "{operation}"
        );
    }
}

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
    let mut world = World::instantiated();
    world
        .begin(Params::ScaleToLevel { levels: levels(4) })
        .unwrap();
    world.go_until(at_point(crate::operation::ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.fail().unwrap();
    let set = "14 set-replicas Deployment/web".to_owned();
    // Also of a workload that the request leaves as it is.
    for vdus in [None, Some(vec!["CACHE".to_owned()])] {
        let changed = writes(&case(world.clone(), change_of(vdus)).plan());
        assert!(changed.contains(&set), "{changed:?}");
    }
}
