//! Between points 2 and 3: look at the cluster, then make the plan, or look over the one there is.

use super::work::{Backoff, Stop, Work};
use crate::bodies::Keeper;
use crate::unit::Session;
use cairn_domain::hook::Hook;
use cairn_domain::ids::VnfPkgId;
use cairn_domain::lcm_op_occ::{VnfLcmOpOcc, VnfLcmOpOccCommand as Command};
use cairn_domain::object::Uid;
use cairn_domain::operation::{OperationState, Params};
use cairn_domain::planning::{Inputs, check_cluster, plan, recheck, survey_request};
use cairn_domain::ports::{
    Bodies, Manifest, PortError, PortResult, Scope, Survey, SurveyOutcome, Unit,
};
use cairn_domain::problem::Problem;
use cairn_domain::vnf_instance::VnfInstance;
use cairn_domain::waits::Phase;
use serde_json::Value;
use std::time::Duration;
use tracing::warn;

/// How long one survey may take. Its calls have time-outs of their own; this is for a cluster that puts each of them
/// off, which must not look like one that does not answer.
const SURVEY_TIMEOUT: Duration = Duration::from_mins(10);

impl Work {
    pub(super) async fn plan(
        &mut self,
        op: &VnfLcmOpOcc,
        instance: &VnfInstance,
    ) -> Result<(), Stop> {
        let manifests = match self.manifests(op, instance).await? {
            Ok(manifests) => manifests,
            Err(problem) => return self.end_try(None, problem).await,
        };
        let recorded = self.recorded(op, instance).await?;
        let hooks = self.hooks(op, instance).await?;
        let inputs = Inputs {
            op,
            instance,
            manifests: &manifests,
            recorded: &recorded,
            hooks: &hooks,
        };
        let scope = match self.scope(op, instance, inputs.namespace()).await? {
            Ok(scope) => scope,
            Err(problem) => return self.end_try(None, problem).await,
        };
        let request = survey_request(&inputs);
        let platform = self.runner.ports.platform.clone();
        let survey = tokio::time::timeout(SURVEY_TIMEOUT, platform.survey(&scope, &request));
        // It writes nothing, so that a graceful cancel may drop it too.
        let cluster = vec!["cluster".to_owned()];
        let Some(surveyed) = self.answered(cluster, Phase::Checks, true, survey).await? else {
            return Ok(());
        };
        match surveyed {
            Ok(SurveyOutcome::Clear(survey)) => self.fix(op, &inputs, &survey).await,
            Ok(SurveyOutcome::Blocked(obstacles)) => {
                self.wait_for(op, obstacles, Phase::Checks).await
            }
            Err(_) => {
                let obstacle = super::waits::unreachable(format!(
                    "the checks did not end within {} s",
                    SURVEY_TIMEOUT.as_secs()
                ));
                self.wait_for(op, vec![obstacle], Phase::Checks).await
            }
        }
    }

    async fn fix(
        &mut self,
        op: &VnfLcmOpOcc,
        inputs: &Inputs<'_>,
        survey: &Survey,
    ) -> Result<(), Stop> {
        if let Err(problem) = check_cluster(inputs, survey) {
            return self.end_try(None, problem).await;
        }
        let mut session = self.load().await?;
        let at = self.now();
        let revise = op
            .plan
            .as_ref()
            .is_none_or(|known| known.patches != inputs.instance.patches);
        let mut unit = Unit::default();
        if let Err(refused) = session.decide(Command::Obstruct {
            at,
            obstacles: Vec::new(),
        }) {
            return self.late(refused);
        }
        if revise {
            let blobs = self.runner.ports.blobs.clone();
            let mut keeper = Keeper::new(&*blobs);
            let made = plan(inputs, survey, &mut |value| keeper.keep(value));
            unit.blobs = keeper.into_blobs();
            match made {
                Ok(plan) => {
                    if let Err(refused) = session.decide(Command::FixPlan { at, plan }) {
                        return self.late(refused);
                    }
                }
                Err(problem) => return self.end_try(None, problem).await,
            }
        }
        if op.plan.is_some() {
            let reopened = session.op().map_or_else(Vec::new, |op| recheck(op, survey));
            if let Err(refused) = session.decide(Command::RecheckPlan { at, reopened }) {
                return self.late(refused);
            }
        }
        if let Err(refused) = self.go_ahead(&mut session) {
            return self.late(refused);
        }
        self.write(session, unit).await
    }

