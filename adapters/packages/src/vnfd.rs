//! From TOSCA definitions to the domain's [`Vnfd`].

mod attributes;
mod flavours;
mod policies;

use cairn_domain::vnfd::{Flavour, Vnfd};

use crate::error::{ErrorKind, PackageError, quoted};
use crate::tosca::{Definitions, Located};

/// The node type that every VNF's type comes from (SOL001 6.8.1).
pub(crate) const VNF: &str = "tosca.nodes.nfv.VNF";

/// Node types of VDUs: SOL001 6.8.3 for machines (which is what packages made for Tacker use for
/// containers too) and 6.8.11 for containers.
pub(crate) const VDUS: [&str; 2] = [
    "tosca.nodes.nfv.Vdu.Compute",
    "tosca.nodes.nfv.Vdu.OsContainerDeployableUnit",
];

/// Reads the VNFD.
///
/// # Errors
/// [`ErrorKind::Descriptor`] with file and, where there is one, line.
pub(crate) fn read(definitions: &Definitions) -> Result<Vnfd, PackageError> {
    let entry = &definitions.templates[0];
    let vnf = VnfNode::find(definitions).ok_or_else(|| {
        PackageError::new(
            ErrorKind::Descriptor,
            format!(
                "no VNFD: no node template here or in the imports has a type that comes from {VNF}"
            ),
        )
        .in_file(&entry.file)
    })?;
    let flavours = flavours::read(definitions, &vnf)?;
    let default_flavour = vnf
        .text("flavour_id")
        .filter(|id| flavours.contains_key(*id))
        .or_else(|| flavours.keys().next().map(String::as_str))
        .expect("flavours::read refuses a VNFD without one")
        .to_owned();
    let attributes = attributes::read(definitions, &vnf)?;
    Ok(Vnfd {
        vnfd_id: vnf.demanded("descriptor_id")?,
        provider: vnf.demanded("provider")?,
        product_name: vnf.demanded("product_name")?,
        software_version: vnf.demanded("software_version")?,
        descriptor_version: vnf.demanded("descriptor_version")?,
        product_info_name: vnf.text("product_info_name").map(str::to_owned),
        vnfm_info: vnf.texts("vnfm_info"),
        localization_languages: vnf.texts("localization_languages"),
        default_localization_language: vnf.text("default_localization_language").map(str::to_owned),
        flavours,
        default_flavour,
        metadata: attributes.metadata,
        extensions: attributes.extensions,
        vnf_configurable_properties: attributes.configurable_properties,
        sensitive: attributes.sensitive,
        clocks: attributes.clocks,
        // They are read with their files, which are not known here.
        hooks: Vec::new(),
    })
}

/// The VNF's node: the template of the entry definitions, or of the first import that has one.
pub(crate) struct VnfNode<'a> {
    definitions: &'a Definitions,
    /// Node templates of the VNF, the entry's first: lower-level templates repeat it.
    templates: Vec<Located<'a>>,
    pub(crate) node_type: String,
}

impl<'a> VnfNode<'a> {
    pub(crate) fn find(definitions: &'a Definitions) -> Option<Self> {
        let mut templates = Vec::new();
        let mut node_type = None;
        for template in &definitions.templates {
            for (_, node) in node_templates(&template.file, &template.root) {
                if let Some(name) = type_of(node).filter(|name| definitions.is_a(name, &[VNF])) {
                    node_type.get_or_insert_with(|| name.to_owned());
                    templates.push(node);
                }
            }
        }
        let node_type = node_type?;
        Some(Self {
            definitions,
            templates,
            node_type,
        })
    }

    /// The VNF's node templates, the entry's first.
    pub(crate) fn templates(&self) -> &[Located<'a>] {
        &self.templates
    }

    /// A property: what a node template says, else an input's default, else the type's.
    pub(crate) fn property(&self, name: &str) -> Option<Located<'a>> {
        let given = self.templates.iter().find_map(|node| {
            self.definitions
                .evaluated(node.get("properties")?.get(name)?)
        });
        given.or_else(|| self.definitions.property_default(&self.node_type, name))
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.property(name)?
            .node
            .text()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self
            .property(name)
            .map_or(&[][..], |found| found.node.items());
        items
            .iter()
            .filter_map(|item| item.text())
            .map(str::to_owned)
            .collect()
    }

    fn demanded(&self, name: &str) -> Result<String, PackageError> {
        const LONGEST: usize = 255;
        let node = self.templates[0];
        match self.text(name) {
            Some(text) if text.len() <= LONGEST => Ok(text.to_owned()),
            Some(text) => {
                let shown = quoted(text);
                Err(node.error(format!("{name} {shown} is longer than {LONGEST} bytes")))
            }
            None => Err(node.error(format!(
                "the VNF has no {name}: neither its node template nor its type {} gives one",
                quoted(&self.node_type)
            ))),
        }
    }
}

/// Node templates of one file, with their names.
pub(crate) fn node_templates<'a>(
    file: &'a str,
    root: &'a crate::yaml::Node,
) -> impl Iterator<Item = (&'a String, Located<'a>)> {
    root.at(&["topology_template", "node_templates"])
        .map(|node| Located { file, node })
        .into_iter()
        .flat_map(Located::members)
}

/// The type of a node template or policy.
pub(crate) fn type_of(node: Located<'_>) -> Option<&str> {
    node.node.get("type").and_then(|t| t.text())
}

/// All VDUs of a VNFD as (flavour, VDU id, workload's name).
pub(crate) fn workload_names(vnfd: &Vnfd) -> impl Iterator<Item = (&Flavour, &str, &str)> {
    vnfd.flavours.values().flat_map(|flavour| {
        let vdus = flavour.vdus.iter();
        vdus.map(move |(id, vdu)| (flavour, id.as_str(), vdu.name.as_str()))
    })
}
