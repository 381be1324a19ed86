//! What a call to the cluster came to, and what that means for a step.
//!
//! Three things are told apart by type: the server refused (it said so), the call never reached it, and
//! the answer was lost. Only the first two can become `NotDone` for a write.

use crate::json;
use cairn_domain::lcm_op_occ::plan::StepResult;
use cairn_domain::ports::PortError;
use cairn_domain::problem::shorten;
use cairn_domain::waits::Obstacle;
use serde_json::Value;
use std::error::Error as StdError;

/// Source of obstacles that are met by calling the cluster.
pub(crate) const CALL: &str = "call";

/// An answer of the cluster that is not success.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// `reason` of the Status object.
    pub reason: String,
    /// `message` of the Status object, or the text that came instead of one.
    pub message: String,
    /// The Status object itself.
    pub status: Value,
}

/// Why a call brought no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum CallError {
    /// The cluster could not be reached; nothing was sent.
    #[error("{0}")]
    NotSent(String),
    /// Something was sent and no whole answer came.
    #[error("{0}")]
    Lost(String),
    /// The cluster answered no.
    #[error("{} {}: {}", .0.code, .0.reason, .0.message)]
    Refused(Refusal),
    /// The call cannot be made as it was set up (bad address, bad certificate, unknown VIM).
    #[error("{0}")]
    Setup(String),
}

/// Why a try ended without its outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Halt {
    /// It certainly is not so, and this is in the way.
    InTheWay(Vec<Obstacle>),
    /// Nobody knows whether it is so.
    Lost(String),
}

/// Result of a part of a try.
pub(crate) type Try<T> = Result<T, Halt>;

impl Halt {
    /// One obstacle met by a call.
    pub(crate) fn call(
        object: impl Into<String>,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self::InTheWay(vec![call(object, reason, message)])
    }

    /// What the port answers.
    pub(crate) fn result(self) -> StepResult {
        match self {
            Self::InTheWay(obstacles) => StepResult::NotDone(obstacles),
            Self::Lost(why) => StepResult::Unknown { why },
        }
    }

    /// The obstacles, for whoever only reads: a lost answer to a read is one too.
    pub(crate) fn obstacles(self) -> Vec<Obstacle> {
        match self {
            Self::InTheWay(obstacles) => obstacles,
            Self::Lost(why) => vec![call("cluster", "Unreachable", why)],
        }
    }
}

/// An obstacle met by a call.
pub(crate) fn call(
    object: impl Into<String>,
    reason: &str,
    message: impl Into<String>,
) -> Obstacle {
    Obstacle {
        object: object.into(),
        source: CALL.into(),
        reason: reason.into(),
        message: message.into(),
        progress: 0,
    }
}

impl Refusal {
    /// Reads an answer's status code and body.
    pub(crate) fn read(code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let text = String::from_utf8_lossy(body);
        let message = match json::text(&status, "/message") {
            "" => text.trim().chars().take(500).collect(),
            message => message.to_owned(),
        };
        Self {
            code,
            reason: json::text(&status, "/reason").to_owned(),
            message,
            status,
        }
    }

    /// Whether the server says with authority that the object of this name does not exist.
    pub(crate) fn says_absent(&self, name: &str) -> bool {
        self.code == 404
            && self.reason == "NotFound"
            && json::text(&self.status, "/details/name") == name
    }

    /// Whether one of the causes has this reason.
    pub(crate) fn has_cause(&self, reason: &str) -> bool {
        json::entries(&self.status, "/details/causes")
            .iter()
            .any(|c| c["reason"] == reason)
    }

