//! The query part of an address: names and values, percent-decoded.

use crate::problem::ApiError;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, Option<String>)>);

impl Query {
    /// Reads a query and refuses parameters that the resource does not have, and those that come twice.
    pub(crate) fn parse(raw: Option<&str>, known: &[&str]) -> Result<Self, ApiError> {
        let mut parameters: Vec<(String, Option<String>)> = Vec::new();
        for part in raw.unwrap_or("").split('&').filter(|part| !part.is_empty()) {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (decode(name)?, Some(decode(value)?)),
                None => (decode(part)?, None),
            };
            if !known.contains(&name.as_str()) {
                let name: String = name.chars().take(80).collect();
                let known = match known {
                    [] => "there are none".to_owned(),
                    known => format!("known are {}", known.join(", ")),
                };
                return Err(bad(format!(
                    "{name} is not a query parameter here; {known}"
                )));
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(bad(format!("{name} is given twice")));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// The value of a parameter.
    pub(crate) fn value(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.0.iter().find(|(given, _)| given == name) {
            None => Ok(None),
            Some((_, Some(value))) if !value.is_empty() => Ok(Some(value)),
            Some(_) => Err(bad(format!("{name} needs a value"))),
        }
    }

    /// Whether a flag (SOL013 5.3) is there.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.0.iter().find(|(given, _)| given == name) {
            None => Ok(false),
            Some((_, None)) => Ok(true),
            Some((_, Some(value))) if value.is_empty() || value == "true" => Ok(true),
            Some(_) => Err(bad(format!("{name} is a flag; it takes no value"))),
        }
    }
}

/// A query that cannot be understood.
pub(crate) fn bad(detail: impl Into<String>) -> ApiError {
    ApiError::new(400, detail)
}

/// Percent-decoding; `+` is a blank, as the libraries of most clients send it.
fn decode(text: &str) -> Result<String, ApiError> {
    let refused = || bad("the query is not correctly percent-encoded");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let high = rest.next().and_then(hex).ok_or_else(refused)?;
                let low = rest.next().and_then(hex).ok_or_else(refused)?;
                bytes.push(high << 4 | low);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| refused())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_flags_need_none() {
        let query = Query::parse(
            Some("filter=%28eq%2Ca%2Cb+c%29&all_fields"),
            &["filter", "all_fields"],
        )
        .unwrap();
        assert_eq!(query.value("filter").unwrap(), Some("(eq,a,b c)"));
        assert!(query.flag("all_fields").unwrap());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for bad in [
            "nosuch=1",
            "filter=%2",
            "filter=%zz",
            "filter=%ff",
            "filter=1&filter=2",
        ] {
            assert!(Query::parse(Some(bad), &["filter"]).is_err(), "{bad}");
        }
        let query = Query::parse(Some("filter=&all_fields=no"), &["filter", "all_fields"]).unwrap();
        assert!(query.value("filter").is_err());
        assert!(query.flag("all_fields").is_err());
    }
}
