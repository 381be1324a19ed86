//! What a request means for this VNF: bodies of SOL003 resolved against VNFD and record.
//!
//! What can be judged from request, VNFD and recorded state alone is judged here, at once (400, 409, 422);
//! whatever needs the cluster is looked at between points 2 and 3.

use crate::clocks::Clocks;
use crate::operation::{AdditionalParams, Leftovers, Levels, Operation, Params};
use crate::problem::Problem;
use crate::secret::{SealedSecret, SecretRef, seal};
use crate::vim::{VimConnectionInfo, seal_vims};
use crate::vnf_instance::{Standing, VnfInstance, VnfProduct};
use crate::vnfd::{Flavour, LevelTarget, OutOfRange, Vnfd, is_listed, is_sensitive};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

mod change_vnfpkg;

/// The package that an operation works with: that of the instance, or the one that it is changed to.
#[derive(Clone, Copy, Debug)]
pub struct Package<'a> {
    /// What an instance of it takes from it.
    pub product: &'a VnfProduct,
    /// Its descriptor.
    pub vnfd: &'a Vnfd,
}

/// Members of a request that are laid over the record of the instance.
const OVERLAID: [&str; 3] = [
    "vimConnectionInfo",
    "extensions",
    "vnfConfigurableProperties",
];

/// The members of `additionalParams` that are Cairn's own.
const OWN_PARAMS: [&str; 4] = [
    "cairn.clocks",
    "cairn.deleteVolumes",
    "cairn.leftovers",
    "cairn.takeOver",
];

/// Takes the secrets out of a request's body.
pub fn seal_request(
    body: &mut Map<String, Value>,
    sensitive: &[String],
    fresh: &mut dyn FnMut() -> SecretRef,
) -> Vec<SealedSecret> {
    let mut sealed = Vec::new();
    for (name, member) in body.iter_mut() {
        sealed.extend(match name.as_str() {
            "vimConnectionInfo" => seal_vims(member, fresh),
            "additionalParams" => {
                let is_secret =
                    |name: &str| !name.starts_with("cairn.") && is_sensitive(name, sensitive);
                seal(member, &is_secret, fresh)
            }
            _ => seal(member, &|name| is_listed(name, sensitive), fresh),
        });
    }
    sealed
}

/// Resolves a request. The instance accepts the operation (checked before).
///
/// # Errors
///
/// A [`Problem`] of status 422 that names the field and the values allowed.
pub fn resolve(
    operation: Operation,
    instance: &VnfInstance,
    package: Package<'_>,
    body: &Map<String, Value>,
) -> Result<(Params, AdditionalParams), Problem> {
    let vnfd = package.vnfd;
    let params = match operation {
        Operation::Instantiate => instantiate(vnfd, body)?,
        Operation::Scale => scale(instance, vnfd, body)?,
        Operation::ScaleToLevel => scale_to_level(instance, vnfd, body)?,
        Operation::Heal => heal(instance, body)?,
        Operation::ChangeVnfpkg => change_vnfpkg::resolve(instance, package, body)?,
        Operation::ModifyInfo => modify(body)?,
        Operation::Terminate => terminate(body)?,
    };
    Ok((params, additional(body, vnfd)?))
}

fn unprocessable(detail: impl Into<String>) -> Problem {
    Problem::new(422, detail)
}

impl From<OutOfRange> for Problem {
    fn from(refused: OutOfRange) -> Self {
        unprocessable(refused.to_string())
    }
}

fn text<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Problem> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(unprocessable(format!("{name} must be a text"))),
    }
}

fn required<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, Problem> {
    text(body, name)?.ok_or_else(|| unprocessable(format!("{name} is missing")))
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, Problem> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(unprocessable(format!("{name} must be true or false"))),
    }
}

fn levels(flavour: &Flavour, target: LevelTarget) -> Levels {
    Levels {
        scale_status: target.levels,
        max_scale_levels: flavour.max_levels(),
        vdu_replicas: target.replicas,
        workloads: flavour
            .vdus
            .iter()
            .map(|(id, vdu)| (id.clone(), vdu.name.clone()))
            .collect(),
    }
}

fn instantiate(vnfd: &Vnfd, body: &Map<String, Value>) -> Result<Params, Problem> {
    let flavour_id = required(body, "flavourId")?;
    let flavour = vnfd.flavour(flavour_id)?;
    let target = flavour.levels_of(text(body, "instantiationLevelId")?)?;
    if let Some(language) = text(body, "localizationLanguage")? {
        vnfd.check_localization(language)?;
    }
    check_vims(body)?;
    let info = OVERLAID
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone())))
        .collect();
    Ok(Params::Instantiate {
        flavour_id: flavour_id.to_owned(),
        levels: levels(flavour, target),
        info,
    })
}

