//! Whole operations without I/O: the loop of a runner, folded in memory.

use super::cluster::Cluster;
use super::fixture::{
    after_seconds, caller, instantiate_params, levels, manifests, next_manifests, product,
};
use crate::follow::follow;
use crate::hook::Hook;
use crate::ids::{GrantId, VnfInstanceId, VnfLcmOpOccId};
use crate::lcm_op_occ::event::VnfLcmOpOccEvent;
use crate::lcm_op_occ::next::{Next, next};
use crate::lcm_op_occ::plan::{Action, StepResult, StepState};
use crate::lcm_op_occ::{self, VnfLcmOpOcc, VnfLcmOpOccCommand as Command};
use crate::object::Body;
use crate::operation::{
    AdditionalParams, CancelMode, ErrorPoint, Operation, OperationState, Params,
};
use crate::planning::{Inputs, check_cluster, plan, recheck, survey_request};
use crate::ports::Manifest;
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::vnf_instance::{self, VnfInfo, VnfInstance, VnfInstanceCommand, VnfInstanceEvent};
use crate::waits::{Classified, Obstacle, Phase, WaitClass, classify};
use serde_json::{Map, Value};

/// Most turns that anything may take; more means that it does not end.
const TURNS: usize = 2000;
/// Seconds between two looks at what is waited for.
const LOOK_S: u64 = 10;

/// One operation and its history.
#[derive(Clone, Debug)]
struct Story {
    state: VnfLcmOpOcc,
    history: Vec<VnfLcmOpOccEvent>,
}

/// An instance, its operations and a cluster. Cloning it is a fork in the road.
#[derive(Clone, Debug)]
pub struct World {
    /// The cluster.
    pub cluster: Cluster,
    /// The manifests of the package.
    pub manifests: Vec<Manifest>,
    /// The hooks of the package.
    pub hooks: Vec<Hook>,
    /// The manifests of the package that a `CHANGE_VNFPKG` changes to.
    pub next_manifests: Vec<Manifest>,
    /// `additionalParams` of the operations that begin from now on.
    pub additional: AdditionalParams,
    instance: Option<VnfInstance>,
    instance_history: Vec<VnfInstanceEvent>,
    stories: Vec<Story>,
    seconds: u64,
}