    /// The manifests of the package, for the operation that needs them.
    async fn manifests(
        &self,
        op: &VnfLcmOpOcc,
        instance: &VnfInstance,
    ) -> Result<Result<Vec<Manifest>, Problem>, Stop> {
        let pkg = match &op.params {
            Params::Instantiate { .. } => &instance.product.vnf_pkg_id,
            Params::ChangeVnfpkg { product, .. } => &product.vnf_pkg_id,
            Params::Scale { .. }
            | Params::ScaleToLevel { .. }
            | Params::Heal { .. }
            | Params::ModifyInfo { .. }
            | Params::Terminate { .. } => return Ok(Ok(Vec::new())),
        };
        let files = op.additional.def_files.as_deref();
        let mut pause = Backoff::new();
        loop {
            match self.runner.ports.packages.manifests(pkg, files).await {
                Ok(manifests) => return Ok(Ok(manifests)),
                Err(PortError::Unavailable(why)) => {
                    warn!(%why, "the package cannot be read now");
                    self.rest(pause.next()).await?;
                }
                Err(PortError::Refused(problem)) => return Ok(Err(problem)),
                Err(
                    failed @ (PortError::Corrupt(_) | PortError::Conflict(_) | PortError::Fenced),
                ) => {
                    return Ok(Err(Problem::new(500, failed.to_string())));
                }
            }
        }
    }

    /// The hooks of the package; none where it cannot be read, for then only a TERMINATE goes on.
    async fn hooks(&self, op: &VnfLcmOpOcc, instance: &VnfInstance) -> Result<Vec<Hook>, Stop> {
        let pkg = package_of(op, instance);
        self.read(|| async {
            match self.runner.ports.packages.get(pkg).await {
                Ok(record) => Ok(record
                    .and_then(|record| record.vnfd)
                    .map_or_else(Vec::new, |vnfd| vnfd.hooks)),
                Err(PortError::Corrupt(why)) => {
                    warn!(%pkg, %why, "the package cannot be read: its hooks are not run");
                    Ok(Vec::new())
                }
                Err(failed) => Err(failed),
            }
        })
        .await
    }

    /// The recorded manifests of the instance's objects, for a HEAL of all.
    async fn recorded(&self, op: &VnfLcmOpOcc, instance: &VnfInstance) -> Result<Vec<Value>, Stop> {
        let all = matches!(&op.params, Params::Heal { vnfcs, .. } if vnfcs.is_empty());
        let Some(info) = instance.instantiated.as_ref().filter(|_| all) else {
            return Ok(Vec::new());
        };
        let mut recorded = Vec::with_capacity(info.objects.len());
        for managed in &info.objects {
            recorded.push(
                self.read(|| self.runner.bodies.json(&managed.manifest))
                    .await?,
            );
        }
        Ok(recorded)
    }

    /// Reads from our own database, again and again while it is not there.
    pub(super) async fn read<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, Stop>
    where
        F: Future<Output = PortResult<T>>,
    {
        let mut pause = Backoff::new();
        loop {
            match call().await {
                Ok(read) => return Ok(read),
                Err(PortError::Unavailable(why)) => {
                    warn!(%why, "the database cannot be read now");
                    self.rest(pause.next()).await?;
                }
                Err(failed) => return Err(Stop::Unworkable(failed.to_string())),
            }
        }
    }

    /// For whom and where the platform works.
    pub(super) async fn scope(
        &self,
        op: &VnfLcmOpOcc,
        instance: &VnfInstance,
        namespace: String,
    ) -> Result<Result<Scope, Problem>, Stop> {
        let access = match self.access(instance).await? {
            Ok(access) => access,
            Err(problem) => return Ok(Err(problem)),
        };
        let pkg = package_of(op, instance);
        let digest = self.read(|| self.package_digest(pkg)).await?;
        Ok(Ok(Scope {
            access,
            instance: instance.id.clone(),
            operation: op.id.clone(),
            known_operations: instance.operations.clone(),
            recorded_uids: recorded_uids(instance, op),
            package_digest: digest,
            namespace,
            take_over: op.additional.take_over,
            since: op.state_entered,
            look_only: false,
        }))
    }

    /// The digest that objects are marked with; none where the package cannot be read. What needs its content has
    /// said so by then.
    async fn package_digest(&self, pkg: &VnfPkgId) -> PortResult<String> {
        match self.runner.ports.packages.get(pkg).await {
            Ok(record) => Ok(record.and_then(|r| r.checksum).unwrap_or_default()),
            Err(PortError::Corrupt(why)) => {
                warn!(%pkg, %why, "the package cannot be read");
                Ok(String::new())
            }
            Err(failed) => Err(failed),
        }
    }

    /// A session whose operation is still where it was when the call began.
    pub(super) async fn session(&self) -> Result<Session, Stop> {
        self.load().await
    }
}

/// The package that an operation works with: on the way forward to another one, that.
fn package_of<'a>(op: &'a VnfLcmOpOcc, instance: &'a VnfInstance) -> &'a VnfPkgId {
    match &op.params {
        Params::ChangeVnfpkg { product, .. } if op.state == OperationState::Processing => {
            &product.vnf_pkg_id
        }
        _ => &instance.product.vnf_pkg_id,
    }
}

/// The UIDs that the records of an instance and its operation name.
pub(crate) fn recorded_uids(instance: &VnfInstance, op: &VnfLcmOpOcc) -> Vec<Uid> {
    let recorded = instance
        .instantiated
        .as_ref()
        .map_or(&instance.leftovers, |info| &info.objects);
    let made = op.known_objects();
    recorded
        .iter()
        .chain(&instance.leftovers)
        .chain(&made)
        .filter_map(|managed| managed.uid.clone())
        .collect()
}
