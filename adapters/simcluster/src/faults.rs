//! Faults that a test scripts: the answers and silences that a real cluster shows now and then.

use std::time::Duration;

/// Which requests a fault is about. Everything left out matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMatch {
    /// HTTP method in capitals; `WATCH` means a GET that watches.
    pub method: Option<String>,
    /// Beginning of the path.
    pub path_prefix: Option<String>,
    /// Plural of the kind, such as `deployments`.
    pub resource: Option<String>,
    /// Name of the object. Matches a POST or an apply by its body too.
    pub name: Option<String>,
    /// `scale`, `status`, `eviction`; `Some("")` means the object itself.
    pub subresource: Option<String>,
}

impl RequestMatch {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests with this method.
    #[must_use]
    pub fn method(method: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            ..Self::default()
        }
    }

    /// Narrows to a kind by its plural.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Narrows to one object's name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Narrows to a subresource.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Narrows to paths that begin so.
    #[must_use]
    pub fn path_prefix(mut self, prefix: &str) -> Self {
        self.path_prefix = Some(prefix.to_owned());
        self
    }

    fn matches(&self, request: &RequestFacts<'_>) -> bool {
        let is = |wanted: &Option<String>, have: &str| wanted.as_deref().is_none_or(|w| w == have);
        is(&self.method, request.method)
            && is(&self.resource, request.resource)
            && is(&self.name, request.name)
            && is(&self.subresource, request.subresource)
            && self
                .path_prefix
                .as_deref()
                .is_none_or(|prefix| request.path.starts_with(prefix))
    }
}

/// Whether a fault strikes before the request did anything or after it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The cluster is not changed.
    Before,
    /// The cluster is changed; only the answer is false.
    After,
}

/// What happens to a matching request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultAction {
    /// An error status, with `Retry-After` in seconds if given.
    Answer {
        /// HTTP status: 401, 403, 409, 429, 500, 503, 504.
        status: u16,
        /// `message` of the Status; empty for the usual text.
        message: String,
        /// Seconds in `Retry-After`.
        retry_after: Option<u32>,
        /// Before or after the effect.
        when: When,
    },
    /// The connection breaks instead of an answer.
    DropAnswer(When),
    /// No answer for this long; then the connection breaks.
    Hang(Duration, When),
    /// The answer comes this much later.
    Delay(Duration),
    /// A watch is answered with an ERROR event 410 at once.
    WatchGone,
    /// A write of the scale subresource answers as asked and changes nothing.
    IgnoreScale,
}

/// A scripted fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which requests.
    pub matching: RequestMatch,
    /// How many matching requests pass first.
    pub skip: u32,
    /// How many are struck then.
    pub times: u32,
    /// What happens to them.
    pub action: FaultAction,
}

impl Fault {
    /// Strikes the next matching request once.
    #[must_use]
    pub fn once(matching: RequestMatch, action: FaultAction) -> Self {
        Self {
            matching,
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Strikes every matching request until the faults are cleared.
    #[must_use]
    pub fn always(matching: RequestMatch, action: FaultAction) -> Self {
        Self {
            matching,
            skip: 0,
            times: u32::MAX,
            action,
        }
    }

    /// Lets that many matching requests pass first.
    #[must_use]
    pub fn after(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }

    /// Strikes that many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }
}

/// An access that `SelfSubjectAccessReview` denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Verb, such as `create`; `*` for all.
    pub verb: String,
    /// Plural of the kind; `*` for all.
    pub resource: String,
    /// Namespace; `*` for all.
    pub namespace: String,
}

impl Denial {
    pub(crate) fn covers(&self, verb: &str, resource: &str, namespace: &str) -> bool {
        let is = |own: &str, asked: &str| own == "*" || own == asked;
        is(&self.verb, verb) && is(&self.resource, resource) && is(&self.namespace, namespace)
    }
}

/// What a fault is matched against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub resource: &'a str,
    pub name: &'a str,
    pub subresource: &'a str,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    pub controllers_frozen: bool,
}

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub fn clear(&mut self) {
        self.faults.clear();
        self.controllers_frozen = false;
    }

    /// Counts the request against every fault and returns the first that strikes.
    pub fn strike(&mut self, request: &RequestFacts<'_>) -> Option<FaultAction> {
        let mut struck = None;
        for fault in self
            .faults
            .iter_mut()
            .filter(|fault| fault.matching.matches(request))
        {
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if fault.times > 0 && struck.is_none() {
                if fault.times != u32::MAX {
                    fault.times -= 1;
                }
                struck = Some(fault.action.clone());
            }
        }
        self.faults.retain(|fault| fault.times > 0);
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_the_nth_matching_request() {
        let mut faults = Faults::default();
        let matching = RequestMatch::method("PATCH").resource("deployments");
        faults.add(Fault::once(matching, FaultAction::DropAnswer(When::After)).after(1));
        let request = |method| RequestFacts {
            method,
            path: "/apis/apps/v1/namespaces/a/deployments/b",
            resource: "deployments",
            name: "b",
            subresource: "",
        };
        assert_eq!(faults.strike(&request("PATCH")), None);
        assert_eq!(faults.strike(&request("GET")), None);
        assert_eq!(
            faults.strike(&request("PATCH")),
            Some(FaultAction::DropAnswer(When::After))
        );
        assert_eq!(faults.strike(&request("PATCH")), None);
    }
}
