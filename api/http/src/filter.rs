//! Attribute-based filtering (SOL013 5.2): `(op,attribute[/attribute]*,value[,value]*)`, joined by `;`.

use cairn_api_types::attributes::Attributes;
use cairn_domain::time::Timestamp;
use serde_json::Value;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

use crate::problem::ApiError;
use crate::query::bad;

/// Most expressions in one filter.
const EXPRESSION_LIMIT: usize = 64;
/// Stands for the keys of a map.
const KEYS: &str = "@key";

/// A filter: all of its expressions must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter(Vec<Expression>);

#[derive(Clone, Debug, PartialEq)]
struct Expression {
    operator: Operator,
    path: Vec<String>,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    In,
    NotIn,
    Contains,
    ContainsNot,
}

const OPERATORS: [(&str, Operator); 10] = [
    ("eq", Operator::Equal),
    ("neq", Operator::NotEqual),
    ("gt", Operator::Greater),
    ("gte", Operator::GreaterOrEqual),
    ("lt", Operator::Less),
    ("lte", Operator::LessOrEqual),
    ("in", Operator::In),
    ("nin", Operator::NotIn),
    ("cont", Operator::Contains),
    ("ncont", Operator::ContainsNot),
];

impl Filter {
    /// Reads a filter over the attributes of a resource.
    ///
    /// # Errors
    ///
    /// 400 for bad syntax, an unknown operator or attribute, or a wrong number of values.
    pub(crate) fn parse(text: &str, attributes: &Attributes) -> Result<Self, ApiError> {
        let mut rest = text.chars().peekable();
        let mut expressions = vec![expression(&mut rest)?];
        while let Some(separator) = rest.next() {
            if separator != ';' {
                return Err(bad("filter: expressions are joined by ;"));
            }
            if expressions.len() == EXPRESSION_LIMIT {
                return Err(bad(format!(
                    "filter: at most {EXPRESSION_LIMIT} expressions are taken"
                )));
            }
            expressions.push(expression(&mut rest)?);
        }
        for expression in &expressions {
            let path: Vec<String> = expression
                .path
                .iter()
                .filter(|name| *name != KEYS)
                .cloned()
                .collect();
            if !attributes.know(&path) {
                return Err(bad(format!(
                    "filter: {} is not an attribute here",
                    expression
                        .path
                        .join("/")
                        .chars()
                        .take(200)
                        .collect::<String>()
                )));
            }
        }
        Ok(Self(expressions))
    }

    /// Whether an answer passes.
    pub(crate) fn passes(&self, answer: &Value) -> bool {
        self.0
            .iter()
            .all(|expression| expression.holds(answer, &expression.path))
    }
}

fn expression(rest: &mut Peekable<Chars<'_>>) -> Result<Expression, ApiError> {
    if rest.next() != Some('(') {
        return Err(bad("filter: an expression is written (op,attribute,value)"));
    }
    let (word, _) = until(rest, &[','])?;
    let operator = OPERATORS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, operator)| *operator)
        .ok_or_else(|| {
            let known: Vec<&str> = OPERATORS.iter().map(|(name, _)| *name).collect();
            bad(format!(
                "filter: unknown operator; known are {}",
                known.join(", ")
            ))
        })?;
    let (path, _) = until(rest, &[','])?;
    let path = path
        .split('/')
        .map(unescape)
        .collect::<Result<Vec<String>, ApiError>>()?;
    let mut values = Vec::new();
    loop {
        let (value, end) = value(rest)?;
        values.push(value);
        if end == ')' {
            break;
        }
    }
    let takes_many = matches!(
        operator,
        Operator::In | Operator::NotIn | Operator::Contains | Operator::ContainsNot
    );
    if !takes_many && values.len() != 1 {
        return Err(bad(format!("filter: {word} takes one value")));
    }
    Ok(Expression {
        operator,
        path,
        values,
    })
}

/// Reads up to one of these characters and takes it.
fn until(rest: &mut Peekable<Chars<'_>>, ends: &[char]) -> Result<(String, char), ApiError> {
    let mut text = String::new();
    for c in rest.by_ref() {
        if ends.contains(&c) {
            return Ok((text, c));
        }
        text.push(c);
    }
    Err(bad("filter: an expression is not closed"))
}

/// Reads a value, in quotes where it holds `,`, `)` or `'`, and the character that ends it.
fn value(rest: &mut Peekable<Chars<'_>>) -> Result<(String, char), ApiError> {
    if rest.peek() != Some(&'\'') {
        return until(rest, &[',', ')']);
    }
    rest.next();
    let mut text = String::new();
    loop {
        let (piece, _) = until(rest, &['\''])?;
        text.push_str(&piece);
        match rest.next() {
            Some('\'') => text.push('\''),
            Some(end @ (',' | ')')) => return Ok((text, end)),
            Some(_) | None => return Err(bad("filter: a quoted value is not closed")),
        }
    }
}

/// `~0` is `~`, `~1` is `/`, `~a` is `,`, `~b` is `@`.
fn unescape(name: &str) -> Result<String, ApiError> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        if c != '~' {
            plain.push(c);
            continue;
        }
        plain.push(match rest.next() {
            Some('0') => '~',
            Some('1') => '/',
            Some('a') => ',',
            Some('b') => '@',
            Some(_) | None => return Err(bad("filter: ~ must be followed by 0, 1, a or b")),
        });
    }
    Ok(plain)
}

