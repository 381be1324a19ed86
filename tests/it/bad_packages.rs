//! Packages that are broken, or built to break something: refused at onboarding in words, and nothing is kept.

use cairn_tests::package::package;
use cairn_tests::world::World;
use std::io::{Cursor, Write as _};
use std::path::Path;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const META: &str = "TOSCA-Metadata/TOSCA.meta";
const VNFD: &str = "Definitions/vnfd.yaml";
const MANIFEST: &str = "vnf.mf";
const FIRST: &str = "Files/kubernetes/000.yaml";
const MIB: usize = 1024 * 1024;

type Zip = ZipWriter<Cursor<Vec<u8>>>;

/// The files of a good package, by path.
fn good() -> Vec<(String, Vec<u8>)> {
    let folder = TempDir::new().expect("a temporary folder");
    package().deployment("web", 1).write(folder.path());
    [META, VNFD, MANIFEST, FIRST]
        .iter()
        .map(|path| {
            let content = std::fs::read(folder.path().join(path)).expect("it was written");
            ((*path).to_owned(), content)
        })
        .collect()
}

/// The zip of these files, and of what is added to it.
fn zipped(files: &[(String, Vec<u8>)], add: impl FnOnce(&mut Zip)) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (path, content) in files {
        writer.start_file(path.as_str(), packed).expect("an entry");
        writer.write_all(content).expect("content");
    }
    add(&mut writer);
    writer.finish().expect("a zip").into_inner()
}

/// A good package but for one file.
fn with(path: &str, change: impl FnOnce(String) -> String) -> Vec<u8> {
    let mut files = good();
    let (_, content) = files
        .iter_mut()
        .find(|(known, _)| known == path)
        .expect("it is there");
    let text = String::from_utf8(std::mem::take(content)).expect("text");
    *content = change(text).into_bytes();
    zipped(&files, |_| {})
}

/// A good package and one more file.
fn and(path: &str, content: &[u8]) -> Vec<u8> {
    let mut files = good();
    files.push((path.to_owned(), content.to_vec()));
    zipped(&files, |_| {})
}

/// One file that is nothing but zeros.
fn bomb_by_ratio() -> Vec<u8> {
    and("Files/zeros", &vec![0; 16 * MIB])
}

/// Many files, each of which may be packed as tightly as it likes, that are too large together.
fn bomb_by_total() -> Vec<u8> {
    let one = zipped(&[("zeros".to_owned(), vec![0; MIB])], |_| {});
    zipped(&good(), |writer| {
        for index in 0..260 {
            let mut archive = ZipArchive::new(Cursor::new(&one)).expect("a zip");
            let packed = archive.by_index_raw(0).expect("its file");
            writer
                .raw_copy_file_rename(packed, format!("Files/zeros-{index}"))
                .expect("a copy");
        }
    })
}

/// A file whose name is overwritten in the bytes, as no writer would let it be.
fn escaping() -> Vec<u8> {
    let (harmless, bad) = ("Files/aaaaa/evil", "Files/../../evil");
    let mut bytes = and(harmless, b"content");
    let places: Vec<usize> = bytes
        .windows(harmless.len())
        .enumerate()
        .filter(|(_, window)| *window == harmless.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert_eq!(places.len(), 2, "its own header and the directory");
    for at in places {
        bytes[at..at + bad.len()].copy_from_slice(bad.as_bytes());
    }
    bytes
}

fn linked() -> Vec<u8> {
    zipped(&good(), |writer| {
        writer
            .add_symlink("Files/link", "/etc/passwd", SimpleFileOptions::default())
            .expect("a link");
    })
}

/// Each line stands for ten of the line before.
fn aliases() -> String {
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let more = (1..12).map(|level| {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{items}]\n")
    });
    std::iter::once(first).chain(more).collect()
}

fn block(hash: &str) -> String {
    format!("\nSource: {FIRST}\nAlgorithm: SHA-256\n{hash}")
}

