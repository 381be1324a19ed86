//! No bytes make the reader panic, and nothing that it takes breaks what is asked of it.

use proptest::collection::vec;
use proptest::prelude::*;

use super::fixture::{DEPLOYMENT, META, VNFD, csar};
use crate::{Limits, Package};

/// Small bounds: what is looked for are panics, not sizes.
fn limits() -> Limits {
    Limits {
        total_bytes: 1024 * 1024,
        yaml_nodes: 5_000,
        ..Limits::default()
    }
}

fn read(bytes: &[u8]) {
    if let Ok(package) = Package::read(bytes, &limits()) {
        let asked = package.manifests(None).map(|found| found.len());
        let listed = package.manifests(Some(&[VNFD.to_owned(), DEPLOYMENT.to_owned()]));
        let target = package
            .vnfd
            .flavours
            .values()
            .map(|flavour| flavour.levels_of(None));
        let shown = format!(
            "{asked:?} {listed:?} {:?} {package:?}",
            target.collect::<Vec<_>>()
        );
        assert!(!shown.is_empty());
    }
}

/// A text with some bytes of it replaced, doubled or cut.
fn mutated(text: &str, changes: &[(usize, u8)]) -> String {
    const PIECES: [&str; 16] = [
        "\n", ":", " ", "- ", "{", "}", "[", "]", "&a ", "*a", "<<: *a", "---\n", "'", "0x",
        "!!str ", "\t",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for (place, piece) in changes {
        let at = place % (chars.len() + 1);
        if let Some(text) = PIECES.get(usize::from(*piece)) {
            chars.splice(at..at, text.chars());
        } else {
            let end = (at + usize::from(*piece)).min(chars.len());
            chars.drain(at..end);
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..2_000)) {
        read(&bytes);
    }

    #[test]
    fn a_package_with_any_bytes_changed(changes in vec((any::<usize>(), any::<u8>()), 1..12)) {
        let mut bytes = csar().bytes();
        for (place, byte) in changes {
            let at = place % bytes.len();
            bytes[at] = byte;
        }
        read(&bytes);
    }

    #[test]
    fn a_package_cut_anywhere(cut in any::<usize>()) {
        let mut bytes = csar().bytes();
        bytes.truncate(cut % bytes.len());
        read(&bytes);
    }

    #[test]
    fn a_package_with_a_file_of_any_text(
        which in 0..4_usize,
        text in "\\PC{0,200}|([a-z]{1,3}: ?[\\[{*&!|>-]?\n ?){0,20}",
    ) {
        read(&csar().with([META, VNFD, DEPLOYMENT, "vnf.mf"][which], text).bytes());
    }

    #[test]
    fn a_package_with_a_file_changed(
        which in 0..3_usize,
        changes in vec((any::<usize>(), 0..24_u8), 1..8),
    ) {
        let path = [META, VNFD, DEPLOYMENT][which];
        let text = String::from_utf8(csar().package().artifact(path).unwrap().to_vec()).unwrap();
        read(&csar().with(path, mutated(&text, &changes)).bytes());
    }
}
