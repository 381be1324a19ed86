//! Plans: every choice is made before the first write, and the choices are these.

mod changing;
mod healing;
mod instantiating;
mod loss;
mod scaling;
mod terminating;

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

/// An instance whose scale to 4 was given up when the number was set.
fn scale_in_doubt() -> World {
    let mut world = World::instantiated();
    world
        .begin(Params::ScaleToLevel { levels: levels(4) })
        .unwrap();
    world.go_until(at_point(crate::operation::ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world.fail().unwrap();
    world
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
