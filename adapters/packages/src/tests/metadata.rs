use super::fixture::{DEPLOYMENT, META, VNFD, csar, empty};
use crate::ErrorKind::{Descriptor, Integrity};
use crate::digest::Algorithm;

#[test]
fn tosca_meta_and_its_two_entries_are_demanded() {
    csar()
        .without(META)
        .is_refused(Descriptor, "the package has no TOSCA-Metadata/TOSCA.meta");
    empty()
        .with("web/TOSCA-Metadata/TOSCA.meta", "")
        .is_refused(
            Descriptor,
            "the package has no TOSCA-Metadata/TOSCA.meta, only web/TOSCA-Metadata/TOSCA.meta: \
             pack what the folder holds, not the folder",
        );
    csar()
        .replacing(META, "Entry-Definitions", "Other")
        .is_refused(
            Descriptor,
            "TOSCA-Metadata/TOSCA.meta: has no Entry-Definitions; add a line that names the VNFD, \
             such as \"Entry-Definitions: Definitions/vnfd.yaml\"",
        );
    csar()
        .replacing(META, "ETSI-Entry-Manifest", "Other")
        .is_refused(
            Descriptor,
            "TOSCA-Metadata/TOSCA.meta: has no ETSI-Entry-Manifest; add a line that names the manifest \
             (SOL004 4.3), such as \"ETSI-Entry-Manifest: vnf.mf\"",
        );
    csar().without(VNFD).is_refused(
        Descriptor,
        "TOSCA-Metadata/TOSCA.meta:4: Entry-Definitions names \"Definitions/vnfd.yaml\", \
         which is not in the package",
    );
    csar().without("vnf.mf").is_refused(
        Descriptor,
        "TOSCA-Metadata/TOSCA.meta:5: ETSI-Entry-Manifest names \"vnf.mf\", \
         which is not in the package",
    );
}

#[test]
fn right_hashes_are_taken_in_both_files_and_any_algorithm() {
    let deployment = csar().package().artifact(DEPLOYMENT).unwrap().to_vec();
    for (name, algorithm) in [
        ("SHA-256", Algorithm::Sha256),
        ("SHA-384", Algorithm::Sha384),
        ("sha512", Algorithm::Sha512),
    ] {
        let hash = algorithm.hex(&deployment).to_uppercase();
        let block = |key: &str| {
            format!("\n{key}: {DEPLOYMENT}\nContent-Type: x\nAlgorithm: {name}\nHash: {hash}\n")
        };
        csar()
            .appending(META, &block("Name"))
            .appending("vnf.mf", &block("Source"))
            .package();
    }
}

#[test]
fn a_wrong_hash_is_refused_with_file_and_line() {
    let block = "\nSource: Files/kubernetes/web.yaml\nAlgorithm: SHA-256\nHash: 00ff\n";
    let error = csar().appending("vnf.mf", block).refused();
    assert_eq!((error.kind, error.line), (Integrity, Some(6)));
    let words = error.to_string();
    let start = "vnf.mf:6: the SHA-256 hash of \"Files/kubernetes/web.yaml\" is ";
    assert!(words.starts_with(start), "{words}");
    assert!(words.ends_with(", not \"00ff\" as stated here"), "{words}");

    let block = "\nName: Files/kubernetes/web.yaml\nAlgorithm: SHA-256\nHash: 00ff\n";
    let error = csar().appending(META, block).refused();
    assert_eq!((error.file.as_deref(), error.line), (Some(META), Some(9)));
}

#[test]
fn every_block_is_checked_not_only_the_last() {
    let wrong = "\nSource: Files/kubernetes/web.yaml\nAlgorithm: SHA-256\nHash: 00ff\n";
    let harmless = "\nSource: Definitions/vnfd.yaml\n";
    assert_eq!(
        csar()
            .appending("vnf.mf", &format!("{wrong}{harmless}"))
            .refused()
            .line,
        Some(6)
    );
}

#[test]
fn a_named_file_must_be_there() {
    csar()
        .appending("vnf.mf", "\nSource: Files/absent\n")
        .is_refused(
            Integrity,
            "vnf.mf:4: \"Files/absent\" is named here but not in the package",
        );
    csar().appending(META, "\nName: Files/absent\n").is_refused(
        Integrity,
        "TOSCA-Metadata/TOSCA.meta:7: \"Files/absent\" is named here but not in the package",
    );
    csar()
        .appending(
            "vnf.mf",
            "\nSource: https://example.com/image.tar\nHash: 00\n",
        )
        .package();
}

#[test]
fn a_hash_needs_a_known_algorithm_and_the_other_way_round() {
    let block = "\nSource: Files/kubernetes/web.yaml\nHash: 00ff\n";
    let words = "vnf.mf:5: this hash has no Algorithm";
    csar()
        .appending("vnf.mf", block)
        .is_refused(Integrity, words);
    let block = "\nSource: Files/kubernetes/web.yaml\nAlgorithm: SHA-256\n";
    let words = "vnf.mf:5: the Hash of \"Files/kubernetes/web.yaml\" is missing";
    csar()
        .appending("vnf.mf", block)
        .is_refused(Integrity, words);
    let block = "\nSource: Files/kubernetes/web.yaml\nAlgorithm: MD5\nHash: 00ff\n";
    csar().appending("vnf.mf", block).is_refused(
        Integrity,
        "vnf.mf:5: \"MD5\" is not a known algorithm; allowed: SHA-256, SHA-384, SHA-512",
    );
}

#[test]
fn a_signature_is_let_through_unread() {
    let signature = "\n-----BEGIN CMS-----\nSource: Files/absent\n-----END CMS-----\n";
    csar().appending("vnf.mf", signature).package();
}

#[test]
fn text_files_must_be_utf_8() {
    let error = csar().with("vnf.mf", b"metadata: \xff").refused();
    assert_eq!(error.to_string(), "vnf.mf: is not UTF-8 text (byte 10)");
}
