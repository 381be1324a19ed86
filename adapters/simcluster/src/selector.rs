//! Label and field selectors, as objects and as query parameters.

use serde_json::Value;

use crate::json;
use crate::status::{ApiError, ApiResult};

/// Whether a `LabelSelector` object selects these labels. An empty selector selects everything.
pub(crate) fn matches_labels(selector: &Value, labels: &Value) -> bool {
    let wanted = json::map(selector, "/matchLabels").into_iter().flatten();
    for (key, value) in wanted {
        if labels.get(key) != Some(value) {
            return false;
        }
    }
    json::list(selector, "/matchExpressions")
        .iter()
        .all(|expression| {
            let have = labels.get(json::text(expression, "/key"));
            let values = json::list(expression, "/values");
            match json::text(expression, "/operator") {
                "In" => have.is_some_and(|h| values.contains(h)),
                "NotIn" => have.is_none_or(|h| !values.contains(h)),
                "Exists" => have.is_some(),
                "DoesNotExist" => have.is_none(),
                _ => false,
            }
        })
}

/// Whether a plain map of labels (of Services and the like) selects these labels.
pub(crate) fn matches_map(selector: &Value, labels: &Value) -> bool {
    selector.as_object().is_some_and(|wanted| {
        !wanted.is_empty()
            && wanted
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// A `LabelSelector` object in its text form, as scale subresources show it.
pub(crate) fn to_text(selector: &Value) -> String {
    let mut parts: Vec<String> = json::map(selector, "/matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for expression in json::list(selector, "/matchExpressions") {
        let key = json::text(expression, "/key");
        let values: Vec<&str> = json::list(expression, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match json::text(expression, "/operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    parts.join(",")
}

#[derive(Debug, Clone, PartialEq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// The `labelSelector` and `fieldSelector` of a list, watch or collection delete.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selectors {
    labels: Vec<Requirement>,
    /// Pointer, value, and whether it must be equal.
    fields: Vec<(String, String, bool)>,
}

/// Fields by which lists can be selected, besides `metadata.name` and `metadata.namespace`.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("namespaces", &["status.phase"]),
    ("nodes", &["spec.unschedulable"]),
    ("secrets", &["type"]),
    ("replicasets.apps", &["status.replicas"]),
    ("replicationcontrollers", &["status.replicas"]),
    ("jobs.batch", &["status.successful"]),
    ("services", &["spec.clusterIP", "spec.type"]),
];

impl Selectors {
    /// Parses both parameters; either may be empty.
    ///
    /// # Errors
    /// 400 for text that cannot be read and for fields that the kind does not offer.
    pub fn parse(storage: &str, labels: &str, fields: &str) -> ApiResult<Self> {
        let mut parsed = Self::default();
        for part in split_outside_parentheses(labels) {
            parsed.labels.push(requirement(part.trim())?);
        }
        for part in fields.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (field, value, equal) = if let Some((field, value)) = part.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = part.split_once("==") {
                (field, value, true)
            } else if let Some((field, value)) = part.split_once('=') {
                (field, value, true)
            } else {
                let text = format!("invalid field selector: {part:?}");
                return Err(ApiError::bad_request(text));
            };
            let offered = FIELDS
                .iter()
                .find(|(of, _)| *of == storage)
                .map_or(&[][..], |(_, f)| f);
            if !matches!(field, "metadata.name" | "metadata.namespace") && !offered.contains(&field)
            {
                let text = if offered.is_empty() {
                    format!(
                        "\"{field}\" is not a known field selector: only \"metadata.name\", \
                         \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {field}")
                };
                return Err(ApiError::bad_request(text));
            }
            let pointer = format!("/{}", field.replace('.', "/"));
            parsed.fields.push((pointer, value.to_owned(), equal));
        }
        Ok(parsed)
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn select(&self, object: &Value) -> bool {
        let labels = json::at(object, "/metadata/labels");
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        let labelled = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                label(key).is_some_and(|have| values.iter().any(|v| v == have))
            }
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|have| !values.iter().any(|v| v == have))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        });
        labelled
            && self.fields.iter().all(|(pointer, value, equal)| {
                let have = match json::at(object, pointer) {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                (have == *value) == *equal
            })
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn requirement(text: &str) -> ApiResult<Requirement> {
    let owned = |s: &str| s.trim().to_owned();
    let values = |s: &str| -> Vec<String> {
        s.trim()
            .trim_start_matches('(')
            .trim_end_matches(')')
            .split(',')
            .map(owned)
            .collect()
    };
    if let Some((key, set)) = text.split_once(" notin ") {
        return Ok(Requirement::NotIn(owned(key), values(set)));
    }
    if let Some((key, set)) = text.split_once(" in ") {
        return Ok(Requirement::In(owned(key), values(set)));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(owned(key), vec![owned(value)]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(owned(key), vec![owned(value)]));
    }
    if let Some(key) = text.strip_prefix('!') {
        return Ok(Requirement::Absent(owned(key)));
    }
    if text.contains(char::is_whitespace) {
        let text = format!("unable to parse requirement: found '{text}'");
        return Err(ApiError::bad_request(text));
    }
    Ok(Requirement::Exists(owned(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(labels: &str, fields: &str, object: &Value) -> bool {
        Selectors::parse("pods", labels, fields)
            .unwrap()
            .select(object)
    }

    #[test]
    fn label_selectors_in_every_form() {
        let pod = json!({"metadata": {"name": "p", "labels": {"a": "1", "b": "2"}}});
        for yes in [
            "a=1",
            "a==1,b",
            "a in (1, 3)",
            "c notin (1)",
            "!c",
            "a!=2",
            "",
        ] {
            assert!(selects(yes, "", &pod), "{yes}");
        }
        for no in ["a=2", "c", "!a", "a notin (1,2)", "a in (2)"] {
            assert!(!selects(no, "", &pod), "{no}");
        }
    }

    #[test]
    fn fields_that_a_kind_does_not_offer_are_refused() {
        assert!(Selectors::parse("pods", "", "spec.foo=1").is_err());
        let pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}});
        assert!(selects("", "status.phase=Running,metadata.name!=q", &pod));
    }
}