impl Expression {
    /// Looks the attribute up; of an array, one entry that matches is enough. What is absent does not match.
    fn holds(&self, here: &Value, path: &[String]) -> bool {
        match (here, path.split_first()) {
            (Value::Array(entries), _) => entries.iter().any(|entry| self.holds(entry, path)),
            (Value::Object(members), Some((name, rest))) if name == KEYS => {
                rest.is_empty()
                    && members
                        .keys()
                        .any(|key| self.compare(&Value::from(key.as_str())))
            }
            (Value::Object(members), Some((name, rest))) => members
                .get(name)
                .is_some_and(|member| self.holds(member, rest)),
            (leaf, None) => self.compare(leaf),
            (_, Some(_)) => false,
        }
    }

    fn compare(&self, leaf: &Value) -> bool {
        let is = |wanted: &[Ordering]| {
            self.values
                .first()
                .and_then(|value| order(leaf, value))
                .is_some_and(|found| wanted.contains(&found))
        };
        match self.operator {
            Operator::Equal => is(&[Ordering::Equal]),
            Operator::NotEqual => !is(&[Ordering::Equal]),
            Operator::Greater => is(&[Ordering::Greater]),
            Operator::GreaterOrEqual => is(&[Ordering::Greater, Ordering::Equal]),
            Operator::Less => is(&[Ordering::Less]),
            Operator::LessOrEqual => is(&[Ordering::Less, Ordering::Equal]),
            Operator::In => self.any_equal(leaf),
            Operator::NotIn => !self.any_equal(leaf),
            Operator::Contains => self.any_inside(leaf),
            Operator::ContainsNot => !self.any_inside(leaf),
        }
    }

    fn any_equal(&self, leaf: &Value) -> bool {
        self.values
            .iter()
            .any(|value| order(leaf, value) == Some(Ordering::Equal))
    }

    fn any_inside(&self, leaf: &Value) -> bool {
        let text = match leaf {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.values
            .iter()
            .any(|value| text.contains(value.as_str()))
    }
}

/// How an attribute compares with a value, by the attribute's type: numbers as numbers, times as times.
fn order(leaf: &Value, value: &str) -> Option<Ordering> {
    match leaf {
        Value::String(text) => Some(match (Timestamp::parse(text), Timestamp::parse(value)) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            (Ok(_) | Err(_), _) => text.as_str().cmp(value),
        }),
        Value::Number(number) => number.as_f64()?.partial_cmp(&value.parse::<f64>().ok()?),
        Value::Bool(is) => Some(is.cmp(&value.parse::<bool>().ok()?)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_api_types::attributes;
    use serde_json::json;

    fn instance() -> Value {
        json!({
            "id": "i-1", "vnfInstanceName": "it's, (mine)", "instantiationState": "INSTANTIATED",
            "instantiatedVnfInfo": {"vnfState": "STARTED", "scaleStatus": [
                {"aspectId": "a", "scaleLevel": 2}, {"aspectId": "b", "scaleLevel": 0}]},
            "metadata": {"a/b": "x", "built": "2026-01-01T00:00:00.000Z"},
            "vimConnectionInfo": {"vim1": {"vimType": "kubernetes"}},
        })
    }

    fn passes(filter: &str) -> bool {
        Filter::parse(filter, attributes::vnf_instance())
            .unwrap()
            .passes(&instance())
    }

    #[test]
    fn each_operator_compares_by_the_type_of_the_attribute() {
        for (filter, expected) in [
            ("(eq,id,i-1)", true),
            ("(eq,id,i-2)", false),
            ("(neq,id,i-2)", true),
            ("(eq,vnfInstanceName,'it''s, (mine)')", true),
            (
                "(eq,instantiatedVnfInfo/vnfState,STARTED);(eq,id,i-1)",
                true,
            ),
            (
                "(eq,instantiatedVnfInfo/vnfState,STARTED);(eq,id,i-2)",
                false,
            ),
            ("(gt,instantiatedVnfInfo/scaleStatus/scaleLevel,1)", true),
            ("(gt,instantiatedVnfInfo/scaleStatus/scaleLevel,10)", false),
            ("(lte,instantiatedVnfInfo/scaleStatus/scaleLevel,0)", true),
            ("(in,id,i-0,i-1)", true),
            ("(nin,id,i-0,i-1)", false),
            ("(cont,vnfInstanceName,mine,yours)", true),
            ("(ncont,vnfInstanceName,yours)", true),
            ("(eq,metadata/a~1b,x)", true),
            ("(eq,metadata/built,2026-01-01T02:00:00+02:00)", true),
            ("(eq,vimConnectionInfo/@key,vim1)", true),
            ("(eq,vnfInstanceDescription,x)", false),
            ("(neq,vnfInstanceDescription,x)", false),
        ] {
            assert_eq!(passes(filter), expected, "{filter}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for bad in [
            "eq,id,1",
            "(eq,id,1",
            "(eq,id)",
            "(like,id,1)",
            "(eq,id,1,2)",
            "(eq,colour,1)",
            "(eq,id,'1)",
            "(eq,id,1)(eq,id,1)",
            "(eq,id,1);",
            "(eq,i~xd,1)",
            "(eq,,1)",
            "()",
        ] {
            assert!(
                Filter::parse(bad, attributes::vnf_instance()).is_err(),
                "{bad}"
            );
        }
    }
}
