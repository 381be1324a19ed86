//! Operations, their states, and what was asked of them.

use crate::clocks::Clocks;
use crate::vnf_instance::VnfProduct;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The lifecycle operations (SOL003 5.5.4.4 `LcmOperationType`) that Cairn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Operation {
    /// Makes the VNF's objects.
    Instantiate,
    /// Changes one aspect by steps.
    Scale,
    /// Changes all aspects to a level.
    ScaleToLevel,
    /// Replaces VNFCs and restores objects.
    Heal,
    /// Changes the VNF to another version of its package.
    ChangeVnfpkg,
    /// Changes the record of the instance (PATCH).
    ModifyInfo,
    /// Removes the VNF's objects.
    Terminate,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 7] = [
        Self::Instantiate,
        Self::Scale,
        Self::ScaleToLevel,
        Self::Heal,
        Self::ChangeVnfpkg,
        Self::ModifyInfo,
        Self::Terminate,
    ];

    /// The SOL003 value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instantiate => "INSTANTIATE",
            Self::Scale => "SCALE",
            Self::ScaleToLevel => "SCALE_TO_LEVEL",
            Self::Heal => "HEAL",
            Self::ChangeVnfpkg => "CHANGE_VNFPKG",
            Self::ModifyInfo => "MODIFY_INFO",
            Self::Terminate => "TERMINATE",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// SOL003 5.5.4.3 `LcmOperationStateType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OperationState {
    /// Accepted; the grant is sought.
    Starting,
    /// At work.
    Processing,
    /// Done.
    Completed,
    /// Halted; retry, rollback or fail.
    FailedTemp,
    /// Given up.
    Failed,
    /// Being undone.
    RollingBack,
    /// Undone.
    RolledBack,
}

impl OperationState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Self::Starting,
        Self::Processing,
        Self::Completed,
        Self::FailedTemp,
        Self::Failed,
        Self::RollingBack,
        Self::RolledBack,
    ];

    /// The SOL003 value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "STARTING",
            Self::Processing => "PROCESSING",
            Self::Completed => "COMPLETED",
            Self::FailedTemp => "FAILED_TEMP",
            Self::Failed => "FAILED",
            Self::RollingBack => "ROLLING_BACK",
            Self::RolledBack => "ROLLED_BACK",
        }
    }

    /// Whether somebody must be at work on it.
    #[must_use]
    pub fn is_transitional(self) -> bool {
        matches!(self, Self::Starting | Self::Processing | Self::RollingBack)
    }

    /// Whether nothing follows.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::RolledBack)
    }

    /// The table of SOL003 5.6.2.2: where a history may go. Commands ask where it is, never this.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Starting => matches!(next, Self::Processing | Self::RolledBack),
            // MODIFY_INFO undoes itself, hence the third.
            Self::Processing => {
                matches!(next, Self::Completed | Self::FailedTemp | Self::RolledBack)
            }
            Self::FailedTemp => matches!(next, Self::Processing | Self::RollingBack | Self::Failed),
            Self::RollingBack => matches!(next, Self::RolledBack | Self::FailedTemp),
            Self::Completed | Self::Failed | Self::RolledBack => false,
        }
    }
}

impl fmt::Display for OperationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// SOL003 5.5.4.? `CancelModeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CancelMode {
    /// The running call ends or times out; nothing new begins.
    Graceful,
    /// The running call is dropped.
    Forceful,
}

/// The points that every operation passes, in order: a common language for "where it broke".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum ErrorPoint {
    /// 0: accepted; no grant yet.
    Initial,
    /// 1: the start of processing was told.
    NotifyProcessing,
    /// 2: before the checks and the start hooks.
    VnfConfigStart,
    /// 3: before the first cluster write.
    PreVimControl,
    /// 4: all writes made.
    PostVimControl,
    /// 5: waits over, inventory taken.
    InternalProcessing,
    /// 6: end hooks run.
    VnfConfigEnd,
    /// 7: before completion is told.
    NotifyCompleted,
}

impl ErrorPoint {
    /// All points in order.
    pub const ALL: [Self; 8] = [
        Self::Initial,
        Self::NotifyProcessing,
        Self::VnfConfigStart,
        Self::PreVimControl,
        Self::PostVimControl,
        Self::InternalProcessing,
        Self::VnfConfigEnd,
        Self::NotifyCompleted,
    ];

    /// Its number, 0 to 7.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl From<ErrorPoint> for u8 {
    fn from(point: ErrorPoint) -> Self {
        point.number()
    }
}