/// Checks every entry of a `vimConnectionInfo` map, where the body has one.
///
/// # Errors
///
/// A [`Problem`] of status 422 that names the entry.
pub fn check_vims(body: &Map<String, Value>) -> Result<(), Problem> {
    match body.get("vimConnectionInfo") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(entries)) => {
            for (key, entry) in entries.iter().filter(|(_, entry)| !entry.is_null()) {
                VimConnectionInfo::parse(entry)
                    .map_err(|e| unprocessable(format!("vimConnectionInfo.{key}: {e}")))?;
            }
            Ok(())
        }
        Some(_) => Err(unprocessable("vimConnectionInfo must be a map of entries")),
    }
}

fn flavour_of<'a>(instance: &VnfInstance, vnfd: &'a Vnfd) -> Result<&'a Flavour, Problem> {
    let id = instance
        .instantiated
        .as_ref()
        .map_or("", |info| info.flavour_id.as_str());
    Ok(vnfd.flavour(id)?)
}

fn current_levels(instance: &VnfInstance) -> BTreeMap<String, u32> {
    instance
        .instantiated
        .as_ref()
        .map_or_else(BTreeMap::new, |info| info.levels.scale_status.clone())
}

fn scale(
    instance: &VnfInstance,
    vnfd: &Vnfd,
    body: &Map<String, Value>,
) -> Result<Params, Problem> {
    let flavour = flavour_of(instance, vnfd)?;
    let out = match required(body, "type")? {
        "SCALE_OUT" => true,
        "SCALE_IN" => false,
        other => {
            return Err(unprocessable(format!(
                "type: {other:?} is unknown; allowed: SCALE_OUT, SCALE_IN"
            )));
        }
    };
    let aspect_id = required(body, "aspectId")?;
    let steps = match body.get("numberOfSteps") {
        None | Some(Value::Null) => 1,
        Some(value) => value.as_i64().filter(|n| *n >= 1).ok_or_else(|| {
            unprocessable(format!(
                "numberOfSteps: {value} is out of range; allowed: 1 or more"
            ))
        })?,
    };
    let signed = if out { steps } else { -steps };
    let target = flavour.scaled(&current_levels(instance), aspect_id, signed)?;
    Ok(Params::Scale {
        levels: levels(flavour, target),
        aspect_id: aspect_id.to_owned(),
        out,
    })
}

fn scale_to_level(
    instance: &VnfInstance,
    vnfd: &Vnfd,
    body: &Map<String, Value>,
) -> Result<Params, Problem> {
    let flavour = flavour_of(instance, vnfd)?;
    let target = match (text(body, "instantiationLevelId")?, body.get("scaleInfo")) {
        (Some(id), None) => flavour.levels_of(Some(id))?,
        (None, Some(info)) => flavour.levels_from(&current_levels(instance), &scale_info(info)?)?,
        (Some(_), Some(_)) | (None, None) => {
            return Err(unprocessable(
                "give exactly one of instantiationLevelId and scaleInfo",
            ));
        }
    };
    Ok(Params::ScaleToLevel {
        levels: levels(flavour, target),
    })
}

fn scale_info(value: &Value) -> Result<BTreeMap<String, i64>, Problem> {
    let malformed = || unprocessable("scaleInfo must be a list of {aspectId, scaleLevel}");
    let entries = value
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or_else(malformed)?;
    let mut levels = BTreeMap::new();
    for entry in entries {
        let aspect = entry["aspectId"].as_str().ok_or_else(malformed)?;
        // SOL003 3.7.1 names the member scaleToLevel in its description.
        let level = entry
            .get("scaleLevel")
            .or_else(|| entry.get("scaleToLevel"));
        let level = level.and_then(Value::as_i64).ok_or_else(malformed)?;
        if levels.insert(aspect.to_owned(), level).is_some() {
            return Err(unprocessable(format!(
                "scaleInfo names aspect {aspect:?} twice"
            )));
        }
    }
    Ok(levels)
}

fn heal(instance: &VnfInstance, body: &Map<String, Value>) -> Result<Params, Problem> {
    let named = match body.get("vnfcInstanceId") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(ids)) => ids
            .iter()
            .map(|id| {
                let id = id
                    .as_str()
                    .ok_or_else(|| unprocessable("vnfcInstanceId must be a list of texts"))?;
                known_vnfc(instance, id)
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some(_) => return Err(unprocessable("vnfcInstanceId must be a list of texts")),
    };
    // After a given-up termination some objects are missing: only a heal of everything leaves the VNF whole.
    let whole = instance.standing == Standing::DeleteFail;
    let mut vnfcs = if whole { Vec::new() } else { named };
    vnfcs.sort();
    vnfcs.dedup();
    Ok(Params::Heal {
        vnfcs,
        cause: text(body, "cause")?.map(str::to_owned),
    })
}

/// A VNFC is named by its pod, or as `{vduId}-{podName}`.
fn known_vnfc(instance: &VnfInstance, id: &str) -> Result<String, Problem> {
    instance
        .vnfcs()
        .iter()
        .find(|vnfc| vnfc.id == id || format!("{}-{}", vnfc.vdu_id, vnfc.id) == id)
        .map(|vnfc| vnfc.id.clone())
        .ok_or_else(|| {
            let known: Vec<&str> = instance.vnfcs().iter().map(|v| v.id.as_str()).collect();
            unprocessable(format!(
                "vnfcInstanceId: {id:?} is not a VNFC of this instance; allowed: {}",
                known.join(", ")
            ))
        })
}

