//! The TOSCA definitions of a package: files with their imports, types with their ancestors, and
//! properties with their defaults. Types that are not known are let through: what counts is only
//! whether a type comes from one that SOL001 names.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value};

use crate::archive::{Files, resolve};
use crate::error::{ErrorKind, PackageError, quoted};
use crate::source::Source;
use crate::yaml::Node;

/// Chains of types, and types inside types, are followed no further than this.
const MAX_CHAIN: usize = 16;

/// Files that one package may define its VNFD in.
const MAX_FILES: usize = 64;

/// One service template.
pub(crate) struct Template {
    pub(crate) file: String,
    pub(crate) root: Node,
}

/// All service templates of a package; the entry definitions come first.
pub(crate) struct Definitions {
    pub(crate) templates: Vec<Template>,
}

/// A value with the file and line it stands in.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) file: &'a str,
    pub(crate) node: &'a Node,
}

impl<'a> Located<'a> {
    pub(crate) fn get(self, key: &str) -> Option<Self> {
        let file = self.file;
        self.node.get(key).map(|node| Self { file, node })
    }

    pub(crate) fn members(self) -> impl Iterator<Item = (&'a String, Self)> {
        let file = self.file;
        self.node
            .members()
            .map(move |(key, node)| (key, Self { file, node }))
    }

    pub(crate) fn error(self, message: impl Into<String>) -> PackageError {
        self.node.error(self.file, message)
    }
}

impl Definitions {
    /// Reads the entry definitions and what they import, each file once.
    ///
    /// # Errors
    /// A file that is missing, is no YAML mapping, or would have to be fetched from elsewhere.
    pub(crate) fn read(entry: &str, source: &Source<'_>) -> Result<Self, PackageError> {
        let mut templates = Vec::new();
        let mut seen = BTreeSet::from([entry.to_owned()]);
        let mut queue = VecDeque::from([entry.to_owned()]);
        while let Some(file) = queue.pop_front() {
            let root = template(&file, source)?;
            for import in root.get("imports").map_or(&[][..], Node::items) {
                if let Some(path) = imported(import, &file, source.files)?
                    && seen.insert(path.clone())
                {
                    queue.push_back(path);
                }
            }
            if seen.len() > MAX_FILES {
                let message = format!("the definitions import more than {MAX_FILES} files");
                return Err(PackageError::new(ErrorKind::Limit, message).in_file(entry));
            }
            templates.push(Template { file, root });
        }
        Ok(Self { templates })
    }

    /// The first template's member at `path` that any template has.
    pub(crate) fn find(&self, path: &[&str]) -> Option<Located<'_>> {
        self.templates.iter().find_map(|template| {
            let file = template.file.as_str();
            template.root.at(path).map(|node| Located { file, node })
        })
    }

    /// A type and its ancestors in one section (`node_types`, `data_types`), nearest first. A type
    /// that no file defines is a name alone.
    fn chain(&self, section: &str, name: &str) -> Vec<(String, Option<Located<'_>>)> {
        let mut chain: Vec<(String, Option<Located<'_>>)> = Vec::new();
        let mut next = Some(name.to_owned());
        while let Some(name) = next {
            if chain.len() >= MAX_CHAIN || chain.iter().any(|(known, _)| *known == name) {
                break;
            }
            let found = self.find(&[section, &name]);
            next = found
                .and_then(|t| t.get("derived_from"))
                .and_then(|d| d.node.text())
                .map(str::to_owned);
            chain.push((name, found));
        }
        chain
    }

    /// Whether a node type is one of `bases` or comes from one.
    pub(crate) fn is_a(&self, node_type: &str, bases: &[&str]) -> bool {
        self.chain("node_types", node_type)
            .iter()
            .any(|(name, _)| bases.contains(&name.as_str()))
    }

    /// What a node type says about one property, nearest ancestor first.
    pub(crate) fn property_definitions(&self, node_type: &str, property: &str) -> Vec<Located<'_>> {
        self.chain("node_types", node_type)
            .into_iter()
            .filter_map(|(_, found)| found?.get("properties")?.get(property))
            .collect()
    }

    /// The value that a node type gives a property that its template leaves out: its default, or
    /// the only value that its constraints allow.
    pub(crate) fn property_default(&self, node_type: &str, property: &str) -> Option<Located<'_>> {
        let definitions = self.property_definitions(node_type, property);
        let default = definitions.iter().find_map(|d| d.get("default"));
        default.or_else(|| definitions.into_iter().find_map(only_valid_value))
    }

    /// The defaults of all properties of a data type, as JSON.
    pub(crate) fn data_type_defaults(&self, data_type: &str) -> Map<String, Value> {
        self.defaults_within(data_type, 0)
    }

    fn defaults_within(&self, data_type: &str, depth: usize) -> Map<String, Value> {
        let mut values = Map::new();
        if depth >= 4 {
            return values;
        }
        for (_, found) in self.chain("data_types", data_type) {
            let properties = found.and_then(|t| t.get("properties"));
            for (name, definition) in properties.into_iter().flat_map(Located::members) {
                if values.contains_key(name) {
                    continue;
                }
                if let Some(default) = definition.get("default") {
                    values.insert(name.clone(), default.node.to_json());
                    continue;
                }
                let nested = definition
                    .get("type")
                    .and_then(|t| t.node.text())
                    .map(|name| self.defaults_within(name, depth + 1));
                if let Some(nested) = nested.filter(|nested| !nested.is_empty()) {
                    values.insert(name.clone(), Value::Object(nested));
                }
            }
        }
        values
    }
}

