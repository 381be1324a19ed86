//! `Link` (SOL003 4.4.1.3): an absolute URI.

use serde::Serialize;

/// A link to a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Absolute URI.
    pub href: String,
}

impl Link {
    /// To this URI.
    #[must_use]
    pub fn to(href: impl Into<String>) -> Self {
        Self { href: href.into() }
    }
}
