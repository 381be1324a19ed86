//! What Cairn needs of a VNF descriptor (SOL001): flavours, VDUs, scaling aspects and levels.
//!
//! The model is a value without behaviour of its own but arithmetic: how many instances of each
//! VDU belong to which scale levels, and which flavour, aspect or level a request may name. Reading
//! it out of a package is the work of `adapters/packages`; planning with it is the work of the
//! operations. Nothing here reads a file or knows a cluster.

mod flavour;
mod sensitive;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clocks::Clocks;
use crate::hook::Hook;
use crate::vnf_instance::VnfProduct;

pub use flavour::{Aspect, Flavour, InstantiationLevel, LevelTarget, Vdu};
pub use sensitive::{is_listed, is_sensitive};

/// Name of a deployment flavour (`flavourId`, SOL003 5.5.2.4).
pub type FlavourId = String;
/// Name of a VDU's node template (`vduId`).
pub type VduId = String;
/// Name of a scaling aspect (`aspectId`).
pub type AspectId = String;
/// Name of an instantiation level (`instantiationLevelId`).
pub type LevelId = String;

/// The descriptor of one VNF product, as far as Cairn acts on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vnfd {
    /// `descriptor_id` of the VNF node; SOL003's `vnfdId`.
    pub vnfd_id: String,
    /// Who made the VNF.
    pub provider: String,
    /// Name of the product, the same for all its versions.
    pub product_name: String,
    /// Version of the VNF's software.
    pub software_version: String,
    /// Version of this descriptor.
    pub descriptor_version: String,
    /// Name of the product for people, where it differs.
    pub product_info_name: Option<String>,
    /// VNF managers that can manage this VNF, as the descriptor names them.
    pub vnfm_info: Vec<String>,
    /// Languages that a request may ask for; empty means that any is let through.
    pub localization_languages: Vec<String>,
    /// The language of an instantiation that names none.
    pub default_localization_language: Option<String>,
    /// Deployment flavours; never empty.
    pub flavours: BTreeMap<FlavourId, Flavour>,
    /// The flavour that the descriptor declares as its default, or its first one.
    pub default_flavour: FlavourId,
    /// Initial `metadata` of an instance (SOL003 5.4.2.3.1: what a request gives goes over it).
    pub metadata: Map<String, Value>,
    /// Initial `extensions` of an instance.
    pub extensions: Map<String, Value>,
    /// Initial `vnfConfigurableProperties` of an instance.
    pub vnf_configurable_properties: Map<String, Value>,
    /// Names of parameters that are secret in this package (`cairn.sensitive`), beside those that
    /// [`is_sensitive`] knows by their sound.
    pub sensitive: Vec<String>,
    /// Clocks of waits that this package sets (`cairn.clocks`).
    pub clocks: Clocks,
    /// What the package lets run beside its operations.
    #[serde(default)]
    pub hooks: Vec<Hook>,
}

impl Vnfd {
    /// What stands for a descriptor that cannot be read, where only the record of the instance is worked on: it
    /// allows no flavour and sets no clock. `sensitive` are the names of parameters to be taken for secret.
    #[must_use]
    pub fn unreadable(product: &VnfProduct, sensitive: Vec<String>) -> Self {
        Self {
            vnfd_id: product.vnfd_id.as_str().to_owned(),
            provider: product.vnf_provider.clone(),
            product_name: product.vnf_product_name.clone(),
            software_version: product.vnf_software_version.clone(),
            descriptor_version: product.vnfd_version.clone(),
            product_info_name: None,
            vnfm_info: Vec::new(),
            localization_languages: Vec::new(),
            default_localization_language: None,
            flavours: BTreeMap::new(),
            default_flavour: FlavourId::new(),
            metadata: Map::new(),
            extensions: Map::new(),
            vnf_configurable_properties: Map::new(),
            sensitive,
            clocks: Clocks::default(),
            hooks: Vec::new(),
        }
    }

    /// The flavour of that name.
    ///
    /// # Errors
    /// [`OutOfRange`] naming `flavourId` and the flavours there are.
    pub fn flavour(&self, id: &str) -> Result<&Flavour, OutOfRange> {
        self.flavours
            .get(id)
            .ok_or_else(|| OutOfRange::unknown("flavourId", id, self.flavours.keys()))
    }