/// The one value of a `valid_values` constraint.
fn only_valid_value(definition: Located<'_>) -> Option<Located<'_>> {
    let file = definition.file;
    let constraints = definition.get("constraints")?.node.items();
    match constraints
        .iter()
        .find_map(|c| c.get("valid_values"))?
        .items()
    {
        [node] => Some(Located { file, node }),
        _ => None,
    }
}

fn template(file: &str, source: &Source<'_>) -> Result<Node, PackageError> {
    let found = source.documents(file, is_etsi_types(file))?;
    let wrong =
        |message: &str| Err(PackageError::new(ErrorKind::Descriptor, message).in_file(file));
    let mut documents = found.into_iter().flatten();
    match (documents.next(), documents.next()) {
        (Some(root), None) if root.mapping().is_some() => Ok(root),
        (Some(_), Some(_)) => wrong("a TOSCA file must hold one YAML document"),
        (Some(root), None) => Err(root.error(file, "a TOSCA file must be a YAML mapping")),
        (None, _) => wrong("is empty"),
    }
}

/// The type files that ETSI publishes; they are not the package's own work.
fn is_etsi_types(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("etsi_nfv_sol001_")
}

/// The path of an import in the package; `None` for ETSI's type files on ETSI's own site, which
/// say nothing that is not known here.
fn imported(import: &Node, from: &str, files: &Files) -> Result<Option<String>, PackageError> {
    let by_name = || import.members().next().map(|(_, named)| named);
    let target = import
        .get("file")
        .or_else(|| import.get("url"))
        .or_else(|| by_name().map(|named| named.get("file").unwrap_or(named)));
    let Some(reference) = target.unwrap_or(import).text() else {
        return Err(import.error(from, "an import must be the name of a file"));
    };
    if reference.contains("://") {
        if is_etsi_types(reference) {
            return Ok(None);
        }
        return Err(import.error(
            from,
            format!(
                "{} is not fetched; put the file into the package",
                quoted(reference)
            ),
        ));
    }
    let near = resolve(from, reference);
    let far = resolve("", reference);
    let found = [near, far]
        .into_iter()
        .flatten()
        .find(|path| files.contains_key(path));
    match found {
        Some(path) => Ok(Some(path)),
        None => Err(import.error(
            from,
            format!("imports {}, which is not in the package", quoted(reference)),
        )),
    }
}

/// TOSCA's functions that take their value from elsewhere.
const FUNCTIONS: [&str; 7] = [
    "get_input",
    "get_property",
    "get_attribute",
    "get_operation_output",
    "get_nodes_of_type",
    "get_artifact",
    "concat",
];

impl Definitions {
    /// A value, or the default of the input that it takes (`get_input`). `None` for what is known
    /// only when the VNF runs.
    pub(crate) fn evaluated<'a>(&'a self, value: Located<'a>) -> Option<Located<'a>> {
        let mut members = value.node.members();
        let (Some((name, argument)), None) = (members.next(), members.next()) else {
            return Some(value);
        };
        if !FUNCTIONS.contains(&name.as_str()) {
            return Some(value);
        }
        if name != "get_input" {
            return None;
        }
        let input = argument.items().first().and_then(Node::text)?;
        let inputs = ["topology_template", "inputs", input, "default"];
        let own = self
            .templates
            .iter()
            .find(|template| template.file == value.file)
            .and_then(|template| template.root.at(&inputs))
            .map(|node| Located {
                file: value.file,
                node,
            });
        own.or_else(|| self.find(&inputs))
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// [`ErrorKind::Descriptor`] naming `what`, if there is a value and it is none.
    pub(crate) fn count(
        &self,
        what: &str,
        value: Located<'_>,
    ) -> Result<Option<u32>, PackageError> {
        let Some(found) = self.evaluated(value) else {
            return Ok(None);
        };
        let number = found
            .node
            .text()
            .and_then(|text| text.trim().parse::<u32>().ok());
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(found.error(format!("{what} must be a whole number, 0 or more"))),
        }
    }
}
