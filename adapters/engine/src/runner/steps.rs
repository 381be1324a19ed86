//! Doing steps, forward or backward: intent, effect, result.

use super::work::{Stop, Work};
use crate::faults::{Fired, Place};
use cairn_domain::lcm_op_occ::plan::{Action, Outcome, StepResult, StepState};
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccCommand as Command};
use cairn_domain::operation::OperationState;
use cairn_domain::planning::{Inputs, check_cluster};
use cairn_domain::ports::{Edge, Scope, SurveyOutcome, SurveyRequest, Unit};
use cairn_domain::problem::Problem;
use cairn_domain::vnf_instance::VnfInstance;
use cairn_domain::waits::{Obstacle, Phase, WaitClass};
use futures::StreamExt;
use std::time::Duration;

/// How many steps of a wave are under way at once.
const WAVE_WIDTH: usize = 8;
/// How long one try of one step may take. Its calls have time-outs of their own; this is for a cluster that puts each
/// of them off, which must not look like one that does not answer.
const STEP_TIMEOUT: Duration = Duration::from_mins(5);

/// What came of the steps of a wave.
#[derive(Default)]
struct Results {
    done: Vec<(usize, Outcome)>,
    unknown: Vec<(usize, String)>,
    obstacles: Vec<(usize, Obstacle)>,
}

impl Work {
    pub(super) async fn run_steps(
        &mut self,
        op: &VnfLcmOpOcc,
        instance: &VnfInstance,
        steps: &[usize],
    ) -> Result<(), Stop> {
        if self.begin(op, steps).await? {
            return Ok(());
        }
        for step in steps {
            let action = action_of(op, *step);
            if let Action::Unknown(kind) = action {
                let problem = needs_other_version(kind);
                return self
                    .end_try(Some((*step, WaitClass::Permanent)), problem)
                    .await;
            }
            if self.edge(op, *step, Edge::Before).await? {
                return Ok(());
            }
        }
        let namespace = op
            .plan
            .as_ref()
            .map_or_else(String::new, |plan| plan.namespace.clone());
        let scope = match self.scope(op, instance, namespace).await? {
            Ok(scope) => scope,
            Err(problem) => return self.end_try(None, problem).await,
        };
        if op.state == OperationState::RollingBack
            && !self.same_cluster(op, instance, &scope).await?
        {
            return Ok(());
        }
        self.must_go_on()?;
        let Some(results) = self.perform_all(op, &scope, steps).await? else {
            return Ok(());
        };
        for (step, _) in &results.done {
            if self.edge(op, *step, Edge::After).await? {
                return Ok(());
            }
        }
        Box::pin(self.record_results(op, &scope, results)).await
    }

    /// Before the first undo step: another cluster would have nothing of ours, and all would seem undone.
    /// A forward try has looked when it planned. `false`: the turn is over.
    async fn same_cluster(
        &mut self,
        op: &VnfLcmOpOcc,
        instance: &VnfInstance,
        scope: &Scope,
    ) -> Result<bool, Stop> {
        if self.cluster_known == Some(op.state_entered) {
            return Ok(true);
        }
        let platform = self.runner.ports.platform.clone();
        let request = SurveyRequest::default();
        let survey = tokio::time::timeout(STEP_TIMEOUT, platform.survey(scope, &request));
        let cluster = vec!["cluster".to_owned()];
        let Some(surveyed) = self.answered(cluster, Phase::Work, true, survey).await? else {
            return Ok(false);
        };
        let obstacles = match surveyed {
            Ok(SurveyOutcome::Clear(survey)) => {
                let inputs = Inputs {
                    op,
                    instance,
                    manifests: &[],
                    recorded: &[],
                    hooks: &[],
                };
                if let Err(problem) = check_cluster(&inputs, &survey) {
                    self.end_try(None, problem).await?;
                    return Ok(false);
                }
                self.cluster_known = Some(op.state_entered);
                return Ok(true);
            }
            Ok(SurveyOutcome::Blocked(obstacles)) => obstacles,
            Err(_) => vec![super::waits::unreachable(format!(
                "no answer within {} s",
                STEP_TIMEOUT.as_secs()
            ))],
        };
        self.wait_for(op, obstacles, Phase::Work).await?;
        Ok(false)
    }

    /// Records the intents that are not recorded yet; `true` when something was written.
    async fn begin(&mut self, op: &VnfLcmOpOcc, steps: &[usize]) -> Result<bool, Stop> {
        let fresh = steps
            .iter()
            .any(|step| !matches!(state_of(op, *step), StepState::Started));
        if !fresh {
            return Ok(false);
        }
        let session = self.session().await?;
        self.decide(
            session,
            Command::Begin {
                at: self.now(),
                steps: steps.to_vec(),
            },
        )
        .await?;
        Ok(true)
    }

