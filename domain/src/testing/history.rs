//! Stories that read as prose and hand out the history that they made.

use super::fixture::{change_params, instantiate_params, levels};
use super::world::{World, at_point, scale_params};
use crate::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccEvent};
use crate::operation::{CancelMode, ErrorPoint, Operation, OperationState, Params};
use crate::vnf_instance::VnfInstanceEvent;
use serde_json::{Map, json};

/// The story of one operation. The instance stands as it must for the operation to be accepted.
#[derive(Clone, Debug)]
pub struct OpStory {
    /// Where it happens.
    pub world: World,
    params: Option<Params>,
}

/// The story of an instance.
#[derive(Clone, Debug)]
pub struct InstanceStory {
    /// Where it happens.
    pub world: World,
}

/// Begins the story of an operation: say which, then how far it came.
#[must_use]
pub fn op() -> OpStory {
    OpStory {
        world: World::new(),
        params: None,
    }
}

/// Begins the story of an instance that was just created.
#[must_use]
pub fn instance() -> InstanceStory {
    InstanceStory {
        world: World::new(),
    }
}

impl OpStory {
    fn of(self, params: Params) -> Self {
        let world = match params.operation() {
            Operation::Instantiate | Operation::ModifyInfo => self.world,
            _ => World::instantiated(),
        };
        Self {
            world,
            params: Some(params),
        }
    }

    /// INSTANTIATE with two replicas of `WEB`.
    #[must_use]
    pub fn instantiate(self) -> Self {
        self.of(instantiate_params(2))
    }

    /// The same in the world as it is, which may hold leftovers.
    #[must_use]
    pub fn instantiate_here(self) -> Self {
        Self {
            params: Some(instantiate_params(2)),
            ..self
        }
    }

    /// SCALE of `WEB` from two replicas to four.
    #[must_use]
    pub fn scale_out(self) -> Self {
        self.of(scale_params(4, true))
    }

    /// SCALE of `WEB` from two replicas to one.
    #[must_use]
    pub fn scale_in(self) -> Self {
        self.of(scale_params(1, false))
    }

    /// `SCALE_TO_LEVEL` with five replicas of `WEB`.
    #[must_use]
    pub fn scale_to_level(self) -> Self {
        self.of(Params::ScaleToLevel { levels: levels(5) })
    }

