//! The demo's own packages, kept in the program so that it needs no source tree.

use anyhow::Context;
use std::fs;
use std::path::Path;

const TYPES: &str = include_str!("../../../demo-packages/etsi_nfv_sol001_vnfd_types.yaml");
const TOSCA_META: &str = include_str!("../../../demo-packages/TOSCA.meta");

/// A package of the demo.
pub struct DemoPackage {
    name: &'static str,
    vnfd: &'static str,
    manifest: &'static str,
    objects: &'static str,
}

/// Front ends that scale, and one store.
pub const SIGNALLING: DemoPackage = DemoPackage {
    name: "signalling",
    vnfd: include_str!("../../../demo-packages/signalling/vnfd.yaml"),
    manifest: include_str!("../../../demo-packages/signalling/package.mf"),
    objects: include_str!("../../../demo-packages/signalling/kubernetes.yaml"),
};

/// A media gateway whose image no registry has.
pub const MEDIA: DemoPackage = DemoPackage {
    name: "media",
    vnfd: include_str!("../../../demo-packages/media/vnfd.yaml"),
    manifest: include_str!("../../../demo-packages/media/package.mf"),
    objects: include_str!("../../../demo-packages/media/kubernetes.yaml"),
};

impl DemoPackage {
    /// Makes its CSAR by way of a folder below `folder`.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written, or the package is not one.
    pub fn csar(&self, folder: &Path) -> anyhow::Result<Vec<u8>> {
        let root = folder.join(self.name);
        let files = [
            ("TOSCA-Metadata/TOSCA.meta", TOSCA_META),
            ("Definitions/etsi_nfv_sol001_vnfd_types.yaml", TYPES),
            ("Definitions/vnfd.yaml", self.vnfd),
            ("Files/kubernetes/objects.yaml", self.objects),
            ("package.mf", self.manifest),
        ];
        for (path, content) in files {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            fs::write(&file, content).with_context(|| file.display().to_string())?;
        }
        cairn_packages::build(&root).with_context(|| format!("the demo's package {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_the_demo_can_be_onboarded() {
        let folder = tempfile::tempdir().unwrap();
        for package in [SIGNALLING, MEDIA] {
            assert!(
                !package.csar(folder.path()).unwrap().is_empty(),
                "{}",
                package.name
            );
        }
    }
}
