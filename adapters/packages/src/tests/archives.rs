use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::fixture::{DEPLOYMENT, csar};
use crate::{ErrorKind, Limits, Package};

fn zip(write: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    write(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

/// A zip of one file `aaaa.txt` whose name is overwritten in the bytes, as a writer would not.
fn named(name: &str) -> Vec<u8> {
    let placeholder = "a".repeat(name.len());
    let bytes = zip(|writer| {
        writer.start_file(placeholder.as_str(), stored()).unwrap();
        writer.write_all(b"content").unwrap();
    });
    patched(bytes, placeholder.as_bytes(), name.as_bytes())
}

fn patched(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(from.len())
        .position(|window| window == from)
    {
        bytes[at + found..at + found + to.len()].copy_from_slice(to);
        at += found + to.len();
    }
    bytes
}

#[track_caller]
fn refusal(bytes: &[u8], limits: &Limits) -> (ErrorKind, String) {
    let error = Package::read(bytes, limits).expect_err("the package was taken");
    (error.kind, error.to_string())
}

#[track_caller]
fn archive_refusal(bytes: &[u8]) -> String {
    let (kind, words) = refusal(bytes, &Limits::default());
    assert_eq!(kind, ErrorKind::Archive, "{words}");
    words
}

#[test]
fn what_is_no_zip_is_refused() {
    for bytes in [&b""[..], b"hello", b"PK\x03\x04 and nothing more"] {
        let words = archive_refusal(bytes);
        assert!(
            words.starts_with("the package is not a zip archive: "),
            "{words}"
        );
    }
    let mut cut = csar().bytes();
    cut.truncate(cut.len() / 2);
    assert!(archive_refusal(&cut).starts_with("the package is not a zip archive: "));
}

#[test]
fn paths_that_leave_the_package_are_refused() {
    for (name, why) in [
        ("../evil.txt", "has a path that leaves the package"),
        ("Files/../../evil", "has a path that leaves the package"),
        ("Files/../evil", "has a path that leaves the package"),
        ("/etc/passwd", "has an absolute path"),
        ("C:/evil.txt", "has an absolute path"),
        (
            "Files\\evil",
            "has a backslash in its path; the separator of a zip is \"/\"",
        ),
        ("Files//evil", "has a path with an empty part"),
        ("./evil", "has a path with an empty part"),
    ] {
        assert_eq!(
            archive_refusal(&named(name)),
            format!("the entry \"{name}\" {why}")
        );
    }
    assert_eq!(
        archive_refusal(&named("a\nb")),
        "the entry \"a?b\" has control characters in its path"
    );
    let long = "a".repeat(1025);
    assert!(archive_refusal(&named(&long)).ends_with("has a path of more than 1024 bytes"));
}

#[test]
fn symbolic_links_and_devices_are_refused() {
    let link = zip(|writer| {
        writer
            .add_symlink("Files/link", "/etc/passwd", stored())
            .unwrap();
    });
    let words = "Files/link: symbolic links and special files are not taken";
    assert_eq!(archive_refusal(&link), words);
}

#[test]
fn two_files_of_one_name_are_refused() {
    let bytes = zip(|writer| {
        for name in ["Files/one", "Files/two"] {
            writer.start_file(name, stored()).unwrap();
        }
    });
    assert_eq!(
        archive_refusal(&patched(bytes, b"Files/two", b"Files/one")),
        "Files/one: the package holds two files of this name"
    );
}

#[test]
fn encrypted_files_are_refused() {
    let mut bytes = named("secret.txt");
    // The flag's lowest bit, in the local header and in the directory.
    bytes[6] |= 1;
    let directory = bytes
        .windows(4)
        .position(|window| window == b"PK\x01\x02")
        .unwrap();
    bytes[directory + 8] |= 1;
    assert_eq!(
        archive_refusal(&bytes),
        "secret.txt: encrypted files are not taken"
    );
}

#[test]
fn damaged_content_is_refused_by_its_checksum() {
    let bytes = patched(named("damaged.txt"), b"content", b"contort");
    let words = archive_refusal(&bytes);
    assert!(
        words.starts_with("damaged.txt: cannot be unpacked: "),
        "{words}"
    );
}

#[test]
fn a_zip_bomb_is_refused_by_its_ratio() {
    let bomb = csar().with("Files/bomb", vec![0; 20 * 1024 * 1024]).bytes();
    let (kind, words) = refusal(&bomb, &Limits::default());
    assert_eq!(kind, ErrorKind::Limit);
    assert!(
        words.starts_with("Files/bomb: unpacks to more than 100 times its "),
        "{words}"
    );
    assert!(
        words.ends_with(" packed bytes; it looks like a zip bomb"),
        "{words}"
    );
}

#[test]
fn a_size_that_the_zip_understates_is_not_believed() {
    let size = 20 * 1024 * 1024_u32;
    let bomb = csar().with("Files/bomb", vec![0; size as usize]).bytes();
    let lying = patched(bomb, &size.to_le_bytes(), &7_u32.to_le_bytes());
    let error = Package::read(&lying, &Limits::default()).unwrap_err();
    assert_eq!(error.file.as_deref(), Some("Files/bomb"), "{error}");
}

#[test]
fn many_small_files_that_are_large_together_are_refused() {
    let package = csar()
        .with("Files/a", vec![b'a'; 900])
        .with("Files/b", vec![b'b'; 900]);
    let limits = Limits {
        total_bytes: 3_300,
        ..Limits::default()
    };
    assert_eq!(
        refusal(&package.bytes(), &limits),
        (
            ErrorKind::Limit,
            "Files/b: the package unpacks to more than 3300 bytes".into()
        )
    );
}

#[test]
fn too_many_entries_and_too_large_a_zip_are_refused() {
    let bytes = csar().bytes();
    let few = Limits {
        entries: 3,
        ..Limits::default()
    };
    assert_eq!(
        refusal(&bytes, &few),
        (
            ErrorKind::Limit,
            "the package has 4 entries; at most 3 are taken".into()
        )
    );
    let small = Limits {
        archive_bytes: 100,
        ..Limits::default()
    };
    let words = format!(
        "the package has {} bytes; at most 100 are taken",
        bytes.len()
    );
    assert_eq!(refusal(&bytes, &small), (ErrorKind::Limit, words));
}

#[test]
fn folders_are_no_files_and_every_file_is_served() {
    let bytes = zip(|writer| {
        writer.add_directory("Files/", stored()).unwrap();
        writer.start_file("Files/a", stored()).unwrap();
    });
    let (_, words) = refusal(&bytes, &Limits::default());
    assert_eq!(words, "the package has no TOSCA-Metadata/TOSCA.meta");

    let package = csar().with("Files/notes.txt", "hello").package();
    assert_eq!(package.artifact("Files/notes.txt"), Some(&b"hello"[..]));
    assert_eq!(package.artifact("Files"), None);
    let paths: Vec<_> = package.artifacts.iter().map(|a| a.path.as_str()).collect();
    assert_eq!(paths, [DEPLOYMENT, "Files/notes.txt"]);
    assert_eq!(package.artifacts[1].size, 5);
    assert!(package.artifacts[1].sha256.starts_with("2cf24dba5fb0a30e"));
}
