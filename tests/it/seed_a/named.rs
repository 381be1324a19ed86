//! The rows A1 to A8, each under its own name, on both databases.

use super::case::{Case, Doing, Way};
use super::matrix::all;
use crate::operations::instantiate;
use crate::{clusters, hooks};
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use serde_json::json;

async fn on_both(cases: &[Case]) {
    all(World::simple().await, cases).await;
    let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await else {
        return;
    };
    all(World::on(ground).await, cases).await;
}

fn cases(doing: &[Doing], points: &[u8], way: Way) -> Vec<Case> {
    doing
        .iter()
        .flat_map(|doing| {
            points.iter().map(|point| Case {
                doing: *doing,
                point: *point,
                way,
            })
        })
        .collect()
}

async fn a1(world: World) {
    let vnfd = world.onboard(&super::case::small()).await;
    let id = world.create(&vnfd).await;
    let fault = json!([{"at": {"errorPoint": 4}, "action": "fail", "times": 3}]);
    world.faults(&fault).await;
    let op = world.begin(&id, "instantiate", &instantiate(&world)).await;
    for _ in 0..2 {
        world.ends(&op, "FAILED_TEMP").await;
        world.steer(&op, "retry").await.is(202);
    }
    let halted = world.ends(&op, "FAILED_TEMP").await;
    assert_eq!(halted["tries"].as_array().expect("tries").len(), 3);
    world.steer(&op, "rollback").await.is(202);
    world.ends(&op, "ROLLED_BACK").await;
    crate::operations::nothing_left(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_fail_retry_fail_retry_rollback_is_a_legal_history() {
    a1(World::simple().await).await;
    let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await else {
        return;
    };
    a1(World::on(ground).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a2_a_scale_out_is_retried_with_nothing_but_its_plan() {
    on_both(&cases(
        &[Doing::ScaleOut],
        &[1, 2, 3, 4, 5, 6, 7],
        Way::Retry,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_a_terminate_is_retried_after_a_failure_at_every_point() {
    on_both(&cases(
        &[Doing::Terminate],
        &[0, 1, 2, 3, 4, 5, 6, 7],
        Way::Retry,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a4_resource_changes_after_any_number_of_retries_are_those_of_a_run_that_never_failed() {
    on_both(&cases(
        &[Doing::ScaleOut, Doing::Instantiate],
        &[4, 5],
        Way::RetryTwice,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a5_an_operation_that_failed_before_its_first_effect_is_retried_like_any_other() {
    on_both(&cases(
        &[Doing::Instantiate, Doing::HealOne, Doing::Terminate],
        &[1],
        Way::RetryTwice,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a6_a_removal_of_what_is_gone_is_done_and_nothing_else_goes_in_its_place() {
    on_both(&cases(
        &[Doing::ScaleIn, Doing::HealOne],
        &[2, 4, 5],
        Way::Retry,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a7_a_creation_of_what_is_already_ours_is_done() {
    on_both(&cases(
        &[Doing::Instantiate],
        &[3, 4, 5, 6],
        Way::RetryTwice,
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a8_a_retry_installs_the_third_worker_alone_and_uses_the_vim() {
    hooks::the_third_worker_fails(World::simple().await).await;
    let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await else {
        return;
    };
    hooks::the_third_worker_fails(World::on(ground).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a8_after_a_failure_at_error_point_6_nothing_is_installed_or_registered_again() {
    hooks::all_is_done_when_it_fails(World::simple().await).await;
    let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await else {
        return;
    };
    hooks::all_is_done_when_it_fails(World::on(ground).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a8_on_the_real_cluster() {
    let Some(world) = clusters::real().await else {
        return;
    };
    hooks::the_third_worker_fails(world).await;
    let Some(world) = clusters::real().await else {
        return;
    };
    hooks::all_is_done_when_it_fails(world).await;
}