/// Whether an operation has come to an error point in its present try.
pub fn at_point(point: ErrorPoint) -> impl Fn(&VnfLcmOpOcc) -> bool {
    move |op| op.state.is_transitional() && op.point == Some(point)
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A VNF instance that was just created.
    ///
    /// # Panics
    ///
    /// Never: creating is always legal.
    #[must_use]
    pub fn new() -> Self {
        let mut world = Self {
            cluster: Cluster::default(),
            manifests: manifests(),
            hooks: Vec::new(),
            next_manifests: next_manifests(),
            additional: AdditionalParams::default(),
            instance: None,
            instance_history: Vec::new(),
            stories: Vec::new(),
            seconds: 0,
        };
        let (by, tenant) = caller();
        let id = VnfInstanceId::parse("vnf-1").expect("a legal id");
        let at = world.now();
        let (product, info) = (product(), VnfInfo::default());
        world
            .tell_instance(VnfInstanceCommand::Create {
                at,
                id,
                by,
                tenant,
                product,
                info,
            })
            .expect("nothing was created before");
        world
    }

    /// The same, instantiated with two replicas of `WEB`.
    #[must_use]
    pub fn instantiated() -> Self {
        let mut world = Self::new();
        world.run(instantiate_params(2));
        world
    }

    /// Now: no two calls answer the same.
    fn now(&mut self) -> Timestamp {
        self.seconds += 1;
        after_seconds(self.seconds)
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: u64) {
        self.seconds += seconds;
    }

    /// The instance.
    ///
    /// # Panics
    ///
    /// Never: a world begins with it.
    #[must_use]
    pub fn instance(&self) -> &VnfInstance {
        self.instance
            .as_ref()
            .expect("a world begins with an instance")
    }

    /// The operation begun last.
    ///
    /// # Panics
    ///
    /// When none was begun.
    #[must_use]
    #[track_caller]
    pub fn op(&self) -> &VnfLcmOpOcc {
        &self.stories.last().expect("an operation was begun").state
    }

    /// All operations that were begun.
    #[must_use]
    pub fn ops(&self) -> Vec<&VnfLcmOpOcc> {
        self.stories.iter().map(|story| &story.state).collect()
    }

    /// What happened to the operation begun last.
    #[must_use]
    pub fn history(&self) -> &[VnfLcmOpOccEvent] {
        self.stories.last().map_or(&[], |story| &story.history)
    }

    /// What happened to the instance.
    #[must_use]
    pub fn instance_history(&self) -> &[VnfInstanceEvent] {
        &self.instance_history
    }

    /// Begins an operation.
    ///
    /// # Errors
    ///
    /// The refusal of the instance; then nothing has changed.
    ///
    /// # Panics
    ///
    /// Never: the ids are legal.
    pub fn begin(&mut self, params: Params) -> Result<(), String> {
        let (by, tenant) = caller();
        let id = VnfLcmOpOccId::parse(format!("op-{}", self.stories.len() + 1)).expect("legal");
        let start = Command::Start {
            at: self.now(),
            id,
            vnf_instance_id: self.instance().id.clone(),
            by,
            tenant,
            request: Map::new(),
            params,
            additional: self.additional.clone(),
            inventory: self.instance().vnfcs().to_vec(),
        };
        let events = lcm_op_occ::decide(None, start).map_err(|refused| refused.to_string())?;
        self.record(None, events)
    }

    /// Asks something of the operation begun last; its events are followed to the instance.
    ///
    /// # Errors
    ///
    /// The refusal of the operation or of its instance; then nothing has changed.
    ///
    /// # Panics
    ///
    /// When no operation was begun.
    #[track_caller]
    pub fn tell(&mut self, command: Command) -> Result<(), String> {
        let story = self.stories.pop().expect("an operation was begun");
        let decided = lcm_op_occ::decide(Some(&story.state), command);
        match decided {
            Ok(events) => self.record(Some(story), events),
            Err(refused) => {
                self.stories.push(story);
                Err(refused.to_string())
            }
        }
    }

    /// Puts the operation before the last one in front: it is "the last" from now on.
    pub fn back_to_previous(&mut self) {
        let last = self.stories.len();
        if last > 1 {
            self.stories.swap(last - 1, last - 2);
        }
    }

    /// Records one event of the operation begun last that was decided elsewhere.
    #[cfg(test)]
    pub(crate) fn replace(&mut self, state: VnfLcmOpOcc, event: VnfLcmOpOccEvent) {
        if let Some(story) = self.stories.last_mut() {
            story.state = state;
            story.history.push(event);
        }
    }

    /// All of it or nothing.
    fn record(
        &mut self,
        before: Option<Story>,
        events: Vec<VnfLcmOpOccEvent>,
    ) -> Result<(), String> {
        let mut op = before.as_ref().map(|story| story.state.clone());
        let instance = self.instance.clone();
        let known = self.instance_history.len();
        for event in &events {
            op = lcm_op_occ::evolve(op, event);
            let command = op.as_ref().and_then(|op| follow(op, event, None));
            if let Some(command) = command
                && let Err(refused) = self.tell_instance(command)
            {
                self.instance = instance;
                self.instance_history.truncate(known);
                self.stories.extend(before);
                return Err(refused);
            }
        }
        let mut history = before.map_or_else(Vec::new, |story| story.history);
        history.extend(events);
        self.stories
            .extend(op.map(|state| Story { state, history }));
        Ok(())
    }

    /// Asks something of the instance.
    ///
    /// # Errors
    ///
    /// Its refusal.
    pub fn tell_instance(&mut self, command: VnfInstanceCommand) -> Result<(), String> {
        let events = vnf_instance::decide(self.instance.as_ref(), command)
            .map_err(|refused| refused.to_string())?;
        for event in events {
            self.instance = vnf_instance::evolve(self.instance.take(), &event);
            self.instance_history.push(event);
        }
        Ok(())
    }

    /// Begins an operation and runs it until it rests.
    ///
    /// # Panics
    ///
    /// When it is refused, or does not come to rest.
    #[track_caller]
    pub fn run(&mut self, params: Params) -> OperationState {
        self.begin(params).expect("the operation is accepted");
        self.go_on()
    }

    /// Runs the operation begun last until it rests.
    ///
    /// # Panics
    ///
    /// When it does not come to rest.
    #[track_caller]
    pub fn go_on(&mut self) -> OperationState {
        self.go_until(|_| false);
        self.op().state
    }

    /// Runs it until something holds of it, or it rests: as far as a process came before it was killed.
    ///
    /// # Panics
    ///
    /// When neither comes.
    #[track_caller]
    pub fn go_until(&mut self, holds: impl Fn(&VnfLcmOpOcc) -> bool) {
        for _ in 0..TURNS {
            if holds(self.op()) || !self.turn() {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", next(self.op()));
    }

    /// Ends the present try here.
    ///
    /// # Panics
    ///
    /// When nothing is running.
    #[track_caller]
    pub fn fail_here(&mut self, why: &str) -> OperationState {
        let at = self.now();
        let problem = Problem::new(500, why);
        self.tell(Command::EndTry {
            at,
            step: None,
            problem,
        })
        .expect("it is running");
        self.op().state
    }

    /// SOL003 retry.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn retry(&mut self) -> Result<(), String> {
        let (at, (by, tenant)) = (self.now(), caller());
        self.tell(Command::Retry { at, by, tenant })
    }

    /// SOL003 rollback.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn rollback(&mut self) -> Result<(), String> {
        let (at, (by, tenant)) = (self.now(), caller());
        self.tell(Command::Rollback { at, by, tenant })
    }

    /// SOL003 fail.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn fail(&mut self) -> Result<(), String> {
        let (at, (by, tenant)) = (self.now(), caller());
        self.tell(Command::Fail { at, by, tenant })
    }

    /// SOL003 cancel.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn cancel(&mut self, mode: CancelMode) -> Result<(), String> {
        let (at, (by, tenant)) = (self.now(), caller());
        self.tell(Command::Cancel {
            at,
            by,
            tenant,
            mode,
        })
    }

    /// DELETE of the instance.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn delete(&mut self) -> Result<(), String> {
        let (at, (by, tenant)) = (self.now(), caller());
        self.tell_instance(VnfInstanceCommand::Delete { at, by, tenant })
    }

    /// One turn of the runner; `false` when there is nothing to do.
    ///
    /// # Panics
    ///
    /// When a command that `next` asks for is refused.
    #[track_caller]
    pub fn turn(&mut self) -> bool {
        let at = self.now();
        let told = match next(self.op()) {
            Next::Rest => return false,
            Next::SeekGrant if !self.op().grant_requested => {
                self.tell(Command::RequestGrant { at })
            }
            Next::SeekGrant => {
                let grant_id = GrantId::parse("grant-1").expect("a legal id");
                self.tell(Command::Grant { at, grant_id })
            }
            Next::ReachPoint(point) => self.tell(Command::ReachPoint { at, point }),
            Next::Plan => self.make_plan(at),
            Next::Run(steps) | Next::Undo(steps) => self.run_one(at, &steps),
            Next::Complete => self.tell(Command::Complete { at }),
            Next::FinishRollback => self.tell(Command::FinishRollback { at }),
            Next::Cancel => self.tell(Command::CarryOutCancel { at }),
        };
        told.expect("what comes next is never refused");
        true
    }

    /// The manifests of the package that an operation works with.
    #[must_use]
    pub fn manifests_of(&self, op: &VnfLcmOpOcc) -> &[Manifest] {
        match op.operation() {
            Operation::ChangeVnfpkg => &self.next_manifests,
            _ => &self.manifests,
        }
    }

    fn make_plan(&mut self, at: Timestamp) -> Result<(), String> {
        let (op, instance) = (self.op().clone(), self.instance().clone());
        let recorded = recorded(&instance);
        let inputs = Inputs {
            op: &op,
            instance: &instance,
            manifests: self.manifests_of(&op),
            recorded: &recorded,
            hooks: &self.hooks,
        };
        let survey = self.cluster.survey(&survey_request(&inputs));
        if let Err(problem) = check_cluster(&inputs, &survey) {
            return self.tell(Command::EndTry {
                at,
                step: None,
                problem,
            });
        }
        if op
            .plan
            .as_ref()
            .is_none_or(|known| known.patches != instance.patches)
        {
            match plan(&inputs, &survey, &mut |value| Body::Inline(value.clone())) {
                Ok(plan) => self.tell(Command::FixPlan { at, plan })?,
                Err(problem) => {
                    return self.tell(Command::EndTry {
                        at,
                        step: None,
                        problem,
                    });
                }
            }
        }
        if op.plan.is_none() {
            return Ok(());
        }
        let reopened = recheck(self.op(), &survey);
        self.tell(Command::RecheckPlan { at, reopened })
    }

    /// Records the intents of a wave, or does one of its steps: so a crash can fall between any two.
    fn run_one(&mut self, at: Timestamp, steps: &[usize]) -> Result<(), String> {
        if steps
            .iter()
            .any(|step| !matches!(state_of(self.op(), *step), StepState::Started))
        {
            return self.tell(Command::Begin {
                at,
                steps: steps.to_vec(),
            });
        }
        let mut met = Vec::new();
        for step in steps.iter().copied() {
            let action = action_of(self.op(), step).clone();
            match self.cluster.perform(&action) {
                StepResult::Done(outcome) => {
                    return self.tell(Command::Finish { at, step, outcome });
                }
                StepResult::NotDone(obstacles) => {
                    met.extend(obstacles.into_iter().map(|obstacle| (step, obstacle)));
                }
                StepResult::Unknown { why } => {
                    self.tell(Command::LoseAnswer {
                        at,
                        step,
                        why: why.clone(),
                    })?;
                    let obstacle = Obstacle {
                        object: "cluster".into(),
                        source: "call".into(),
                        reason: "Unreachable".into(),
                        message: why,
                        progress: 0,
                    };
                    met.push((step, obstacle));
                }
            }
        }
        if met.is_empty() {
            return Ok(());
        }
        self.wait(at, met)
    }

    /// Waits for all that is in the way, or ends the try: the step that failed is the one whose obstacle ended it, and
    /// a permanent cause says more than a clock that ran out.
    fn wait(&mut self, at: Timestamp, met: Vec<(usize, Obstacle)>) -> Result<(), String> {
        let clocks = self.op().additional.clocks.clone();
        let (steps, met): (Vec<usize>, Vec<Obstacle>) = met.into_iter().unzip();
        let obstacles: Vec<(Obstacle, Classified)> = met
            .into_iter()
            .map(|obstacle| {
                let classified = classify(&obstacle, Phase::Work, &clocks);
                (obstacle, classified)
            })
            .collect();
        self.tell(Command::Obstruct {
            at,
            obstacles: obstacles.clone(),
        })?;
        let over = |(obstacle, found): &(Obstacle, Classified)| {
            let mut waits = self
                .op()
                .waits
                .iter()
                .filter(|wait| wait.object == obstacle.object);
            found.class == WaitClass::Permanent || waits.any(|wait| wait.until <= at)
        };
        let all_over = || steps.iter().zip(&obstacles).filter(|(_, one)| over(one));
        let ended = all_over()
            .find(|(_, (_, found))| found.class == WaitClass::Permanent)
            .or_else(|| all_over().next());
        if let Some((step, (obstacle, found))) = ended {
            let problem = Problem::new(500, format!("{} {}", obstacle.object, obstacle.reason));
            let step = Some((*step, found.class));
            return self.tell(Command::EndTry { at, step, problem });
        }
        self.pass(LOOK_S);
        Ok(())
    }

    /// INSTANTIATE with two replicas of `WEB`.
    pub fn instantiate(&mut self) -> OperationState {
        self.run(instantiate_params(2))
    }
}

/// The parameters of a SCALE of `WEB` to so many replicas.
#[must_use]
pub(super) fn scale_params(web: u32, out: bool) -> Params {
    Params::Scale {
        levels: levels(web),
        aspect_id: "web".into(),
        out,
    }
}

fn recorded(instance: &VnfInstance) -> Vec<Value> {
    let objects = instance.instantiated.iter().flat_map(|info| &info.objects);
    objects
        .map(|managed| match &managed.manifest {
            Body::Inline(value) => value.clone(),
            Body::Blob(_) => Value::Null,
        })
        .collect()
}

fn action_of(op: &VnfLcmOpOcc, step: usize) -> &Action {
    if op.state == OperationState::RollingBack {
        &op.undo[step].undo.step.action
    } else {
        &op.steps[step].step.action
    }
}

fn state_of(op: &VnfLcmOpOcc, step: usize) -> &StepState {
    if op.state == OperationState::RollingBack {
        &op.undo[step].state
    } else {
        &op.steps[step].state
    }
}