    /// Seconds that the server asks to wait.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        self.status
            .pointer("/details/retryAfterSeconds")
            .and_then(Value::as_u64)
    }

    /// Whether the write was certainly not made. A server error may come after the effect.
    fn is_authoritative(&self) -> bool {
        self.code < 500
            || matches!(
                self.means().0,
                "WebhookUnavailable" | "Invalid" | "AdmissionRefused"
            )
    }

    /// Reason in the table of waits, and the message in words that say what to do.
    pub(crate) fn means(&self) -> (&'static str, String) {
        let message = self.message.clone();
        let says = |text: &str| self.message.contains(text);
        if says("failed calling webhook") || says("no endpoints available for service") {
            return ("WebhookUnavailable", message);
        }
        if says("denied the request") || says("denied request") {
            return ("AdmissionRefused", message);
        }
        if says("field not declared in schema") || says("failed to create typed patch object") {
            return ("Invalid", message);
        }
        match self.code {
            401 => (
                "Unauthorized",
                format!(
                    "the cluster does not accept the credentials (401): give a valid token or client certificate; it said: {message}"
                ),
            ),
            403 => self.forbidden(),
            404 if json::text(&self.status, "/details/kind") == "namespaces" => {
                ("Missing", message)
            }
            404 => (
                "NotYetServed",
                format!("the cluster does not serve this: {message}"),
            ),
            409 if says("being deleted") || says("being terminated") => ("BeingDeleted", message),
            409 if self.has_cause("FieldManagerConflict") => {
                ("FieldConflict", self.field_conflict())
            }
            409 => ("VersionConflict", message),
            429 if self.has_cause("DisruptionBudget") => ("DisruptionBudget", self.budget()),
            429 => ("TooManyRequests", message),
            // A list that expired between its pages, or a server in trouble: both are asked again.
            410 | 500.. => (
                "ServerError",
                format!("the cluster answered {}: {message}", self.code),
            ),
            _ => ("Invalid", message),
        }
    }

    fn forbidden(&self) -> (&'static str, String) {
        let message = self.message.clone();
        if let Some(numbers) = quota_numbers(&message) {
            return ("QuotaExceeded", numbers);
        }
        if self.has_cause("NamespaceTerminating") || message.contains("being terminated") {
            return ("NamespaceTerminating", message);
        }
        // A namespace gets its default account a moment after it was made.
        if message.contains("error looking up service account") {
            return ("NotYetServed", message);
        }
        // Only the authorizer speaks of a user who "cannot"; everything else with 403 is admission.
        if message.contains("cannot") || message.contains("User \"") || self.status.is_null() {
            return (
                "Forbidden",
                format!(
                    "the credentials are accepted but have no permission for this (403): grant it with a Role; it said: {message}"
                ),
            );
        }
        ("AdmissionRefused", message)
    }

    fn field_conflict(&self) -> String {
        let fields: Vec<String> = self
            .conflicts()
            .into_iter()
            .map(|(manager, path)| format!("{path} is managed by {manager}"))
            .collect();
        format!(
            "{}; retry with cairn.takeOver to take it over",
            fields.join(", ")
        )
    }

    /// The refused fields alone: the server's own text quotes their values.
    fn fields(&self) -> String {
        let fields: Vec<&str> = json::entries(&self.status, "/details/causes")
            .iter()
            .map(|cause| json::text(cause, "/field"))
            .collect();
        format!("the cluster refuses its fields {}", fields.join(", "))
    }

    fn budget(&self) -> String {
        let causes: Vec<&str> = json::entries(&self.status, "/details/causes")
            .iter()
            .map(|cause| json::text(cause, "/message"))
            .filter(|text| !text.is_empty())
            .collect();
        format!("{} {}", self.message, causes.join("; "))
            .trim()
            .to_owned()
    }

    /// Managers and fields of a conflict of server-side apply.
    pub(crate) fn conflicts(&self) -> Vec<(String, String)> {
        json::entries(&self.status, "/details/causes")
            .iter()
            .filter(|cause| cause["reason"] == "FieldManagerConflict")
            .map(|cause| {
                let message = json::text(cause, "/message");
                let manager = message.split('"').nth(1).unwrap_or(message);
                (manager.to_owned(), json::text(cause, "/field").to_owned())
            })
            .collect()
    }
}

impl CallError {
    /// What a failed read means for a step.
    pub(crate) fn reading(self, object: impl Into<String>) -> Halt {
        let object = object.into();
        match self {
            Self::NotSent(why) | Self::Lost(why) => Halt::call("cluster", "Unreachable", why),
            Self::Setup(why) => Halt::call("cluster", "Invalid", why),
            Self::Refused(refusal) => {
                let (reason, mut message) = refusal.means();
                if reason == "Invalid" && object.starts_with("Secret/") {
                    message = refusal.fields();
                }
                Halt::call(object, reason, shorten(message))
            }
        }
    }

    /// What a failed write means for a step.
    pub(crate) fn writing(self, object: impl Into<String>) -> Halt {
        match self {
            Self::Lost(why) => Halt::Lost(why),
            Self::Refused(refusal) if !refusal.is_authoritative() => Halt::Lost(format!(
                "the cluster answered {}: {}",
                refusal.code, refusal.message
            )),
            other => other.reading(object),
        }
    }

    /// What it means for a query outside of a step.
    pub(crate) fn port(self) -> PortError {
        match self {
            Self::Refused(refusal) if refusal.code < 500 && refusal.code != 429 => {
                let (reason, message) = refusal.means();
                PortError::Refused(cairn_domain::problem::Problem::new(
                    502,
                    format!("{reason}: {message}"),
                ))
            }
            other => PortError::Unavailable(other.to_string()),
        }
    }

    /// The refusal, if it is one.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::NotSent(_) | Self::Lost(_) | Self::Setup(_) => None,
        }
    }
}

/// The numbers of a quota in words, from the API server's own text.
pub(crate) fn quota_numbers(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("exceeded quota: ")?;
    let (name, rest) = rest.split_once(", requested: ")?;
    let (requested, rest) = rest.split_once(", used: ")?;
    let (used, limited) = rest.split_once(", limited: ")?;
    let of = |list: &str, resource: &str| {
        list.split(',')
            .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == resource))
            .map_or_else(
                || "?".to_owned(),
                |(_, amount)| amount.split_whitespace().next().unwrap_or("?").to_owned(),
            )
    };
    let numbers: Vec<String> = requested
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(resource, wanted)| {
            format!(
                "{resource} used {} of {}, {wanted} more wanted",
                of(used, resource),
                of(limited, resource)
            )
        })
        .collect();
    Some(format!("exceeded quota {name}: {}", numbers.join("; ")))
}

