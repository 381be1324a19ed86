//! Query parameters.

use std::collections::BTreeMap;

use super::path::decode;

#[derive(Debug, Clone, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (
                decode(&key.replace('+', " ")),
                decode(&value.replace('+', " ")),
            )
        });
        Self(pairs.collect())
    }

    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub fn flag(&self, key: &str) -> bool {
        matches!(self.text(key), "true" | "1")
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key).parse().ok()
    }
}
