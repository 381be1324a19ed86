//! Seed case C: every cell of the table in DESIGN 4.3, with what users read, as a golden file.

use super::*;
use crate::lcm_op_occ::VnfLcmOpOcc;
use crate::operation::ErrorPoint;
use crate::testing::at_point;
use crate::testing::golden::assert_golden;
use std::fmt::Write;

fn started(mut world: World, params: Params) -> World {
    world.begin(params).unwrap();
    world
}

fn until(world: World, params: Params, holds: impl Fn(&VnfLcmOpOcc) -> bool) -> World {
    let mut world = started(world, params);
    world.go_until(holds);
    world
}

/// Halted after all its writes.
fn halted(world: World, params: Params) -> World {
    let mut world = until(world, params, at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world
}

fn undoing(world: World, params: Params) -> World {
    let mut world = halted(world, params);
    world.rollback().unwrap();
    world
}

fn undone(world: World, params: Params) -> World {
    let mut world = undoing(world, params);
    world.go_on();
    world
}

fn given_up(world: World, params: Params) -> World {
    let mut world = halted(world, params);
    world.fail().unwrap();
    world
}

/// Given up before its first effect.
fn given_up_early(world: World, params: Params) -> World {
    let mut world = until(world, params, at_point(ErrorPoint::PreVimControl));
    world.fail_here("broken");
    world.fail().unwrap();
    world
}

fn beside(world: World) -> World {
    started(world, rename())
}

/// Each situation of an instance, by a sentence.
fn situations() -> Vec<(&'static str, World)> {
    let mut all = not_instantiated();
    all.extend(scaled_and_healed());
    all.extend(changed());
    all.extend(modified());
    all.extend(terminated());
    all
}

fn make() -> Params {
    instantiate_params(2)
}

fn fresh() -> World {
    World::new()
}

fn active() -> World {
    World::instantiated()
}

fn not_instantiated() -> Vec<(&'static str, World)> {
    vec![
        ("created", fresh()),
        ("instantiate, STARTING", started(fresh(), make())),
        (
            "instantiate, PROCESSING",
            until(fresh(), make(), at_point(ErrorPoint::PreVimControl)),
        ),
        ("instantiate, FAILED_TEMP", halted(fresh(), make())),
        (
            "instantiate, FAILED_TEMP, PATCH under way",
            beside(halted(fresh(), make())),
        ),
        ("instantiate, ROLLING_BACK", undoing(fresh(), make())),
        ("instantiate, ROLLED_BACK", undone(fresh(), make())),
        ("instantiate, FAILED, leftovers", given_up(fresh(), make())),
        (
            "instantiate, FAILED, no leftovers",
            given_up_early(fresh(), make()),
        ),
        ("instantiate again over leftovers, ROLLED_BACK", {
            undone(given_up(fresh(), make()), make())
        }),
        ("terminate of leftovers, PROCESSING", {
            until(
                given_up(fresh(), make()),
                terminate(),
                at_point(ErrorPoint::PreVimControl),
            )
        }),
        (
            "terminate of leftovers, FAILED_TEMP",
            halted(given_up(fresh(), make()), terminate()),
        ),
        (
            "terminate of leftovers, FAILED",
            given_up(given_up(fresh(), make()), terminate()),
        ),
    ]
}

fn scaled_and_healed() -> Vec<(&'static str, World)> {
    vec![
        ("instantiated", active()),
        (
            "scale, PROCESSING",
            until(active(), scale(3), at_point(ErrorPoint::PreVimControl)),
        ),
        ("scale, FAILED_TEMP", halted(active(), scale(3))),
        (
            "scale, FAILED_TEMP, PATCH under way",
            beside(halted(active(), scale(3))),
        ),
        ("scale, ROLLING_BACK", undoing(active(), scale(3))),
        ("scale, ROLLED_BACK", undone(active(), scale(3))),
        ("scale, FAILED", given_up(active(), scale(3))),
        ("scale after one that was given up, PROCESSING", {
            until(
                given_up(active(), scale(3)),
                scale(4),
                at_point(ErrorPoint::PreVimControl),
            )
        }),
        ("heal, FAILED_TEMP", halted(active(), heal())),
        ("heal, FAILED", given_up(active(), heal())),
    ]
}

fn changed() -> Vec<(&'static str, World)> {
    vec![
        (
            "change of the package, PROCESSING",
            until(active(), change(), at_point(ErrorPoint::PreVimControl)),
        ),
        (
            "change of the package, FAILED_TEMP",
            halted(active(), change()),
        ),
        (
            "change of the package, ROLLING_BACK",
            undoing(active(), change()),
        ),
        (
            "change of the package, ROLLED_BACK",
            undone(active(), change()),
        ),
        (
            "change of the package, FAILED",
            given_up(active(), change()),
        ),
        ("change of the package, COMPLETED", {
            let mut world = active();
            world.run(change());
            world
        }),
    ]
}

fn modified() -> Vec<(&'static str, World)> {
    vec![
        ("modify, PROCESSING", started(active(), rename())),
        (
            "modify after a failed scale, PROCESSING",
            started(given_up(active(), scale(3)), rename()),
        ),
        (
            "modify of a created one, PROCESSING",
            started(fresh(), rename()),
        ),
    ]
}

fn terminated() -> Vec<(&'static str, World)> {
    vec![
        (
            "terminate, PROCESSING",
            until(active(), terminate(), at_point(ErrorPoint::PreVimControl)),
        ),
        ("terminate, FAILED_TEMP", halted(active(), terminate())),
        ("terminate, ROLLING_BACK", undoing(active(), terminate())),
        ("terminate, ROLLED_BACK", undone(active(), terminate())),
        ("terminate, FAILED", given_up(active(), terminate())),
        ("terminated", {
            let mut world = active();
            world.run(terminate());
            world
        }),
    ]
}

fn requests() -> Vec<(&'static str, Params)> {
    vec![
        ("PATCH", rename()),
        ("PATCH vnfdId", modify(&json!({"vnfdId": "vnfd-2"}))),
        ("instantiate", instantiate_params(2)),
        ("scale", scale(5)),
        ("scale_to_level", scale_to_level(5)),
        ("heal", heal()),
        ("change_vnfpkg", change()),
        ("terminate", terminate()),
    ]
}

#[test]
fn every_request_in_every_situation_is_as_the_golden_table_says() {
    let mut table = String::from("# situation | request | answer\n");
    for (situation, world) in situations() {
        let (word, target) = world.instance().provisioning();
        let target = target.map_or("none".to_owned(), |target| target.to_string());
        writeln!(table, "\n{situation}: {word}, target {target}").unwrap();
        for (request, params) in requests() {
            let answer = match world.clone().begin(params) {
                Ok(()) => "202".to_owned(),
                Err(refused) => format!("409 {refused}"),
            };
            writeln!(table, "  {request}: {answer}").unwrap();
        }
        let answer = match world.clone().delete() {
            Ok(()) => "204".to_owned(),
            Err(refused) => format!("409 {refused}"),
        };
        writeln!(table, "  DELETE: {answer}").unwrap();
    }
    assert_golden("provisioning.txt", &table);
}

#[test]
fn links_list_exactly_what_is_accepted() {
    for (situation, world) in situations() {
        for (request, params) in requests().into_iter().filter(|(r, _)| *r != "PATCH vnfdId") {
            let accepts = world.instance().accepts(params.operation());
            let began = world.clone().begin(params).is_ok();
            assert_eq!(accepts, began, "{request} when {situation}");
        }
    }
}

#[test]
fn a_refusal_changes_nothing() {
    for (situation, world) in situations() {
        for (request, params) in requests() {
            let mut tried = world.clone();
            if tried.begin(params).is_err() {
                assert_eq!(
                    tried.instance(),
                    world.instance(),
                    "{request} when {situation}"
                );
            }
        }
    }
}

#[test]
fn a_target_is_shown_only_while_something_moves() {
    for (situation, world) in situations() {
        let (word, target) = world.instance().provisioning();
        let moves = matches!(
            word,
            Provisioning::Deploying | Provisioning::Updating | Provisioning::Deleting
        );
        assert_eq!(target.is_some(), moves, "{situation}: {word}");
    }
}

#[test]
fn what_is_deleted_is_not_found() {
    let mut world = World::new();
    world.delete().unwrap();
    assert_eq!(world.delete().unwrap_err(), "there is no such VNF instance");
    assert_eq!(
        world.begin(rename()).unwrap_err(),
        "there is no such VNF instance"
    );
}

#[test]
fn steering_waits_while_a_patch_runs_beside() {
    let mut world = beside(halted(World::new(), instantiate_params(2)));
    world.back_to_previous();
    for refused in [
        world.clone().retry(),
        world.clone().rollback(),
        world.clone().fail(),
    ] {
        assert!(
            refused
                .unwrap_err()
                .contains("is changing the VNF instance")
        );
    }
    world.back_to_previous();
    world.go_on();
    world.back_to_previous();
    assert!(world.clone().retry().is_ok() && world.clone().rollback().is_ok());
    assert!(world.fail().is_ok());
}

/// The story of seed case C: a wrong token, mended by a PATCH, retried, with no other call in between.
#[test]
fn a_failed_instantiate_is_mended_by_a_patch_and_a_retry() {
    let vim = |token: &str| {
        json!({"vim1": {"vimType": "kubernetes", "interfaceInfo": {"endpoint": "https://a"},
            "accessInfo": {"bearer_token": {"$secret": token}}}})
    };
    let info = Map::from_iter([("vimConnectionInfo".to_owned(), vim("wrong"))]);
    let params = Params::Instantiate {
        flavour_id: "simple".into(),
        levels: levels(2),
        info,
    };
    let mut world = until(World::new(), params, at_point(ErrorPoint::VnfConfigStart));
    world.fail_here("401");
    assert_eq!(
        world.instance().provisioning(),
        (Provisioning::DeployFail, None)
    );
    let mended = json!({"vimConnectionInfo": {"vim1": {"accessInfo": {"bearer_token": {"$secret": "right"}}}}});
    world.run(modify(&mended));
    let now = Value::Object(world.instance().info_now().vim_connection_info);
    assert_eq!(now, vim("right"));
    world.back_to_previous();
    world.retry().unwrap();
    world.go_on();
    assert_eq!(
        world.instance().provisioning(),
        (Provisioning::Active, None)
    );
    assert_eq!(
        Value::Object(world.instance().info.vim_connection_info.clone()),
        vim("right")
    );
}
