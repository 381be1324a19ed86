//! The published schemas as judge.

use serde_json::Value;

/// Fails with every complaint of the schema.
#[track_caller]
pub fn judge(schema: &str, body: &Value) {
    let path = format!(
        "{}/schemas/{schema}.schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let complaints: Vec<String> = validator
        .iter_errors(body)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}\n{body:#}");
}
