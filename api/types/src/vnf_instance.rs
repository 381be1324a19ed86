//! `VnfInstance` (SOL003 5.5.2.2) and `InstantiatedVnfInfo` (5.5.3.3).

use crate::link::Link;
use crate::public_url::PublicUrl;
use crate::shown;
use cairn_domain::lcm_op_occ::plan::Vnfc;
use cairn_domain::operation::{Levels, Operation};
use cairn_domain::vnf_instance::{InstantiatedVnfInfo, VnfInfo, VnfInstance, VnfProduct};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// SOL003 5.5.2.2.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VnfInstanceDto {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    vnf_instance_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vnf_instance_description: Option<String>,
    vnfd_id: String,
    vnf_provider: String,
    vnf_product_name: String,
    vnf_software_version: String,
    vnfd_version: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    vnf_configurable_properties: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    vim_connection_info: Map<String, Value>,
    instantiation_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instantiated_vnf_info: Option<InstantiatedVnfInfoDto>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    extensions: Map<String, Value>,
    #[serde(rename = "_links")]
    links: Links,
}

/// The links of an instance: `self`, and exactly the tasks that are possible now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Links {
    #[serde(rename = "self")]
    myself: Link,
    #[serde(skip_serializing_if = "Option::is_none")]
    instantiate: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminate: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale_to_level: Option<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heal: Option<Link>,
    /// SOL003 3.7.1 has it, 3.3.1 forgot it.
    #[serde(skip_serializing_if = "Option::is_none")]
    change_current_vnf_pkg: Option<Link>,
}

/// `instantiatedVnfInfo`, present exactly while INSTANTIATED.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstantiatedVnfInfoDto {
    flavour_id: String,
    vnf_state: &'static str,
    scale_status: Vec<ScaleInfo>,
    max_scale_levels: Vec<ScaleInfo>,
    vnfc_resource_info: Vec<VnfcResourceInfo>,
}

/// SOL003 5.5.3.4.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScaleInfo {
    aspect_id: String,
    scale_level: u32,
}

/// SOL003 5.5.3.5: a pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VnfcResourceInfo {
    id: String,
    vdu_id: String,
    compute_resource: ResourceHandle,
}

/// SOL003 4.4.1.7 `ResourceHandle` of a pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceHandle {
    resource_id: String,
    vim_level_resource_type: String,
}

impl ResourceHandle {
    pub(crate) fn of(vnfc: &Vnfc) -> Self {
        Self {
            resource_id: vnfc.id.clone(),
            vim_level_resource_type: vnfc.workload_kind.clone(),
        }
    }
}

impl VnfInstanceDto {
    /// The instance as SOL003 shows it.
    #[must_use]
    pub fn of(instance: &VnfInstance, url: &PublicUrl) -> Self {
        let VnfProduct {
            vnfd_id,
            vnf_pkg_id: _,
            vnf_provider,
            vnf_product_name,
            vnf_software_version,
            vnfd_version,
        } = &instance.product;
        let VnfInfo {
            vnf_instance_name,
            vnf_instance_description,
            metadata,
            extensions,
            vnf_configurable_properties,
            vim_connection_info,
        } = instance.info_now();
        let state = if instance.instantiated.is_some() {
            "INSTANTIATED"
        } else {
            "NOT_INSTANTIATED"
        };
        Self {
            id: instance.id.to_string(),
            vnf_instance_name,
            vnf_instance_description,
            vnfd_id: vnfd_id.to_string(),
            vnf_provider: vnf_provider.clone(),
            vnf_product_name: vnf_product_name.clone(),
            vnf_software_version: vnf_software_version.clone(),
            vnfd_version: vnfd_version.clone(),
            vnf_configurable_properties: shown::members(&vnf_configurable_properties),
            vim_connection_info: shown::members(&vim_connection_info),
            instantiation_state: state,
            instantiated_vnf_info: instance.instantiated.as_ref().map(instantiated),
            metadata: shown::members(&metadata),
            extensions: shown::members(&extensions),
            links: links(instance, url),
        }
    }
}

fn links(instance: &VnfInstance, url: &PublicUrl) -> Links {
    let myself = url.vnf_instance(instance.id.as_str());
    let task = |operation: Operation, name: &str| {
        let possible = !instance.deleted && instance.accepts(operation);
        possible.then(|| Link::to(format!("{myself}/{name}")))
    };
    Links {
        instantiate: task(Operation::Instantiate, "instantiate"),
        terminate: task(Operation::Terminate, "terminate"),
        scale: task(Operation::Scale, "scale"),
        scale_to_level: task(Operation::ScaleToLevel, "scale_to_level"),
        heal: task(Operation::Heal, "heal"),
        change_current_vnf_pkg: task(Operation::ChangeVnfpkg, "change_vnfpkg"),
        myself: Link::to(myself),
    }
}

fn instantiated(info: &InstantiatedVnfInfo) -> InstantiatedVnfInfoDto {
    let InstantiatedVnfInfo {
        flavour_id,
        levels:
            Levels {
                scale_status,
                max_scale_levels,
                vdu_replicas: _,
                workloads: _,
            },
        vnfcs,
        objects: _,
        namespace: _,
        def_files: _,
        cluster_uid: _,
    } = info;
    let mut vnfcs: Vec<&Vnfc> = vnfcs.iter().collect();
    vnfcs.sort_by(|a, b| (&a.vdu_id, &a.id).cmp(&(&b.vdu_id, &b.id)));
    InstantiatedVnfInfoDto {
        flavour_id: flavour_id.clone(),
        // OPERATE is not supported: what is instantiated is started.
        vnf_state: "STARTED",
        scale_status: scale_infos(scale_status),
        max_scale_levels: scale_infos(max_scale_levels),
        vnfc_resource_info: vnfcs
            .into_iter()
            .map(|vnfc| VnfcResourceInfo {
                id: vnfc.id.clone(),
                vdu_id: vnfc.vdu_id.clone(),
                compute_resource: ResourceHandle::of(vnfc),
            })
            .collect(),
    }
}

fn scale_infos(levels: &BTreeMap<String, u32>) -> Vec<ScaleInfo> {
    levels
        .iter()
        .map(|(aspect_id, level)| ScaleInfo {
            aspect_id: aspect_id.clone(),
            scale_level: *level,
        })
        .collect()
}
