//! What a package may hold and this version does not run: Helm charts, scripts, hooks that are no Kubernetes Jobs.
//!
//! They are refused at onboarding, all of them by name: a package whose hooks are left out without
//! a word would come up and be wrong.

use crate::archive::Files;
use crate::error::{ErrorKind, PackageError};
use crate::hooks;
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

/// Refuses a package that holds a chart, a script, or a hook that is no Kubernetes Job.
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
        let nodes = nodes.map(|(name, node)| {
            let is_vnf = vnfd::type_of(node).is_some_and(|t| definitions.is_a(t, &[vnfd::VNF]));
            (name, node, is_vnf)
        });
        let types = types.into_iter().flat_map(Located::members);
        // A hook stands at the VNF itself: a type is not run.
        let types = types.map(|(name, node)| (name, node, false));
        for (name, node, is_vnf) in nodes.chain(types) {
            for (line, hook) in hooks(name, node, is_vnf) {
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
        "holds what this version does not run (Helm charts, scripts, hooks other than Kubernetes Jobs at the VNF): {}",
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

/// The operations of all interfaces of a node template or type.
pub(crate) fn operations(node: Located<'_>) -> impl Iterator<Item = (&String, &Node)> {
    let interfaces = node.node.get("interfaces").into_iter();
    interfaces
        .flat_map(Node::members)
        .flat_map(|(_, interface)| interface.get("operations").unwrap_or(interface).members())
        .filter(|(operation, _)| !NOT_OPERATIONS.contains(&operation.as_str()))
}

/// The operations of a node template or type that something in the package implements, and that are not run.
fn hooks(name: &str, node: Located<'_>, is_vnf: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (operation, body) in operations(node) {
        let Some(by) = implementation(body) else {
            continue;
        };
        let file = node
            .node
            .at(&["artifacts", by, "file"])
            .and_then(Node::text);
        let by = file.unwrap_or(by);
        if is_vnf && hooks::named(operation).is_some() && hooks::may_be_job(by) {
            continue;
        }
        let is_hook = operation.ends_with("_start") || operation.ends_with("_end");
        let what = if is_hook { "hook" } else { "operation" };
        found.push((
            body.line,
            format!("{what} {operation} of {name}, implemented by {by}"),
        ));
    }
    found
}

/// What implements an operation: `op: file`, `op: {implementation: file}` or with `primary`.
pub(crate) fn implementation(body: &Node) -> Option<&str> {
    let stated = match &body.kind {
        Kind::Mapping(_) => body.get("implementation")?,
        Kind::Scalar { .. } | Kind::Sequence(_) => body,
    };
    let primary = stated.get("primary").unwrap_or(stated);
    let file = primary.get("file").unwrap_or(primary);
    file.text().filter(|text| !text.is_empty())
}
