//! A package as it is onboarded: checked, read, immutable.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use cairn_domain::ports::PackageArtifact;
use cairn_domain::vnfd::Vnfd;

use crate::archive::{self, Files, Limits};
use crate::digest::Algorithm;
use crate::error::{ErrorKind, PackageError, quoted};
use crate::manifests::{self, Manifest};
use crate::meta::{self, Entries};
use crate::pack::pack;
use crate::source::Source;
use crate::tosca::Definitions;
use crate::{hooks, unsupported, vnfd};

/// A VNF package whose content was checked.
///
/// `Debug` shows no content: manifests hold Secrets.
#[derive(Clone)]
pub struct Package {
    /// The descriptor.
    pub vnfd: Vnfd,
    /// SHA-256 of the CSAR's bytes, in lower-case hexadecimal.
    pub digest: String,
    /// The objects of `Files/kubernetes/`, by file in order of path.
    pub manifests_by_file: BTreeMap<String, Vec<Manifest>>,
    /// Files that are neither descriptor nor TOSCA metadata, in order of path
    /// (`additionalArtifacts`, SOL003 10.5.3.3).
    pub artifacts: Vec<PackageArtifact>,
    entries: Entries,
    definition_files: BTreeSet<String>,
    files: Files,
    limits: Limits,
}

impl fmt::Debug for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Package")
            .field("vnfd_id", &self.vnfd.vnfd_id)
            .field("digest", &self.digest)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

impl Package {
    /// Reads and checks a CSAR (SOL004 with TOSCA-Metadata).
    ///
    /// # Errors
    /// [`PackageError`] with the first thing that is wrong, by file and line where there is one.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, PackageError> {
        let files = archive::unpack(bytes, limits)?;
        let entries = meta::read(&files)?;
        let source = Source::new(&files, limits);
        let definitions = Definitions::read(&entries.definitions, &source)?;
        unsupported::check(&files, &definitions)?;
        let mut vnfd = vnfd::read(&definitions)?;
        vnfd.hooks = hooks::read(&definitions, &source, &vdus(&vnfd))?;
        let manifests_by_file = in_folder(&source, &vnfd)?;
        check_workloads(&vnfd, &manifests_by_file, &source)?;
        let definition_files: BTreeSet<_> = definitions
            .templates
            .into_iter()
            .map(|template| template.file)
            .collect();
        let artifacts = artifacts(&files, &entries, &definition_files);
        Ok(Self {
            vnfd,
            digest: Algorithm::Sha256.hex(bytes),
            manifests_by_file,
            artifacts,
            entries,
            definition_files,
            files,
            limits: *limits,
        })
    }

    /// One file of the package, by its exact path.
    #[must_use]
    pub fn artifact(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Path of the entry definitions.
    #[must_use]
    pub fn entry_definitions(&self) -> &str {
        &self.entries.definitions
    }

    /// The entry definitions as they stand in the package (`GET …/vnfd` as `text/plain`); the whole
    /// VNFD only if [`Package::has_single_file_vnfd`].
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "a package is made only after these bytes were read as text"
    )]
    pub fn vnfd_yaml(&self) -> &str {
        let bytes = self.artifact(&self.entries.definitions).unwrap_or_default();
        std::str::from_utf8(bytes).expect("the definitions were read as text")
    }

    /// Whether the entry definitions import nothing.
    #[must_use]
    pub fn has_single_file_vnfd(&self) -> bool {
        self.definition_files.len() == 1
    }

    /// A zip of all definitions with the TOSCA metadata (`GET …/vnfd` as `application/zip`,
    /// SOL003 10.4.4.3.2); the same bytes each time.
    ///
    /// # Errors
    /// [`ErrorKind::Archive`] if the zip cannot be written.
    pub fn vnfd_zip(&self) -> Result<Vec<u8>, PackageError> {
        let metadata = [meta::TOSCA_META, self.entries.manifest.as_str()];
        let wanted = |path: &str| self.definition_files.contains(path) || metadata.contains(&path);
        pack(self.files.iter().filter(|(path, _)| wanted(path)))
    }

    /// The objects to be made, in order: those of the files that the request lists
    /// (`lcm-kubernetes-def-files`), else all of `Files/kubernetes/` in order of path.
    ///
    /// # Errors
    /// [`ErrorKind::DefFiles`] for an entry of the list that names no file of the package, and
    /// [`ErrorKind::Manifest`] for a file that is wrong or an object that is there twice.
    pub fn manifests(&self, def_files: Option<&[String]>) -> Result<Vec<Manifest>, PackageError> {
        let found = match def_files {
            None => self.manifests_by_file.values().flatten().cloned().collect(),
            Some(list) => {
                let source = Source::new(&self.files, &self.limits);
                let mut found = Vec::new();
                for (index, entry) in list.iter().enumerate() {
                    found.extend(self.listed(index, entry, &source)?);
                }
                found
            }
        };
        manifests::check_together(&found, &self.vnfd)?;
        Ok(found)
    }

    fn listed(
        &self,
        index: usize,
        entry: &str,
        source: &Source<'_>,
    ) -> Result<Vec<Manifest>, PackageError> {
        let wrong = |why: String| {
            let message = format!("lcm-kubernetes-def-files[{index}]: {} {why}", quoted(entry));
            PackageError::new(ErrorKind::DefFiles, message)
        };
        if entry.contains("://") {
            return Err(wrong(
                "is not fetched; put the manifest into the package".to_owned(),
            ));
        }
        let path = archive::resolve("", entry).filter(|path| self.files.contains_key(path));
        let Some(path) = path else {
            let there: Vec<_> = self
                .files
                .keys()
                .map(String::as_str)
                .filter(|p| is_in_files(p))
                .take(20)
                .collect();
            return Err(wrong(format!(
                "is not in the package; manifests: {}",
                there.join(", ")
            )));
        };
        if is_hook(&self.vnfd, &path) {
            return Err(wrong(
                "is the Job of a hook, no object of the VNF".to_owned(),
            ));
        }
        match self.manifests_by_file.get(&path) {
            Some(known) => Ok(known.clone()),
            None => manifests::read(&path, source),
        }
    }
}

