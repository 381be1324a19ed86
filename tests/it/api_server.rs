//! The API server answers wrongly, late, in part or not at all: every call of an operation and of its rollback in
//! turn, with every such fault. Each operation then ends by itself as if nothing had been, or halts with a reason that
//! can be read, and goes on or back from there; and each effect happens once.

mod run;
mod stories;

use cairn_tests::place::Place;
use cairn_tests::proxy::{Strike, When};
use futures::{FutureExt as _, StreamExt as _};
use run::{Case, Doing, Run, Stage, Way};
use std::panic::AssertUnwindSafe;

/// How many runs are under way at once.
const TOGETHER: usize = 12;

/// Environment variable: every fault at every call, which takes a quarter of an hour, instead of one fault at each.
const EXHAUSTIVE: &str = "CAIRN_TEST_EXHAUSTIVE";
/// Environment variable: a number that says which fault meets which call where only some do.
const SEED: &str = "CAIRN_TEST_SEED";

/// Cases that are run on the real cluster.
const SAMPLE: usize = 12;

/// What strikes one call once. None of it may be seen but in the history.
const PASSING: [Strike; 14] = [
    Strike::TooMany(Some(1)),
    Strike::Status(500, When::Before),
    Strike::Reset(When::After),
    Strike::Status(503, When::After),
    Strike::Half,
    Strike::Status(504, When::Before),
    Strike::Silence(When::After),
    Strike::TooMany(None),
    Strike::Status(500, When::After),
    Strike::Reset(When::Before),
    Strike::Status(504, When::After),
    Strike::Silence(When::Before),
    Strike::Status(503, When::Before),
    Strike::Status(409, When::Before),
];

/// What strikes a call from then on, until the operation has halted.
const LASTING: [Strike; 5] = [
    Strike::Status(503, When::Before),
    Strike::Status(403, When::Before),
    Strike::Reset(When::Before),
    Strike::Status(401, When::Before),
    Strike::Silence(When::Before),
];

fn seed() -> usize {
    let seed = std::env::var(SEED).ok();
    seed.map_or(0, |text| text.parse().expect("a number"))
}

/// The cases of an operation that makes `calls` calls.
fn cases(calls: usize, way: Way) -> Vec<Case> {
    let exhaustive = std::env::var_os(EXHAUSTIVE).is_some();
    // Of many calls half: the neighbours are of the same kind, and the seed has the other half struck.
    let stride = if calls > 30 { 2 } else { 1 };
    let mut all = Vec::new();
    for nth in 0..calls {
        for (index, strike) in PASSING.iter().enumerate() {
            let meets = (nth + seed()).is_multiple_of(stride)
                && (nth / stride + seed()) % PASSING.len() == index;
            if exhaustive || meets {
                all.push(Case {
                    nth,
                    strike: strike.clone(),
                    lasting: false,
                    way,
                });
            }
        }
        for (index, strike) in LASTING.iter().enumerate() {
            let meets = nth % 6 == 0 && (nth / 6 + seed()) % LASTING.len() == index;
            if exhaustive || meets {
                all.push(Case {
                    nth,
                    strike: strike.clone(),
                    lasting: true,
                    way,
                });
            }
        }
    }
    all
}

/// Counts the calls of an operation that nothing disturbs, then disturbs each.
async fn each_call(doing: Doing, ways: &[Way]) {
    for way in ways {
        let stage = Stage::simulated(doing, *way).await;
        let calls = Run::make(&stage, doing, &format!("calm-{way:?}").to_lowercase())
            .await
            .undisturbed(*way)
            .await;
        assert!(calls > 5, "{calls} calls");
        let all = cases(calls, *way);
        println!("{doing:?} {way:?}: {calls} calls, {} cases", all.len());
        let failed: Vec<String> = futures::stream::iter(all.iter().enumerate())
            .map(|(index, case)| {
                let name = format!("{way:?}-{index}").to_lowercase();
                one(&stage, doing, case, name, calls)
            })
            .buffer_unordered(TOGETHER)
            .filter_map(|failed| async move { failed })
            .collect()
            .await;
        assert!(
            failed.is_empty(),
            "{} of {} cases failed: {failed:#?}",
            failed.len(),
            all.len()
        );
    }
}

/// Runs a case; its name if it fails.
async fn one(
    stage: &Stage,
    doing: Doing,
    case: &Case,
    name: String,
    calls: usize,
) -> Option<String> {
    let run = async {
        let run = Run::make(stage, doing, &name).await;
        let run = if case.lasting { run.impatient() } else { run };
        run.disturbed(case, calls).await;
    };
    let ended = AssertUnwindSafe(run).catch_unwind().await;
    ended.is_err().then(|| format!("{name} {case:?}"))
}

macro_rules! each_call {
    ($($name:ident: $doing:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                each_call(Doing::$doing, &[Way::On, Way::Back]).await;
            }
        )+
    };
}

each_call! {
    an_instantiate_survives_a_fault_at_any_call: Instantiate,
    a_scale_survives_a_fault_at_any_call: Scale,
    a_heal_survives_a_fault_at_any_call: Heal,
    a_terminate_survives_a_fault_at_any_call: Terminate,
}

/// Every fault that passes and every one that lasts, each at a call of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instantiate_survives_faults_of_the_real_cluster() {
    let Some(place) = Place::real().await else {
        return;
    };
    let stage = Stage::on(place, Doing::Instantiate, Way::On).await;
    let calm = Run::make(&stage, Doing::Instantiate, "calm").await;
    let calls = calm.undisturbed(Way::On).await;
    let all: Vec<Case> = cases(calls, Way::On);
    let step = (all.len() / SAMPLE).max(1);
    let sample: Vec<&Case> = all.iter().skip(seed() % step).step_by(step).collect();
    let failed: Vec<String> = futures::stream::iter(sample.iter().enumerate())
        .map(|(index, case)| {
            one(
                &stage,
                Doing::Instantiate,
                case,
                format!("r-{index}"),
                calls,
            )
        })
        .buffer_unordered(TOGETHER)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    assert!(failed.is_empty(), "{failed:#?}");
}
