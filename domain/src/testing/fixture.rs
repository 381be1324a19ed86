//! One VNF for all tests: `WEB` is a Deployment that scales, `DB` a `StatefulSet` that does not.

use crate::ids::{Tenant, VnfPkgId, VnfdId};
use crate::operation::{Levels, Params};
use crate::ports::Manifest;
use crate::time::Timestamp;
use crate::vnf_instance::VnfProduct;
use crate::vnfd::{Aspect, Flavour, InstantiationLevel, Vdu, Vnfd};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// When every story begins: 2026-01-01T00:00:00.000Z, in milliseconds.
pub const T0: i64 = 1_767_225_600_000;

/// Who asks, and for whom.
#[must_use]
pub fn caller() -> (String, Tenant) {
    ("tester".to_owned(), Tenant::default_tenant())
}

/// The product of the VNF.
///
/// # Panics
///
/// Never: its ids are legal.
#[must_use]
pub fn product() -> VnfProduct {
    VnfProduct {
        vnfd_id: VnfdId::parse("vnfd-1").expect("a legal id"),
        vnf_pkg_id: VnfPkgId::parse("pkg-1").expect("a legal id"),
        vnf_provider: "Cairn".into(),
        vnf_product_name: "Sample".into(),
        vnf_software_version: "1.0".into(),
        vnfd_version: "1.0".into(),
    }
}

/// The next version of the product.
///
/// # Panics
///
/// Never: its ids are legal.
#[must_use]
pub fn next_product() -> VnfProduct {
    VnfProduct {
        vnfd_id: VnfdId::parse("vnfd-2").expect("a legal id"),
        vnf_pkg_id: VnfPkgId::parse("pkg-2").expect("a legal id"),
        vnf_software_version: "2.0".into(),
        vnfd_version: "2.0".into(),
        ..product()
    }
}

/// Levels of the next version: `CACHE` instead of `DB`.
#[must_use]
pub fn next_levels(web: u32) -> Levels {
    Levels {
        vdu_replicas: BTreeMap::from([("CACHE".into(), 1), ("WEB".into(), web)]),
        workloads: BTreeMap::from([
            ("CACHE".into(), "cache".into()),
            ("WEB".into(), "web".into()),
        ]),
        ..levels(web)
    }
}

/// What a `CHANGE_VNFPKG` to the next version asks for.
#[must_use]
pub fn change_params(web: u32) -> Params {
    Params::ChangeVnfpkg {
        product: next_product(),
        levels: next_levels(web),
        info: Map::new(),
        vdus: None,
    }
}

/// The manifests of the next version: two objects change, one must be made anew, two are new, and the
/// `StatefulSet` is gone.
#[must_use]
pub fn next_manifests() -> Vec<Manifest> {
    [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"image": "2"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"a": "2"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": "new"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"}}),
        deployment("cache"),
    ]
    .into_iter()
    .map(manifest)
    .collect()
}

/// Its levels with so many replicas of `WEB`; aspect `web` is at one less.
#[must_use]
pub fn levels(web: u32) -> Levels {
    Levels {
        scale_status: BTreeMap::from([("web".into(), web.saturating_sub(1))]),
        max_scale_levels: BTreeMap::from([("web".into(), 4)]),
        vdu_replicas: BTreeMap::from([("DB".into(), 1), ("WEB".into(), web)]),
        workloads: BTreeMap::from([("DB".into(), "db".into()), ("WEB".into(), "web".into())]),
    }
}

/// What an INSTANTIATE with so many replicas of `WEB` asks for.
#[must_use]
pub fn instantiate_params(web: u32) -> Params {
    Params::Instantiate {
        flavour_id: "simple".into(),
        levels: levels(web),
        info: Map::new(),
    }
}

/// A manifest of its own file.
#[must_use]
pub fn manifest(value: Value) -> Manifest {
    let kind = value["kind"].as_str().unwrap_or("object").to_lowercase();
    Manifest {
        file: format!("Files/{kind}.yaml"),
        document: 0,
        value,
    }
}

/// A Deployment in the default namespace.
#[must_use]
pub fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {}})
}

/// The manifests of the package, in no particular order.
#[must_use]
pub fn manifests() -> Vec<Manifest> {
    [
        deployment("web"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"a": "1"}}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {}}),
    ]
    .into_iter()
    .map(manifest)
    .collect()
}

fn vdu(name: &str, deltas: BTreeMap<String, BTreeMap<String, u32>>) -> Vdu {
    Vdu {
        name: name.into(),
        min: 1,
        max: Some(5),
        initial_delta: Some(1),
        deltas,
    }
}

/// Its descriptor: flavour `simple`, aspect `web` with levels 0 to 4, levels `small` and `large`.
#[must_use]
pub fn vnfd() -> Vnfd {
    let one = BTreeMap::from([("web".to_owned(), BTreeMap::from([("one".to_owned(), 1)]))]);
    let level = |web| InstantiationLevel {
        description: String::new(),
        scale_info: BTreeMap::from([("web".into(), web)]),
        vdu_levels: BTreeMap::new(),
    };
    let flavour = Flavour {
        vdus: BTreeMap::from([
            ("WEB".into(), vdu("web", one)),
            ("DB".into(), vdu("db", BTreeMap::new())),
        ]),
        aspects: BTreeMap::from([(
            "web".into(),
            Aspect {
                name: "web".into(),
                description: String::new(),
                max_scale_level: 4,
                step_deltas: vec!["one".into()],
            },
        )]),
        instantiation_levels: BTreeMap::from([
            ("large".into(), level(4)),
            ("small".into(), level(0)),
        ]),
        default_instantiation_level: Some("small".into()),
        ..Flavour::named("simple")
    };
    Vnfd {
        vnfd_id: "vnfd-1".into(),
        provider: "Cairn".into(),
        product_name: "Sample".into(),
        software_version: "1.0".into(),
        descriptor_version: "1.0".into(),
        product_info_name: None,
        vnfm_info: Vec::new(),
        localization_languages: vec!["en".into()],
        default_localization_language: None,
        flavours: BTreeMap::from([("simple".into(), flavour)]),
        default_flavour: "simple".into(),
        metadata: Map::new(),
        extensions: Map::new(),
        vnf_configurable_properties: Map::new(),
        sensitive: vec!["pin".into()],
        clocks: crate::clocks::Clocks::default(),
        hooks: Vec::new(),
    }
}

/// When the story that began at [`T0`] is so many seconds old.
#[must_use]
pub(super) fn after_seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(T0).plus_millis(seconds.saturating_mul(1000))
}
