//! Attribute selectors (SOL013 5.3): what of each entry a list shows.

use cairn_api_types::attributes::Attributes;
use serde_json::{Map, Value};

use crate::problem::ApiError;
use crate::query::{Query, bad};

/// Which attributes are shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selector {
    /// All of them.
    All,
    /// Without those that lists leave out by default.
    WithoutDefaults,
    /// What must be there, and these.
    Only(Vec<Vec<String>>),
    /// As by default, and these all the same.
    DefaultsAnd(Vec<Vec<String>>),
    /// All but these.
    Without(Vec<Vec<String>>),
}

impl Selector {
    /// Reads the selectors of a query.
    ///
    /// # Errors
    ///
    /// 400 for a combination that SOL013 does not know, or an unknown attribute.
    pub(crate) fn parse(query: &Query, attributes: &Attributes) -> Result<Self, ApiError> {
        let fields = paths(query.value("fields")?, attributes)?;
        let excluded = paths(query.value("exclude_fields")?, attributes)?;
        let all = query.flag("all_fields")?;
        let defaults = query.flag("exclude_default")?;
        match (all, fields, excluded, defaults) {
            (true, None, None, false) => Ok(Self::All),
            (false, None, None, _) => Ok(Self::WithoutDefaults),
            (false, Some(fields), None, false) => Ok(Self::Only(fields)),
            (false, Some(fields), None, true) => Ok(Self::DefaultsAnd(fields)),
            (false, None, Some(excluded), false) => Ok(Self::Without(excluded)),
            (true, _, _, _) | (false, _, Some(_), _) => Err(bad(
                "of all_fields, fields, exclude_fields, exclude_default only fields and exclude_default go together",
            )),
        }
    }

    /// The entry as it is shown.
    pub(crate) fn select(&self, mut entry: Value, attributes: &Attributes) -> Value {
        let Value::Object(members) = &mut entry else {
            return entry;
        };
        match self {
            Self::All => {}
            Self::WithoutDefaults => {
                members.retain(|name, _| !attributes.excluded_by_default.contains(&name.as_str()));
            }
            Self::Only(fields) => keep(members, fields, &mut Vec::new(), attributes, &[]),
            Self::DefaultsAnd(fields) => {
                let shown: Vec<&str> = attributes
                    .names()
                    .filter(|name| !attributes.excluded_by_default.contains(name))
                    .collect();
                keep(members, fields, &mut Vec::new(), attributes, &shown);
            }
            Self::Without(excluded) => {
                let optional = |path: &&Vec<String>| {
                    let path: Vec<&str> = path.iter().map(String::as_str).collect();
                    !attributes.require(&path)
                };
                excluded
                    .iter()
                    .filter(optional)
                    .for_each(|path| remove(&mut entry, path));
            }
        }
        entry
    }
}

fn paths(
    list: Option<&str>,
    attributes: &Attributes,
) -> Result<Option<Vec<Vec<String>>>, ApiError> {
    let Some(list) = list else { return Ok(None) };
    list.split(',')
        .map(|path| {
            let path: Vec<String> = path.split('/').map(str::to_owned).collect();
            if attributes.know(&path) {
                return Ok(path);
            }
            let name: String = path.join("/").chars().take(200).collect();
            Err(bad(format!("{name:?} is not an attribute here")))
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Keeps what the paths lead to, what is `shown` anyway, and what must be there, at any depth.
fn keep(
    members: &mut Map<String, Value>,
    paths: &[Vec<String>],
    above: &mut Vec<String>,
    attributes: &Attributes,
    shown: &[&str],
) {
    members.retain(|name, member| {
        above.push(name.clone());
        let here: Vec<&str> = above.iter().map(String::as_str).collect();
        let whole = shown.contains(&name.as_str()) || attributes.require(&here);
        let below: Vec<Vec<String>> = paths
            .iter()
            .filter(|path| path[0] == *name)
            .map(|path| path[1..].to_vec())
            .collect();
        if !whole && !below.is_empty() && !below.iter().any(Vec::is_empty) {
            keep_inside(member, &below, above, attributes);
        }
        above.pop();
        whole || !below.is_empty()
    });
}

fn keep_inside(
    value: &mut Value,
    paths: &[Vec<String>],
    above: &mut Vec<String>,
    attributes: &Attributes,
) {
    match value {
        Value::Array(entries) => {
            for entry in entries {
                keep_inside(entry, paths, above, attributes);
            }
        }
        Value::Object(members) => keep(members, paths, above, attributes, &[]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove(value: &mut Value, path: &[String]) {
    match (value, path) {
        (Value::Array(entries), path) => entries.iter_mut().for_each(|entry| remove(entry, path)),
        (Value::Object(members), [last]) => {
            members.remove(last);
        }
        (Value::Object(members), [name, rest @ ..]) => {
            if let Some(member) = members.get_mut(name) {
                remove(member, rest);
            }
        }
        (
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
            _,
        ) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_api_types::attributes;
    use serde_json::json;

    const KNOWN: [&str; 4] = ["all_fields", "fields", "exclude_fields", "exclude_default"];

    fn selected(query: &str) -> Value {
        let query = Query::parse(Some(query), &KNOWN).unwrap();
        let selector = Selector::parse(&query, attributes::vnf_instance()).unwrap();
        let entry = json!({
            "id": "i", "vnfInstanceName": "n", "metadata": {"a": 1},
            "instantiatedVnfInfo": {"vnfState": "STARTED", "flavourId": "f", "localizationLanguage": "en",
                "scaleStatus": [{"aspectId": "a", "scaleLevel": 1, "vnfdId": "v"}]}, "_links": {},
        });
        selector.select(entry, attributes::vnf_instance())
    }

    #[test]
    fn each_selector_shows_its_part() {
        for (query, shown) in [
            ("", json!({"id": "i", "vnfInstanceName": "n", "_links": {}})),
            (
                "exclude_default",
                json!({"id": "i", "vnfInstanceName": "n", "_links": {}}),
            ),
            (
                "fields=metadata",
                json!({"id": "i", "metadata": {"a": 1}, "_links": {}}),
            ),
            (
                "fields=instantiatedVnfInfo/scaleStatus/scaleLevel",
                json!({"id": "i", "instantiatedVnfInfo": {"vnfState": "STARTED", "flavourId": "f",
                "scaleStatus": [{"aspectId": "a", "scaleLevel": 1}]}, "_links": {}}),
            ),
            (
                "fields=metadata&exclude_default",
                json!({"id": "i", "vnfInstanceName": "n", "metadata": {"a": 1}, "_links": {}}),
            ),
            (
                "exclude_fields=id,metadata,instantiatedVnfInfo/flavourId,instantiatedVnfInfo/scaleStatus",
                json!({"id": "i", "vnfInstanceName": "n",
                "instantiatedVnfInfo": {"vnfState": "STARTED", "flavourId": "f", "localizationLanguage": "en"}, "_links": {}}),
            ),
        ] {
            assert_eq!(selected(query), shown, "{query}");
        }
        assert_eq!(selected("all_fields")["metadata"], json!({"a": 1}));
    }

    #[test]
    fn other_combinations_are_refused() {
        for bad in [
            "all_fields&fields=id",
            "fields=id&exclude_fields=id",
            "fields=colour",
            "all_fields&exclude_default",
        ] {
            let query = Query::parse(Some(bad), &KNOWN).unwrap();
            assert!(
                Selector::parse(&query, attributes::vnf_instance()).is_err(),
                "{bad}"
            );
        }
    }
}
