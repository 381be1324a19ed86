//! How a figure is printed, and the one benchmark that needs nothing but the domain.

use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, evolve};
use cairn_domain::testing::op;
use std::fmt;
use std::time::Instant;

/// Which side of the limit is good.
#[derive(Clone, Copy)]
pub enum Good {
    /// At least the limit.
    AtLeast,
    /// At most the limit.
    AtMost,
}

/// One figure beside its limit.
pub struct Report {
    /// What was measured.
    pub name: &'static str,
    /// The figures that the ratio was made of.
    pub figures: String,
    /// The ratio.
    pub ratio: f64,
    /// What it is held against.
    pub limit: f64,
    /// Which side is good.
    pub good: Good,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, reached) = match self.good {
            Good::AtLeast => ("≥", self.ratio >= self.limit),
            Good::AtMost => ("≤", self.ratio <= self.limit),
        };
        let verdict = if reached { "reached" } else { "MISSED" };
        write!(
            f,
            "{:<34} {:>8.3} {sign} {:<6} {verdict:<8} {}",
            self.name, self.ratio, self.limit, self.figures
        )
    }
}

/// Folding streams of whole operations.
pub fn replay() -> Report {
    const ROUNDS: usize = 5_000;
    let history = op().instantiate().completed().history();
    let started = Instant::now();
    let mut folded = 0;
    for _ in 0..ROUNDS {
        let state: Option<VnfLcmOpOcc> = history.iter().fold(None, evolve);
        folded += state.map_or(0, |_| history.len());
    }
    let seconds = started.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(folded).unwrap_or(u32::MAX)) / seconds;
    Report {
        name: "replay, of 500,000 events/s",
        figures: format!("{rate:.0} events/s, streams of {} events", history.len()),
        ratio: rate / 500_000.0,
        limit: 1.0,
        good: Good::AtLeast,
    }
}
