//! Initial attributes of instances, and Cairn's own members of a VNFD.

use cairn_domain::clocks::Clocks;
use serde_json::{Map, Value};

use super::VnfNode;
use crate::error::PackageError;
use crate::tosca::{Definitions, Located};

pub(super) struct Attributes {
    pub(super) metadata: Map<String, Value>,
    pub(super) extensions: Map<String, Value>,
    pub(super) configurable_properties: Map<String, Value>,
    pub(super) sensitive: Vec<String>,
    pub(super) clocks: Clocks,
}

pub(super) fn read(
    definitions: &Definitions,
    vnf: &VnfNode<'_>,
) -> Result<Attributes, PackageError> {
    let mut modifiable = initial(definitions, vnf, "modifiable_attributes");
    Ok(Attributes {
        metadata: object(modifiable.remove("metadata")),
        extensions: object(modifiable.remove("extensions")),
        configurable_properties: initial(definitions, vnf, "configurable_properties"),
        sensitive: sensitive(definitions, vnf)?,
        clocks: clocks(definitions, vnf)?,
    })
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// A property's value over the defaults of its data type, without what is known only later.
fn initial(definitions: &Definitions, vnf: &VnfNode<'_>, property: &str) -> Map<String, Value> {
    let definition = definitions.property_definitions(&vnf.node_type, property);
    let data_type = definition.iter().find_map(|d| d.get("type")?.node.text());
    let mut values = data_type.map_or_else(Map::new, |name| definitions.data_type_defaults(name));
    if let Some(given) = vnf.property(property) {
        overlay(&mut values, known(definitions, given));
    }
    values
}

/// The members of a value as JSON; functions are replaced by what they give, or left out.
fn known(definitions: &Definitions, value: Located<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    for (name, member) in value.members() {
        let Some(found) = definitions.evaluated(member) else {
            continue;
        };
        let json = match found.node.mapping() {
            Some(_) => Value::Object(known(definitions, found)),
            None => found.node.to_json(),
        };
        members.insert(name.clone(), json);
    }
    members
}

fn overlay(values: &mut Map<String, Value>, over: Map<String, Value>) {
    for (name, value) in over {
        match (values.get_mut(&name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            (_, value) => {
                values.insert(name, value);
            }
        }
    }
}

/// Every place in which a VNFD may carry a member of Cairn's: the file and its `metadata`, the
/// VNF's node template, its `metadata` and its properties, and the type's default for these.
fn own_members<'a>(
    definitions: &'a Definitions,
    vnf: &VnfNode<'a>,
    name: &str,
) -> Vec<Located<'a>> {
    let files = definitions.templates.iter().map(|template| Located {
        file: template.file.as_str(),
        node: &template.root,
    });
    let nodes = vnf.templates().iter().copied();
    let places = files.chain(nodes).flat_map(|place| {
        let topology = place
            .get("topology_template")
            .and_then(|t| t.get("metadata"));
        [
            Some(place),
            place.get("metadata"),
            place.get("properties"),
            topology,
        ]
    });
    let mut found: Vec<_> = places
        .flatten()
        .filter_map(|place| place.get(&format!("cairn.{name}")))
        .collect();
    found.extend(definitions.property_default(&vnf.node_type, &format!("cairn.{name}")));
    found
}

/// `cairn.sensitive`: a list of names, or one text with commas (TOSCA metadata holds texts only).
fn sensitive(definitions: &Definitions, vnf: &VnfNode<'_>) -> Result<Vec<String>, PackageError> {
    let mut names = Vec::new();
    for found in own_members(definitions, vnf, "sensitive") {
        if found.node.mapping().is_some() {
            return Err(found.error("cairn.sensitive must be a list of names"));
        }
        for item in found.node.items() {
            let Some(text) = item.text() else {
                return Err(item.error(found.file, "cairn.sensitive must be a list of names"));
            };
            let listed = text
                .trim()
                .trim_start_matches('[')
                .trim_end_matches(']')
                .split(',');
            let plain = listed.map(|name| name.trim().trim_matches(['"', '\'']));
            names.extend(plain.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// `cairn.clocks`: a mapping of class to duration, or the same as JSON in a text. The first place
/// that names a class holds.
fn clocks(definitions: &Definitions, vnf: &VnfNode<'_>) -> Result<Clocks, PackageError> {
    let mut clocks = Clocks::default();
    for found in own_members(definitions, vnf, "clocks") {
        let stated = match found.node.text() {
            Some(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            None => found.node.to_json(),
        };
        let more = Clocks::parse(&stated).map_err(|e| found.error(e.to_string()))?;
        clocks = clocks.or(&more);
    }
    Ok(clocks)
}