    /// Lets a `localizationLanguage` through that the descriptor lists, or any if it lists none.
    ///
    /// # Errors
    /// [`OutOfRange`] naming `localizationLanguage` and the languages there are.
    pub fn check_localization(&self, language: &str) -> Result<(), OutOfRange> {
        let known = &self.localization_languages;
        if known.is_empty() || known.iter().any(|l| l.eq_ignore_ascii_case(language)) {
            return Ok(());
        }
        Err(OutOfRange::unknown("localizationLanguage", language, known))
    }
}

/// A value of a request that the descriptor does not allow; becomes HTTP 422.
///
/// The text names the member of the request and what may stand there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfRange {
    /// The request names something that the descriptor does not have.
    #[error("{field}: \"{given}\" is not in the VNFD; allowed: {}", list(allowed))]
    Unknown {
        /// Member of the request.
        field: &'static str,
        /// What stood there.
        given: String,
        /// What the descriptor has.
        allowed: Vec<String>,
    },
    /// A scale level outside the aspect's range.
    #[error(
        "{field}: level {given} of scaling aspect \"{aspect}\" is out of range; allowed: 0 to {max}"
    )]
    ScaleLevel {
        /// Member of the request.
        field: &'static str,
        /// The scaling aspect.
        aspect: AspectId,
        /// The level asked for or arrived at.
        given: i64,
        /// The aspect's `max_scale_level`.
        max: u32,
    },
    /// `numberOfSteps` is below one.
    #[error("numberOfSteps: {given} is out of range; allowed: 1 or more")]
    Steps {
        /// What stood there.
        given: i64,
    },
}

impl OutOfRange {
    fn unknown<S: AsRef<str>>(
        field: &'static str,
        given: &str,
        allowed: impl IntoIterator<Item = S>,
    ) -> Self {
        Self::Unknown {
            field,
            given: given.to_owned(),
            allowed: allowed.into_iter().map(|a| a.as_ref().to_owned()).collect(),
        }
    }

    /// The member of the request that is wrong, for a `ProblemDetails`.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::Unknown { field, .. } | Self::ScaleLevel { field, .. } => field,
            Self::Steps { .. } => "numberOfSteps",
        }
    }
}

fn list(allowed: &[String]) -> String {
    if allowed.is_empty() {
        return "none (the VNFD declares no such thing)".to_owned();
    }
    allowed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vnfd() -> Vnfd {
        Vnfd {
            vnfd_id: "id".into(),
            provider: "Cairn".into(),
            product_name: "Signalling".into(),
            software_version: "1.0".into(),
            descriptor_version: "1.0".into(),
            product_info_name: None,
            vnfm_info: vec![],
            localization_languages: vec!["en".into(), "fr".into()],
            default_localization_language: None,
            flavours: BTreeMap::from([
                ("large".into(), Flavour::named("large")),
                ("simple".into(), Flavour::named("simple")),
            ]),
            default_flavour: "simple".into(),
            metadata: Map::new(),
            extensions: Map::new(),
            vnf_configurable_properties: Map::new(),
            sensitive: vec![],
            clocks: Clocks::default(),
            hooks: vec![],
        }
    }

    #[test]
    fn an_unknown_flavour_is_refused_with_the_flavours_there_are() {
        let error = vnfd().flavour("tiny").unwrap_err();
        assert_eq!(error.field(), "flavourId");
        assert_eq!(
            error.to_string(),
            "flavourId: \"tiny\" is not in the VNFD; allowed: large, simple"
        );
        assert_eq!(vnfd().flavour("large").unwrap().id, "large");
    }

    #[test]
    fn languages_are_checked_only_when_the_descriptor_lists_some() {
        assert!(vnfd().check_localization("FR").is_ok());
        assert_eq!(
            vnfd().check_localization("de").unwrap_err().to_string(),
            "localizationLanguage: \"de\" is not in the VNFD; allowed: en, fr"
        );
        let silent = Vnfd {
            localization_languages: vec![],
            ..vnfd()
        };
        assert!(silent.check_localization("de").is_ok());
    }

    #[test]
    fn the_model_survives_json() {
        let json = serde_json::to_string(&vnfd()).unwrap();
        assert_eq!(serde_json::from_str::<Vnfd>(&json).unwrap(), vnfd());
    }
}
