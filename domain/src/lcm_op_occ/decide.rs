//! What each command means where the operation stands.

use super::VnfLcmOpOcc;
use super::command::{Rejection, VnfLcmOpOccCommand};
use super::event::VnfLcmOpOccEvent as Event;
use super::next::{Next, next_forward, next_undo};
use super::plan::{Action, Outcome, Plan, Step, StepState, Vnfc};
use super::undo;
use crate::ids::GrantId;
use crate::operation::{CancelMode, ErrorPoint, Operation, OperationState, Params};
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::vnf_instance::VnfProduct;
use crate::waits::WaitClass;
use serde_json::{Map, Value};

/// Turns a command into facts, or refuses it.
///
/// # Errors
///
/// [`Rejection`] when the operation's recorded state forbids the command.
pub fn decide(
    state: Option<&VnfLcmOpOcc>,
    command: VnfLcmOpOccCommand,
) -> Result<Vec<Event>, Rejection> {
    match (state, command) {
        (
            None,
            VnfLcmOpOccCommand::Start {
                at,
                id,
                vnf_instance_id,
                by,
                tenant,
                request,
                params,
                additional,
                inventory,
            },
        ) => Ok(start(Event::OperationStarted {
            at,
            id,
            vnf_instance_id,
            by,
            tenant,
            request,
            params,
            additional,
            inventory,
        })),
        (Some(_), VnfLcmOpOccCommand::Start { .. }) => Err(Rejection::Exists),
        (None, _) => Err(Rejection::NotFound),
        (Some(op), command) => op.decide_begun(command),
    }
}

/// Point 0 is recorded in STARTING; `MODIFY_INFO` has none and begins at 1.
fn start(started: Event) -> Vec<Event> {
    let at = started.at();
    let point = match &started {
        Event::OperationStarted {
            params: Params::ModifyInfo { .. },
            ..
        } => ErrorPoint::NotifyProcessing,
        _ => ErrorPoint::Initial,
    };
    vec![
        started,
        Event::ErrorPointReached {
            at,
            point,
            attempt: 1,
        },
    ]
}

impl VnfLcmOpOcc {
    fn decide_begun(&self, command: VnfLcmOpOccCommand) -> Result<Vec<Event>, Rejection> {
        match command {
            VnfLcmOpOccCommand::Start { .. } => Err(Rejection::Exists),
            VnfLcmOpOccCommand::Retry { at, by, tenant } => {
                self.must_be_halted("retry")?;
                Ok(vec![Event::RetryStarted { at, by, tenant }])
            }
            VnfLcmOpOccCommand::Rollback { at, by, tenant } => {
                self.must_be_halted("rollback")?;
                Ok(vec![Event::RollbackStarted {
                    at,
                    by,
                    tenant,
                    undo: undo::list(self),
                }])
            }
            VnfLcmOpOccCommand::Fail { at, by, tenant } => {
                self.must_be_halted("fail")?;
                Ok(vec![Event::OperationFailed { at, by, tenant }])
            }
            VnfLcmOpOccCommand::Cancel {
                at,
                by,
                tenant,
                mode,
            } => {
                self.may_be_cancelled(mode)?;
                Ok(vec![Event::CancelRequested {
                    at,
                    by,
                    tenant,
                    mode,
                }])
            }
            VnfLcmOpOccCommand::RequestGrant { at } => self.request_grant(at),
            VnfLcmOpOccCommand::Grant { at, grant_id } => self.granted(at, grant_id),
            VnfLcmOpOccCommand::RejectGrant { at, problem } => self.reject_grant(at, problem),
            VnfLcmOpOccCommand::FixPlan { at, plan } => self.fix_plan(at, plan),
            VnfLcmOpOccCommand::RecheckPlan { at, reopened } => {
                self.must_be(OperationState::Processing)?;
                if self.plan.is_none() {
                    return Err(Rejection::Stale { is: self.state });
                }
                Ok(vec![Event::PlanRechecked { at, reopened }])
            }
            VnfLcmOpOccCommand::ReachPoint { at, point } => self.reach_point(at, point),
            VnfLcmOpOccCommand::Begin { at, steps } => self.begin(at, &steps),
            VnfLcmOpOccCommand::Finish { at, step, outcome } => self.finish(at, step, outcome),
            VnfLcmOpOccCommand::LoseAnswer { at, step, why } => {
                self.must_be_transitional()?;
                Ok(self.lose_answer(at, step, why))
            }
            VnfLcmOpOccCommand::Obstruct { at, obstacles } => {
                self.must_be_transitional()?;
                Ok(self.obstruct(at, obstacles))
            }
            VnfLcmOpOccCommand::EndTry { at, step, problem } => self.end_try(at, step, problem),
            VnfLcmOpOccCommand::CarryOutCancel { at } => self.carry_out_cancel(at),
            VnfLcmOpOccCommand::Complete { at } => self.complete(at),
            VnfLcmOpOccCommand::FinishRollback { at } => self.finish_rollback(at),
            VnfLcmOpOccCommand::Advise { at, reason } => Ok(self.advise(at, reason)),
        }
    }

