//! Deployment flavours: VDUs, scaling aspects, instantiation levels and their arithmetic.
//!
//! The number of instances of a VDU at given scale levels is its initial delta plus, for each
//! aspect that scales it, one delta per step up to the level (SOL001 6.10). A *uniform* aspect has
//! one delta for all steps; a *non-uniform* one names a delta for each step, in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AspectId, FlavourId, LevelId, OutOfRange, VduId};

/// One deployment flavour of a VNF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flavour {
    /// `flavourId`.
    pub id: FlavourId,
    /// For people.
    pub description: String,
    /// VDUs by the name of their node template.
    pub vdus: BTreeMap<VduId, Vdu>,
    /// Scaling aspects; empty when nothing can be scaled.
    pub aspects: BTreeMap<AspectId, Aspect>,
    /// Instantiation levels; may be empty.
    pub instantiation_levels: BTreeMap<LevelId, InstantiationLevel>,
    /// The level of an instantiation that names none.
    pub default_instantiation_level: Option<LevelId>,
}

/// One VDU: a workload of the package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vdu {
    /// `properties.name`, which is `metadata.name` of the workload.
    pub name: String,
    /// Fewest instances (`vdu_profile`).
    pub min: u32,
    /// Most instances (`vdu_profile`), where stated.
    pub max: Option<u32>,
    /// Instances when every aspect is at level 0. `None`: the descriptor states no number, and the
    /// manifest's own count holds.
    pub initial_delta: Option<u32>,
    /// Deltas by aspect: name of the delta to the instances it adds.
    pub deltas: BTreeMap<AspectId, BTreeMap<String, u32>>,
}

/// One scaling aspect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aspect {
    /// For people.
    pub name: String,
    /// For people.
    pub description: String,
    /// Highest level; the lowest is 0.
    pub max_scale_level: u32,
    /// Deltas of the steps: one for all (uniform), or one for each step from level 0 upwards.
    pub step_deltas: Vec<String>,
}

/// One instantiation level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstantiationLevel {
    /// For people.
    pub description: String,
    /// Scale level of each aspect; an aspect that is not named is at 0.
    pub scale_info: BTreeMap<AspectId, u32>,
    /// Instances of each VDU where the descriptor states them for this level.
    pub vdu_levels: BTreeMap<VduId, u32>,
}

/// Where an instantiation or a scaling to a level leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelTarget {
    /// Level of every aspect, also those at 0.
    pub levels: BTreeMap<AspectId, u32>,
    /// Instances of every VDU whose number the descriptor states.
    pub replicas: BTreeMap<VduId, u32>,
}

