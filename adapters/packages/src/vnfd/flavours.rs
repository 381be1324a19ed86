//! Deployment flavours: each lower-level service template is one (SOL001 6.11), or the entry
//! definitions alone, where they hold the VDUs themselves.

use std::collections::BTreeMap;

use cairn_domain::vnfd::{Flavour, FlavourId, Vdu};

use super::policies;
use super::{VDUS, VnfNode, node_templates, type_of};
use crate::error::{ErrorKind, PackageError, quoted};
use crate::tosca::{Definitions, Located, Template};

/// Reads every flavour.
///
/// # Errors
/// [`ErrorKind::Descriptor`] for a VNFD without flavour, two flavours of one name, or what is wrong
/// inside one.
pub(super) fn read(
    definitions: &Definitions,
    vnf: &VnfNode<'_>,
) -> Result<BTreeMap<FlavourId, Flavour>, PackageError> {
    let mut flavours: BTreeMap<FlavourId, Flavour> = BTreeMap::new();
    for template in &definitions.templates {
        let mapped = mapped_flavour(template);
        let vdus = vdus(definitions, template)?;
        if mapped.is_none() && vdus.is_empty() {
            continue;
        }
        let id = flavour_id(definitions, template, vnf, mapped);
        let mut flavour = Flavour::named(&id);
        flavour.description = description(definitions, template, vnf);
        flavour.vdus = vdus;
        policies::apply(&mut flavour, definitions, template)?;
        if flavours.insert(id.clone(), flavour).is_some() {
            let message = format!("the flavour {} is defined twice", quoted(&id));
            return Err(PackageError::new(ErrorKind::Descriptor, message).in_file(&template.file));
        }
    }
    if flavours.is_empty() {
        let message = "the VNFD has no deployment flavour: neither the entry definitions nor an \
                       import has VDUs or a flavour_id in its substitution_mappings";
        let entry = &definitions.templates[0].file;
        return Err(PackageError::new(ErrorKind::Descriptor, message).in_file(entry));
    }
    Ok(flavours)
}

/// The flavour that a template's `substitution_mappings` name.
fn mapped_flavour(template: &Template) -> Option<&str> {
    let mappings = [
        "topology_template",
        "substitution_mappings",
        "properties",
        "flavour_id",
    ];
    template.root.at(&mappings)?.text()
}

fn flavour_id(
    definitions: &Definitions,
    template: &Template,
    vnf: &VnfNode<'_>,
    mapped: Option<&str>,
) -> String {
    let stated = || own_property(definitions, template, vnf, "flavour_id");
    let default = || {
        definitions
            .property_default(&vnf.node_type, "flavour_id")?
            .node
            .text()
    };
    mapped
        .or_else(stated)
        .or_else(default)
        .unwrap_or("default")
        .to_owned()
}

fn description(definitions: &Definitions, template: &Template, vnf: &VnfNode<'_>) -> String {
    own_property(definitions, template, vnf, "flavour_description")
        .unwrap_or_default()
        .to_owned()
}

/// A property of the VNF's node in this very template.
fn own_property<'a>(
    definitions: &'a Definitions,
    template: &'a Template,
    vnf: &VnfNode<'a>,
    property: &str,
) -> Option<&'a str> {
    let own = vnf
        .templates()
        .iter()
        .filter(|node| node.file == template.file);
    own.filter_map(|node| definitions.evaluated(node.get("properties")?.get(property)?))
        .find_map(|found| found.node.text())
}

fn vdus(
    definitions: &Definitions,
    template: &Template,
) -> Result<BTreeMap<String, Vdu>, PackageError> {
    let mut vdus = BTreeMap::new();
    for (id, node) in node_templates(&template.file, &template.root) {
        if type_of(node).is_some_and(|name| definitions.is_a(name, &VDUS)) {
            vdus.insert(id.clone(), vdu(definitions, id, node)?);
        }
    }
    Ok(vdus)
}

fn vdu(definitions: &Definitions, id: &str, node: Located<'_>) -> Result<Vdu, PackageError> {
    let properties = node.get("properties");
    let evaluated = |name: &str| definitions.evaluated(properties?.get(name)?);
    let name = match evaluated("name") {
        None => id.to_owned(),
        Some(found) => found
            .node
            .text()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .ok_or_else(|| found.error(format!("the name of VDU {} must be a text", quoted(id))))?,
    };
    let profile = evaluated("vdu_profile");
    let bound = |name: &str| {
        let value = profile.and_then(|p| p.get(name));
        value.map_or(Ok(None), |value| definitions.count(name, value))
    };
    let min = bound("min_number_of_instances")?;
    let max = bound("max_number_of_instances")?;
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        return Err(node.error(format!(
            "VDU {}: min_number_of_instances {min} is above max_number_of_instances {max}",
            quoted(id)
        )));
    }
    Ok(Vdu {
        name,
        min: min.unwrap_or(0),
        max,
        initial_delta: None,
        deltas: BTreeMap::new(),
    })
}