    fn must_be_halted(&self, task: &'static str) -> Result<(), Rejection> {
        if self.state == OperationState::FailedTemp {
            return Ok(());
        }
        let instead = if self.state.is_transitional() {
            "only cancel is"
        } else {
            "the operation has ended; start a new one"
        };
        Err(Rejection::WrongState {
            task,
            is: self.state,
            instead,
        })
    }

    fn may_be_cancelled(&self, mode: CancelMode) -> Result<(), Rejection> {
        if !self.state.is_transitional() {
            let instead = if self.state == OperationState::FailedTemp {
                "retry, rollback and fail are"
            } else {
                "the operation has ended"
            };
            return Err(Rejection::WrongState {
                task: "cancel",
                is: self.state,
                instead,
            });
        }
        match (self.cancel, mode) {
            (None, _) | (Some(CancelMode::Graceful), CancelMode::Forceful) => Ok(()),
            (Some(_), _) => Err(Rejection::CancelPending),
        }
    }

    fn must_be(&self, state: OperationState) -> Result<(), Rejection> {
        if self.state == state {
            return Ok(());
        }
        Err(Rejection::Stale { is: self.state })
    }

    fn must_be_transitional(&self) -> Result<(), Rejection> {
        if self.state.is_transitional() {
            return Ok(());
        }
        Err(Rejection::Stale { is: self.state })
    }

