//! Reading `LccnSubscriptionRequest` (SOL003 5.5.2.15): what a subscriber may ask for, checked before anything else.

use super::{LccnSubscription, Verbosity};
use crate::problem::Problem;
use crate::secret::Secret;
use serde_json::{Map, Value};

/// Longest `callbackUri` that is taken, in bytes.
const URI_LIMIT: usize = 2048;

/// A request for a subscription, checked; nothing of it is sealed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedSubscription {
    /// `callbackUri`: an absolute `http` or `https` URI.
    pub callback_uri: String,
    /// `filter`, as it was sent; absent where it asks for everything.
    pub filter: Option<Value>,
    /// `verbosity`.
    pub verbosity: Verbosity,
    /// User name and password of BASIC.
    pub auth: Option<(String, Secret)>,
}

/// Reads the body of POST `subscriptions`. Members that SOL003 does not know are ignored, but inside `filter`
/// they are refused: a filter that is not understood would tell the wrong things.
///
/// # Errors
///
/// 400 naming an unknown or malformed attribute of the filter, 422 naming any other member that is missing,
/// of the wrong type, or not supported.
pub fn parse_subscription(body: &Map<String, Value>) -> Result<ParsedSubscription, Problem> {
    let filter = match body.get("filter") {
        None | Some(Value::Null) => None,
        Some(filter) => {
            check_filter(filter)?;
            Some(filter.clone())
                .filter(|f| f.as_object().is_some_and(|members| !members.is_empty()))
        }
    };
    Ok(ParsedSubscription {
        callback_uri: callback_uri(body)?,
        filter,
        verbosity: verbosity(body)?,
        auth: authentication(body)?,
    })
}

/// Whether a living subscription asks for the same: callback, filter and verbosity, whatever the order of arrays.
#[must_use]
pub fn is_same(asked: &ParsedSubscription, existing: &LccnSubscription) -> bool {
    !existing.deleted
        && asked.callback_uri == existing.callback_uri
        && asked.verbosity == existing.verbosity
        && asked.filter.as_ref().map(canonical) == existing.filter.as_ref().map(canonical)
}

/// Arrays of a filter are sets: sorted, without repeats.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(entries) => {
            let mut entries: Vec<Value> = entries.iter().map(canonical).collect();
            entries.sort_by_key(Value::to_string);
            entries.dedup();
            Value::Array(entries)
        }
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| (name.clone(), canonical(member)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(422, detail)
}

fn callback_uri(body: &Map<String, Value>) -> Result<String, Problem> {
    let uri = match body.get("callbackUri") {
        Some(Value::String(uri)) => uri,
        Some(_) => return Err(invalid("callbackUri must be a text")),
        None => return Err(invalid("callbackUri is missing")),
    };
    let rest = uri
        .strip_prefix("https://")
        .or_else(|| uri.strip_prefix("http://"));
    let has_host =
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']));
    let legal = has_host
        && uri.len() <= URI_LIMIT
        && !uri.chars().any(|c| c.is_control() || c.is_whitespace());
    if !legal {
        return Err(invalid(format!(
            "callbackUri must be an absolute http or https URI of at most {URI_LIMIT} bytes"
        )));
    }
    let authority = rest
        .unwrap_or_default()
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    if authority.contains('@') {
        return Err(invalid(
            "callbackUri must not hold a user name or password; use authentication with BASIC",
        ));
    }
    Ok(uri.clone())
}

fn verbosity(body: &Map<String, Value>) -> Result<Verbosity, Problem> {
    match body.get("verbosity") {
        None => Ok(Verbosity::Full),
        Some(Value::String(word)) if word == "FULL" => Ok(Verbosity::Full),
        Some(Value::String(word)) if word == "SHORT" => Ok(Verbosity::Short),
        Some(_) => Err(invalid("verbosity must be one of FULL, SHORT")),
    }
}

fn authentication(body: &Map<String, Value>) -> Result<Option<(String, Secret)>, Problem> {
    let members = match body.get("authentication") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(invalid("authentication must be an object")),
    };
    let Some(Value::Array(types)) = members.get("authType") else {
        return Err(invalid(
            "authentication/authType must be an array such as [\"BASIC\"]",
        ));
    };
    // SOL013 lets the VNFM choose among the types that are offered.
    if !types.iter().any(|t| t == "BASIC") {
        return Err(invalid(unsupported_type(types)));
    }
    let Some(Value::Object(params)) = members.get("paramsBasic") else {
        return Err(invalid(
            "authentication/paramsBasic with userName and password is missing",
        ));
    };
    let user = basic_member(params, "userName")?;
    if user.contains(':') {
        return Err(invalid(
            "authentication/paramsBasic/userName must not hold a colon (RFC 7617)",
        ));
    }
    Ok(Some((user, Secret::new(basic_member(params, "password")?))))
}

