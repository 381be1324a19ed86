//! The writing side of a CSAR's zip.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::error::{ErrorKind, PackageError};
use crate::meta::TOSCA_META;

/// A zip that depends on nothing but the files: sorted, TOSCA.meta first, without times.
pub(crate) fn pack<'a>(
    files: impl Iterator<Item = (&'a String, &'a Vec<u8>)>,
) -> Result<Vec<u8>, PackageError> {
    let failed = |e: &dyn std::fmt::Display| {
        PackageError::new(
            ErrorKind::Archive,
            format!("the zip cannot be written: {e}"),
        )
    };
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|(path, _)| (path.as_str() != TOSCA_META, path.as_str()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        writer
            .start_file(path.as_str(), options)
            .map_err(|e| failed(&e))?;
        writer.write_all(content).map_err(|e| failed(&e))?;
    }
    writer
        .finish()
        .map(Cursor::into_inner)
        .map_err(|e| failed(&e))
}