impl TryFrom<u8> for ErrorPoint {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .ok_or_else(|| format!("error points are 0 to 7, got {number}"))
    }
}

/// What an instantiate does with objects that a failed one left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leftovers {
    /// They become its own.
    #[default]
    Adopt,
    /// They are deleted, then made again.
    Replace,
}

/// Scale levels of all aspects, and the number of replicas of each VDU that follows from them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Levels {
    /// Level by aspect; every aspect of the flavour is present.
    pub scale_status: BTreeMap<String, u32>,
    /// Highest level by aspect.
    pub max_scale_levels: BTreeMap<String, u32>,
    /// Replicas by VDU.
    pub vdu_replicas: BTreeMap<String, u32>,
    /// Name of the workload by VDU.
    pub workloads: BTreeMap<String, String>,
}

/// The part of `additionalParams` that Cairn and Tacker give a meaning, checked at the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdditionalParams {
    /// `namespace`: where namespaced objects without one go; it must exist.
    pub namespace: Option<String>,
    /// `lcm-kubernetes-def-files`: manifests in their order of creation.
    pub def_files: Option<Vec<String>>,
    /// `cairn.leftovers`.
    pub leftovers: Leftovers,
    /// `cairn.takeOver`: the retry may take fields from other managers.
    pub take_over: bool,
    /// `cairn.deleteVolumes`: a terminate removes volumes too.
    pub delete_volumes: bool,
    /// `cairn.clocks`.
    pub clocks: Clocks,
}

/// What an operation was asked, resolved against VNFD and record when it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "operation",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub enum Params {
    /// INSTANTIATE.
    Instantiate {
        /// `flavourId`.
        flavour_id: String,
        /// Levels to begin with.
        levels: Levels,
        /// vimConnectionInfo, extensions, vnfConfigurableProperties of the request (sealed).
        info: Map<String, Value>,
    },
    /// SCALE.
    Scale {
        /// The level after it.
        levels: Levels,
        /// Aspect that was named.
        aspect_id: String,
        /// Whether it grows.
        out: bool,
    },
    /// `SCALE_TO_LEVEL`.
    ScaleToLevel {
        /// The level after it.
        levels: Levels,
    },
    /// HEAL.
    Heal {
        /// Pods to replace; empty: the whole instance.
        vnfcs: Vec<String>,
        /// `cause`, as given.
        cause: Option<String>,
    },
    /// `CHANGE_VNFPKG`.
    ChangeVnfpkg {
        /// What the VNF is an instance of after it.
        product: VnfProduct,
        /// The levels carried over to the new VNFD.
        levels: Levels,
        /// vimConnectionInfo, extensions, vnfConfigurableProperties of the request, over the initial values that
        /// the new VNFD declares and the instance does not have yet (sealed).
        info: Map<String, Value>,
        /// `vdu_params`: the VDUs whose workloads are changed; absent: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vdus: Option<Vec<String>>,
    },
    /// `MODIFY_INFO`.
    ModifyInfo {
        /// The merge patch (sealed).
        changes: Map<String, Value>,
    },
    /// TERMINATE.
    Terminate {
        /// `terminationType` FORCEFUL.
        forceful: bool,
        /// `gracefulTerminationTimeout`, seconds.
        graceful_timeout_s: Option<u32>,
    },
}

impl Params {
    /// Which operation these belong to.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::Instantiate { .. } => Operation::Instantiate,
            Self::Scale { .. } => Operation::Scale,
            Self::ScaleToLevel { .. } => Operation::ScaleToLevel,
            Self::Heal { .. } => Operation::Heal,
            Self::ChangeVnfpkg { .. } => Operation::ChangeVnfpkg,
            Self::ModifyInfo { .. } => Operation::ModifyInfo,
            Self::Terminate { .. } => Operation::Terminate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_numbered_from_zero_to_seven() {
        for (number, point) in (0u8..).zip(ErrorPoint::ALL) {
            assert_eq!(ErrorPoint::try_from(number), Ok(point));
            assert_eq!(point.number(), number);
        }
        assert!(ErrorPoint::try_from(8).is_err());
    }

    #[test]
    fn final_states_lead_nowhere() {
        for from in OperationState::ALL {
            let leads_on = OperationState::ALL.iter().any(|to| from.may_become(*to));
            assert_eq!(leads_on, !from.is_final(), "{from}");
        }
    }
}