fn basic_member(params: &Map<String, Value>, name: &str) -> Result<String, Problem> {
    match params.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(invalid(format!(
            "authentication/paramsBasic/{name} must be a text"
        ))),
        None => Err(invalid(format!(
            "authentication/paramsBasic/{name} is missing"
        ))),
    }
}

fn unsupported_type(types: &[Value]) -> String {
    for known in ["OAUTH2_CLIENT_CREDENTIALS", "TLS_CERT"] {
        if types.iter().any(|t| t == known) {
            return format!("authentication/authType {known} is not supported yet; BASIC is");
        }
    }
    "authentication/authType must hold BASIC, the one type that is supported".to_owned()
}

/// What stands under an attribute of the filter.
enum Shape {
    /// A list of texts.
    Texts,
    /// A list of texts out of these.
    OneOf(&'static [&'static str]),
    /// An object of these attributes.
    Object(&'static [(&'static str, Shape)]),
    /// A list of objects of these attributes, the first of which is required.
    Objects(&'static [(&'static str, Shape)]),
    /// A text.
    Text,
}

const FILTER: &[(&str, Shape)] = &[
    ("vnfInstanceSubscriptionFilter", Shape::Object(INSTANCES)),
    (
        "notificationTypes",
        Shape::OneOf(&super::filter::NOTIFICATION_TYPES),
    ),
    ("operationTypes", Shape::OneOf(&OPERATION_TYPES)),
    ("operationStates", Shape::OneOf(&OPERATION_STATES)),
];

const INSTANCES: &[(&str, Shape)] = &[
    ("vnfdIds", Shape::Texts),
    ("vnfProductsFromProviders", Shape::Objects(PROVIDERS)),
    ("vnfInstanceIds", Shape::Texts),
    ("vnfInstanceNames", Shape::Texts),
];

const PROVIDERS: &[(&str, Shape)] = &[
    ("vnfProvider", Shape::Text),
    ("vnfProducts", Shape::Objects(PRODUCTS)),
];

const PRODUCTS: &[(&str, Shape)] = &[
    ("vnfProductName", Shape::Text),
    ("versions", Shape::Objects(VERSIONS)),
];

const VERSIONS: &[(&str, Shape)] = &[
    ("vnfSoftwareVersion", Shape::Text),
    ("vnfdVersions", Shape::Texts),
];

/// All of SOL003 5.5.4.4: a subscriber may name operations that come later.
const OPERATION_TYPES: [&str; 12] = [
    "INSTANTIATE",
    "SCALE",
    "SCALE_TO_LEVEL",
    "CHANGE_FLAVOUR",
    "TERMINATE",
    "HEAL",
    "OPERATE",
    "CHANGE_EXT_CONN",
    "MODIFY_INFO",
    "CREATE_SNAPSHOT",
    "REVERT_TO_SNAPSHOT",
    "CHANGE_VNFPKG",
];

const OPERATION_STATES: [&str; 7] = [
    "STARTING",
    "PROCESSING",
    "COMPLETED",
    "FAILED_TEMP",
    "FAILED",
    "ROLLING_BACK",
    "ROLLED_BACK",
];

fn check_filter(filter: &Value) -> Result<(), Problem> {
    check_members(filter, FILTER, "filter").map_err(|detail| Problem::new(400, detail))
}

fn check_members(value: &Value, known: &[(&str, Shape)], path: &str) -> Result<(), String> {
    let Value::Object(members) = value else {
        return Err(format!("{path} must be an object"));
    };
    for (name, member) in members {
        let at = format!("{path}/{name}");
        let Some((_, shape)) = known.iter().find(|(known, _)| known == name) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "{at} is not an attribute of the filter; known are {}",
                names.join(", ")
            ));
        };
        check_shape(member, shape, &at)?;
    }
    Ok(())
}

fn check_shape(value: &Value, shape: &Shape, at: &str) -> Result<(), String> {
    match shape {
        Shape::Text => value
            .as_str()
            .map(|_| ())
            .ok_or_else(|| format!("{at} must be a text")),
        Shape::Object(known) => check_members(value, known, at),
        Shape::Texts => check_each(value, at, |entry, at| check_shape(entry, &Shape::Text, at)),
        Shape::OneOf(words) => check_each(value, at, |entry, at| {
            let known = entry.as_str().is_some_and(|word| words.contains(&word));
            if known {
                Ok(())
            } else {
                Err(format!("{at} must be one of {}", words.join(", ")))
            }
        }),
        Shape::Objects(known) => check_each(value, at, |entry, at| {
            check_members(entry, known, at)?;
            let required = known.first().map_or("", |(name, _)| *name);
            match entry.get(required) {
                Some(_) => Ok(()),
                None => Err(format!("{at}/{required} is missing")),
            }
        }),
    }
}

