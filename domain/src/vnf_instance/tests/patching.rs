//! PATCH: alone, and beside a halted operation that lays values of its own over the record.

use super::*;
use crate::operation::OperationState;
use crate::operation::{CancelMode, ErrorPoint};
use crate::testing::at_point;

/// An instantiate that lays `extensions` over the record, halted before its first effect.
fn halted(extensions: &Value) -> World {
    let info = Map::from_iter([("extensions".to_owned(), extensions.clone())]);
    let mut world = World::new();
    world.run(modify(
        &json!({"extensions": {"a": "recorded", "b": "recorded"}}),
    ));
    let params = Params::Instantiate {
        flavour_id: "simple".into(),
        levels: levels(2),
        info,
    };
    world.begin(params).unwrap();
    world.go_until(at_point(ErrorPoint::PreVimControl));
    world.fail_here("broken");
    world
}

fn patch(world: &mut World, extensions: &Value) {
    world.run(modify(&json!({"extensions": extensions})));
    world.back_to_previous();
}

fn now(world: &World) -> Value {
    Value::Object(world.instance().info_now().extensions)
}

#[test]
fn what_a_request_gives_counts_while_its_operation_lasts() {
    let mut world = halted(&json!({"a": "asked"}));
    assert_eq!(now(&world), json!({"a": "asked", "b": "recorded"}));
    assert_eq!(world.instance().info.extensions["a"], "recorded");
    world.rollback().unwrap();
    assert_eq!(
        now(&world),
        json!({"a": "asked", "b": "recorded"}),
        "still, while it is undone"
    );
    world.go_on();
    assert_eq!(
        now(&world),
        json!({"a": "recorded", "b": "recorded"}),
        "dropped when undone"
    );
}

#[test]
fn it_is_kept_when_the_operation_completes_or_is_given_up() {
    let mut completed = halted(&json!({"a": "asked"}));
    completed.retry().unwrap();
    completed.go_on();
    let mut given_up = halted(&json!({"a": "asked"}));
    given_up.fail().unwrap();
    for world in [completed, given_up] {
        assert_eq!(
            Value::Object(world.instance().info.extensions.clone()),
            now(&world)
        );
        assert_eq!(now(&world), json!({"a": "asked", "b": "recorded"}));
    }
}

#[test]
fn what_a_patch_writes_wins_and_stays_whatever_becomes_of_the_operation() {
    let patched = || {
        let mut world = halted(&json!({"a": "asked", "c": "asked"}));
        patch(&mut world, &json!({"a": "patched"}));
        assert_eq!(
            now(&world),
            json!({"a": "patched", "b": "recorded", "c": "asked"})
        );
        world
    };
    let mut retried = patched();
    retried.retry().unwrap();
    retried.go_on();
    assert_eq!(
        now(&retried),
        json!({"a": "patched", "b": "recorded", "c": "asked"})
    );
    let mut undone = patched();
    undone.rollback().unwrap();
    undone.go_on();
    assert_eq!(now(&undone), json!({"a": "patched", "b": "recorded"}));
    let mut given_up = patched();
    given_up.fail().unwrap();
    assert_eq!(
        now(&given_up),
        json!({"a": "patched", "b": "recorded", "c": "asked"})
    );
}

#[test]
fn a_patch_can_remove_what_the_request_gave() {
    let mut world = halted(&json!({"a": "asked", "c": "asked"}));
    patch(&mut world, &json!({"a": null, "c": null}));
    assert_eq!(now(&world), json!({"b": "recorded"}));
    let mut world = halted(&json!({"a": "asked"}));
    world.run(modify(&json!({"extensions": null})));
    assert_eq!(now(&world), json!({}));
}

#[test]
fn a_patched_vim_that_only_the_request_named_stays_whole_after_a_rollback() {
    let vim = json!({"vim1": {"vimType": "kubernetes", "vimId": "a",
        "accessInfo": {"bearer_token": {"$secret": "old"}}}});
    let info = Map::from_iter([("vimConnectionInfo".to_owned(), vim)]);
    let mut world = World::new();
    let params = Params::Instantiate {
        flavour_id: "simple".into(),
        levels: levels(2),
        info,
    };
    world.begin(params).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    let token = json!({"vim1": {"accessInfo": {"bearer_token": {"$secret": "new"}}}});
    world.run(modify(&json!({"vimConnectionInfo": token})));
    world.back_to_previous();
    world.rollback().unwrap();
    world.go_on();
    let kept = &world.instance().info.vim_connection_info["vim1"];
    assert_eq!(kept["vimId"], "a");
    assert_eq!(kept["accessInfo"]["bearer_token"]["$secret"], "new");
}

#[test]
fn a_patch_is_applied_all_at_once_when_it_completes() {
    let mut world = World::instantiated();
    let changes = json!({"vnfInstanceName": "n", "vnfInstanceDescription": "d",
        "metadata": {"m": {"x": 1}}, "vnfConfigurableProperties": {"p": true}});
    world.begin(modify(&changes)).unwrap();
    world.go_until(at_point(ErrorPoint::NotifyCompleted));
    assert_eq!(world.instance().info, VnfInfo::default());
    let before = world.instance().patches;
    assert_eq!(world.go_on(), OperationState::Completed);
    let info = &world.instance().info;
    assert_eq!(info.vnf_instance_name.as_deref(), Some("n"));
    assert_eq!(info.vnf_instance_description.as_deref(), Some("d"));
    assert_eq!(info.metadata["m"], json!({"x": 1}));
    assert_eq!(info.vnf_configurable_properties["p"], true);
    assert_eq!(world.instance().patches, before + 1);
    world.run(modify(
        &json!({"vnfInstanceName": null, "metadata": {"m": {"y": 2}}}),
    ));
    assert_eq!(world.instance().info.vnf_instance_name, None);
    assert_eq!(world.instance().info.metadata["m"], json!({"x": 1, "y": 2}));
}

#[test]
fn a_cancelled_patch_changes_nothing() {
    for mode in [CancelMode::Graceful, CancelMode::Forceful] {
        let mut world = World::new();
        world.begin(rename()).unwrap();
        world.cancel(mode).unwrap();
        assert_eq!(world.go_on(), OperationState::RolledBack);
        assert_eq!(world.instance().info, VnfInfo::default());
        assert_eq!(
            world.instance().provisioning(),
            (Provisioning::Available, None)
        );
    }
}
