//! Every step done twice, as a process does that goes on from a journal in which the result is missing.

use async_trait::async_trait;
use cairn_domain::lcm_op_occ::plan::{Action, StepResult, Vnfc};
use cairn_domain::object::ObjectRef;
use cairn_domain::ports::{
    Bodies, ContainerPlatform, PortError, Scope, SurveyOutcome, SurveyRequest,
};
use cairn_domain::vim::FoundAccess;
use cairn_domain::waits::Obstacle;
use std::sync::Arc;

/// A platform that does what is done once more, and answers what came of that.
pub struct Twice(pub Arc<dyn ContainerPlatform>);

#[async_trait]
impl ContainerPlatform for Twice {
    async fn survey(&self, scope: &Scope, request: &SurveyRequest) -> SurveyOutcome {
        self.0.survey(scope, request).await
    }

    async fn perform(&self, scope: &Scope, action: &Action, bodies: &dyn Bodies) -> StepResult {
        match self.0.perform(scope, action, bodies).await {
            StepResult::Done(_) => self.0.perform(scope, action, bodies).await,
            other @ (StepResult::NotDone(_) | StepResult::Unknown { .. }) => other,
        }
    }

    async fn changed(&self, scope: &Scope, action: &Action, at_most_ms: u64) {
        self.0.changed(scope, action, at_most_ms).await;
    }

    async fn access_in(&self, scope: &Scope, secret: &str) -> Result<FoundAccess, Vec<Obstacle>> {
        self.0.access_in(scope, secret).await
    }

    async fn inventory(
        &self,
        scope: &Scope,
        workloads: &[(String, ObjectRef)],
    ) -> Result<Vec<Vnfc>, PortError> {
        self.0.inventory(scope, workloads).await
    }
}
