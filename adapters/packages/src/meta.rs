//! `TOSCA-Metadata/TOSCA.meta` and the SOL004 manifest, and the hashes that they state.
//!
//! Both are blocks of `Name: value` lines. A block that names a file (`Name:` in TOSCA.meta,
//! `Source:` in the manifest) may state its hash; a stated hash must be right and a named file
//! must be there. A signature in the manifest (`-----BEGIN CMS-----`) is let through unread.

use std::collections::BTreeMap;

use crate::archive::Files;
use crate::digest::Algorithm;
use crate::error::{ErrorKind, PackageError, quoted};

/// Where TOSCA.meta lies (SOL004 4.1.2).
pub(crate) const TOSCA_META: &str = "TOSCA-Metadata/TOSCA.meta";

/// The two files that TOSCA.meta must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) definitions: String,
    pub(crate) manifest: String,
}

/// One `Name: value` line.
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

/// One file that TOSCA.meta or the manifest names.
struct Stated<'a> {
    line: usize,
    source: &'a str,
    algorithm: Option<(usize, &'a str)>,
    hash: Option<(usize, &'a str)>,
}

/// Reads TOSCA.meta, checks what it and the manifest state, and answers the entries.
///
/// # Errors
/// [`ErrorKind::Descriptor`] for what is missing or malformed, [`ErrorKind::Integrity`] for a
/// named file that is absent or has another hash; both with file and line.
pub(crate) fn read(files: &Files) -> Result<Entries, PackageError> {
    let meta = text(files, TOSCA_META)?
        .ok_or_else(|| PackageError::new(ErrorKind::Descriptor, no_meta(files)))?;
    let entries = entries(meta, files)?;
    let manifest = text(files, &entries.manifest)?.unwrap_or_default();
    let mut hashes = Hashes {
        files,
        known: BTreeMap::new(),
    };
    hashes.check(meta, TOSCA_META, "name")?;
    hashes.check(manifest, &entries.manifest, "source")?;
    Ok(entries)
}

/// Says that an entry is missing, and what it is for.
fn missing(key: &str) -> String {
    let (names, such) = match key {
        "ETSI-Entry-Manifest" => ("the manifest (SOL004 4.3)", "vnf.mf"),
        _ => ("the VNFD", "Definitions/vnfd.yaml"),
    };
    format!("has no {key}; add a line that names {names}, such as \"{key}: {such}\"")
}

/// Says that TOSCA.meta is missing, and why if the folder was packed instead of what is in it.
fn no_meta(files: &Files) -> String {
    let plain = format!("the package has no {TOSCA_META}");
    let inside = files
        .keys()
        .find_map(|path| path.strip_suffix(TOSCA_META)?.strip_suffix('/'));
    match inside {
        Some(folder) => format!(
            "{plain}, only {folder}/{TOSCA_META}: pack what the folder holds, not the folder"
        ),
        None => plain,
    }
}

/// A file of the package as text.
pub(crate) fn text<'a>(files: &'a Files, path: &str) -> Result<Option<&'a str>, PackageError> {
    let Some(bytes) = files.get(path) else {
        return Ok(None);
    };
    std::str::from_utf8(bytes)
        .map(|text| Some(text.strip_prefix('\u{feff}').unwrap_or(text)))
        .map_err(|e| {
            PackageError::new(
                ErrorKind::Yaml,
                format!("is not UTF-8 text (byte {})", e.valid_up_to()),
            )
            .in_file(path)
        })
}