fn modify(body: &Map<String, Value>) -> Result<Params, Problem> {
    let changes: Map<String, Value> = body
        .iter()
        .filter(|(name, _)| crate::vnf_instance::MODIFIABLE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if changes.get("vnfdId").is_some_and(Value::is_null) {
        return Err(unprocessable("vnfdId must be a text: it cannot be removed"));
    }
    for name in ["vnfInstanceName", "vnfInstanceDescription", "vnfdId"] {
        text(&changes, name)?;
    }
    for name in [
        "metadata",
        "extensions",
        "vnfConfigurableProperties",
        "vimConnectionInfo",
    ] {
        match changes.get(name) {
            None | Some(Value::Null | Value::Object(_)) => {}
            Some(_) => return Err(unprocessable(format!("{name} must be a map"))),
        }
    }
    if changes.is_empty() {
        return Err(unprocessable(format!(
            "nothing to change; allowed: {}",
            crate::vnf_instance::MODIFIABLE.join(", ")
        )));
    }
    Ok(Params::ModifyInfo { changes })
}

fn terminate(body: &Map<String, Value>) -> Result<Params, Problem> {
    let forceful = match required(body, "terminationType")? {
        "FORCEFUL" => true,
        "GRACEFUL" => false,
        other => {
            return Err(unprocessable(format!(
                "terminationType: {other:?} is unknown; allowed: FORCEFUL, GRACEFUL"
            )));
        }
    };
    let graceful_timeout_s = match body.get("gracefulTerminationTimeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(
            value
                .as_u64()
                .and_then(|s| u32::try_from(s).ok())
                .ok_or_else(|| {
                    unprocessable("gracefulTerminationTimeout must be seconds, 0 or more")
                })?,
        ),
    };
    Ok(Params::Terminate {
        forceful,
        graceful_timeout_s,
    })
}

fn additional(body: &Map<String, Value>, vnfd: &Vnfd) -> Result<AdditionalParams, Problem> {
    let members = match body.get("additionalParams") {
        None | Some(Value::Null) => {
            return Ok(AdditionalParams {
                clocks: vnfd.clocks.clone(),
                ..AdditionalParams::default()
            });
        }
        Some(Value::Object(members)) => members,
        Some(_) => return Err(unprocessable("additionalParams must be a map")),
    };
    let leftovers = match text(members, "cairn.leftovers")? {
        None | Some("adopt") => Leftovers::Adopt,
        Some("replace") => Leftovers::Replace,
        Some(other) => {
            return Err(unprocessable(format!(
                "cairn.leftovers: {other:?} is unknown; allowed: adopt, replace"
            )));
        }
    };
    let own = members
        .get("cairn.clocks")
        .map(Clocks::parse)
        .transpose()
        .map_err(|e| unprocessable(e.to_string()))?
        .unwrap_or_default();
    refuse_charts(members)?;
    refuse_unknown(members)?;
    Ok(AdditionalParams {
        namespace: text(members, "namespace")?
            .filter(|n| !n.is_empty())
            .map(str::to_owned),
        def_files: def_files(members)?,
        leftovers,
        take_over: flag(members, "cairn.takeOver")?,
        delete_volumes: flag(members, "cairn.deleteVolumes")?,
        clocks: own.or(&vnfd.clocks),
    })
}

fn refuse_charts(members: &Map<String, Value>) -> Result<(), Problem> {
    match members.keys().find(|name| name.starts_with("helm_")) {
        Some(name) => Err(unprocessable(format!(
            "additionalParams.{name}: Helm charts are not supported; give manifests in lcm-kubernetes-def-files"
        ))),
        None => Ok(()),
    }
}

/// A misspelt parameter would be passed over in silence, and volumes kept that were to go.
fn refuse_unknown(members: &Map<String, Value>) -> Result<(), Problem> {
    let unknown = members
        .keys()
        .find(|name| name.starts_with("cairn.") && !OWN_PARAMS.contains(&name.as_str()));
    match unknown {
        Some(name) => Err(unprocessable(format!(
            "additionalParams.{name} is unknown; allowed: {}",
            OWN_PARAMS.join(", ")
        ))),
        None => Ok(()),
    }
}

fn def_files(members: &Map<String, Value>) -> Result<Option<Vec<String>>, Problem> {
    let malformed =
        || unprocessable("lcm-kubernetes-def-files must be a list of paths in the package");
    match members.get("lcm-kubernetes-def-files") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(files)) if !files.is_empty() => files
            .iter()
            .map(|file| file.as_str().map(str::to_owned).ok_or_else(malformed))
            .collect::<Result<Vec<_>, _>>()
            .map(Some),
        Some(_) => Err(malformed()),
    }
}

#[cfg(test)]
mod tests;