impl Flavour {
    /// A flavour without VDUs or aspects.
    #[must_use]
    pub fn named(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            description: String::new(),
            vdus: BTreeMap::new(),
            aspects: BTreeMap::new(),
            instantiation_levels: BTreeMap::new(),
            default_instantiation_level: None,
        }
    }

    /// Instances of each VDU at these scale levels; an aspect that is not named counts as 0, and a
    /// level above the aspect's highest as the highest. VDUs for which the descriptor states no
    /// number are left out: their manifests decide.
    #[must_use]
    pub fn replicas_at(&self, levels: &BTreeMap<AspectId, u32>) -> BTreeMap<VduId, u32> {
        self.vdus
            .iter()
            .filter_map(|(id, vdu)| {
                let initial = vdu.initial_delta?;
                Some((id.clone(), initial.saturating_add(self.added(vdu, levels))))
            })
            .collect()
    }

    /// Instances that scaling to `levels` adds to a VDU beyond its initial delta.
    #[must_use]
    pub fn added(&self, vdu: &Vdu, levels: &BTreeMap<AspectId, u32>) -> u32 {
        vdu.deltas
            .iter()
            .filter_map(|(aspect_id, deltas)| {
                let aspect = self.aspects.get(aspect_id)?;
                let level = levels.get(aspect_id).copied().unwrap_or(0);
                Some(aspect.sum_up_to(level, deltas))
            })
            .fold(0, u32::saturating_add)
    }

    /// Where an instantiation level leads; without a name, the default level, or every aspect at 0
    /// if the flavour has none.
    ///
    /// # Errors
    /// [`OutOfRange`] naming `instantiationLevelId` and the levels there are.
    pub fn levels_of(&self, level_id: Option<&str>) -> Result<LevelTarget, OutOfRange> {
        let Some(id) = level_id.or(self.default_instantiation_level.as_deref()) else {
            return Ok(self.target(&BTreeMap::new()));
        };
        let level = self.instantiation_levels.get(id).ok_or_else(|| {
            OutOfRange::unknown("instantiationLevelId", id, self.instantiation_levels.keys())
        })?;
        let mut target = self.target(&level.scale_info);
        for (vdu, count) in &level.vdu_levels {
            target.replicas.insert(vdu.clone(), *count);
        }
        Ok(target)
    }

    /// Where `scaleInfo` of a `SCALE_TO_LEVEL` leads: aspects that it does not name stay at
    /// `current`.
    ///
    /// # Errors
    /// [`OutOfRange`] for an unknown aspect or a level out of its range.
    pub fn levels_from(
        &self,
        current: &BTreeMap<AspectId, u32>,
        scale_info: &BTreeMap<AspectId, i64>,
    ) -> Result<LevelTarget, OutOfRange> {
        let mut levels = current.clone();
        for (aspect, level) in scale_info {
            let checked = self.check_level("scaleInfo", aspect, *level)?;
            levels.insert(aspect.clone(), checked);
        }
        Ok(self.target(&levels))
    }

    /// Where a SCALE leads: `steps` up (or, negative, down) from `current` along one aspect.
    ///
    /// # Errors
    /// [`OutOfRange`] for an unknown aspect, or steps that leave its range.
    pub fn scaled(
        &self,
        current: &BTreeMap<AspectId, u32>,
        aspect_id: &str,
        steps: i64,
    ) -> Result<LevelTarget, OutOfRange> {
        self.aspect("aspectId", aspect_id)?;
        if steps == 0 {
            return Err(OutOfRange::Steps { given: steps });
        }
        let from = i64::from(current.get(aspect_id).copied().unwrap_or(0));
        let level = self.check_level("numberOfSteps", aspect_id, from.saturating_add(steps))?;
        let mut levels = current.clone();
        levels.insert(aspect_id.to_owned(), level);
        Ok(self.target(&levels))
    }

    /// The aspect of that name; `field` is the member of the request that names it.
    ///
    /// # Errors
    /// [`OutOfRange`] naming `field` and the aspects there are.
    pub fn aspect(&self, field: &'static str, id: &str) -> Result<&Aspect, OutOfRange> {
        self.aspects
            .get(id)
            .ok_or_else(|| OutOfRange::unknown(field, id, self.aspects.keys()))
    }

    /// The level, if the aspect has it; `field` is the member of the request that gives it.
    ///
    /// # Errors
    /// [`OutOfRange`] for an unknown aspect, a level below 0 or above the highest.
    pub fn check_level(
        &self,
        field: &'static str,
        aspect_id: &str,
        level: i64,
    ) -> Result<u32, OutOfRange> {
        let max = self.aspect(field, aspect_id)?.max_scale_level;
        u32::try_from(level)
            .ok()
            .filter(|level| *level <= max)
            .ok_or_else(|| OutOfRange::ScaleLevel {
                field,
                aspect: aspect_id.to_owned(),
                given: level,
                max,
            })
    }

    /// Highest level of every aspect (`maxScaleLevels`).
    #[must_use]
    pub fn max_levels(&self) -> BTreeMap<AspectId, u32> {
        let max = |(id, aspect): (&AspectId, &Aspect)| (id.clone(), aspect.max_scale_level);
        self.aspects.iter().map(max).collect()
    }

    /// The VDU whose workload has this name, with its id.
    #[must_use]
    pub fn vdu_named(&self, workload: &str) -> Option<(&VduId, &Vdu)> {
        self.vdus.iter().find(|(_, vdu)| vdu.name == workload)
    }

    fn target(&self, given: &BTreeMap<AspectId, u32>) -> LevelTarget {
        let level = |id: &AspectId| given.get(id).copied().unwrap_or(0);
        let levels: BTreeMap<_, _> = self
            .aspects
            .keys()
            .map(|id| (id.clone(), level(id)))
            .collect();
        LevelTarget {
            replicas: self.replicas_at(&levels),
            levels,
        }
    }
}

impl Aspect {
    /// Instances that the steps up to `level` add, of a VDU with these deltas.
    ///
    /// Uniform steps are multiplied, not walked: the highest level comes from a package and may be
    /// any number.
    fn sum_up_to(&self, level: u32, deltas: &BTreeMap<String, u32>) -> u32 {
        let steps = level.min(self.max_scale_level);
        let size = |name: &String| deltas.get(name).copied().unwrap_or(0);
        match self.step_deltas.as_slice() {
            [uniform] => size(uniform).saturating_mul(steps),
            each => each
                .iter()
                .take(usize::try_from(steps).unwrap_or(usize::MAX))
                .map(size)
                .fold(0, u32::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests;
