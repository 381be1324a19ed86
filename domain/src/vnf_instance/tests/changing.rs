//! What a change of the package means for the record, whatever becomes of it.

use super::*;
use crate::operation::{ErrorPoint, OperationState};
use crate::testing::{at_point, next_levels, next_product};

fn objects(world: &World) -> Vec<String> {
    let info = world.instance().instantiated.as_ref().unwrap();
    let mut names: Vec<String> = info.objects.iter().map(|o| o.object.to_string()).collect();
    names.sort();
    names
}

fn leftovers(world: &World) -> Vec<String> {
    let left = world.instance().leftovers.iter();
    left.map(|o| o.object.to_string()).collect()
}

fn packages(world: &World) -> Vec<String> {
    let packages = world.instance().packages();
    packages.map(ToString::to_string).collect()
}

fn halted() -> World {
    let mut world = World::instantiated();
    world.begin(change()).unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    world.fail_here("broken");
    world
}

const BEFORE: [&str; 4] = [
    "ConfigMap/config",
    "Deployment/web",
    "Service/web",
    "StatefulSet/db",
];

#[test]
fn a_completed_change_is_a_vnf_of_the_new_package() {
    let mut world = World::instantiated();
    assert_eq!(world.run(change()), OperationState::Completed);
    let instance = world.instance();
    assert_eq!(instance.product, next_product());
    let info = instance.instantiated.as_ref().unwrap();
    assert_eq!(info.levels, next_levels(2));
    let mut vdus: Vec<&str> = info.vnfcs.iter().map(|v| v.vdu_id.as_str()).collect();
    vdus.dedup();
    assert_eq!(vdus, ["CACHE", "WEB"]);
    assert_eq!(
        objects(&world),
        [
            "ConfigMap/config",
            "Deployment/cache",
            "Deployment/web",
            "Role/reader",
            "Service/web"
        ]
    );
    assert_eq!(world.cluster.names(), objects(&world));
    for managed in &info.objects {
        let there = world.cluster.thing(&managed.object.to_string()).unwrap();
        assert_eq!(managed.uid.as_ref(), Some(&there.uid), "{}", managed.object);
    }
}

#[test]
fn both_packages_are_in_use_while_it_is_changed() {
    let mut world = World::instantiated();
    assert_eq!(packages(&world), ["pkg-1"]);
    world.begin(change()).unwrap();
    assert_eq!(packages(&world), ["pkg-1", "pkg-2"]);
    let mut completed = world.clone();
    completed.go_on();
    assert_eq!(packages(&completed), ["pkg-2"]);
    let mut failed = halted();
    assert_eq!(packages(&failed), ["pkg-1", "pkg-2"]);
    let mut undone = failed.clone();
    undone.rollback().unwrap();
    undone.go_on();
    assert_eq!(packages(&undone), ["pkg-1"]);
    failed.fail().unwrap();
    assert_eq!(packages(&failed), ["pkg-1"]);
}

#[test]
fn what_a_given_up_change_made_is_listed_and_removed_by_a_heal() {
    let mut world = halted();
    world.fail().unwrap();
    assert_eq!(world.instance().product, crate::testing::product());
    assert_eq!(objects(&world), BEFORE);
    let mut strays = leftovers(&world);
    strays.sort();
    assert_eq!(strays, ["Deployment/cache", "Role/reader"]);

    let mut healed = world.clone();
    assert_eq!(healed.run(heal()), OperationState::Completed);
    assert_eq!(healed.cluster.names(), BEFORE);
    assert_eq!(leftovers(&healed), Vec::<String>::new());
    let config = &healed.cluster.thing("ConfigMap/config").unwrap().body;
    assert_eq!(config["data"]["a"], "1", "as the record says");
    let service = &healed.cluster.thing("Service/web").unwrap().body;
    assert_eq!(
        service["spec"],
        json!({}),
        "what cannot be changed back is made anew"
    );

    let mut terminated = world.clone();
    assert_eq!(terminated.run(terminate()), OperationState::Completed);
    assert_eq!(terminated.cluster.names(), Vec::<String>::new());
    assert_eq!(leftovers(&terminated), Vec::<String>::new());

    assert_eq!(world.run(change()), OperationState::Completed);
    assert_eq!(world.cluster.names(), objects(&world));
    assert_eq!(leftovers(&world), Vec::<String>::new());
}

#[test]
fn a_heal_that_removes_strays_can_be_undone() {
    let mut world = halted();
    world.fail().unwrap();
    let before = world.cluster.names();
    world.begin(heal()).unwrap();
    world.go_until(at_point(ErrorPoint::InternalProcessing));
    world.fail_here("broken");
    assert_eq!(world.cluster.names(), BEFORE);
    world.rollback().unwrap();
    assert_eq!(world.go_on(), OperationState::RolledBack);
    assert_eq!(world.cluster.names(), before);
    assert_eq!(leftovers(&world).len(), 2, "they are known as before");
}

#[test]
fn what_the_request_lays_over_goes_when_it_is_undone() {
    let mut world = World::instantiated();
    let info = json!({"extensions": {"mtu": 1500}});
    let Params::ChangeVnfpkg {
        product, levels, ..
    } = change()
    else {
        panic!()
    };
    world
        .begin(Params::ChangeVnfpkg {
            product,
            levels,
            info: info.as_object().cloned().unwrap(),
            vdus: None,
        })
        .unwrap();
    world.go_until(at_point(ErrorPoint::PostVimControl));
    assert_eq!(world.instance().info_now().extensions["mtu"], 1500);
    let mut undone = world.clone();
    undone.fail_here("broken");
    undone.rollback().unwrap();
    undone.go_on();
    assert_eq!(undone.instance().info_now().extensions, Map::new());
    world.go_on();
    assert_eq!(world.instance().info.extensions["mtu"], 1500);
    let told = world.op().changed_info.clone().unwrap();
    assert_eq!(told["vnfdId"], "vnfd-2");
    assert_eq!(told["extensions"], json!({"mtu": 1500}));
}
