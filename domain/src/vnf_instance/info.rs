//! The changeable part of an instance: merge patches, and what a running operation lays over it.

use super::{VnfInfo, VnfInstance};
use crate::merge_patch::{merge, merge_members};
use serde_json::{Map, Value};

/// Members that a PATCH may carry (SOL003 5.5.2.12), as they are named in JSON.
pub const MODIFIABLE: [&str; 7] = [
    "vnfInstanceName",
    "vnfInstanceDescription",
    "metadata",
    "extensions",
    "vnfConfigurableProperties",
    "vimConnectionInfo",
    "vnfdId",
];

/// Members of a request that are laid over the recorded ones.
const OVERLAID: [&str; 3] = [
    "extensions",
    "vnfConfigurableProperties",
    "vimConnectionInfo",
];

/// The changeable part with an overlay laid over it.
#[must_use]
pub fn effective(info: &VnfInfo, overlay: &Map<String, Value>) -> VnfInfo {
    let mut result = info.clone();
    for name in OVERLAID {
        if let Some(Value::Object(changes)) = overlay.get(name) {
            merge_members(result.member_mut(name), changes);
        }
    }
    result
}

/// The VIMs that the record names without an address of their own, which is what points to registered ones.
pub fn registered(info: &VnfInfo) -> impl Iterator<Item = &str> {
    info.vim_connection_info
        .values()
        .filter(|entry| entry["interfaceInfo"]["endpoint"].is_null())
        .filter_map(|entry| entry["vimId"].as_str())
}

impl VnfInfo {
    fn member_mut(&mut self, name: &str) -> &mut Map<String, Value> {
        match name {
            "extensions" => &mut self.extensions,
            "vnfConfigurableProperties" => &mut self.vnf_configurable_properties,
            "vimConnectionInfo" => &mut self.vim_connection_info,
            _ => &mut self.metadata,
        }
    }

    fn patched(mut self, changes: &Map<String, Value>) -> Self {
        if let Some(name) = changes.get("vnfInstanceName") {
            self.vnf_instance_name = name.as_str().map(str::to_owned);
        }
        if let Some(description) = changes.get("vnfInstanceDescription") {
            self.vnf_instance_description = description.as_str().map(str::to_owned);
        }
        for member in [
            "metadata",
            "extensions",
            "vnfConfigurableProperties",
            "vimConnectionInfo",
        ] {
            match changes.get(member) {
                Some(Value::Object(changes)) => merge_members(self.member_mut(member), changes),
                Some(Value::Null) => self.member_mut(member).clear(),
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_))
                | None => {}
            }
        }
        self
    }
}

impl VnfInstance {
    /// The changeable part as an operation finds it after a PATCH with these changes.
    #[must_use]
    pub fn info_after(&self, changes: &Map<String, Value>) -> VnfInfo {
        let (info, overlay) = self.modified(changes);
        effective(&info, &overlay)
    }

    /// What a PATCH leaves: the changeable part, and the overlay of a halted operation with the patch on top,
    /// so that the new value wins and stays, whatever becomes of the operation.
    pub(super) fn modified(&self, changes: &Map<String, Value>) -> (VnfInfo, Map<String, Value>) {
        let mut info = self.info.clone().patched(changes);
        let Some(claim) = &self.claim else {
            return (info, Map::new());
        };
        let mut overlay = claim.overlay.clone();
        for name in OVERLAID {
            if let (Some(over), Some(change)) = (overlay.get_mut(name), changes.get(name)) {
                merge(over, change);
            }
        }
        let now = effective(&info, &overlay);
        // A VIM that was only named by the operation is kept whole once a PATCH has touched it.
        if let Some(Value::Object(touched)) = changes.get("vimConnectionInfo") {
            for key in touched.keys() {
                if let Some(entry) = now.vim_connection_info.get(key) {
                    info.vim_connection_info.insert(key.clone(), entry.clone());
                }
            }
        }
        (info, overlay)
    }
}
