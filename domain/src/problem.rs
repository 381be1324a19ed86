//! A problem as the user reads it (RFC 7807 `ProblemDetails`, SOL013 6.3).

use serde::{Deserialize, Serialize};

/// Longest `detail` that is kept, in bytes: a state change must stay savable whatever a cluster answers.
pub const DETAIL_LIMIT: usize = 8 * 1024;

/// What went wrong, in words that say what to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// HTTP status that fits the problem best.
    pub status: u16,
    /// Short name of the kind of problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What happened here, in the words of whoever said so, at most [`DETAIL_LIMIT`] bytes.
    pub detail: String,
}

impl Problem {
    /// A problem without title. A longer detail is cut and marked as cut.
    #[must_use]
    pub fn new(status: u16, detail: impl Into<String>) -> Self {
        Self {
            status,
            title: None,
            detail: shorten(detail.into()),
        }
    }

    /// The same with a title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self {
            title: Some(title.into()),
            ..self
        }
    }
}

/// Cuts a text to [`DETAIL_LIMIT`] at a character boundary and says so.
#[must_use]
pub fn shorten(text: String) -> String {
    const MARK: &str = " … (cut)";
    if text.len() <= DETAIL_LIMIT {
        return text;
    }
    let mut end = DETAIL_LIMIT - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_of_ten_megabytes_is_cut_at_a_character() {
        let problem = Problem::new(500, "é".repeat(5 * 1024 * 1024));
        assert!(problem.detail.len() <= DETAIL_LIMIT);
        assert!(problem.detail.ends_with("(cut)"));
    }
}