/// What went wrong on the way, cause by cause, with the known ones in words.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    chain_under("an authority that is trusted here", error)
}

/// The same, where it is known who must have signed the cluster's certificate.
pub(crate) fn chain_under(authority: &str, error: &(dyn StdError + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    let text = texts.join(": ");
    // The same name with another key is a bad signature: an authority that was made anew.
    let unsigned = ["UnknownIssuer", "unknown issuer", "BadSignature"];
    let hint = if unsigned.iter().any(|word| text.contains(word)) {
        return format!("the certificate of the cluster is not signed by {authority}: {text}");
    } else if text.contains("NotValidForName") || text.contains("not valid for name") {
        "the certificate of the cluster is for another name: "
    } else if text.contains("Expired") {
        "the certificate of the cluster has expired: "
    } else if text.contains("refused") {
        "nothing listens at the cluster's address: "
    } else {
        ""
    };
    format!("{hint}{text}")
}

/// Whether an error happened before anything was sent.
pub(crate) fn before_sending(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(client) = cause.downcast_ref::<hyper_util::client::legacy::Error>() {
            return client.is_connect();
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(code: u16, reason: &str, message: &str) -> Refusal {
        let body = json!({"kind": "Status", "reason": reason, "message": message});
        Refusal::read(code, body.to_string().as_bytes())
    }

    #[test]
    fn each_refusal_has_its_reason() {
        for (code, message, reason) in [
            (401, "Unauthorized", "Unauthorized"),
            (
                403,
                "pods is forbidden: User \"x\" cannot create resource",
                "Forbidden",
            ),
            (
                403,
                "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
                "QuotaExceeded",
            ),
            (
                403,
                "unable to create new content in namespace a because it is being terminated",
                "NamespaceTerminating",
            ),
            (
                403,
                "pods \"p\" is forbidden: violates PodSecurity \"restricted\"",
                "AdmissionRefused",
            ),
            (
                403,
                "pods \"p\" is forbidden: error looking up service account a/default: not found",
                "NotYetServed",
            ),
            (
                400,
                "admission webhook \"w\" denied the request: no",
                "AdmissionRefused",
            ),
            (
                500,
                "Internal error occurred: failed calling webhook \"w\": no endpoints available for service \"s\"",
                "WebhookUnavailable",
            ),
            (500, "etcdserver: request timed out", "ServerError"),
            (422, "spec.replicas: Invalid value", "Invalid"),
            (429, "too many", "TooManyRequests"),
            (409, "the object has been modified", "VersionConflict"),
        ] {
            assert_eq!(refusal(code, "", message).means().0, reason, "{message}");
        }
    }

    #[test]
    fn a_server_error_leaves_a_write_unknown_and_a_read_waiting() {
        let error = || CallError::Refused(refusal(504, "Timeout", "late"));
        assert!(matches!(error().writing("x"), Halt::Lost(_)));
        assert!(matches!(error().reading("x"), Halt::InTheWay(_)));
        assert!(matches!(
            CallError::Lost("cut".into()).writing("x"),
            Halt::Lost(_)
        ));
        assert!(matches!(
            CallError::NotSent("refused".into()).writing("x"),
            Halt::InTheWay(_)
        ));
    }

    #[test]
    fn what_a_secret_holds_is_not_told() {
        let body = json!({"kind": "Status", "reason": "Invalid", "message": "data: Invalid value: \"hush\"",
            "details": {"causes": [{"field": "data[a]", "message": "Invalid value: \"hush\""}]}});
        let refusal = Refusal::read(422, body.to_string().as_bytes());
        let Halt::InTheWay(told) = CallError::Refused(refusal).writing("Secret/s") else {
            panic!("it is authoritative")
        };
        assert_eq!(told[0].message, "the cluster refuses its fields data[a]");
    }

    #[test]
    fn the_numbers_of_a_quota_are_told() {
        let told = quota_numbers(
            "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1,cpu=2, used: pods=2,cpu=1, limited: pods=2,cpu=2",
        );
        assert_eq!(
            told.unwrap(),
            "exceeded quota q: pods used 2 of 2, 1 more wanted; cpu used 1 of 2, 2 more wanted"
        );
    }

    #[test]
    fn only_an_authoritative_404_says_absent() {
        assert!(!Refusal::read(404, b"404 page not found").says_absent("x"));
        let body = json!({"kind": "Status", "reason": "NotFound", "details": {"name": "x", "kind": "pods"}});
        assert!(Refusal::read(404, body.to_string().as_bytes()).says_absent("x"));
        assert!(!Refusal::read(503, body.to_string().as_bytes()).says_absent("x"));
    }
}
