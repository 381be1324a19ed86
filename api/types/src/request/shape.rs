//! Shapes as data, and the check of a body against one.

use cairn_domain::problem::Problem;
use serde_json::{Map, Value};

/// The shape of a request body.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name of the type, as the standard has it.
    pub name: &'static str,
    /// Its members.
    pub members: &'static [Member],
    /// What is done with members that are not listed.
    pub unknown: Unknown,
    /// Whether `null` may stand for any member, as in a merge patch (RFC 7396).
    pub patch: bool,
    /// Exactly one of these must be there; empty: no such rule.
    pub one_of: &'static [&'static str],
}

/// What is done with members that are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They are ignored and reported.
    Ignored,
    /// They are refused.
    Refused,
}

/// A member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// It must be there.
    pub required: bool,
    /// What it holds.
    pub kind: Kind,
}

/// What a member holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number within these bounds.
    Integer(i64, i64),
    /// An object whose members are the user's.
    KeyValuePairs,
    /// An object of these members.
    Object(&'static [Member]),
    /// A map to objects of these members.
    MapOf(&'static [Member]),
    /// A list of texts.
    Texts,
    /// A list of objects of these members.
    ListOf(&'static [Member]),
}

/// A body that has its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The body; optional members that were `null` are gone, except from a patch.
    pub body: Map<String, Value>,
    /// Members that were not known, as paths.
    pub unknown: Vec<String>,
}

impl Shape {
    /// Checks a body.
    ///
    /// # Errors
    ///
    /// 422 naming the member that is missing, of the wrong type, out of range, or (in our own API) unknown.
    pub fn check(&self, mut body: Map<String, Value>) -> Result<Checked, Problem> {
        if !self.patch {
            body.retain(|_, member| !member.is_null());
        }
        let mut unknown = Vec::new();
        self.members_of(&body, self.members, "", &mut unknown)?;
        if self.unknown == Unknown::Refused
            && let Some(first) = unknown.first()
        {
            let names: Vec<&str> = self.members.iter().map(|member| member.name).collect();
            return Err(Problem::new(
                422,
                format!(
                    "{first} is not a member of {}; known are {}",
                    self.name,
                    names.join(", ")
                ),
            ));
        }
        self.exactly_one(&body)?;
        Ok(Checked { body, unknown })
    }

    fn exactly_one(&self, body: &Map<String, Value>) -> Result<(), Problem> {
        let given = self
            .one_of
            .iter()
            .filter(|name| body.contains_key(**name))
            .count();
        if self.one_of.is_empty() || given == 1 {
            return Ok(());
        }
        Err(Problem::new(
            422,
            format!("exactly one of {} must be given", self.one_of.join(", ")),
        ))
    }

    fn members_of(
        &self,
        body: &Map<String, Value>,
        known: &[Member],
        path: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), Problem> {
        for name in body.keys() {
            if !known.iter().any(|member| member.name == name) {
                unknown.push(format!("{path}{name}"));
            }
        }
        for member in known {
            let at = format!("{path}{}", member.name);
            match body.get(member.name) {
                Some(Value::Null) if self.patch => {}
                Some(value) => self.kind_of(value, member.kind, &at, unknown)?,
                None if member.required => {
                    return Err(Problem::new(422, format!("{at} is missing")));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn kind_of(
        &self,
        value: &Value,
        kind: Kind,
        at: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), Problem> {
        let wrong = |must: &str| Err(Problem::new(422, format!("{at} must be {must}")));
        match (kind, value) {
            (Kind::Text, Value::String(_)) | (Kind::KeyValuePairs, Value::Object(_)) => Ok(()),
            (Kind::Word(words), Value::String(word)) if words.contains(&word.as_str()) => Ok(()),
            (Kind::Integer(least, most), value)
                if value.as_i64().is_some_and(|n| (least..=most).contains(&n)) =>
            {
                Ok(())
            }
            (Kind::Object(known), Value::Object(members)) => {
                self.members_of(members, known, &format!("{at}/"), unknown)
            }
            (Kind::MapOf(known), Value::Object(entries)) => {
                for (key, entry) in entries {
                    if !(self.patch && entry.is_null()) {
                        self.kind_of(entry, Kind::Object(known), &format!("{at}/{key}"), unknown)?;
                    }
                }
                Ok(())
            }
            (Kind::Texts, Value::Array(entries)) => each(entries, at, |entry, at| {
                self.kind_of(entry, Kind::Text, at, unknown)
            }),
            (Kind::ListOf(known), Value::Array(entries)) => each(entries, at, |entry, at| {
                self.kind_of(entry, Kind::Object(known), at, unknown)
            }),
            (Kind::Text, _) => wrong("a text"),
            (Kind::Word(words), _) => wrong(&format!("one of {}", words.join(", "))),
            (Kind::Integer(least, i64::MAX), _) => {
                wrong(&format!("a whole number, {least} or more"))
            }
            (Kind::Integer(least, most), _) => {
                wrong(&format!("a whole number from {least} to {most}"))
            }
            (Kind::KeyValuePairs | Kind::Object(_) | Kind::MapOf(_), _) => wrong("an object"),
            (Kind::Texts | Kind::ListOf(_), _) => wrong("an array"),
        }
    }
}

fn each(
    entries: &[Value],
    at: &str,
    mut check: impl FnMut(&Value, &str) -> Result<(), Problem>,
) -> Result<(), Problem> {
    for (index, entry) in entries.iter().enumerate() {
        check(entry, &format!("{at}/{index}"))?;
    }
    Ok(())
}
