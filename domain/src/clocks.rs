//! How long is waited, by class of wait; set at start, by the package, or by the request.

use crate::waits::WaitClass;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest clock that can be set: 7 days, in milliseconds.
pub const LONGEST_MS: u64 = 7 * 24 * 3600 * 1000;

/// Clocks that were set; where none is, the default of the wait's row holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Clocks(BTreeMap<WaitClass, u64>);

/// Why a clock is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClock {
    /// The class does not exist or cannot be waited in.
    #[error("clock for {0:?}: classes are progressing, blocked, infrastructure, unclassified")]
    Class(String),
    /// The duration has the wrong form.
    #[error(
        "clock {class} = {got:?}: write a duration such as 500ms, 30s, 5m or 1h, at most 7 days"
    )]
    Duration {
        /// Name of the class.
        class: String,
        /// What was given.
        got: String,
    },
    /// The clocks are not a map.
    #[error("cairn.clocks must be a map of class to duration, such as {{\"blocked\": \"30s\"}}")]
    NotAMap,
}

impl Clocks {
    /// Reads a map of class to duration (`{"blocked": "2s"}`). Zero means: the default holds.
    ///
    /// # Errors
    ///
    /// [`InvalidClock`] naming class and value.
    pub fn parse(value: &Value) -> Result<Self, InvalidClock> {
        let members = value.as_object().ok_or(InvalidClock::NotAMap)?;
        let mut clocks = Self::default();
        for (class, duration) in members {
            let text = duration
                .as_str()
                .map_or_else(|| duration.to_string(), str::to_owned);
            clocks.set(class, &text)?;
        }
        Ok(clocks)
    }

    /// Sets one clock.
    ///
    /// # Errors
    ///
    /// [`InvalidClock`] naming class and value.
    pub fn set(&mut self, class: &str, duration: &str) -> Result<(), InvalidClock> {
        let known = WaitClass::parse(class)
            .filter(|c| *c != WaitClass::Permanent)
            .ok_or_else(|| InvalidClock::Class(class.to_owned()))?;
        let ms = parse_duration_ms(duration)
            .filter(|ms| *ms <= LONGEST_MS)
            .ok_or_else(|| InvalidClock::Duration {
                class: class.to_owned(),
                got: duration.to_owned(),
            })?;
        if ms > 0 {
            self.0.insert(known, ms);
        }
        Ok(())
    }

    /// The clock set for a class, in milliseconds.
    #[must_use]
    pub fn of(&self, class: WaitClass) -> Option<u64> {
        self.0.get(&class).copied()
    }

    /// These clocks, with `wider` where they say nothing.
    #[must_use]
    pub fn or(&self, wider: &Self) -> Self {
        let mut all = wider.0.clone();
        all.extend(self.0.iter().map(|(class, ms)| (*class, *ms)));
        Self(all)
    }
}

/// Reads `500ms`, `30s`, `5m`, `1h` as milliseconds; a bare number counts seconds.
#[must_use]
pub fn parse_duration_ms(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_narrowest_clock_wins() {
        let package = Clocks::parse(&json!({"blocked": "1m", "infrastructure": "2m"})).unwrap();
        let request = Clocks::parse(&json!({"blocked": "2s"})).unwrap();
        let both = request.or(&package);
        assert_eq!(both.of(WaitClass::Blocked), Some(2_000));
        assert_eq!(both.of(WaitClass::Infrastructure), Some(120_000));
        assert_eq!(both.of(WaitClass::Progressing), None);
    }

    #[test]
    fn zero_is_the_default_and_nonsense_is_refused() {
        assert_eq!(
            Clocks::parse(&json!({"blocked": 0})).unwrap(),
            Clocks::default()
        );
        for bad in [
            json!({"blocked": -1}),
            json!({"blocked": "soon"}),
            json!({"blocked": "900h"}),
        ] {
            assert!(
                matches!(Clocks::parse(&bad), Err(InvalidClock::Duration { .. })),
                "{bad}"
            );
        }
        assert!(matches!(
            Clocks::parse(&json!({"permanent": "1s"})),
            Err(InvalidClock::Class(_))
        ));
        assert_eq!(Clocks::parse(&json!("1s")), Err(InvalidClock::NotAMap));
    }
}