fn check_each(
    value: &Value,
    at: &str,
    check: impl Fn(&Value, &str) -> Result<(), String>,
) -> Result<(), String> {
    let Value::Array(entries) = value else {
        return Err(format!("{at} must be an array"));
    };
    entries
        .iter()
        .enumerate()
        .try_for_each(|(index, entry)| check(entry, &format!("{at}/{index}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{SubscriptionId, Tenant};
    use crate::subscription::CallbackAuth;
    use crate::time::Timestamp;
    use serde_json::json;

    fn parse(body: &Value) -> Result<ParsedSubscription, Problem> {
        parse_subscription(body.as_object().unwrap())
    }

    #[test]
    fn a_request_without_options_asks_for_everything_in_full() {
        let parsed =
            parse(&json!({"callbackUri": "http://nfvo.example:8080/cb", "newer": 1})).unwrap();
        assert_eq!(parsed.filter, None);
        assert_eq!(parsed.verbosity, Verbosity::Full);
        assert_eq!(parsed.auth, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let uri = "https://nfvo.example/cb";
        for (body, status, says) in [
            (json!({}), 422, "callbackUri is missing"),
            (json!({"callbackUri": 1}), 422, "callbackUri must be a text"),
            (
                json!({"callbackUri": "ftp://x"}),
                422,
                "absolute http or https",
            ),
            (
                json!({"callbackUri": "https://u:p@x/"}),
                422,
                "must not hold a user name",
            ),
            (
                json!({"callbackUri": uri, "verbosity": "MUCH"}),
                422,
                "FULL, SHORT",
            ),
            (
                json!({"callbackUri": uri, "filter": {"vnfInstanceFilter": {}}}),
                400,
                "filter/vnfInstanceFilter is not",
            ),
            (
                json!({"callbackUri": uri, "filter": {"operationStates": ["DONE"]}}),
                400,
                "filter/operationStates/0 must be",
            ),
            (
                json!({"callbackUri": uri, "filter": {"vnfInstanceSubscriptionFilter": {"vnfdIds": "a"}}}),
                400,
                "vnfdIds must be an array",
            ),
            (
                json!({"callbackUri": uri, "authentication": {"authType": ["TLS_CERT"]}}),
                422,
                "TLS_CERT is not supported yet; BASIC is",
            ),
            (
                json!({"callbackUri": uri, "authentication": {"authType": ["BASIC"]}}),
                422,
                "paramsBasic",
            ),
        ] {
            let refused = parse(&body).unwrap_err();
            assert_eq!(refused.status, status, "{body}");
            assert!(
                refused.detail.contains(says),
                "{} should say {says}",
                refused.detail
            );
        }
    }

    #[test]
    fn the_password_of_basic_is_out_of_sight() {
        let parsed = parse(&json!({"callbackUri": "https://a/", "authentication": {
            "authType": ["BASIC"], "paramsBasic": {"userName": "u", "password": "pw-1"}}}))
        .unwrap();
        assert!(!format!("{parsed:?}").contains("pw-1"));
        assert_eq!(parsed.auth.unwrap().1.reveal(), "pw-1");
    }

    #[test]
    fn every_subset_of_the_filter_is_a_filter() {
        let attributes = [
            (
                "notificationTypes",
                json!(["VnfLcmOperationOccurrenceNotification"]),
            ),
            ("operationTypes", json!(["SCALE"])),
            ("operationStates", json!(["COMPLETED"])),
            (
                "vnfInstanceSubscriptionFilter",
                json!({"vnfdIds": ["a"], "vnfInstanceNames": []}),
            ),
        ];
        for chosen in 0u8..16 {
            let filter: Map<String, Value> = attributes
                .iter()
                .enumerate()
                .filter(|(index, _)| chosen & (1 << index) != 0)
                .map(|(_, (name, value))| ((*name).to_owned(), value.clone()))
                .collect();
            let parsed = parse(&json!({"callbackUri": "https://a/", "filter": filter})).unwrap();
            assert_eq!(parsed.filter.is_some(), chosen != 0, "{filter:?}");
        }
    }

    #[test]
    fn the_order_of_arrays_makes_no_other_subscription() {
        let with = |states: Value| {
            parse(&json!({"callbackUri": "https://a/", "filter": {"operationStates": states}}))
                .unwrap()
        };
        let first = with(json!(["FAILED", "COMPLETED"]));
        let existing = LccnSubscription {
            id: SubscriptionId::parse("s").unwrap(),
            tenant: Tenant::default_tenant(),
            created_at: Timestamp::from_millis(0),
            callback_uri: first.callback_uri.clone(),
            filter: first.filter.clone(),
            verbosity: first.verbosity,
            auth: CallbackAuth::None,
            deleted: false,
        };
        assert!(is_same(&with(json!(["COMPLETED", "FAILED"])), &existing));
        assert!(!is_same(&with(json!(["COMPLETED"])), &existing));
        assert!(!is_same(
            &first,
            &LccnSubscription {
                deleted: true,
                ..existing
            }
        ));
    }
}
