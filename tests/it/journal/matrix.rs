//! Every single end, and pairs of them.

use super::scenario::{Prepared, Scenario, Way};
use super::schedule::{run, verdict};
use crate::seed_a::case::Doing;
use cairn_tests::cuts::{Cut, Side};
use futures::StreamExt as _;

/// Schedules under way at once: they wait more than they compute.
const TOGETHER: usize = 12;
/// Environment variable: all pairs instead of some.
const ALL_PAIRS: &str = "CAIRN_TEST_ALL_PAIRS";
/// Pairs of a scenario that are drawn where not all are taken.
const DRAWN: usize = 6;
/// Draws them. A failure names its schedule, so that nothing depends on when it was drawn.
const SEED: u64 = 0x5eed_ca1f;
/// Calls that a process may make beyond what the one before had left: it looks again at what that one has done.
const MORE: usize = 2;

/// Runs schedules side by side, and names each that does not end as it must.
async fn all(prepared: &Prepared, schedules: Vec<Vec<Cut>>) {
    let without = run(prepared, &[]).await;
    super::holds::judge(&without.ended, &without.ended, prepared, 0, &without.calls);
    let calm = &without.ended;
    if prepared.scenario.way == Way::Back {
        let (instance, objects) = &prepared.before;
        assert_eq!(
            (&calm.instance, &calm.objects),
            (instance, objects),
            "as it was before"
        );
    }
    let (count, ends) = (
        schedules.len(),
        schedules.iter().map(Vec::len).sum::<usize>(),
    );
    let judged: Vec<Result<usize, String>> = futures::stream::iter(schedules)
        .map(|cuts| async move {
            let verdict = verdict(prepared, calm, &cuts).await;
            verdict.map_err(|why| format!("{cuts:?}: {why}"))
        })
        .buffer_unordered(TOGETHER)
        .collect()
        .await;
    let struck: usize = judged.iter().flatten().sum();
    let failed: Vec<String> = judged.into_iter().filter_map(Result::err).collect();
    let shown = failed.iter().take(3).cloned().collect::<Vec<_>>();
    assert!(
        failed.is_empty(),
        "{:?}: {} of {count} schedules failed, such as: {}",
        prepared.scenario,
        failed.len(),
        shown.join("\n----\n")
    );
    // A run may make a call less than another, so that its last end does not come about; most do.
    assert!(
        struck * 10 >= ends * 8,
        "{struck} of {ends} ends came about"
    );
    println!("{:?}: {count} schedules, {struck} ends", prepared.scenario);
}

/// How many calls a run without any end makes.
async fn calls(prepared: &Prepared) -> usize {
    run(prepared, &[]).await.calls[0].len()
}

fn singles(calls: usize) -> Vec<Vec<Cut>> {
    let both = |call| [Side::Before, Side::After].map(|side| vec![Cut { call, side }]);
    (0..calls).flat_map(both).collect()
}

/// Where a process can end so that another state is durable each time.
fn places(calls: usize) -> Vec<Cut> {
    let first = Cut {
        call: 0,
        side: Side::Before,
    };
    let after = |call| Cut {
        call,
        side: Side::After,
    };
    std::iter::once(first)
        .chain((0..calls).map(after))
        .collect()
}

/// A second process ends at each place that it can come to.
fn pairs(calls: usize) -> Vec<Vec<Cut>> {
    let left = |first: &Cut| match first.side {
        Side::Before => calls - first.call,
        Side::After => calls - first.call - 1,
    };
    let seconds = |first: Cut| {
        let seconds = places(left(&first) + MORE);
        seconds.into_iter().map(move |second| vec![first, second])
    };
    places(calls).into_iter().flat_map(seconds).collect()
}

/// Numbers that only look random, the same each time (xorshift).
fn drawn(mut seed: u64, from: Vec<Vec<Cut>>) -> Vec<Vec<Cut>> {
    let mut from = from;
    let mut some = Vec::new();
    while some.len() < DRAWN && !from.is_empty() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let at = usize::try_from(seed % u64::try_from(from.len()).expect("a length"));
        some.push(from.swap_remove(at.expect("an index")));
    }
    some
}

async fn scenario(doing: Doing, way: Way) {
    let prepared = Prepared::new(Scenario { doing, way }).await;
    let calls = calls(&prepared).await;
    let mut schedules = singles(calls);
    let pairs = pairs(calls);
    if std::env::var_os(ALL_PAIRS).is_some() {
        schedules.extend(pairs);
    } else {
        schedules.extend(drawn(SEED, pairs));
    }
    all(&prepared, schedules).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_that_is_done_twice_has_its_effect_once() {
    for scenario in Scenario::all() {
        let mut prepared = Prepared::new(scenario).await;
        let once = run(&prepared, &[]).await;
        prepared.twice = true;
        let twice = run(&prepared, &[]).await;
        super::holds::judge(&twice.ended, &once.ended, &prepared, 1, &twice.calls);
    }
}

macro_rules! journals {
    ($($name:ident: $doing:ident $way:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                scenario(Doing::$doing, Way::$way).await;
            }
        )+

        #[test]
        fn every_operation_and_every_rollback_is_among_them() {
            let named = [$(Scenario { doing: Doing::$doing, way: Way::$way }),+];
            let missing: Vec<Scenario> = Scenario::all()
                .into_iter()
                .filter(|one| !named.contains(one))
                .collect();
            assert_eq!(missing, []);
        }
    };
}

journals! {
    an_instantiate_ends_well_wherever_processes_end: Instantiate Forward,
    a_scale_out_ends_well_wherever_processes_end: ScaleOut Forward,
    a_scale_in_ends_well_wherever_processes_end: ScaleIn Forward,
    a_scale_to_level_ends_well_wherever_processes_end: ScaleToLevel Forward,
    a_heal_of_one_vnfc_ends_well_wherever_processes_end: HealOne Forward,
    a_heal_of_all_ends_well_wherever_processes_end: HealAll Forward,
    a_change_of_the_package_ends_well_wherever_processes_end: ChangeVnfpkg Forward,
    a_terminate_ends_well_wherever_processes_end: Terminate Forward,
    a_modify_ends_well_wherever_processes_end: ModifyInfo Forward,
    the_rollback_of_an_instantiate_ends_well_wherever_processes_end: Instantiate Back,
    the_rollback_of_a_scale_out_ends_well_wherever_processes_end: ScaleOut Back,
    the_rollback_of_a_scale_in_ends_well_wherever_processes_end: ScaleIn Back,
    the_rollback_of_a_scale_to_level_ends_well_wherever_processes_end: ScaleToLevel Back,
    the_rollback_of_a_heal_of_one_vnfc_ends_well_wherever_processes_end: HealOne Back,
    the_rollback_of_a_heal_of_all_ends_well_wherever_processes_end: HealAll Back,
    the_rollback_of_a_change_of_the_package_ends_well_wherever_processes_end: ChangeVnfpkg Back,
    the_rollback_of_a_terminate_ends_well_wherever_processes_end: Terminate Back,
}