/// The two entries from the first block of TOSCA.meta.
fn entries(meta: &str, files: &Files) -> Result<Entries, PackageError> {
    let find = |key: &str| -> Result<String, PackageError> {
        let line = lines(meta)
            .take_while(|line| !line.key.eq_ignore_ascii_case("name"))
            .find(|line| line.key.eq_ignore_ascii_case(key) && !line.value.is_empty());
        let Some(line) = line else {
            return Err(PackageError::new(ErrorKind::Descriptor, missing(key)).in_file(TOSCA_META));
        };
        let path = line.value.strip_prefix("./").unwrap_or(line.value);
        if files.contains_key(path) {
            return Ok(path.to_owned());
        }
        Err(PackageError::new(
            ErrorKind::Descriptor,
            format!("{key} names {}, which is not in the package", quoted(path)),
        )
        .in_file(TOSCA_META)
        .at_line(line.number))
    };
    Ok(Entries {
        definitions: find("Entry-Definitions")?,
        manifest: find("ETSI-Entry-Manifest")?,
    })
}

/// The `Name: value` lines of a text, up to a signature.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("-----BEGIN"))
        .filter_map(|(index, line)| {
            let (key, value) = line.split_once(':')?;
            Some(Line {
                number: index + 1,
                key: key.trim(),
                value: value.trim(),
            })
        })
}

/// Checks the hashes that a package states; each hash of a file is computed once, however often it
/// is stated.
struct Hashes<'a> {
    files: &'a Files,
    known: BTreeMap<(&'a str, Algorithm), String>,
}

impl Hashes<'_> {
    /// Checks each file that `text` names with the key `naming`.
    fn check(&mut self, text: &str, path: &str, naming: &str) -> Result<(), PackageError> {
        let mut stated: Option<Stated<'_>> = None;
        for line in lines(text) {
            let key = line.key.to_ascii_lowercase();
            match (key.as_str(), &mut stated) {
                (key, previous) if key == naming => {
                    if let Some(previous) = previous.take() {
                        self.check_one(&previous, path)?;
                    }
                    stated = Some(Stated {
                        line: line.number,
                        source: line.value,
                        algorithm: None,
                        hash: None,
                    });
                }
                ("algorithm", Some(stated)) => stated.algorithm = Some((line.number, line.value)),
                ("hash", Some(stated)) => stated.hash = Some((line.number, line.value)),
                _ => {}
            }
        }
        stated.map_or(Ok(()), |last| self.check_one(&last, path))
    }

    fn check_one(&mut self, stated: &Stated<'_>, path: &str) -> Result<(), PackageError> {
        let wrong = |line: usize, message: String| {
            Err(PackageError::new(ErrorKind::Integrity, message)
                .in_file(path)
                .at_line(line))
        };
        // A file kept elsewhere is never fetched, so its hash says nothing about this package.
        if stated.source.contains("://") {
            return Ok(());
        }
        let source = stated.source.strip_prefix("./").unwrap_or(stated.source);
        let shown = quoted(source);
        let Some((source, content)) = self.files.get_key_value(source) else {
            let message = format!("{shown} is named here but not in the package");
            return wrong(stated.line, message);
        };
        let (algorithm_line, name, hash_line, hash) = match (stated.algorithm, stated.hash) {
            (None, None) => return Ok(()),
            (Some((line, _)), None) => {
                return wrong(line, format!("the Hash of {shown} is missing"));
            }
            (None, Some((line, _))) => {
                return wrong(line, "this hash has no Algorithm".to_owned());
            }
            (Some((algorithm_line, name)), Some((hash_line, hash))) => {
                (algorithm_line, name, hash_line, hash)
            }
        };
        let Some(algorithm) = Algorithm::named(name) else {
            let known = "SHA-256, SHA-384, SHA-512";
            let message = format!(
                "{} is not a known algorithm; allowed: {known}",
                quoted(name)
            );
            return wrong(algorithm_line, message);
        };
        let found = self
            .known
            .entry((source, algorithm))
            .or_insert_with(|| algorithm.hex(content));
        if hash.eq_ignore_ascii_case(found) {
            return Ok(());
        }
        let hash = quoted(hash);
        let message = format!("the {name} hash of {shown} is {found}, not {hash} as stated here");
        wrong(hash_line, message)
    }
}
