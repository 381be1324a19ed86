//! Making a CSAR from a folder (`cairn package build`).

use std::fs;
use std::path::Path;

use crate::archive::{Files, Limits};
use crate::digest::Algorithm;
use crate::error::{ErrorKind, PackageError};
use crate::meta::{self, TOSCA_META};
use crate::pack::pack;
use crate::package::Package;

/// Folders nest no deeper than this.
const MAX_DEPTH: usize = 32;

/// Makes the CSAR of a folder that holds what the package is to hold.
///
/// The hash of every file goes into the SOL004 manifest in place of those there, hashes in
/// TOSCA.meta are brought up to date, and the result is checked as onboarding would check it. The
/// same folder gives the same bytes. Files whose name begins with a dot are left out.
///
/// # Errors
/// [`ErrorKind::Io`] for what cannot be read; else what onboarding would say.
pub fn build(dir: &Path) -> Result<Vec<u8>, PackageError> {
    let limits = Limits::default();
    let mut files = Files::new();
    let mut total = 0;
    collect(dir, "", 0, &mut |path, content: Vec<u8>| {
        total += content.len();
        files.insert(path, content);
        if total <= limits.total_bytes && files.len() <= limits.entries {
            return Ok(());
        }
        let message = format!(
            "the folder holds more than {} bytes or {} files",
            limits.total_bytes, limits.entries
        );
        Err(PackageError::new(ErrorKind::Limit, message))
    })?;
    refresh_metadata(&mut files)?;
    refresh_manifest(&mut files)?;
    let bytes = pack(files.iter())?;
    Package::read(&bytes, &limits)?;
    Ok(bytes)
}

fn collect(
    dir: &Path,
    below: &str,
    depth: usize,
    take: &mut dyn FnMut(String, Vec<u8>) -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let failed = |e: std::io::Error| unreadable(below, &e);
    if depth > MAX_DEPTH {
        let message = format!("folders nest more than {MAX_DEPTH} deep");
        return Err(PackageError::new(ErrorKind::Io, message).in_file(below));
    }
    let mut entries: Vec<_> = fs::read_dir(dir)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else {
            let message = "holds a file whose name is not UTF-8";
            return Err(PackageError::new(ErrorKind::Io, message).in_file(below));
        };
        if name.starts_with('.') {
            continue;
        }
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        let kind = entry.file_type().map_err(|e| unreadable(&path, &e))?;
        if kind.is_dir() {
            collect(&entry.path(), &path, depth + 1, take)?;
        } else if kind.is_file() {
            let content = fs::read(entry.path()).map_err(|e| unreadable(&path, &e))?;
            take(path, content)?;
        } else {
            let message = "symbolic links and special files are not taken";
            return Err(PackageError::new(ErrorKind::Archive, message).in_file(&path));
        }
    }
    Ok(())
}

fn unreadable(path: &str, error: &std::io::Error) -> PackageError {
    let shown = if path.is_empty() { "the folder" } else { path };
    PackageError::new(ErrorKind::Io, format!("{shown} cannot be read: {error}"))
}

/// Brings the hashes that TOSCA.meta states up to date.
fn refresh_metadata(files: &mut Files) -> Result<(), PackageError> {
    let Some(text) = meta::text(files, TOSCA_META)? else {
        return Ok(());
    };
    let mut hashes = Vec::new();
    let (mut source, mut algorithm) = (None, None);
    for line in meta::lines(text) {
        match line.key.to_ascii_lowercase().as_str() {
            "name" => (source, algorithm) = (files.get(line.value), None),
            "algorithm" => algorithm = Algorithm::named(line.value),
            "hash" => {
                if let (Some(content), Some(algorithm)) = (source, algorithm) {
                    hashes.push((line.number, algorithm.hex(content)));
                }
            }
            _ => {}
        }
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (number, hash) in hashes {
        lines[number - 1] = format!("Hash: {hash}");
    }
    let refreshed = lines.join("\n") + "\n";
    files.insert(TOSCA_META.to_owned(), refreshed.into_bytes());
    Ok(())
}

/// Writes the hash of each file into the SOL004 manifest, in place of what is there. A signature
/// is dropped with them: it would be wrong.
fn refresh_manifest(files: &mut Files) -> Result<(), PackageError> {
    let Some(path) = manifest_path(files)? else {
        return Ok(());
    };
    let text = meta::text(files, &path)?.unwrap_or_default();
    let metadata = kept(text).join("\n");
    let stated = files
        .iter()
        .filter(|(source, _)| **source != path)
        .map(|(source, content)| {
            let hash = Algorithm::Sha256.hex(content);
            format!("\n\nSource: {source}\nAlgorithm: SHA-256\nHash: {hash}")
        });
    let mut refreshed: Vec<String> = std::iter::once(metadata).chain(stated).collect();
    refreshed.push("\n".to_owned());
    let refreshed = refreshed.concat();
    files.insert(path, refreshed.into_bytes());
    Ok(())
}

/// The manifest that TOSCA.meta names, if it is there; if not, the check says what is missing.
fn manifest_path(files: &Files) -> Result<Option<String>, PackageError> {
    let Some(text) = meta::text(files, TOSCA_META)? else {
        return Ok(None);
    };
    let named = meta::lines(text).find(|line| line.key.eq_ignore_ascii_case("etsi-entry-manifest"));
    let path = named.map(|line| line.value.trim_start_matches("./").to_owned());
    Ok(path.filter(|path| files.contains_key(path)))
}

/// The lines of a manifest that do not state files: its metadata, without blank lines at the end.
fn kept(text: &str) -> Vec<&str> {
    let mut kept: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("-----BEGIN"))
        .filter(|line| {
            let key = line
                .split(':')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            !matches!(key.as_str(), "source" | "algorithm" | "hash")
        })
        .collect();
    while kept.last().is_some_and(|line| line.trim().is_empty()) {
        kept.pop();
    }
    kept
}
