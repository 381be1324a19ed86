//! Scaling policies of a flavour (SOL001 6.10): aspects, deltas, instantiation levels.

use std::collections::BTreeMap;

use cairn_domain::vnfd::{Aspect, Flavour, InstantiationLevel, Vdu};

use crate::error::{PackageError, quoted};
use crate::tosca::{Definitions, Located, Template};
use crate::vnfd::type_of;

/// A policy of this flavour, with the definitions to look values up in.
struct Policy<'a> {
    definitions: &'a Definitions,
    node: Located<'a>,
    kind: &'a str,
}

/// VDUs, aspects, levels and deltas that one flavour may have of each.
const MAX_EACH: usize = 200;

/// Deltas of all VDUs of a flavour: a policy gives each of its deltas to each of its targets.
const MAX_DELTAS: usize = 10_000;

type Apply<'a> = fn(&Policy<'a>, &mut Flavour) -> Result<(), PackageError>;

/// Puts all that the template's policies say into the flavour.
///
/// # Errors
/// [`ErrorKind::Descriptor`](crate::ErrorKind) with file and line.
pub(super) fn apply(
    flavour: &mut Flavour,
    definitions: &Definitions,
    template: &Template,
) -> Result<(), PackageError> {
    let policies = policies(definitions, template);
    // What others name comes first: TOSCA gives policies no order.
    let in_order: [(&str, Apply<'_>); 5] = [
        ("ScalingAspects", Policy::aspects),
        ("InstantiationLevels", Policy::levels),
        ("VduInitialDelta", Policy::initial_delta),
        ("VduScalingAspectDeltas", Policy::deltas),
        ("VduInstantiationLevels", Policy::vdu_levels),
    ];
    for (kind, apply) in in_order {
        for policy in policies.iter().filter(|policy| policy.kind == kind) {
            apply(policy, flavour)?;
            check_size(flavour, policy)?;
        }
    }
    check_default_level(flavour, &policies)?;
    check_step_deltas(flavour, &policies)?;
    settle_initial_deltas(flavour);
    Ok(())
}

/// The scaling policies of a template: a list of one-member mappings, or (as some write it) one
/// mapping.
fn policies<'a>(definitions: &'a Definitions, template: &'a Template) -> Vec<Policy<'a>> {
    let file = template.file.as_str();
    let Some(node) = template.root.at(&["topology_template", "policies"]) else {
        return Vec::new();
    };
    let lists: Vec<_> = node
        .sequence()
        .map_or_else(|| vec![node], |items| items.iter().collect());
    lists
        .into_iter()
        .flat_map(|node| Located { file, node }.members())
        .filter_map(|(_, node)| {
            let kind = type_of(node)?.strip_prefix("tosca.policies.nfv.")?;
            Some(Policy {
                definitions,
                node,
                kind,
            })
        })
        .collect()
}

impl<'a> Policy<'a> {
    /// The members of a property, if they are not too many.
    fn members(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = (&'a String, Located<'a>)> + use<'a>, PackageError> {
        let found = self.demanded(name)?;
        let size = found.node.members().count();
        if size > MAX_EACH {
            let message = format!(
                "{} has {size} {name}; at most {MAX_EACH} are taken",
                self.kind
            );
            return Err(found.error(message));
        }
        Ok(found.members())
    }

    fn property(&self, name: &str) -> Option<Located<'a>> {
        self.definitions
            .evaluated(self.node.get("properties")?.get(name)?)
    }

    fn demanded(&self, name: &str) -> Result<Located<'a>, PackageError> {
        self.property(name)
            .ok_or_else(|| self.node.error(format!("{} has no {name}", self.kind)))
    }

    fn count(&self, within: Located<'_>, name: &str) -> Result<u32, PackageError> {
        let value = within
            .get(name)
            .or(Some(within).filter(|w| w.node.text().is_some()));
        let number = value.map_or(Ok(None), |value| self.definitions.count(name, value))?;
        number.ok_or_else(|| within.error(format!("{}: {name} is missing", self.kind)))
    }

    fn aspects(&self, flavour: &mut Flavour) -> Result<(), PackageError> {
        for (id, aspect) in self.members("aspects")? {
            let text = |name: &str| aspect.get(name).and_then(|t| t.node.text());
            let steps = aspect
                .get("step_deltas")
                .map_or(&[][..], |s| s.node.items());
            let step_deltas: Vec<_> = steps
                .iter()
                .filter_map(|s| s.text())
                .map(str::to_owned)
                .collect();
            let max = aspect.get("max_scale_level");
            let stated = max.map_or(Ok(None), |v| self.definitions.count("max_scale_level", v))?;
            let by_steps = || {
                u32::try_from(step_deltas.len())
                    .ok()
                    .filter(|steps| *steps > 1)
            };
            let max_scale_level = stated.or_else(by_steps).ok_or_else(|| {
                aspect.error(format!(
                    "scaling aspect {} has no max_scale_level",
                    quoted(id)
                ))
            })?;
            let made = Aspect {
                name: text("name").unwrap_or(id).to_owned(),
                description: text("description").unwrap_or_default().to_owned(),
                max_scale_level,
                step_deltas,
            };
            flavour.aspects.insert(id.clone(), made);
        }
        Ok(())
    }

    fn levels(&self, flavour: &mut Flavour) -> Result<(), PackageError> {
        for (id, level) in self.members("levels")? {
            let description = level.get("description").and_then(|t| t.node.text());
            let mut made = InstantiationLevel {
                description: description.unwrap_or_default().to_owned(),
                scale_info: BTreeMap::new(),
                vdu_levels: BTreeMap::new(),
            };
            let scale_info = level.get("scale_info");
            for (aspect, info) in scale_info.into_iter().flat_map(Located::members) {
                let number = self.count(info, "scale_level")?;
                flavour
                    .check_level("scale_info", aspect, i64::from(number))
                    .map_err(|e| info.error(format!("instantiation level {}: {e}", quoted(id))))?;
                made.scale_info.insert(aspect.clone(), number);
            }
            flavour.instantiation_levels.insert(id.clone(), made);
        }
        let stated = self.property("default_level").and_then(|d| d.node.text());
        let only = || match flavour.instantiation_levels.len() {
            1 => flavour.instantiation_levels.keys().next().cloned(),
            _ => None,
        };
        flavour.default_instantiation_level = stated.map(str::to_owned).or_else(only);
        Ok(())
    }

    fn initial_delta(&self, flavour: &mut Flavour) -> Result<(), PackageError> {
        let number = self.count(self.demanded("initial_delta")?, "number_of_instances")?;
        self.for_targets(flavour, |vdu| vdu.initial_delta = Some(number))
    }

    fn deltas(&self, flavour: &mut Flavour) -> Result<(), PackageError> {
        let named = self.demanded("aspect")?;
        let aspect = named.node.text().unwrap_or_default();
        flavour
            .aspect("aspect", aspect)
            .map_err(|e| named.error(e.to_string()))?;
        let mut deltas = BTreeMap::new();
        for (name, delta) in self.members("deltas")? {
            deltas.insert(name.clone(), self.count(delta, "number_of_instances")?);
        }
        // One delta that no step names is the delta of every step.
        if let Some(known) = flavour.aspects.get_mut(aspect)
            && known.step_deltas.is_empty()
            && deltas.len() == 1
        {
            known.step_deltas = deltas.keys().cloned().collect();
        }
        self.for_targets(flavour, |vdu| {
            vdu.deltas.insert(aspect.to_owned(), deltas.clone());
        })
    }

    fn vdu_levels(&self, flavour: &mut Flavour) -> Result<(), PackageError> {
        let mut counts = Vec::new();
        for (id, level) in self.members("levels")? {
            if !flavour.instantiation_levels.contains_key(id) {
                let message = format!("instantiation level {} is not defined", quoted(id));
                return Err(level.error(message));
            }
            counts.push((id.clone(), self.count(level, "number_of_instances")?));
        }
        let mut targets = Vec::new();
        self.for_targets_named(flavour, |id, _| targets.push(id.to_owned()))?;
        for (level, count) in counts {
            if let Some(level) = flavour.instantiation_levels.get_mut(&level) {
                level
                    .vdu_levels
                    .extend(targets.iter().map(|vdu| (vdu.clone(), count)));
            }
        }
        Ok(())
    }

    fn for_targets(
        &self,
        flavour: &mut Flavour,
        mut change: impl FnMut(&mut Vdu),
    ) -> Result<(), PackageError> {
        self.for_targets_named(flavour, |_, vdu| change(vdu))
    }

    fn for_targets_named(
        &self,
        flavour: &mut Flavour,
        mut change: impl FnMut(&str, &mut Vdu),
    ) -> Result<(), PackageError> {
        let targets = self.node.get("targets").map_or(&[][..], |t| t.node.items());
        if targets.is_empty() {
            return Err(self.node.error(format!("{} has no targets", self.kind)));
        }
        for target in targets {
            let id = target.text().unwrap_or_default();
            let Some(vdu) = flavour.vdus.get_mut(id) else {
                let known: Vec<_> = flavour.vdus.keys().map(String::as_str).collect();
                let message = format!(
                    "{} targets {}, which is no VDU of flavour {}; its VDUs: {}",
                    self.kind,
                    quoted(id),
                    quoted(&flavour.id),
                    known.join(", ")
                );
                return Err(target.error(self.node.file, message));
            };
            change(id, vdu);
        }
        Ok(())
    }
}

