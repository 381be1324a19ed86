//! A small package to change one thing of.

use std::collections::BTreeMap;

use crate::pack::pack;
use crate::{ErrorKind, Limits, Package, PackageError};

/// A CSAR in the making.
#[derive(Clone)]
pub(super) struct Csar {
    files: BTreeMap<String, Vec<u8>>,
}

pub(super) const META: &str = "TOSCA-Metadata/TOSCA.meta";
pub(super) const VNFD: &str = "Definitions/vnfd.yaml";
pub(super) const DEPLOYMENT: &str = "Files/kubernetes/web.yaml";

/// A package that is right: one VDU, one aspect, two levels.
pub(super) fn csar() -> Csar {
    Csar {
        files: BTreeMap::new(),
    }
    .with(
        META,
        "TOSCA-Meta-File-Version: 1.0\nCreated-By: test\nCSAR-Version: 1.1\n\
             Entry-Definitions: Definitions/vnfd.yaml\nETSI-Entry-Manifest: vnf.mf\n",
    )
    .with("vnf.mf", "metadata:\n  vnf_product_name: Web\n")
    .with(VNFD, include_str!("fixture/vnfd.yaml"))
    .with(
        DEPLOYMENT,
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec: {replicas: 1}\n",
    )
}

/// Nothing yet.
pub(super) fn empty() -> Csar {
    Csar {
        files: BTreeMap::new(),
    }
}

/// YAML of a few lines whose aliases stand for ten times as many nodes with each.
pub(crate) fn alias_bomb() -> String {
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let more = (1..40).map(|level| {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{items}]\n")
    });
    let lines: Vec<_> = std::iter::once(first).chain(more).collect();
    lines.concat()
}

impl Csar {
    pub(super) fn with(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files
            .insert(path.to_owned(), content.as_ref().to_vec());
        self
    }

    pub(super) fn without(mut self, path: &str) -> Self {
        self.files.remove(path).expect("the fixture has this file");
        self
    }

    /// The file with each `from` replaced.
    pub(super) fn replacing(self, path: &str, from: &str, to: &str) -> Self {
        let text = String::from_utf8(self.files[path].clone()).unwrap();
        assert!(text.contains(from), "{path} has no {from}");
        self.with(path, text.replace(from, to))
    }

    /// The file with more text at its end.
    pub(super) fn appending(self, path: &str, more: &str) -> Self {
        let mut content = self.files[path].clone();
        content.extend_from_slice(more.as_bytes());
        self.with(path, content)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        pack(self.files.iter()).unwrap()
    }

    #[track_caller]
    pub(super) fn package(&self) -> Package {
        match Package::read(&self.bytes(), &Limits::default()) {
            Ok(package) => package,
            Err(error) => panic!("refused: {error}"),
        }
    }

    #[track_caller]
    pub(super) fn refused(&self) -> PackageError {
        Package::read(&self.bytes(), &Limits::default()).expect_err("the package was taken")
    }

    /// Refused with this kind and these words.
    #[track_caller]
    pub(super) fn is_refused(&self, kind: ErrorKind, words: &str) {
        let error = self.refused();
        assert_eq!((error.to_string().as_str(), error.kind), (words, kind));
    }
}
