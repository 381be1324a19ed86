//! Which attributes a resource has, read from the published schemas: what a `filter` or selector may name.

use serde_json::{Map, Value};
use std::sync::OnceLock;

/// The attributes of a resource, and what its lists leave out when nobody asks otherwise.
#[derive(Debug)]
pub struct Attributes {
    schema: Value,
    /// Attributes that `exclude_default` leaves out (SOL003 5.4.2.3.2 and likewise).
    pub excluded_by_default: &'static [&'static str],
}

macro_rules! attributes {
    ($(#[$doc:meta])* $name:ident, $file:literal, $excluded:expr) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name() -> &'static Attributes {
            static READ: OnceLock<Attributes> = OnceLock::new();
            READ.get_or_init(|| Attributes {
                schema: serde_json::from_str(include_str!(concat!("../schemas/", $file, ".schema.json")))
                    .expect("the schema is part of this binary and was read by the tests"),
                excluded_by_default: $excluded,
            })
        }
    };
}

attributes!(
    /// Of `VnfInstance`.
    vnf_instance,
    "VnfInstance",
    &["vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"]
);
attributes!(
    /// Of `VnfLcmOpOcc`.
    vnf_lcm_op_occ,
    "VnfLcmOpOcc",
    &["operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity"]
);
attributes!(
    /// Of `LccnSubscription`, whose lists have no selectors.
    lccn_subscription,
    "LccnSubscription",
    &[]
);
attributes!(
    /// Of `VnfPkgInfo`.
    vnf_pkg_info,
    "VnfPkgInfo",
    &["softwareImages", "additionalArtifacts", "userDefinedData", "checksum", "onboardingFailureDetails"]
);

impl Attributes {
    /// Whether this path names an attribute. Below maps and open objects every name is one.
    #[must_use]
    pub fn know(&self, path: &[String]) -> bool {
        !path.is_empty() && self.schema_at(path.iter().map(String::as_str)).is_some()
    }

    /// Whether an attribute must be wherever the object around it is: those are never left out.
    #[must_use]
    pub fn require(&self, path: &[&str]) -> bool {
        let Some((name, above)) = path.split_last() else {
            return true;
        };
        if above.is_empty() && *name == "_links" {
            return true;
        }
        self.schema_at(above.iter().copied())
            .and_then(|around| entries(around).get("required")?.as_array())
            .is_some_and(|all| all.iter().any(|one| one == name))
    }

    /// The schema of an attribute; `Null` where every name is one.
    fn schema_at<'p>(&self, path: impl Iterator<Item = &'p str>) -> Option<&Value> {
        let mut here = &self.schema;
        for name in path {
            here = entries(here);
            match here.get("properties").and_then(Value::as_object) {
                Some(properties) if properties.contains_key(name) => here = &properties[name],
                Some(properties) if !properties.is_empty() && !is_map(here) => return None,
                Some(_) | None => match here.get("additionalProperties") {
                    Some(values @ Value::Object(_)) => here = values,
                    _ if may_be_object(here) => return Some(&Value::Null),
                    _ => return None,
                },
            }
        }
        Some(here)
    }

    /// The names of the resource's own attributes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
    }
}

/// The schema of an array's entries, or the schema itself.
fn entries(schema: &Value) -> &Value {
    match schema.get("items") {
        Some(items) => entries(items),
        None => schema,
    }
}

fn is_map(schema: &Value) -> bool {
    schema
        .get("additionalProperties")
        .is_some_and(Value::is_object)
}

fn may_be_object(schema: &Value) -> bool {
    schema.get("type").is_none_or(|kind| kind == "object")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knows(attributes: &Attributes, path: &str) -> bool {
        let path: Vec<String> = path.split('/').map(str::to_owned).collect();
        attributes.know(&path)
    }

    #[test]
    fn nested_attributes_are_known_and_others_are_not() {
        for (path, expected) in [
            ("id", true),
            ("vnfInstanceName", true),
            ("instantiatedVnfInfo/vnfState", true),
            ("instantiatedVnfInfo/scaleStatus/aspectId", true),
            (
                "instantiatedVnfInfo/vnfcResourceInfo/computeResource/resourceId",
                true,
            ),
            ("vimConnectionInfo/vim1/vimType", true),
            ("vimConnectionInfo/vim1/colour", false),
            ("metadata/anything/below", true),
            ("extensions/x", true),
            ("colour", false),
            ("id/x", false),
            ("", false),
        ] {
            assert_eq!(knows(vnf_instance(), path), expected, "{path}");
        }
        assert!(knows(vnf_lcm_op_occ(), "error/detail"));
        assert!(knows(vnf_lcm_op_occ(), "operationParams/flavourId"));
        assert!(knows(lccn_subscription(), "filter/operationTypes"));
        assert!(knows(vnf_pkg_info(), "vnfdId"));
    }

    #[test]
    fn what_must_be_there_is_known_at_any_depth() {
        for (path, expected) in [
            (&["id"][..], true),
            (&["_links"], true),
            (&["metadata"], false),
            (&["instantiatedVnfInfo", "flavourId"], true),
            (&["instantiatedVnfInfo", "scaleStatus"], false),
            (&["instantiatedVnfInfo", "scaleStatus", "aspectId"], true),
            (&["metadata", "x"], false),
        ] {
            assert_eq!(vnf_instance().require(path), expected, "{path:?}");
        }
    }

    #[test]
    fn required_attributes_are_never_left_out_by_default() {
        for attributes in [vnf_instance(), vnf_lcm_op_occ(), vnf_pkg_info()] {
            for name in attributes.excluded_by_default {
                assert!(!attributes.require(&[name]), "{name}");
                assert!(attributes.names().any(|known| known == *name), "{name}");
            }
        }
    }
}
