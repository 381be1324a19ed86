use std::cell::Cell;

use super::compose::documents as documents_within;
use super::*;
use crate::tests::fixture::alias_bomb;
use serde_json::json;

/// How the tests read: up to so many nodes, and whether keys may stand twice.
#[derive(Clone, Copy)]
struct How {
    nodes: usize,
    repeated_keys: bool,
}

const HOW: How = How {
    nodes: 10_000,
    repeated_keys: false,
};

fn documents(text: &str, file: &str, how: How) -> Result<Vec<Option<Node>>, PackageError> {
    let options = Options {
        nodes: how.nodes,
        spent: &Cell::new(0),
        repeated_keys: how.repeated_keys,
    };
    documents_within(text, file, options)
}

fn one(text: &str) -> Value {
    let documents = documents(text, "a.yaml", HOW).unwrap();
    documents[0].as_ref().unwrap().to_json()
}

fn refusal(text: &str) -> String {
    documents(text, "a.yaml", HOW).unwrap_err().to_string()
}

#[test]
fn collections_scalars_tags_and_merges_become_json() {
    assert_eq!(
        one("a: [1, 'x', {b: 0644}]\nc: !!str 5\nd: !custom {get_input: e}\nf: |\n  g\n"),
        json!({"a": [1, "x", {"b": 420}], "c": "5", "d": {"get_input": "e"}, "f": "g\n"})
    );
    assert_eq!(
        one("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\n\"<<\": 5\n"),
        json!({"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2, "z": 4}, "<<": 5})
    );
    assert_eq!(
        one("? a\n: b\n3: c\ntrue: d\n"),
        json!({"a": "b", "3": "c", "true": "d"})
    );
}

#[test]
fn every_node_knows_its_line_and_its_text() {
    let documents = documents("a: 1.0\n\nb:\n  - x\n  - c: 2\n", "a.yaml", HOW).unwrap();
    let root = documents[0].as_ref().unwrap();
    assert_eq!(root.get("a").unwrap().text(), Some("1.0"));
    assert_eq!(root.get("b").unwrap().items()[1].get("c").unwrap().line, 5);
    assert_eq!(root.at(&["b", "c"]).map(|n| n.line), None);
}

#[test]
fn documents_are_told_apart_and_empty_ones_kept_as_none() {
    let found = documents("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n", "a.yaml", HOW).unwrap();
    let shapes: Vec<_> = found.iter().map(Option::is_some).collect();
    assert_eq!(shapes, [true, false, true]);
    assert_eq!(documents("", "a.yaml", HOW).unwrap().len(), 0);
    assert_eq!(documents("# only words\n", "a.yaml", HOW).unwrap().len(), 0);
}

#[test]
fn broken_yaml_is_refused_with_file_and_line() {
    let text = refusal("a: 1\nb: [1, 2\nc: 3\n");
    assert!(text.starts_with("a.yaml:3: broken YAML: "), "{text}");
    let text = refusal("a: *nobody\n");
    assert!(text.starts_with("a.yaml:1: broken YAML: "), "{text}");
}

#[test]
fn a_key_that_stands_twice_is_refused_unless_let_through() {
    assert_eq!(
        refusal("a:\n  b: 1\n  b: 2\n"),
        "a.yaml:3: the key \"b\" stands twice in this mapping"
    );
    let how = How {
        repeated_keys: true,
        ..HOW
    };
    let found = documents("b: 1\nb: 2\n", "a.yaml", how).unwrap();
    assert_eq!(found[0].as_ref().unwrap().to_json(), json!({"b": 2}));
}

#[test]
fn strange_keys_and_merges_are_refused() {
    assert_eq!(
        refusal("[a, b]: 1\n"),
        "a.yaml:1: the key of a mapping must be a scalar"
    );
    assert_eq!(
        refusal("a:\n  <<: 5\n"),
        "a.yaml:2: \"<<\" must name mappings"
    );
    assert_eq!(
        refusal("a: !!binary aGVsbG8=\n"),
        "a.yaml:1: the tag !!binary is not taken"
    );
    assert_eq!(
        refusal("a: &a [*a]\n"),
        "a.yaml:1: an alias stands inside its own anchor"
    );
}

#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    assert_eq!(
        refusal(&alias_bomb()),
        "a.yaml:4: the YAML of the package has more than 10000 nodes (aliases count as what they stand for)"
    );
}

#[test]
fn a_long_text_repeated_by_aliases_counts_by_its_length() {
    let long = "x".repeat(100_000);
    let aliases = "- *a\n".repeat(50);
    let text = format!("- &a {long}\n{aliases}");
    assert!(refusal(&text).contains("more than 10000 nodes"));
}

#[test]
fn nesting_by_aliases_is_bounded_too() {
    let levels: Vec<_> = (1..200)
        .map(|level| format!("- &a{level} [*a{}]\n", level - 1))
        .collect();
    let text = format!("- &a0 [x]\n{}", levels.concat());
    let how = How {
        nodes: 1_000_000,
        ..HOW
    };
    assert_eq!(
        documents(&text, "a.yaml", how).unwrap_err().to_string(),
        "a.yaml:101: nested more than 100 deep"
    );
    assert!(refusal(&"[".repeat(5_000)).starts_with("a.yaml:1: broken YAML: "));
    let deep: Vec<_> = (0..5_000)
        .map(|n| format!("{}a:\n", " ".repeat(n)))
        .collect();
    assert!(refusal(&deep.concat()).contains("broken YAML"));
}
