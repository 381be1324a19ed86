//! Why a package is refused.

use std::fmt;

/// Why a package, or a list of manifests asked of it, is refused.
///
/// `Display` reads `file:line: what is wrong`, as far as file and line are known; it is made for
/// `onboardingFailureDetails` and never quotes the content of a manifest's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageError {
    /// What kind of thing is wrong.
    pub kind: ErrorKind,
    /// Path inside the package, where one file is to blame.
    pub file: Option<String>,
    /// Line in that file, counted from 1.
    pub line: Option<usize>,
    /// What is wrong, in words.
    pub message: String,
}

/// What kind of thing is wrong with a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not a zip, or one with an entry that a package may not have.
    Archive,
    /// Larger than what is taken.
    Limit,
    /// A file is missing or does not have the hash that the package states.
    Integrity,
    /// A YAML file cannot be read.
    Yaml,
    /// TOSCA.meta, the SOL004 manifest or the VNFD is wrong.
    Descriptor,
    /// A Kubernetes manifest is wrong.
    Manifest,
    /// Holds what this version does not run: a chart, a hook or a script.
    Unsupported,
    /// `lcm-kubernetes-def-files` of a request names what cannot be used.
    DefFiles,
    /// The folder to build a package from cannot be read.
    Io,
}

impl std::error::Error for PackageError {}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: {}", self.message),
            (Some(file), None) => write!(f, "{file}: {}", self.message),
            (None, _) => f.write_str(&self.message),
        }
    }
}

impl PackageError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            file: None,
            line: None,
            message: message.into(),
        }
    }

    pub(crate) fn in_file(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

/// Short text from outside, fit to be quoted in a message: cut, and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}
