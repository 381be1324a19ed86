//! Conditional requests (RFC 9110): entity tags are stream versions, dates have seconds.

use axum::http::{HeaderMap, header};
use cairn_domain::ports::Row;
use cairn_domain::time::Timestamp;
use cairn_domain::vnf_instance::VnfInstance;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::problem::ApiError;

/// IMF-fixdate, the one form that is sent and the one that current clients send.
const HTTP_DATE: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// The entity tag of a version.
pub(crate) fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// A time as HTTP writes it.
pub(crate) fn http_date(at: Timestamp) -> String {
    OffsetDateTime::from_unix_timestamp(at.as_millis().div_euclid(1000))
        .ok()
        .and_then(|at| at.format(HTTP_DATE).ok())
        .expect("a timestamp lies in the years 0000 to 9999, which this format can write")
}

/// The seconds of an HTTP date; other texts are no dates, and RFC 9110 says to ignore them.
fn seconds(text: &str) -> Option<i64> {
    let parsed = PrimitiveDateTime::parse(text, HTTP_DATE).ok()?;
    Some(parsed.assume_utc().unix_timestamp())
}

/// What `If-Match` says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tags {
    /// It was not sent.
    Absent,
    /// `*`: the resource must exist.
    Any,
    /// One of these must be its tag.
    These(Vec<String>),
}

/// What must hold for a change to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// `If-Match`.
    tags: Tags,
    /// `If-Unmodified-Since`, seconds since the epoch; looked at only without `If-Match`.
    unmodified_since: Option<i64>,
}

impl Preconditions {
    /// Reads them out of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let sent: Vec<&str> = headers
            .get_all(header::IF_MATCH)
            .iter()
            .map(|value| value.to_str().unwrap_or(""))
            .collect();
        let all = sent.join(",");
        let tags = match (sent.is_empty(), all.trim()) {
            (true, _) => Tags::Absent,
            (false, "*") => Tags::Any,
            (false, list) => {
                Tags::These(list.split(',').map(|tag| tag.trim().to_owned()).collect())
            }
        };
        let unmodified_since = headers
            .get(header::IF_UNMODIFIED_SINCE)
            .and_then(|value| value.to_str().ok())
            .and_then(seconds);
        Self {
            tags,
            unmodified_since,
        }
    }

    /// Whether nothing is demanded, so that no row needs to be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.tags == Tags::Absent && self.unmodified_since.is_none()
    }

    /// Checks them against the present row; answers the version that the executor must find, so that nothing
    /// slips in between.
    ///
    /// # Errors
    ///
    /// 412 when they do not hold.
    pub(crate) fn check(&self, row: &Row<VnfInstance>) -> Result<u64, ApiError> {
        let is = etag(row.version);
        let holds = match (&self.tags, self.unmodified_since) {
            (Tags::These(tags), _) => tags.contains(&is),
            (Tags::Any, _) | (Tags::Absent, None) => true,
            (Tags::Absent, Some(since)) => {
                row.state.changed_at.as_millis().div_euclid(1000) <= since
            }
        };
        if holds {
            return Ok(row.version);
        }
        Err(ApiError::new(
            412,
            format!("the resource has changed: its ETag is {is} now; read it again"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read_back() {
        let at = Timestamp::parse("1994-11-06T08:49:37.900Z").unwrap();
        assert_eq!(http_date(at), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("yesterday"), None);
    }
}
