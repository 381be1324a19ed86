//! Which numbers a SCALE sets, and from what it reads them.

use super::*;

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

/// An autoscaler may target any other workload: its number is none of this operation's.
#[test]
fn a_scale_in_doubt_sets_the_number_of_the_workload_in_doubt_and_of_no_other() {
    let world = scale_in_doubt();
    let scaled = case(world.clone(), Params::ScaleToLevel { levels: levels(2) });
    assert_eq!(writes(&scaled.plan()), ["0 set-replicas Deployment/web"]);
    let asked = scaled.request().scaled;
    let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
    assert_eq!(asked, ["Deployment/web"]);
    let healed = writes(&case(world, heal(Vec::new())).plan());
    let set: Vec<&String> = healed
        .iter()
        .filter(|w| w.contains("set-replicas"))
        .collect();
    assert_eq!(set, ["14 set-replicas Deployment/web"]);
}
