//! One schedule: processes that end at given calls, until one carries the operation to its end.

use super::holds::{Ended, judge};
use super::scenario::Prepared;
use cairn_tests::cuts::{Cut, Knife};
use cairn_tests::heard::Heard;
use cairn_tests::world::World;
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// How long one schedule may take.
const LIMIT: Duration = Duration::from_mins(2);

/// A scenario that has run to its end.
pub struct Ran {
    /// The calls of each process.
    pub calls: Vec<Vec<String>>,
    /// How many of the ends came about.
    pub struck: usize,
    /// What is left.
    pub ended: Ended,
}

/// Carries a scenario out with these ends, and answers what is left.
pub async fn run(prepared: &Prepared, cuts: &[Cut]) -> Ran {
    tokio::time::timeout(LIMIT, carried(prepared, cuts))
        .await
        .expect("a schedule ends in time")
}

async fn carried(prepared: &Prepared, cuts: &[Cut]) -> Ran {
    let (ground, heard) = (prepared.ground(), Heard::default());
    let mut cuts = cuts.iter().copied();
    let mut calls = Vec::new();
    let mut struck = 0;
    loop {
        let knife = Knife::new(cuts.next());
        let world = prepared.world(ground.clone(), &knife, &heard).await;
        let op = tokio::select! {
            () = knife.struck() => None,
            op = to_its_end(&world, prepared, &knife) => Some(op),
        };
        calls.push(knife.calls());
        if let Some(op) = op {
            let ended = Ended::of(world, op, prepared, &heard).await;
            return Ran {
                calls,
                struck,
                ended,
            };
        }
        struck += 1;
        drop(world.kill());
    }
}

/// Sends the request, again if its answer was lost, and awaits that the operation rests.
async fn to_its_end(world: &World, prepared: &Prepared, knife: &Knife) -> String {
    let answer = world.send(prepared.request.clone()).await;
    assert_eq!(answer.status, 202, "{:#}", answer.body);
    let op = match answer.header("location") {
        "" => {
            let path = &prepared.request.path;
            let mut parts = path.rsplit('/').skip(1);
            parts.next().expect("an operation's id").to_owned()
        }
        _ => answer.located(),
    };
    let seen = world.op(&op).await;
    let moves = ["STARTING", "PROCESSING", "ROLLING_BACK"]
        .iter()
        .any(|state| seen["operationState"] == *state);
    if moves {
        knife.rested().await;
    }
    op
}

/// Carries a schedule out and judges it against a run without any end; the reason if something does not hold.
pub async fn verdict(prepared: &Prepared, calm: &Ended, cuts: &[Cut]) -> Result<usize, String> {
    let judged = AssertUnwindSafe(async {
        let ran = run(prepared, cuts).await;
        judge(&ran.ended, calm, prepared, ran.struck, &ran.calls);
        ran.struck
    });
    judged.catch_unwind().await.map_err(|panic| {
        let why = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        why.unwrap_or("a panic without words").to_owned()
    })
}
