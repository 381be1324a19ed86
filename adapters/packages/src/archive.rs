//! The zip of a CSAR, unpacked in memory within bounds.
//!
//! Nothing is written to disk, so a path cannot escape anywhere; strange paths are refused all the
//! same, since the files are served and looked up by them. Sizes that the zip's directory states
//! are not believed: what is counted is what comes out of the decompressor.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use zip::ZipReadOptions;
use zip::read::{Config, ZipFileEntry};
use zip::unstable::read::ZipIterable;

use crate::error::{ErrorKind, PackageError, quoted};

/// Files of a package by their path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// How large a package may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the zip.
    pub archive_bytes: usize,
    /// Entries in the zip, folders included.
    pub entries: usize,
    /// Bytes of all files, unpacked.
    pub total_bytes: usize,
    /// How many times larger than packed a file may become. Files up to
    /// [`Limits::RATIO_FREE_BYTES`] are exempt: blank lines pack well.
    pub ratio: usize,
    /// Bytes of one YAML file.
    pub yaml_bytes: usize,
    /// Nodes of all YAML files together, after their aliases are put in.
    pub yaml_nodes: usize,
}

impl Limits {
    /// Size below which a file may be packed as tightly as it likes.
    pub const RATIO_FREE_BYTES: usize = 1024 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            archive_bytes: 64 * 1024 * 1024,
            entries: 4096,
            total_bytes: 256 * 1024 * 1024,
            ratio: 100,
            yaml_bytes: 4 * 1024 * 1024,
            yaml_nodes: 500_000,
        }
    }
}

/// Longest path of a file in a package, in bytes.
const PATH_BYTES: usize = 1024;

fn refused(message: impl Into<String>) -> PackageError {
    PackageError::new(ErrorKind::Archive, message)
}

fn too_large(message: impl Into<String>) -> PackageError {
    PackageError::new(ErrorKind::Limit, message)
}

/// Unpacks the zip.
///
/// # Errors
/// [`ErrorKind::Archive`] or [`ErrorKind::Limit`], naming the entry.
pub(crate) fn unpack(bytes: &[u8], limits: &Limits) -> Result<Files, PackageError> {
    if bytes.len() > limits.archive_bytes {
        return Err(too_large(format!(
            "the package has {} bytes; at most {} are taken",
            bytes.len(),
            limits.archive_bytes
        )));
    }
    // Walked entry by entry: an index of them all would be made in the size that the zip claims.
    let mut archive = ZipIterable::try_new(Cursor::new(bytes), Config::default())
        .map_err(|e| refused(format!("the package is not a zip archive: {e}")))?;
    if archive.len() > limits.entries {
        return Err(too_large(format!(
            "the package has {} entries; at most {} are taken",
            archive.len(),
            limits.entries
        )));
    }
    let unreadable = |e| refused(format!("the list of files in the zip is broken: {e}"));
    let mut files = Files::new();
    let mut total = 0;
    for entry in archive.files().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = path_of(&entry)?;
        if entry.is_dir() {
            continue;
        }
        let content = unpacked(entry, bytes, total, limits).map_err(|e| e.in_file(&path))?;
        total += content.len();
        if files.contains_key(&path) {
            return Err(refused("the package holds two files of this name").in_file(&path));
        }
        files.insert(path, content);
    }
    Ok(files)
}

/// The path of an entry that is a plain file or a folder.
fn path_of(entry: &ZipFileEntry<'_>) -> Result<String, PackageError> {
    let name = entry
        .name()
        .map_err(|e| refused(format!("a file in the zip has no readable name: {e}")))?;
    let path = checked_path(&name)?;
    if entry.is_symlink() || is_special(entry.unix_mode()) {
        return Err(refused("symbolic links and special files are not taken").in_file(&path));
    }
    if entry.encrypted() {
        return Err(refused("encrypted files are not taken").in_file(&path));
    }
    Ok(path)
}

/// Whether a Unix mode names anything but a file or a folder.
fn is_special(mode: Option<u32>) -> bool {
    mode.is_some_and(|mode| !matches!(mode & 0o170_000, 0 | 0o100_000 | 0o040_000))
}

/// What comes out of the decompressor, up to the limits.
fn unpacked(
    entry: ZipFileEntry<'_>,
    bytes: &[u8],
    total: usize,
    limits: &Limits,
) -> Result<Vec<u8>, PackageError> {
    let broken = |e: &dyn std::fmt::Display| refused(format!("cannot be unpacked: {e}"));
    let packed = usize::try_from(entry.compressed_size()).unwrap_or(usize::MAX);
    let by_ratio = packed
        .saturating_mul(limits.ratio)
        .max(Limits::RATIO_FREE_BYTES);
    let by_total = limits.total_bytes.saturating_sub(total);
    let most = by_ratio.min(by_total);
    let mut reader = Cursor::new(bytes);
    let file = entry
        .with_reader(&mut reader, ZipReadOptions::new())
        .map_err(|e| broken(&e))?;
    let mut content = Vec::new();
    file.take((most as u64).saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|e| broken(&e))?;
    if content.len() <= most {
        return Ok(content);
    }
    if by_ratio < by_total {
        return Err(too_large(format!(
            "unpacks to more than {} times its {packed} packed bytes; it looks like a zip bomb",
            limits.ratio
        )));
    }
    Err(too_large(format!(
        "the package unpacks to more than {} bytes",
        limits.total_bytes
    )))
}

/// The path of an entry, without the slash that ends a folder's.
fn checked_path(name: &str) -> Result<String, PackageError> {
    let bad = |why: &str| Err(refused(format!("the entry {} {why}", quoted(name))));
    if name.len() > PATH_BYTES {
        return bad(&format!("has a path of more than {PATH_BYTES} bytes"));
    }
    if name.chars().any(char::is_control) {
        return bad("has control characters in its path");
    }
    if name.contains('\\') {
        return bad("has a backslash in its path; the separator of a zip is \"/\"");
    }
    if name.starts_with('/') || name.chars().nth(1) == Some(':') {
        return bad("has an absolute path");
    }
    let path = name.strip_suffix('/').unwrap_or(name);
    if path.split('/').any(|part| part == "..") {
        return bad("has a path that leaves the package");
    }
    if path.split('/').any(|part| part.is_empty() || part == ".") {
        return bad("has a path with an empty part");
    }
    Ok(path.to_owned())
}

/// The path that `reference` names when it stands in the file `from`: relative to its folder,
/// `.` and `..` resolved. `None` if it leaves the package.
pub(crate) fn resolve(from: &str, reference: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in reference.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