    /// Fires the faults of a step's edge; `true` when the turn is over.
    async fn edge(&mut self, op: &VnfLcmOpOcc, step: usize, edge: Edge) -> Result<bool, Stop> {
        let place = if op.state == OperationState::RollingBack {
            Place::UndoStep(step, edge)
        } else {
            Place::Step(step, edge)
        };
        let Some(board) = self.runner.ports.faults.clone() else {
            return Ok(false);
        };
        match board.fire(op, place) {
            Fired::Nothing => Ok(false),
            Fired::Fail(problem) => {
                self.end_try(None, problem).await?;
                Ok(true)
            }
            Fired::Hold(fault) => {
                self.hold(&fault).await?;
                // A cancel that came while it was held takes hold before anything else is done.
                let session = self.session().await?;
                Ok(session
                    .op()
                    .is_none_or(|now| now.cancel.is_some() || now.state != op.state))
            }
        }
    }

    /// Performs the steps together; `None` when a cancel dropped them.
    async fn perform_all(
        &mut self,
        op: &VnfLcmOpOcc,
        scope: &Scope,
        steps: &[usize],
    ) -> Result<Option<Results>, Stop> {
        let runner = self.runner.clone();
        let calls = futures::stream::iter(steps.iter().copied().map(|step| {
            let runner = runner.clone();
            async move {
                let call = async {
                    let action = action_of(op, step);
                    if let Some(result) = runner.register(scope, op, action).await {
                        return result;
                    }
                    let platform = &runner.ports.platform;
                    platform.perform(scope, action, &runner.bodies).await
                };
                let result = tokio::time::timeout(STEP_TIMEOUT, call).await;
                (
                    step,
                    result.unwrap_or_else(|_| StepResult::Unknown {
                        why: format!("no answer within {} s", STEP_TIMEOUT.as_secs()),
                    }),
                )
            }
        }))
        .buffer_unordered(WAVE_WIDTH);
        let all = calls.fold(
            Results::default(),
            |mut results, (step, result)| async move {
                match result {
                    StepResult::Done(outcome) => results.done.push((step, outcome)),
                    StepResult::NotDone(obstacles) => {
                        results
                            .obstacles
                            .extend(obstacles.into_iter().map(|o| (step, o)));
                    }
                    StepResult::Unknown { why } => results.unknown.push((step, why)),
                }
                results
            },
        );
        let subjects = steps.iter().map(|step| action_of(op, *step).subject());
        // A look is done again whenever it is needed, so that a graceful cancel may drop it.
        let only_looks = steps.iter().all(|step| is_look(action_of(op, *step)));
        self.answered(subjects.collect(), Phase::Work, only_looks, all)
            .await
    }

    async fn record_results(
        &mut self,
        op: &VnfLcmOpOcc,
        scope: &Scope,
        mut results: Results,
    ) -> Result<(), Stop> {
        results.done.sort_by_key(|(step, _)| *step);
        let mut session = self.session().await?;
        let at = self.now();
        for (step, outcome) in results.done {
            if let Err(refused) = session.decide(Command::Finish { at, step, outcome }) {
                return self.late(refused);
            }
        }
        let mut obstacles = results.obstacles;
        for (step, why) in results.unknown {
            if self.patience.is_news(step, &why)
                && let Err(refused) = session.decide(Command::LoseAnswer {
                    at,
                    step,
                    why: why.clone(),
                })
            {
                return self.late(refused);
            }
            obstacles.push((step, super::waits::unreachable(why)));
        }
        if obstacles.is_empty() {
            if let Err(refused) = session.decide(Command::Obstruct {
                at,
                obstacles: Vec::new(),
            }) {
                return self.late(refused);
            }
            self.patience.forget();
            if let Err(refused) = self.go_ahead(&mut session) {
                return self.late(refused);
            }
            return self.write(session, Unit::default()).await;
        }
        obstacles.sort_by_key(|(step, _)| *step);
        let after = session.op().cloned();
        self.write(session, Unit::default()).await?;
        let op = after.as_ref().unwrap_or(op);
        let watched = obstacles
            .first()
            .map(|(step, _)| (scope, action_of(op, *step)));
        let obstacles = obstacles
            .into_iter()
            .map(|(step, obstacle)| (Some(step), obstacle))
            .collect();
        self.wait_in(op, obstacles, Phase::Work, watched).await
    }
}

pub(super) fn action_of(op: &VnfLcmOpOcc, step: usize) -> &Action {
    if op.state == OperationState::RollingBack {
        &op.undo[step].undo.step.action
    } else {
        &op.steps[step].step.action
    }
}

/// Whether an action looks at what is and asks for no change of it.
pub(super) fn is_look(action: &Action) -> bool {
    matches!(
        action,
        Action::AwaitReady { .. }
            | Action::AwaitGone { .. }
            | Action::TakeInventory { .. }
            | Action::Verify { .. }
    )
}

pub(super) fn state_of(op: &VnfLcmOpOcc, step: usize) -> &StepState {
    if op.state == OperationState::RollingBack {
        &op.undo[step].state
    } else {
        &op.steps[step].state
    }
}

fn needs_other_version(kind: &serde_json::Value) -> Problem {
    Problem::new(
        500,
        format!(
            "the plan holds a step of kind {}, which this version of Cairn does not know; go on with the version that wrote it, or fail the operation",
            kind["kind"]
        ),
    )
}