fn policy_of<'p, 'a>(policies: &'p [Policy<'a>], kind: &str) -> Option<&'p Policy<'a>> {
    policies.iter().find(|policy| policy.kind == kind)
}

/// Refuses a flavour whose policies multiply.
fn check_size(flavour: &Flavour, policy: &Policy<'_>) -> Result<(), PackageError> {
    let sizes = [
        ("VDUs", flavour.vdus.len()),
        ("scaling aspects", flavour.aspects.len()),
        ("instantiation levels", flavour.instantiation_levels.len()),
    ];
    let too_many = sizes.iter().find(|(_, size)| *size > MAX_EACH);
    if let Some((what, size)) = too_many {
        let message = format!("a flavour with {size} {what}; at most {MAX_EACH} are taken");
        return Err(policy.node.error(message));
    }
    let deltas: usize = flavour
        .vdus
        .values()
        .flat_map(|vdu| vdu.deltas.values())
        .map(BTreeMap::len)
        .sum();
    if deltas > MAX_DELTAS {
        let message = format!("a flavour with {deltas} deltas; at most {MAX_DELTAS} are taken");
        return Err(policy.node.error(message));
    }
    Ok(())
}

fn check_default_level(flavour: &Flavour, policies: &[Policy<'_>]) -> Result<(), PackageError> {
    let (Some(id), Some(policy)) = (
        &flavour.default_instantiation_level,
        policy_of(policies, "InstantiationLevels"),
    ) else {
        return Ok(());
    };
    let checked = flavour.levels_of(Some(id));
    checked
        .map(drop)
        .map_err(|e| policy.node.error(format!("default_level: {e}")))
}

/// A step must name a delta of each VDU that its aspect scales, and non-uniform steps must be as
/// many as the levels.
fn check_step_deltas(flavour: &Flavour, policies: &[Policy<'_>]) -> Result<(), PackageError> {
    let Some(policy) = policy_of(policies, "ScalingAspects") else {
        return Ok(());
    };
    for (id, aspect) in &flavour.aspects {
        let steps = u32::try_from(aspect.step_deltas.len()).unwrap_or(u32::MAX);
        if steps > 1 && steps != aspect.max_scale_level {
            return Err(policy.node.error(format!(
                "scaling aspect {} has {steps} step_deltas for {} levels; give one for all or one for each",
                quoted(id),
                aspect.max_scale_level
            )));
        }
        for (vdu_id, vdu) in &flavour.vdus {
            let Some(deltas) = vdu.deltas.get(id) else {
                continue;
            };
            let missing = aspect
                .step_deltas
                .iter()
                .find(|step| !deltas.contains_key(*step));
            if let Some(step) = missing {
                return Err(policy.node.error(format!(
                    "scaling aspect {} steps by {}, which VDU {} does not define",
                    quoted(id),
                    quoted(step),
                    quoted(vdu_id)
                )));
            }
            if steps == 0 {
                return Err(policy.node.error(format!(
                    "scaling aspect {} has no step_deltas to say which delta of VDU {} a step takes",
                    quoted(id),
                    quoted(vdu_id)
                )));
            }
        }
    }
    Ok(())
}

/// Makes one arithmetic out of three statements that packages in the field let disagree.
///
/// The number of instances at the default instantiation level is what a VNF starts with, so where
/// it is stated and the initial delta does not lead to it, the initial delta follows from it (many
/// packages give as initial delta the number at the default level). Without either, a VDU whose
/// fewest and most instances are equal has that many.
fn settle_initial_deltas(flavour: &mut Flavour) {
    let default = flavour
        .default_instantiation_level
        .as_ref()
        .and_then(|id| flavour.instantiation_levels.get(id))
        .cloned();
    let settled: Vec<_> = flavour
        .vdus
        .iter()
        .map(|(id, vdu)| {
            let from_level = default.as_ref().and_then(|level| {
                let count = level.vdu_levels.get(id)?;
                count.checked_sub(flavour.added(vdu, &level.scale_info))
            });
            let fixed = vdu.max.filter(|max| *max == vdu.min);
            (id.clone(), from_level.or(vdu.initial_delta).or(fixed))
        })
        .collect();
    for (id, initial) in settled {
        if let Some(vdu) = flavour.vdus.get_mut(&id) {
            vdu.initial_delta = initial;
        }
    }
}
