//! What a package may hold and this version does not run: Helm charts, hooks, scripts.
//!
//! They are refused at onboarding, all of them by name: a package whose hooks are left out without
//! a word would come up and be wrong.

use crate::archive::Files;
use crate::error::{ErrorKind, PackageError};
use crate::tosca::{Definitions, Located};
use crate::vnfd;
use crate::yaml::{Kind, Node};

/// How many findings one message names.
const SHOWN: usize = 8;

/// Members of an interface that are no operations (TOSCA 1.3, 3.8.5).
const NOT_OPERATIONS: [&str; 6] = [
    "type",
    "description",
    "inputs",
    "derived_from",
    "version",
    "notifications",
];

/// Refuses a package that holds a chart, a hook or a script.
///
/// # Errors
/// [`ErrorKind::Unsupported`], naming each.
pub(crate) fn check(files: &Files, definitions: &Definitions) -> Result<(), PackageError> {
    let mut found: Vec<String> = files.keys().filter_map(|path| file(path)).collect();
    let mut place = None;
    for template in &definitions.templates {
        let nodes = vnfd::node_templates(&template.file, &template.root);
        let types = template.root.get("node_types").map(|node| Located {
            file: &template.file,
            node,
        });
        for (name, node) in nodes.chain(types.into_iter().flat_map(Located::members)) {
            for (line, hook) in hooks(name, node) {
                place.get_or_insert((template.file.clone(), line));
                found.push(hook);
            }
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    let message = format!(
        "holds what this version does not run (Helm charts, hooks, scripts): {}",
        found.join("; ")
    );
    let error = PackageError::new(ErrorKind::Unsupported, message);
    Err(match place {
        Some((file, line)) => error.in_file(&file).at_line(line),
        None => error,
    })
}

/// What a file is, if it is a chart or a script.
fn file(path: &str) -> Option<String> {
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if name == "chart.yaml" || ending == "tgz" {
        return Some(format!("Helm chart {path}"));
    }
    let in_folder = ["scripts/", "userdata/"]
        .iter()
        .any(|folder| lower.starts_with(folder));
    (in_folder || matches!(ending, "py" | "sh")).then(|| format!("script {path}"))
}

/// The operations of a node template or type that something in the package implements.
fn hooks(name: &str, node: Located<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let interfaces = node.node.get("interfaces");
    for (_, interface) in interfaces.into_iter().flat_map(Node::members) {
        let listed = interface.get("operations").unwrap_or(interface);
        for (operation, body) in listed.members() {
            if NOT_OPERATIONS.contains(&operation.as_str()) {
                continue;
            }
            if let Some(by) = implementation(body) {
                let file = node
                    .node
                    .at(&["artifacts", by, "file"])
                    .and_then(Node::text);
                let is_hook = operation.ends_with("_start") || operation.ends_with("_end");
                let what = if is_hook { "hook" } else { "operation" };
                let by = file.unwrap_or(by);
                found.push((
                    body.line,
                    format!("{what} {operation} of {name}, implemented by {by}"),
                ));
            }
        }
    }
    found
}

/// What implements an operation: `op: file`, `op: {implementation: file}` or with `primary`.
fn implementation(body: &Node) -> Option<&str> {
    let stated = match &body.kind {
        Kind::Mapping(_) => body.get("implementation")?,
        Kind::Scalar { .. } | Kind::Sequence(_) => body,
    };
    let primary = stated.get("primary").unwrap_or(stated);
    let file = primary.get("file").unwrap_or(primary);
    file.text().filter(|text| !text.is_empty())
}
