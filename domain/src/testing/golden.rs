//! Golden files: tables that are read by people and compared by tests.

use std::path::Path;

/// Compares a text with the golden file of this name. `UPDATE_GOLDEN=1` writes it anew: look at the difference
/// before it is committed.
#[track_caller]
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|missing| {
        panic!("{}: {missing}; run with UPDATE_GOLDEN=1", path.display())
    });
    for (number, (is, was)) in (1..).zip(text.lines().zip(golden.lines())) {
        assert_eq!(
            is, was,
            "{name}, line {number}; if it is meant, run with UPDATE_GOLDEN=1"
        );
    }
    assert_eq!(
        text.lines().count(),
        golden.lines().count(),
        "{name} has another length"
    );
}
