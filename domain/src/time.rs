//! Points in time and durations, as data.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// Its text is RFC 3339 in UTC with three decimals and `Z`, everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 date-time such as 2026-01-31T12:00:00.000Z: {0:?}")]
pub struct InvalidTime(pub String);

/// Years 0000 to 9999: what RFC 3339 can write.
const EARLIEST_MS: i64 = -62_167_219_200_000;
const LATEST_MS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// From milliseconds since the epoch, clamped to the years 0000 to 9999.
    #[must_use]
    pub fn from_millis(ms: i64) -> Self {
        Self(ms.clamp(EARLIEST_MS, LATEST_MS))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads any RFC 3339 date-time; digits below the millisecond are dropped.
    ///
    /// # Errors
    ///
    /// [`InvalidTime`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        let parsed =
            OffsetDateTime::parse(text, &Rfc3339).map_err(|_| InvalidTime(text.to_owned()))?;
        let ms = parsed.unix_timestamp_nanos().div_euclid(1_000_000);
        i64::try_from(ms)
            .map(Self::from_millis)
            .map_err(|_| InvalidTime(text.to_owned()))
    }

    /// This time and `ms` milliseconds more.
    #[must_use]
    pub fn plus_millis(self, ms: u64) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds from `earlier` to this time, 0 if it is not earlier.
    #[must_use]
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1000);
        let ms = self.0.rem_euclid(1000);
        let t = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| fmt::Error)?;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
            t.year(),
            u8::from(t.month()),
            t.day(),
            t.hour(),
            t.minute(),
            t.second()
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_with_three_decimals() {
        for (given, written) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31T14:00:00.5+02:00", "2026-01-31T12:00:00.500Z"),
            ("2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::parse(given).unwrap().to_string(), written);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            "yesterday",
            "2026-01-31",
            "2026-13-01T00:00:00Z",
            "12:00",
        ] {
            assert_eq!(Timestamp::parse(bad), Err(InvalidTime(bad.to_owned())));
        }
    }
}
