//! What an operation's events say, given those before.

use super::words;
use cairn_domain::lcm_op_occ::VnfLcmOpOccEvent as Op;
use cairn_domain::lcm_op_occ::event::Wait;
use cairn_domain::lcm_op_occ::plan::{Outcome, Plan, Step};
use cairn_domain::operation::{CancelMode, ErrorPoint, Operation, OperationState};
use cairn_domain::problem::Problem;
use cairn_domain::time::Timestamp;
use cairn_domain::waits::WaitClass;
use std::collections::BTreeMap;

/// Characters of an operation's id that name it in a line.
const SHORT: usize = 4;

/// What an event gives to read.
pub enum Told {
    /// Nothing of its own: another event says it.
    Nothing,
    /// What may share a line with others of the same append.
    Result {
        /// What was done, such as `made`.
        verb: String,
        /// To what.
        what: String,
    },
    /// A line.
    Line {
        /// What happened.
        text: String,
        /// The state that was entered.
        state: Option<OperationState>,
    },
}

/// What is known of an operation so far.
#[derive(Default)]
pub struct Known {
    operation: Option<Operation>,
    retries: u32,
    point: Option<ErrorPoint>,
    steps: Vec<Step>,
    undo: Vec<Step>,
    rolling_back: bool,
    /// Begun and without a result, by index.
    begun: BTreeMap<usize, Timestamp>,
    waits: Vec<Wait>,
    /// The step that failed in this append.
    failed: Option<usize>,
}

fn line(text: impl Into<String>) -> Told {
    Told::Line {
        text: text.into(),
        state: None,
    }
}

fn entered(text: impl Into<String>, state: OperationState) -> Told {
    Told::Line {
        text: text.into(),
        state: Some(state),
    }
}

impl Known {
    /// Its kind and the first characters of its id.
    pub fn subject(&self, id: &str) -> String {
        let kind = self.operation.map_or("operation", Operation::as_str);
        format!("{kind} {}", id.chars().take(SHORT).collect::<String>())
    }

    /// The present try, from 1.
    pub fn attempt(&self) -> u32 {
        self.retries + 1
    }

    /// Steps that were begun and have no result, with the time they were begun.
    pub fn unfinished(&self) -> impl Iterator<Item = (Timestamp, String)> {
        self.begun.iter().map(|(step, at)| (*at, self.step(*step)))
    }

