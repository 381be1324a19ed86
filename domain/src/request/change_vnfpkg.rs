//! What `ChangeCurrentVnfPkgRequest` (SOL003 5.5.2.12b) means for this VNF: the flavour stays, and the scale levels
//! are carried over to the new descriptor.

use super::{OVERLAID, Package, text, unprocessable};
use crate::merge_patch::merge;
use crate::operation::{Levels, Params};
use crate::problem::Problem;
use crate::vnf_instance::{InstantiatedVnfInfo, VnfInfo, VnfInstance};
use crate::vnfd::{Flavour, Vnfd};
use serde_json::{Map, Value};

/// The values of `upgrade_type` that have a meaning.
const UPGRADE_TYPES: [&str; 1] = ["RollingUpdate"];

pub(super) fn resolve(
    instance: &VnfInstance,
    package: Package<'_>,
    body: &Map<String, Value>,
) -> Result<Params, Problem> {
    let Package { product, vnfd } = package;
    if product.vnfd_id == *instance.vnfd_id() {
        return Err(unprocessable(format!(
            "vnfdId: the VNF instance is one of {} already; name the VNFD of another version",
            product.vnfd_id
        )));
    }
    let info = instance.instantiated.as_ref().ok_or_else(|| {
        unprocessable("the VNF instance is NOT_INSTANTIATED; change vnfdId with a PATCH")
    })?;
    let flavour = vnfd.flavour(&info.flavour_id)?;
    let params = match body.get("additionalParams") {
        Some(Value::Object(params)) => params.clone(),
        Some(_) | None => Map::new(),
    };
    check_namespace(info, &params)?;
    check_upgrade_type(&params)?;
    Ok(Params::ChangeVnfpkg {
        product: product.clone(),
        levels: carried_over(flavour, &info.levels)?,
        info: changes(&instance.info_now(), vnfd, body),
        vdus: vdus(flavour, &params)?,
    })
}

/// The objects of a VNF cannot move to another namespace: all of them would be others.
fn check_namespace(info: &InstantiatedVnfInfo, params: &Map<String, Value>) -> Result<(), Problem> {
    match text(params, "namespace")? {
        Some(named) if !named.is_empty() && named != info.namespace => Err(unprocessable(format!(
            "additionalParams.namespace: the VNF is in {:?} and cannot be moved to {named:?}",
            info.namespace
        ))),
        Some(_) | None => Ok(()),
    }
}

fn check_upgrade_type(params: &Map<String, Value>) -> Result<(), Problem> {
    match text(params, "upgrade_type")? {
        Some(other) if !UPGRADE_TYPES.contains(&other) => Err(unprocessable(format!(
            "additionalParams.upgrade_type: {other:?} is unknown; allowed: {}",
            UPGRADE_TYPES.join(", ")
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Aspects that both descriptors have keep their level; a new one begins at the level of the new default
/// instantiation level; one that goes must be at 0, for its instances have no place in the new VNF.
fn carried_over(flavour: &Flavour, before: &Levels) -> Result<Levels, Problem> {
    let default = flavour.levels_of(None)?;
    let mut levels = default.levels;
    for (aspect_id, level) in &before.scale_status {
        match flavour.aspects.get(aspect_id) {
            None if *level == 0 => {}
            None => {
                return Err(unprocessable(format!(
                    "vnfdId: scaling aspect {aspect_id:?} is at level {level} and the new VNFD has no such aspect; scale it to 0 first"
                )));
            }
            Some(aspect) if *level > aspect.max_scale_level => {
                return Err(unprocessable(format!(
                    "vnfdId: scaling aspect {aspect_id:?} is at level {level} and has at most {} in the new VNFD; scale it in first",
                    aspect.max_scale_level
                )));
            }
            Some(_) => {
                levels.insert(aspect_id.clone(), *level);
            }
        }
    }
    let mut vdu_replicas = flavour.replicas_at(&levels);
    for (vdu_id, vdu) in &flavour.vdus {
        // A workload that stays keeps its number: a change of the package is no scaling.
        let kept = before.workloads.get(vdu_id) == Some(&vdu.name);
        let stated = vdu_replicas
            .get(vdu_id)
            .or_else(|| default.replicas.get(vdu_id));
        let number = if kept {
            before.vdu_replicas.get(vdu_id)
        } else {
            stated
        };
        match number.copied() {
            Some(number) => vdu_replicas.insert(vdu_id.clone(), number),
            None => vdu_replicas.remove(vdu_id),
        };
    }
    Ok(Levels {
        scale_status: levels,
        max_scale_levels: flavour.max_levels(),
        vdu_replicas,
        workloads: flavour
            .vdus
            .iter()
            .map(|(id, vdu)| (id.clone(), vdu.name.clone()))
            .collect(),
    })
}

/// What the request changes, over the initial values of the new descriptor that the instance does not have yet.
fn changes(now: &VnfInfo, vnfd: &Vnfd, body: &Map<String, Value>) -> Map<String, Value> {
    let mut changes = Map::new();
    for (name, declared, known) in [
        ("extensions", &vnfd.extensions, &now.extensions),
        (
            "vnfConfigurableProperties",
            &vnfd.vnf_configurable_properties,
            &now.vnf_configurable_properties,
        ),
    ] {
        let fresh: Map<String, Value> = declared
            .iter()
            .filter(|(key, _)| !known.contains_key(*key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !fresh.is_empty() {
            changes.insert(name.to_owned(), Value::Object(fresh));
        }
    }
    for name in OVERLAID {
        let Some(Value::Object(asked)) = body.get(name) else {
            continue;
        };
        let under = changes
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()));
        for (key, value) in asked {
            // A null stays one: it removes what the instance has.
            match under.get_mut(key).filter(|_| value.is_object()) {
                Some(fresh) => merge(fresh, value),
                None => under[key] = value.clone(),
            }
        }
    }
    changes
}

/// `vdu_params`: a list of objects, each with the `vdu_id` of a VDU that is to be changed.
fn vdus(flavour: &Flavour, params: &Map<String, Value>) -> Result<Option<Vec<String>>, Problem> {
    let malformed =
        || unprocessable("additionalParams.vdu_params must be a list of objects with a vdu_id");
    let entries = match params.get("vdu_params") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(malformed()),
    };
    let mut vdus = Vec::with_capacity(entries.len());
    for entry in entries {
        let vdu = entry["vdu_id"].as_str().ok_or_else(malformed)?;
        if !flavour.vdus.contains_key(vdu) {
            let known: Vec<&str> = flavour.vdus.keys().map(String::as_str).collect();
            return Err(unprocessable(format!(
                "additionalParams.vdu_params: {vdu:?} is no VDU of the new VNFD; allowed: {}",
                known.join(", ")
            )));
        }
        vdus.push(vdu.to_owned());
    }
    Ok(Some(vdus))
}