/// The VDUs of all flavours.
fn vdus(vnfd: &Vnfd) -> BTreeSet<&str> {
    vnfd::workload_names(vnfd).map(|(_, vdu, _)| vdu).collect()
}

/// Whether a path is that of a manifest that a request may list.
fn is_in_files(path: &str) -> bool {
    path.starts_with("Files/") && manifests::is_manifest(path)
}

/// Whether a file is the Job of a hook, which is no object of the VNF.
fn is_hook(vnfd: &Vnfd, path: &str) -> bool {
    vnfd.hooks.iter().any(|hook| hook.file == path)
}

fn in_folder(
    source: &Source<'_>,
    vnfd: &Vnfd,
) -> Result<BTreeMap<String, Vec<Manifest>>, PackageError> {
    source
        .files
        .keys()
        .filter(|path| path.starts_with(manifests::FOLDER) && manifests::is_manifest(path))
        .filter(|path| !is_hook(vnfd, path))
        .map(|path| {
            let found = manifests::read(path, source)?;
            // Of several files a request may choose, so that these are looked at when it does.
            manifests::check_together(&found, vnfd)?;
            Ok((path.clone(), found))
        })
        .collect()
}

fn artifacts(
    files: &Files,
    entries: &Entries,
    definitions: &BTreeSet<String>,
) -> Vec<PackageArtifact> {
    let is_metadata = |path: &str| {
        path.starts_with("TOSCA-Metadata/")
            || path == entries.manifest
            || definitions.contains(path)
    };
    let artifact = |(path, content): (&String, &Vec<u8>)| PackageArtifact {
        path: path.clone(),
        size: content.len() as u64,
        sha256: Algorithm::Sha256.hex(content),
    };
    files
        .iter()
        .filter(|(path, _)| !is_metadata(path))
        .map(artifact)
        .collect()
}

/// Every VDU must have a workload of its name. It may stand outside `Files/kubernetes/` too, for a
/// request may list any file.
fn check_workloads(
    vnfd: &Vnfd,
    manifests_by_file: &BTreeMap<String, Vec<Manifest>>,
    source: &Source<'_>,
) -> Result<(), PackageError> {
    let mut elsewhere = Vec::new();
    let others = source.files.keys().filter(|path| is_in_files(path));
    let is_other = |path: &&String| !manifests_by_file.contains_key(*path) && !is_hook(vnfd, path);
    for path in others.filter(is_other) {
        match manifests::read(path, source) {
            Ok(found) => elsewhere.extend(found),
            Err(error) if error.kind == ErrorKind::Limit => return Err(error),
            // Not a manifest, or a wrong one: that is told when a request lists it.
            Err(_) => {}
        }
    }
    let all = manifests_by_file.values().flatten().chain(&elsewhere);
    let workloads: BTreeSet<&str> = all
        .filter(|manifest| manifest.is_workload())
        .map(Manifest::name)
        .collect();
    for (flavour, vdu, workload) in vnfd::workload_names(vnfd) {
        if !workloads.contains(workload) {
            let there: Vec<_> = workloads.iter().take(20).copied().collect();
            let message = format!(
                "VDU {} of flavour {} has no workload: no manifest has metadata.name {}; \
                 workloads: {}",
                quoted(vdu),
                quoted(&flavour.id),
                quoted(workload),
                if there.is_empty() {
                    "none".to_owned()
                } else {
                    there.join(", ")
                }
            );
            return Err(PackageError::new(ErrorKind::Descriptor, message));
        }
    }
    Ok(())
}
