//! The walkthroughs of the documents, typed as a reader would type them.
//!
//! Blocks marked `sh` are run in order, all in one shell, in an empty folder that holds `examples` and has the
//! built `cairn` on its path. What a block prints to standard output is compared with the block marked `text` that
//! follows it; `…` there stands for anything. Blocks marked `console` are shown to readers and not run.
//! Each document says `127.0.0.1:8080`; a free port is put in its place.

use std::fmt::Write as _;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// How long one walkthrough may take, in seconds.
const DEADLINE_S: &str = "180";

/// The address that documents write.
const WRITTEN: &str = "127.0.0.1:8080";

/// What the shell prints after each block, before the block's exit status.
const MARK: &str = "---- end of block, status ";

/// A block to run, and what it must print.
struct Block {
    line: usize,
    script: String,
    expected: Option<String>,
}

#[test]
fn the_readme_does_what_it_says() {
    run_walkthrough("README.md");
}

/// Runs the walkthrough of a document, named from the root of the repository.
fn run_walkthrough(document: &str) {
    let text = std::fs::read_to_string(root().join(document)).expect("the document can be read");
    let address = format!("127.0.0.1:{}", free_port());
    let blocks = blocks(&text.replace(WRITTEN, &address));
    assert!(!blocks.is_empty(), "{document} has no block marked sh");

    let folder = TempDir::new().expect("a temporary folder");
    let printed = run(&blocks, folder.path());
    let log = std::fs::read_to_string(folder.path().join("stderr")).unwrap_or_default();
    let mut rest = printed.as_str();
    for block in &blocks {
        let place = format!("{document}:{}", block.line);
        let (output, after) = rest.split_once(MARK).unwrap_or_else(|| {
            panic!("{place} did not end. Printed:\n{rest}\nStandard error:\n{log}")
        });
        let (status, after) = after.split_once('\n').expect("a status ends its line");
        rest = after;
        assert_eq!(
            status, "0",
            "exit status of {place}. Printed:\n{output}\nStandard error:\n{log}"
        );
        if let Some(expected) = &block.expected {
            let output = output.trim_end();
            assert!(
                matches(expected.trim_end(), output),
                "{place} printed\n{output}\n---- and should have printed\n{expected}\n---- standard error:\n{log}"
            );
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests lie in the repository")
        .to_owned()
}

/// The folder of built programs: the test's own binary lies in `deps` in it.
pub fn built() -> PathBuf {
    let exe = std::env::current_exe().expect("the test has a path");
    let folder = exe
        .parent()
        .and_then(Path::parent)
        .expect("the test lies in target/…/deps");
    assert!(
        folder.join("cairn").is_file(),
        "there is no {}; build it first: cargo build --workspace",
        folder.join("cairn").display()
    );
    folder.to_owned()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// The blocks marked `sh`, each with the block marked `text` that comes next, if it comes before any other.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    let mut awaits_output = false;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((index + 1, kind, String::new())),
            (None, None) => {}
            (Some((_, _, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (Some(_), Some(_)) => {
                let Some((line, kind, body)) = open.take() else {
                    continue;
                };
                match kind {
                    "sh" => blocks.push(Block {
                        line,
                        script: body,
                        expected: None,
                    }),
                    "text" if awaits_output => {
                        if let Some(block) = blocks.last_mut() {
                            block.expected = Some(body);
                        }
                    }
                    _ => {}
                }
                awaits_output = kind == "sh";
            }
        }
    }
    blocks
}

/// Runs all blocks in one shell; what it printed, with a mark after each.
fn run(blocks: &[Block], folder: &Path) -> String {
    // Whatever the walkthrough left running ends with it.
    let mut script = "set -u\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for block in blocks {
        write!(script, "{}\necho \"{MARK}$?\"\n", block.script).expect("text grows");
    }
    std::fs::write(folder.join("walkthrough.sh"), script).expect("a file can be written");
    std::os::unix::fs::symlink(root().join("examples"), folder.join("examples"))
        .expect("a link can be made");
    let path = format!(
        "{}:{}",
        built().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let into = |name: &str| File::create(folder.join(name)).expect("a file can be made");
    // On a time-out the whole group of processes is ended, the server with it.
    Command::new("timeout")
        .args(["--kill-after=5", DEADLINE_S, "bash", "walkthrough.sh"])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("CAIRN_LOG")
        .stdin(Stdio::null())
        .stdout(into("stdout"))
        .stderr(into("stderr"))
        .status()
        .expect("bash can be run");
    std::fs::read_to_string(folder.join("stdout")).expect("the output can be read")
}

/// Whether a text is what was expected, where `…` stands for anything.
fn matches(expected: &str, text: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[test]
fn three_dots_stand_for_anything() {
    for (expected, text, equal) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "a", true),
        ("…b", "aab", true),
        ("a…c…e", "abcde", true),
        ("a…c…e", "abde", false),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("…a", "ab", false),
    ] {
        assert_eq!(matches(expected, text), equal, "{expected} {text}");
    }
}
