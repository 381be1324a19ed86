//! The log of requests, by which tests count what reached the cluster.

use std::collections::VecDeque;

/// One request as the server answered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; watches are `GET` with `watch` set.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query as sent, without its question mark.
    pub query: String,
    /// `fieldManager` of a write, else the first word of the user agent.
    pub manager: String,
    /// The HTTP status that was answered; 0 when no answer reached the client.
    pub status: u16,
    /// Whether the request was a dry run, which changes nothing.
    pub dry_run: bool,
    /// Whether the request opened a watch.
    pub watch: bool,
}

impl RequestRecord {
    /// Whether the request was one that could change something and was answered with success.
    #[must_use]
    pub fn is_effect(&self) -> bool {
        self.method != "GET" && !self.dry_run && (self.status == 0 || self.status < 300)
    }
}

/// How many requests the log keeps; older ones are forgotten.
const KEPT: usize = 100_000;

pub(crate) fn remember(log: &mut VecDeque<RequestRecord>, record: RequestRecord) {
    if log.len() >= KEPT {
        log.pop_front();
    }
    log.push_back(record);
}