    /// Takes an event in.
    #[expect(
        clippy::too_many_lines,
        reason = "a table of words: one arm for each event"
    )]
    pub fn hear(&mut self, at: Timestamp, event: &Op) -> Told {
        match event {
            Op::OperationStarted {
                by,
                params,
                request,
                ..
            } => {
                self.operation = Some(params.operation());
                let state = match params.operation() {
                    Operation::ModifyInfo => OperationState::Processing,
                    Operation::Instantiate
                    | Operation::Scale
                    | Operation::ScaleToLevel
                    | Operation::Heal
                    | Operation::ChangeVnfpkg
                    | Operation::Terminate => OperationState::Starting,
                };
                entered(
                    format!("asked by {by}: {}", words::asked(params, request)),
                    state,
                )
            }
            Op::Granted { .. } => line("granted"),
            Op::GrantRejected { problem, .. } => line(format!("not granted: {}", problem.detail)),
            Op::ProcessingStarted { .. } => entered("", OperationState::Processing),
            Op::PlanFixed { plan, .. } => self.planned("planned", plan),
            Op::PlanRevised { plan, .. } => self.planned("planned anew", plan),
            Op::PlanRechecked { reopened, .. } if !reopened.is_empty() => {
                let again: Vec<String> = reopened
                    .iter()
                    .map(|r| format!("{} ({})", self.step(r.step), r.why))
                    .collect();
                line(format!("to be done again: {}", again.join("; ")))
            }
            Op::ErrorPointReached { point, .. } => {
                self.point = Some(*point);
                Told::Nothing
            }
            Op::StepStarted { step: index, .. } | Op::StepUndoStarted { undo: index, .. } => {
                self.begun.insert(*index, at);
                Told::Nothing
            }
            Op::StepSucceeded { step, outcome, .. } => self.done(*step, outcome),
            Op::StepUndone { undo, outcome, .. } => self.undone(*undo, outcome),
            Op::StepFailed { step: index, .. } | Op::StepUndoFailed { undo: index, .. } => {
                self.begun.remove(index);
                self.failed = Some(*index);
                Told::Nothing
            }
            Op::OutcomeUnknown { step, why, .. } => line(format!(
                "the answer was lost, the cluster is read: {} ({why})",
                self.step(*step)
            )),
            Op::WaitStarted { wait, .. } | Op::WaitChanged { wait, .. } => self.waits(at, wait),
            Op::WaitEnded { object, .. } => self.waited(at, object),
            Op::OperationFailedTemporarily { problem, .. } => self.halted(at, problem),
            Op::RetryStarted { by, .. } => {
                self.retries += 1;
                self.begin_anew();
                entered(format!("retry asked by {by}"), OperationState::Processing)
            }
            Op::RollbackStarted { by, undo, .. } => {
                self.begin_anew();
                self.rolling_back = true;
                self.undo = undo.iter().map(|undo| undo.step.clone()).collect();
                let planned = match undo.as_slice() {
                    [] => "nothing to undo".to_owned(),
                    _ => format!("planned: {}", words::steps(self.undo.iter())),
                };
                entered(
                    format!("rollback asked by {by}, {planned}"),
                    OperationState::RollingBack,
                )
            }
            Op::ReplicasRestored {
                resource, from, to, ..
            } => line(format!("replicas of {resource} restored: {from} → {to}")),
            Op::RollbackVerified { .. } => line("verified: the cluster is as before"),
            Op::OperationRolledBack {
                problem, residue, ..
            } => {
                self.begun.clear();
                let stays = match residue.as_slice() {
                    [] => String::new(),
                    left => format!("; stays behind: {}", left.join("; ")),
                };
                entered(
                    format!("undone after: {}{stays}", problem.detail),
                    OperationState::RolledBack,
                )
            }
            Op::CancelRequested { by, mode, .. } => {
                line(format!("cancel ({}) asked by {by}", mode_of(*mode)))
            }
            // Told by the event that follows in the same append; a look that found all well is no news.
            Op::GrantRequested { .. }
            | Op::PlanRechecked { .. }
            | Op::OperationCancelled { .. } => Told::Nothing,
            Op::OperationFailed { by, .. } => {
                entered(format!("given up by {by}"), OperationState::Failed)
            }
            Op::OperationCompleted {
                resource_changes,
                residue,
                ..
            } => {
                let mut parts = vec![words::changes(resource_changes)];
                if !residue.is_empty() {
                    parts.push(format!("stays behind: {}", residue.join("; ")));
                }
                parts.retain(|part| !part.is_empty());
                entered(parts.join("; "), OperationState::Completed)
            }
            Op::RetryAdvised { reason, .. } => line(format!("a retry would go on: {reason}")),
        }
    }

    fn begin_anew(&mut self) {
        self.rolling_back = false;
        self.point = None;
        self.begun.clear();
        self.waits.clear();
        self.failed = None;
    }

    fn planned(&mut self, word: &str, plan: &Plan) -> Told {
        self.steps.clone_from(&plan.steps);
        if plan.steps.is_empty() {
            return line(format!("{word}: nothing to do"));
        }
        let (steps, undo) = (words::steps(plan.steps.iter()), words::undo(&plan.steps));
        line(format!("{word}: {steps} ({undo})"))
    }

    /// A step as it is spoken of, in the plan or, while rolling back, in the undo list.
    fn step(&self, index: usize) -> String {
        let steps = if self.rolling_back {
            &self.undo
        } else {
            &self.steps
        };
        let step = steps
            .get(index)
            .map(|step| (step.action.kind(), step.action.subject()));
        step.map_or_else(
            || format!("step {index}"),
            |(kind, subject)| format!("{kind} {subject}"),
        )
    }

    fn done(&mut self, index: usize, outcome: &Outcome) -> Told {
        self.begun.remove(&index);
        let steps = if self.rolling_back {
            &self.undo
        } else {
            &self.steps
        };
        let subject = steps.get(index).map(|step| step.action.subject());
        let subject = subject.unwrap_or_else(|| format!("step {index}"));
        let (verb, what) = words::outcome(outcome, &subject);
        Told::Result {
            verb: verb.to_owned(),
            what,
        }
    }

    fn undone(&mut self, index: usize, outcome: &Outcome) -> Told {
        let told = self.done(index, outcome);
        match outcome {
            // `ReplicasRestored` and `RollbackVerified` of the same append say these.
            Outcome::Verified => return Told::Nothing,
            Outcome::ReplicasSet { from, to } if from != to => return Told::Nothing,
            Outcome::Ready
            | Outcome::Gone { .. }
            | Outcome::Inventory { .. }
            | Outcome::HookSucceeded { .. } => return told,
            Outcome::ReplicasSet { .. }
            | Outcome::Applied { .. }
            | Outcome::Created
            | Outcome::Deleted { .. }
            | Outcome::Evicted { .. }
            | Outcome::Kept { .. }
            | Outcome::VimsRegistered { .. }
            | Outcome::VimsUnregistered { .. } => {}
        }
        match told {
            Told::Result { verb, what } => Told::Result {
                verb: format!("undone: {verb}"),
                what,
            },
            Told::Nothing | Told::Line { .. } => told,
        }
    }

    fn waits(&mut self, at: Timestamp, wait: &Wait) -> Told {
        self.waits.retain(|known| known.object != wait.object);
        self.waits.push(wait.clone());
        if wait.class == WaitClass::Permanent {
            // Nobody waits for it: the end of the try, in the same append, says it.
            return Told::Nothing;
        }
        let most = words::duration(wait.until.millis_since(at));
        line(format!(
            "waits up to {most} ({}): {}",
            wait.class,
            words::wait(wait)
        ))
    }

    fn waited(&mut self, at: Timestamp, object: &str) -> Told {
        let Some(place) = self.waits.iter().position(|wait| wait.object == object) else {
            return Told::Nothing;
        };
        let wait = self.waits.remove(place);
        let long = words::duration(at.millis_since(wait.since));
        Told::Result {
            verb: format!("waited {long}, over:"),
            what: format!("{} {}", wait.object, wait.reason),
        }
    }

    /// A halt with the wait that led to it, if one did, and where in the operation it came.
    fn halted(&mut self, at: Timestamp, problem: &Problem) -> Told {
        let cause = self.waits.iter().find(|wait| {
            problem
                .detail
                .starts_with(&format!("{} {}", wait.object, wait.reason))
                && at > wait.since
        });
        let why = match cause {
            Some(wait) => {
                let long = words::duration(at.millis_since(wait.since));
                format!("waited {long}: {}", words::without_waited(&problem.detail))
            }
            None => format!("failed: {}", problem.detail),
        };
        let step = self.failed.take().map(|step| self.step(step));
        let point = self
            .point
            .filter(|_| !self.rolling_back)
            .map(|p| format!("point {}", p.number()));
        let place: Vec<String> = step.into_iter().chain(point).collect();
        let place = if place.is_empty() {
            String::new()
        } else {
            format!(" ({})", place.join(", "))
        };
        self.begun.clear();
        self.waits.clear();
        entered(format!("{why}{place}"), OperationState::FailedTemp)
    }
}

fn mode_of(mode: CancelMode) -> &'static str {
    match mode {
        CancelMode::Graceful => "GRACEFUL",
        CancelMode::Forceful => "FORCEFUL",
    }
}
