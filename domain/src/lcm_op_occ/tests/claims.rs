//! Volumes of a `StatefulSet` that is made anew: none is forgotten, none is lost.

use super::*;
use crate::operation::{Leftovers, Params};
use crate::testing::{OpStory, change_params};
use serde_json::{Map, Value, json};

/// The `StatefulSet` of the package, with these claim templates.
fn set(templates: &[&str]) -> Value {
    let templates: Vec<Value> = templates
        .iter()
        .map(|name| json!({"metadata": {"name": name}}))
        .collect();
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"volumeClaimTemplates": templates}})
}

fn replace(manifests: &mut Vec<crate::ports::Manifest>, value: Value) {
    manifests.retain(|manifest| manifest.value["kind"] != "StatefulSet");
    manifests.push(crate::testing::manifest(value));
}

/// A change from these claim templates to those, before it begins.
fn change(from: Value, to: Value) -> OpStory {
    let mut world = World::new();
    replace(&mut world.manifests, from);
    world.instantiate();
    replace(&mut world.next_manifests, to);
    world.begin(change_params(2)).unwrap();
    let mut story = op();
    story.world = world;
    story
}

/// Of what is told as kept, what is told of claims.
fn told(story: &OpStory) -> Vec<&str> {
    let residue = story.op().residue.iter().map(String::as_str);
    let mut told: Vec<&str> = residue.filter(|one| one.contains("Claim/")).collect();
    told.sort_unstable();
    told
}

const REUSED: &str = "PersistentVolumeClaim/data-db-*: volumes of StatefulSet/db are kept and used again as they are";
const LEFT: &str = "PersistentVolumeClaim/logs-db-*: volumes of StatefulSet/db are kept; it is made anew without this claim template";
const MADE: &str = "PersistentVolumeClaim/store-db-*: volumes of StatefulSet/db are kept where any were made; it was made again without this claim template";

#[test]
fn claims_of_a_set_that_a_change_makes_anew_are_told_as_kept() {
    let begun = change(set(&["data", "logs"]), set(&["data", "store"]));
    let completed = begun.clone().completed();
    assert_eq!(completed.state(), OperationState::Completed);
    assert_eq!(told(&completed), [REUSED, LEFT]);
    let undone = begun.failed_at(ErrorPoint::PostVimControl).rolled_back();
    assert_eq!(undone.state(), OperationState::RolledBack);
    assert_eq!(told(&undone), [MADE]);
}

#[test]
fn claims_are_told_also_where_the_plan_is_made_anew_when_the_old_set_is_gone() {
    let begun = change(set(&["data", "logs"]), set(&["data", "store"]));
    let mut halted = begun.until(|op| {
        op.steps.iter().any(|log| {
            log.step.action.kind() == "delete"
                && log.step.action.subject() == "StatefulSet/db"
                && matches!(log.state, StepState::Done { .. })
        })
    });
    halted.world.fail_here("broken");
    let changes = Map::from_iter([("metadata".to_owned(), json!({"site": "south"}))]);
    halted.world.run(Params::ModifyInfo { changes });
    halted.world.back_to_previous();
    let completed = halted.clone().retried();
    assert_eq!(completed.state(), OperationState::Completed);
    assert_eq!(told(&completed), [REUSED, LEFT]);
    let undone = halted
        .retried_and_failed_at(ErrorPoint::PostVimControl)
        .rolled_back();
    assert_eq!(told(&undone), [MADE]);
}

#[test]
fn claims_of_a_set_that_a_heal_or_an_instantiate_makes_anew_are_told_as_kept() {
    let drift = |world: &mut World| {
        let mut things = world.cluster.things.iter_mut();
        let db = things.find(|thing| thing.object.kind == "StatefulSet");
        db.unwrap().body = set(&["data", "logs"]);
    };
    let mut world = World::new();
    replace(&mut world.manifests, set(&["data", "store"]));
    let mut left = world.clone();
    world.instantiate();
    drift(&mut world);
    world
        .begin(Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        })
        .unwrap();
    left.begin(instantiate_params(2)).unwrap();
    left.go_until(|op| op.point == Some(ErrorPoint::PostVimControl));
    left.fail_here("broken");
    left.fail().unwrap();
    drift(&mut left);
    left.additional.leftovers = Leftovers::Replace;
    left.begin(instantiate_params(2)).unwrap();
    for world in [world, left] {
        let mut story = op();
        story.world = world;
        let completed = story.clone().completed();
        assert_eq!(completed.state(), OperationState::Completed);
        assert_eq!(told(&completed), [REUSED, LEFT]);
        let undone = story.failed_at(ErrorPoint::PostVimControl).rolled_back();
        assert_eq!(undone.state(), OperationState::RolledBack);
        assert_eq!(told(&undone), [MADE]);
    }
}

#[test]
fn a_set_that_is_only_changed_or_new_tells_of_no_claim() {
    let mut to = set(&["data"]);
    to["spec"]["template"] = json!("new");
    let changed = change(set(&["data"]), to).completed();
    assert_eq!(changed.state(), OperationState::Completed);
    assert_eq!(told(&changed), Vec::<&str>::new());
}

/// Nothing would bring back what was in them.
#[test]
fn a_set_whose_volumes_go_with_it_is_never_made_anew() {
    let mut from = set(&["data"]);
    from["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete"});
    let story = change(from.clone(), set(&["store"])).completed();
    assert_eq!(story.state(), OperationState::FailedTemp);
    assert!(!story.op().has_written());
    assert_eq!(
        story.detail(),
        "StatefulSet/db cannot be changed to what the package says, and is never made anew for what it holds: spec.volumeClaimTemplates: immutable; its persistentVolumeClaimRetentionPolicy removes its volumes with it: change that first"
    );

    let mut world = World::new();
    replace(&mut world.manifests, set(&["data"]));
    world.instantiate();
    let mut things = world.cluster.things.iter_mut();
    let db = things.find(|thing| thing.object.kind == "StatefulSet");
    from["spec"]["selector"] = json!("drifted");
    db.unwrap().body = from;
    let heal = Params::Heal {
        vnfcs: Vec::new(),
        cause: None,
    };
    assert_eq!(world.run(heal), OperationState::FailedTemp);
    assert!(!world.op().has_written());

    let mut without = set(&[]);
    without["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete"});
    let story = change(without, set(&["store"])).completed();
    assert_eq!(
        story.state(),
        OperationState::Completed,
        "it has no volumes"
    );
}