    fn request_grant(&self, at: Timestamp) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::Starting)?;
        if self.grant_requested {
            return Ok(Vec::new());
        }
        Ok(vec![Event::GrantRequested { at }])
    }

    fn granted(&self, at: Timestamp, grant_id: GrantId) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::Starting)?;
        // A cancellation accepted in STARTING ends in ROLLED_BACK, whatever the NFVO says meanwhile.
        self.must_not_be_cancelled()?;
        Ok(vec![
            Event::Granted { at, grant_id },
            Event::ProcessingStarted { at },
            self.point_event(at, ErrorPoint::NotifyProcessing),
        ])
    }

    fn reject_grant(&self, at: Timestamp, problem: Problem) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::Starting)?;
        let rejected = Event::GrantRejected {
            at,
            problem: problem.clone(),
        };
        Ok(vec![rejected, self.ended(at, problem)])
    }

    fn fix_plan(&self, at: Timestamp, plan: Plan) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::Processing)?;
        if self.plan.is_none() {
            return Ok(vec![Event::PlanFixed { at, plan }]);
        }
        let (plan, carried) = self.revised(plan);
        Ok(vec![Event::PlanRevised { at, plan, carried }])
    }

    /// Steps that were begun keep their place, also those that the new plan has no more (their undo is needed);
    /// what was not begun is as the new plan says.
    fn revised(&self, new: Plan) -> (Plan, Vec<Option<usize>>) {
        let mut fresh: Vec<Option<Step>> = new.steps.iter().cloned().map(Some).collect();
        let mut steps = Vec::new();
        let mut carried = Vec::new();
        for (index, old) in self.steps.iter().enumerate() {
            let successor = fresh
                .iter_mut()
                .find(|step| step.as_ref().is_some_and(|step| same_step(&old.step, step)))
                .and_then(Option::take);
            if old.touched {
                steps.push(successor.unwrap_or_else(|| old.step.clone()));
                carried.push(Some(index));
            } else if let Some(step) = successor {
                steps.push(step);
                carried.push(None);
            }
        }
        for step in fresh.into_iter().flatten() {
            steps.push(step);
            carried.push(None);
        }
        (Plan { steps, ..new }, carried)
    }

    fn point_event(&self, at: Timestamp, point: ErrorPoint) -> Event {
        Event::ErrorPointReached {
            at,
            point,
            attempt: self.attempt(),
        }
    }

    fn reach_point(&self, at: Timestamp, point: ErrorPoint) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::Processing)?;
        if self.point.is_some_and(|reached| reached >= point) {
            return Ok(Vec::new());
        }
        let follows = match self.point {
            None => ErrorPoint::NotifyProcessing.number(),
            Some(reached) => reached.number() + 1,
        };
        if point.number() != follows {
            return Err(Rejection::Stale { is: self.state });
        }
        Ok(vec![self.point_event(at, point)])
    }

    /// Told once for each time a step is begun: that the cluster stays silent is a wait, not an event each.
    fn lose_answer(&self, at: Timestamp, step: usize, why: String) -> Vec<Event> {
        let (doubted, known) = if self.state == OperationState::RollingBack {
            (&self.undo_in_doubt, self.undo.len())
        } else {
            (&self.in_doubt, self.steps.len())
        };
        if doubted.contains(&step) || step >= known {
            return Vec::new();
        }
        let why = crate::problem::shorten(why);
        vec![Event::OutcomeUnknown { at, step, why }]
    }

    fn must_not_be_cancelled(&self) -> Result<(), Rejection> {
        match self.cancel {
            None => Ok(()),
            Some(_) => Err(Rejection::Stale { is: self.state }),
        }
    }

    fn begin(&self, at: Timestamp, steps: &[usize]) -> Result<Vec<Event>, Rejection> {
        // No new step begins once a cancellation is pending.
        self.must_not_be_cancelled()?;
        if self.state == OperationState::RollingBack {
            let open = steps.iter().filter(|i| {
                self.undo.get(**i).is_some_and(|log| {
                    !matches!(log.state, StepState::Started | StepState::Done { .. })
                })
            });
            return Ok(open
                .map(|undo| Event::StepUndoStarted { at, undo: *undo })
                .collect());
        }
        self.must_be(OperationState::Processing)?;
        let open = steps.iter().filter(|i| {
            self.steps.get(**i).is_some_and(|log| {
                !matches!(log.state, StepState::Started | StepState::Done { .. })
            })
        });
        Ok(open
            .map(|step| Event::StepStarted { at, step: *step })
            .collect())
    }

    fn finish(
        &self,
        at: Timestamp,
        step: usize,
        outcome: Outcome,
    ) -> Result<Vec<Event>, Rejection> {
        if self.state == OperationState::RollingBack {
            return Ok(self.finish_undo(at, step, &outcome));
        }
        self.must_be(OperationState::Processing)?;
        let done = self
            .steps
            .get(step)
            .is_none_or(|log| matches!(log.state, StepState::Done { .. }));
        if done {
            return Ok(Vec::new());
        }
        Ok(vec![Event::StepSucceeded { at, step, outcome }])
    }

    fn finish_undo(&self, at: Timestamp, undo: usize, outcome: &Outcome) -> Vec<Event> {
        let Some(log) = self.undo.get(undo) else {
            return Vec::new();
        };
        if matches!(log.state, StepState::Done { .. }) {
            return Vec::new();
        }
        let mut events = vec![Event::StepUndone {
            at,
            undo,
            outcome: outcome.clone(),
        }];
        match outcome {
            Outcome::ReplicasSet { from, to } => {
                // Where the answer of an earlier try was lost, that try has set the number.
                let from = match &log.undo.step.action {
                    Action::SetReplicas { from, .. } if self.undo_in_doubt.contains(&undo) => from,
                    _ => from,
                };
                if let Some(resource) = log.undo.step.action.object().filter(|_| from != to) {
                    events.push(Event::ReplicasRestored {
                        at,
                        resource: resource.clone(),
                        from: *from,
                        to: *to,
                    });
                }
            }
            Outcome::Verified => events.push(Event::RollbackVerified { at }),
            Outcome::Applied { .. }
            | Outcome::Created
            | Outcome::Deleted { .. }
            | Outcome::Evicted { .. }
            | Outcome::Kept { .. }
            | Outcome::Ready
            | Outcome::Gone { .. }
            | Outcome::Inventory { .. }
            | Outcome::HookSucceeded { .. }
            | Outcome::VimsRegistered { .. }
            | Outcome::VimsUnregistered { .. } => {}
        }
        events
    }

    fn end_try(
        &self,
        at: Timestamp,
        step: Option<(usize, WaitClass)>,
        problem: Problem,
    ) -> Result<Vec<Event>, Rejection> {
        self.must_be_transitional()?;
        let mut events = Vec::new();
        if let Some((step, class)) = step {
            let problem = problem.clone();
            events.push(if self.state == OperationState::RollingBack {
                Event::StepUndoFailed {
                    at,
                    undo: step,
                    problem,
                    class,
                }
            } else {
                Event::StepFailed {
                    at,
                    step,
                    problem,
                    class,
                }
            });
        }
        events.push(self.ended(at, problem));
        Ok(events)
    }

    /// The event that a failure or cancellation ends in, from where the operation is.
    fn ended(&self, at: Timestamp, problem: Problem) -> Event {
        let undoes_itself = self.state == OperationState::Starting
            || (self.state == OperationState::Processing
                && self.operation() == Operation::ModifyInfo);
        if undoes_itself {
            Event::OperationRolledBack {
                at,
                problem,
                inventory: None,
                residue: Vec::new(),
            }
        } else {
            Event::OperationFailedTemporarily { at, problem }
        }
    }

    fn carry_out_cancel(&self, at: Timestamp) -> Result<Vec<Event>, Rejection> {
        self.must_be_transitional()?;
        let Some(mode) = self.cancel else {
            return Err(Rejection::Stale { is: self.state });
        };
        let problem = self.cancelled_problem(mode);
        Ok(vec![
            Event::OperationCancelled { at, mode },
            self.ended(at, problem),
        ])
    }

    fn cancelled_problem(&self, mode: CancelMode) -> Problem {
        let how = match mode {
            CancelMode::Graceful => "gracefully",
            CancelMode::Forceful => "forcefully",
        };
        let waited: Vec<String> = self
            .waits
            .iter()
            .map(|wait| format!("{} {}: {}", wait.object, wait.reason, wait.message))
            .collect();
        let detail = if waited.is_empty() {
            format!("cancelled {how} in {}", self.state)
        } else {
            format!(
                "cancelled {how} in {} while waiting for {}",
                self.state,
                waited.join("; ")
            )
        };
        Problem::new(409, detail).titled("Operation cancelled")
    }

    fn complete(&self, at: Timestamp) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::Processing)?;
        if next_forward(self) != Next::Complete {
            return Err(Rejection::Stale { is: self.state });
        }
        let after = match self.operation() {
            Operation::Terminate => Some(Vec::new()),
            Operation::ModifyInfo => None,
            Operation::Instantiate
            | Operation::Scale
            | Operation::ScaleToLevel
            | Operation::Heal
            | Operation::ChangeVnfpkg => self.inventory().map(<[Vnfc]>::to_vec),
        };
        let changed_info = match &self.params {
            Params::ModifyInfo { changes } => Some(changes.clone()),
            Params::ChangeVnfpkg { product, info, .. } => Some(changed_with(product, info)),
            Params::Instantiate { .. }
            | Params::Scale { .. }
            | Params::ScaleToLevel { .. }
            | Params::Heal { .. }
            | Params::Terminate { .. } => None,
        };
        Ok(vec![Event::OperationCompleted {
            at,
            resource_changes: after.map_or_else(Vec::new, |after| self.changes_to(&after)),
            changed_info,
            residue: self.kept(),
        }])
    }

    fn finish_rollback(&self, at: Timestamp) -> Result<Vec<Event>, Rejection> {
        self.must_be(OperationState::RollingBack)?;
        if next_undo(self) != Next::FinishRollback {
            return Err(Rejection::Stale { is: self.state });
        }
        let problem = self
            .first_cause
            .clone()
            .unwrap_or_else(|| Problem::new(500, "rolled back without a recorded cause"));
        let inventory = self
            .undo
            .iter()
            .any(|log| {
                matches!(
                    log.state,
                    StepState::Done {
                        outcome: Outcome::Inventory { .. }
                    }
                )
            })
            .then(|| self.inventory().map(<[Vnfc]>::to_vec))
            .flatten();
        Ok(vec![Event::OperationRolledBack {
            at,
            problem,
            inventory,
            residue: self.kept_by_rollback(),
        }])
    }

    fn advise(&self, at: Timestamp, reason: String) -> Vec<Event> {
        if self.state != OperationState::FailedTemp || self.advice.is_some() {
            return Vec::new();
        }
        vec![Event::RetryAdvised { at, reason }]
    }
}

/// What a change of the package changes in the record (SOL003 `VnfInfoModifications`).
fn changed_with(product: &VnfProduct, info: &Map<String, Value>) -> Map<String, Value> {
    let mut changed = info.clone();
    for (name, value) in [
        ("vnfdId", product.vnfd_id.as_str()),
        ("vnfProvider", &product.vnf_provider),
        ("vnfProductName", &product.vnf_product_name),
        ("vnfSoftwareVersion", &product.vnf_software_version),
        ("vnfdVersion", &product.vnfd_version),
    ] {
        changed.insert(name.to_owned(), value.into());
    }
    changed
}

fn same_step(old: &Step, new: &Step) -> bool {
    old.action.kind() == new.action.kind()
        && match (old.action.object(), new.action.object()) {
            (Some(old), Some(new)) => old.is(new),
            (None, None) => old.action.subject() == new.action.subject(),
            (Some(_), None) | (None, Some(_)) => false,
        }
}
