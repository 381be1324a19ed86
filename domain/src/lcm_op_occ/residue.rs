//! What stays behind on purpose, as `Kind/name: why`.

use super::VnfLcmOpOcc;
use super::plan::{Action, Outcome, StepState};
use super::undo;

impl VnfLcmOpOcc {
    /// Of what was done: kept by plan, or found when it was waited for.
    pub(super) fn kept(&self) -> Vec<String> {
        let mut kept = self
            .plan
            .as_ref()
            .map_or_else(Vec::new, |plan| plan.kept.clone());
        let deleted = self.steps.iter().filter(|log| log.in_effect);
        let deleted = deleted.filter(|log| matches!(log.step.action, Action::Delete { .. }));
        kept.extend(deleted.flat_map(|log| log.step.residue.clone()));
        kept.extend(found(
            self.steps
                .iter()
                .map(|log| (log.step.action.subject(), &log.state)),
        ));
        kept
    }

    /// Of what was undone: found when it was waited for, not to be undone, or made by what was undone.
    pub(super) fn kept_by_rollback(&self) -> Vec<String> {
        let mut kept = found(
            self.undo
                .iter()
                .map(|log| (log.undo.step.action.subject(), &log.state)),
        );
        kept.extend(undo::impossible(self));
        for (index, log) in self.steps.iter().enumerate() {
            let made = matches!(log.step.action, Action::Apply { .. });
            if made && log.touched && !self.was_refused(index) {
                kept.extend(log.step.residue.clone());
            }
        }
        kept
    }
}

fn found<'a>(states: impl Iterator<Item = (String, &'a StepState)>) -> Vec<String> {
    states
        .flat_map(|(subject, state)| match state {
            StepState::Done {
                outcome: Outcome::Gone { residue } | Outcome::VimsUnregistered { residue },
            } => residue.clone(),
            StepState::Done {
                outcome: Outcome::Kept { why },
            } => vec![format!("{subject}: {why}")],
            StepState::Done { .. }
            | StepState::Open
            | StepState::Started
            | StepState::Failed { .. } => Vec::new(),
        })
        .collect()
}
