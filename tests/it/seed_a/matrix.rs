//! The matrix: all operations, all points, all ways.

use super::case::{Case, Doing, Ready, Way, next, small};
use cairn_tests::place::Place;
use cairn_tests::world::{Ground, Kind, World};
use futures::{FutureExt as _, StreamExt as _};
use std::panic::AssertUnwindSafe;

/// How many cases run side by side in one world.
const TOGETHER: usize = 12;
/// Faults that one process takes.
const BATCH: usize = 100;

/// Runs cases in one world and names each that fails.
pub async fn all(world: World, cases: &[Case]) {
    assert!(cases.len() <= BATCH, "one process takes {BATCH} faults");
    let first = small();
    let vnfd = world.onboard(&first).await;
    let second = world.onboard(&next(&first)).await;
    let (world, vnfds) = (&world, (vnfd.as_str(), second.as_str()));
    let ready: Vec<Ready<'_>> =
        futures::stream::iter(cases.iter().enumerate())
            .map(|(index, case)| async move {
                Ready::make(world, vnfds, *case, &index.to_string()).await
            })
            .buffered(TOGETHER)
            .collect()
            .await;
    let faults: Vec<_> = ready.iter().map(Ready::fault).collect();
    world.faults(&serde_json::Value::from(faults)).await;
    let failed: Vec<Case> = futures::stream::iter(&ready)
        .map(|one| async move {
            let ended = AssertUnwindSafe(one.run()).catch_unwind().await;
            ended.is_err().then_some(one.case)
        })
        .buffer_unordered(TOGETHER)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    assert!(
        failed.is_empty(),
        "{} of {} cases failed: {failed:#?}",
        failed.len(),
        cases.len()
    );
}

/// Environment variable: the whole matrix, which takes minutes, instead of the part that is run each time.
const EXHAUSTIVE: &str = "CAIRN_TEST_EXHAUSTIVE";

/// Every point with the ways on and back; the other ways where an operation breaks first and with its effects made, and
/// in turn at the points between.
fn of(doing: Doing) -> Vec<Case> {
    let first = first(doing);
    let among = |point: u8, way: Way| {
        matches!(way, Way::Retry | Way::Rollback)
            || point == first
            || point == 4
            || in_turn(doing, point) == way
    };
    cases(doing, among)
}

/// One way for each operation and point, so that all ways meet all operations.
fn in_turn(doing: Doing, point: u8) -> Way {
    let place = Doing::ALL.iter().position(|one| *one == doing);
    let turn = place.expect("it is one of all") + usize::from(point);
    Way::ALL[turn % Way::ALL.len()]
}

/// `MODIFY_INFO` has no point 0.
fn first(doing: Doing) -> u8 {
    u8::from(doing == Doing::ModifyInfo)
}

fn cases(doing: Doing, among: impl Fn(u8, Way) -> bool) -> Vec<Case> {
    let exhaustive = std::env::var_os(EXHAUSTIVE).is_some();
    let runs = |point: u8, way: Way| exhaustive || among(point, way);
    let first = first(doing);
    (first..=7)
        .flat_map(|point| {
            Way::ALL
                .into_iter()
                .map(move |way| Case { doing, point, way })
        })
        .filter(|case| runs(case.point, case.way))
        .collect()
}

async fn on_sqlite(doing: Doing) {
    all(World::simple().await, &of(doing)).await;
}

macro_rules! matrix {
    ($($name:ident: $doing:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                on_sqlite(Doing::$doing).await;
            }
        )+
    };
}

matrix! {
    an_instantiate_broken_anywhere_has_every_way_on: Instantiate,
    a_scale_out_broken_anywhere_has_every_way_on: ScaleOut,
    a_scale_in_broken_anywhere_has_every_way_on: ScaleIn,
    a_scale_to_level_broken_anywhere_has_every_way_on: ScaleToLevel,
    a_heal_of_one_vnfc_broken_anywhere_has_every_way_on: HealOne,
    a_heal_of_all_broken_anywhere_has_every_way_on: HealAll,
    a_change_of_the_package_broken_anywhere_has_every_way_on: ChangeVnfpkg,
    a_terminate_broken_anywhere_has_every_way_on: Terminate,
    a_modify_broken_anywhere_has_every_way_on: ModifyInfo,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_broken_anywhere_goes_on_and_back_on_postgresql() {
    let among = |doing: Doing| {
        move |point: u8, way: Way| match way {
            Way::Retry | Way::Rollback if point == 4 => true,
            way => way == in_turn(doing, point),
        }
    };
    let cases: Vec<Case> = Doing::ALL
        .into_iter()
        .flat_map(|doing| cases(doing, among(doing)))
        .collect();
    for cases in cases.chunks(BATCH) {
        let Some(ground) = Ground::new(Kind::Postgres, Place::simulated().await).await else {
            return;
        };
        all(World::on(ground).await, cases).await;
    }
}