/// What is wrong, the package, and what must be said.
fn rows() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    vec![
        ("no zip", b"no zip at all".to_vec(), &["not a zip archive"]),
        ("ratio", bomb_by_ratio(), &["Files/zeros", "zip bomb"]),
        (
            "total",
            bomb_by_total(),
            &["unpacks to more than 268435456 bytes"],
        ),
        (
            "path",
            escaping(),
            &["Files/../../evil", "leaves the package"],
        ),
        ("link", linked(), &["Files/link", "symbolic links"]),
        (
            "wrong hash",
            with(MANIFEST, |text| text + &block("Hash: 00ff\n")),
            &["vnf.mf:6", FIRST, "00ff"],
        ),
        (
            "missing hash",
            with(MANIFEST, |text| text + &block("")),
            &["vnf.mf:5", FIRST, "Hash", "missing"],
        ),
        (
            "yaml",
            with(VNFD, |text| text + "broken: [1, 2\n"),
            &["Definitions/vnfd.yaml:"],
        ),
        (
            "aliases",
            with(VNFD, |_| aliases()),
            &["Definitions/vnfd.yaml", "nodes", "aliases"],
        ),
        (
            "no VNFD",
            with(VNFD, |_| {
                "tosca_definitions_version: tosca_simple_yaml_1_3\n".into()
            }),
            &["Definitions/vnfd.yaml", "no VNFD"],
        ),
        (
            "no workload",
            with(FIRST, |text| {
                text.replacen("\"name\": \"web\"", "\"name\": \"other\"", 1)
            }),
            &["VDU \"WEB\"", "no workload", "other"],
        ),
        (
            "no manifest named",
            with(META, |text| {
                text.replace("ETSI-Entry-Manifest: vnf.mf\n", "")
            }),
            &[META, "ETSI-Entry-Manifest", "add", "vnf.mf"],
        ),
        (
            "a manifest that is no object",
            with(FIRST, |_| "just: text\n".into()),
            &[FIRST],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_broken_package_is_refused_in_words_and_none_is_kept() {
    let world = World::simple().await;
    for (name, csar, words) in rows() {
        let seen = world.upload(csar).await;
        assert_eq!(seen["onboardingState"], "ERROR", "{name}: {seen:#}");
        assert_eq!(seen["operationalState"], "DISABLED", "{name}");
        let why = seen["onboardingFailureDetails"]["detail"]
            .as_str()
            .expect("a detail");
        for word in words {
            assert!(why.contains(word), "{name}: {word}: {why}");
        }
        let id = seen["id"].as_str().expect("an id");
        let path = format!("/vnfpkgm/v2/vnf_packages/{id}");
        // No content was kept of it, and the record can be removed as it is.
        world.get(&format!("{path}/package_content")).await.is(409);
        world.delete(&path).await.is(204);
    }
    // The server is none the worse for it.
    world.onboard(&package().config_map("x")).await;
    assert!(!Path::new("/evil").exists());
}

/// A file of a megabyte and more is refused before it is read, whatever it holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_is_too_large_is_413() {
    use axum::http::Method;
    use cairn_tests::client::Sent;
    let world = World::simple().await;
    let made = world
        .post("/vnfpkgm/v2/vnf_packages", &serde_json::json!({}))
        .await;
    let id = made.is(201)["id"].as_str().expect("an id").to_owned();
    let path = format!("/vnfpkgm/v2/vnf_packages/{id}/package_content");
    let mut sent = Sent::json(Method::PUT, &path, None).header("content-type", "application/zip");
    sent.body = vec![0; 64 * MIB + 1];
    let answer = world.send(sent).await;
    assert_eq!(answer.status, 413, "{:#}", answer.body);
    assert!(answer.detail().contains("67108864"), "{}", answer.detail());
    let seen = world
        .get(&format!("/vnfpkgm/v2/vnf_packages/{id}"))
        .await
        .is(200);
    assert_eq!(seen["onboardingState"], "CREATED", "it can still be filled");
}