    /// HEAL of the first VNFC.
    #[must_use]
    pub fn heal_one(self) -> Self {
        let mut story = self.of(Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        });
        let first = story
            .world
            .instance()
            .vnfcs()
            .first()
            .map(|vnfc| vnfc.id.clone());
        let vnfcs = first.into_iter().collect();
        story.params = Some(Params::Heal { vnfcs, cause: None });
        story
    }

    /// HEAL of everything.
    #[must_use]
    pub fn heal_all(self) -> Self {
        self.of(Params::Heal {
            vnfcs: Vec::new(),
            cause: None,
        })
    }

    /// `CHANGE_VNFPKG` to the next version.
    #[must_use]
    pub fn change_vnfpkg(self) -> Self {
        self.of(change_params(2))
    }

    /// `MODIFY_INFO` of the metadata.
    #[must_use]
    pub fn modify_info(self) -> Self {
        let changes = Map::from_iter([("metadata".to_owned(), json!({"site": "north"}))]);
        self.of(Params::ModifyInfo { changes })
    }

    /// TERMINATE, gracefully.
    #[must_use]
    pub fn terminate(self) -> Self {
        self.of(Params::Terminate {
            forceful: false,
            graceful_timeout_s: None,
        })
    }

    /// Which operations there are, for tables: name and story.
    #[must_use]
    pub fn every_kind() -> Vec<(&'static str, Self)> {
        vec![
            ("INSTANTIATE", op().instantiate()),
            ("SCALE out", op().scale_out()),
            ("SCALE in", op().scale_in()),
            ("SCALE_TO_LEVEL", op().scale_to_level()),
            ("HEAL one", op().heal_one()),
            ("HEAL all", op().heal_all()),
            ("CHANGE_VNFPKG", op().change_vnfpkg()),
            ("MODIFY_INFO", op().modify_info()),
            ("TERMINATE", op().terminate()),
        ]
    }

    /// It was accepted, and nothing was done yet.
    ///
    /// # Panics
    ///
    /// When no operation was named.
    #[must_use]
    #[track_caller]
    pub fn begun(mut self) -> Self {
        let params = self.params.take().expect("name the operation first");
        self.world.begin(params).expect("the instance accepts it");
        self
    }

    /// It came so far.
    #[must_use]
    #[track_caller]
    pub fn until(self, holds: impl Fn(&VnfLcmOpOcc) -> bool) -> Self {
        let mut story = if self.params.is_some() {
            self.begun()
        } else {
            self
        };
        story.world.go_until(holds);
        story
    }

    /// It came to an error point.
    #[must_use]
    #[track_caller]
    pub fn at(self, point: ErrorPoint) -> Self {
        self.until(at_point(point))
    }

    /// It came to an error point, and its try ended there.
    #[must_use]
    #[track_caller]
    pub fn failed_at(self, point: ErrorPoint) -> Self {
        let mut story = self.at(point);
        story
            .world
            .fail_here(&format!("failed at point {}", point.number()));
        story
    }

    /// It was cancelled where it was.
    ///
    /// # Panics
    ///
    /// When it cannot be.
    #[must_use]
    #[track_caller]
    pub fn cancelled(mut self, mode: CancelMode) -> Self {
        self.world.cancel(mode).expect("it can be cancelled");
        self.world.go_on();
        self
    }

    /// It was retried and ran on until it rested.
    ///
    /// # Panics
    ///
    /// When a retry is refused.
    #[must_use]
    #[track_caller]
    pub fn retried(mut self) -> Self {
        self.world.retry().expect("a retry is legal");
        self.world.go_on();
        self
    }

    /// It was retried, and failed again at an error point.
    ///
    /// # Panics
    ///
    /// When a retry is refused.
    #[must_use]
    #[track_caller]
    pub fn retried_and_failed_at(mut self, point: ErrorPoint) -> Self {
        self.world.retry().expect("a retry is legal");
        self.failed_at(point)
    }

    /// A rollback began.
    ///
    /// # Panics
    ///
    /// When it is refused.
    #[must_use]
    #[track_caller]
    pub fn rolling_back(mut self) -> Self {
        self.world.rollback().expect("a rollback is legal");
        self
    }

    /// It was rolled back until it rested.
    #[must_use]
    #[track_caller]
    pub fn rolled_back(self) -> Self {
        let mut story = self.rolling_back();
        story.world.go_on();
        story
    }

    /// It was given up.
    ///
    /// # Panics
    ///
    /// When that is refused.
    #[must_use]
    #[track_caller]
    pub fn given_up(mut self) -> Self {
        self.world.fail().expect("failing is legal");
        self
    }

    /// It ran until it rested.
    #[must_use]
    #[track_caller]
    pub fn completed(self) -> Self {
        self.until(|_| false)
    }

    /// The operation.
    #[must_use]
    #[track_caller]
    pub fn op(&self) -> &VnfLcmOpOcc {
        self.world.op()
    }

    /// The state that it is in.
    #[must_use]
    #[track_caller]
    pub fn state(&self) -> OperationState {
        self.op().state
    }

    /// What its error says.
    ///
    /// # Panics
    ///
    /// Without an error.
    #[must_use]
    #[track_caller]
    pub fn detail(&self) -> &str {
        &self.op().error.as_ref().expect("it has an error").detail
    }

    /// What happened to it.
    #[must_use]
    pub fn history(&self) -> Vec<VnfLcmOpOccEvent> {
        self.world.history().to_vec()
    }
}

impl InstanceStory {
    /// It was instantiated with two replicas of `WEB`.
    #[must_use]
    #[track_caller]
    pub fn instantiated(mut self) -> Self {
        self.world.instantiate();
        self
    }

    /// It was scaled to so many replicas of `WEB`.
    #[must_use]
    #[track_caller]
    pub fn scaled_to(mut self, web: u32) -> Self {
        self.world.run(scale_params(web, true));
        self
    }

    /// It was terminated.
    #[must_use]
    #[track_caller]
    pub fn terminated(mut self) -> Self {
        self.world.run(Params::Terminate {
            forceful: false,
            graceful_timeout_s: None,
        });
        self
    }

    /// What happened to it.
    #[must_use]
    pub fn history(&self) -> Vec<VnfInstanceEvent> {
        self.world.instance_history().to_vec()
    }
}
