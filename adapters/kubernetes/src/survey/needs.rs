//! What the plan will do, as far as somebody must allow it.

use super::permissions::{Needs, Of};
use super::{Found, hooks};
use crate::client::Session;
use crate::discovery::Located;
use crate::errors::CallError;
use crate::shape;
use cairn_domain::hook::ResultFrom;
use cairn_domain::ports::{Scope, SurveyRequest};

/// All that is done with what was surveyed.
pub(super) async fn of(
    session: &Session,
    scope: &Scope,
    request: &SurveyRequest,
    found: &[Found<'_>],
    scaled: &[Located],
) -> Result<Needs, CallError> {
    let mut needs = Needs::default();
    for item in found {
        let object = &item.at.object;
        needs.managing(
            &item.at.kind,
            object.namespace.as_deref(),
            &object.to_string(),
        );
    }
    // What is read beside manifests is removed.
    if !request.skip_dry_run {
        for (object, _) in &request.reads {
            if let Some(at) = session.locate(scope, object).await? {
                let namespace = at.object.namespace.as_deref();
                needs.managing(&at.kind, namespace, &object.to_string());
            }
        }
    }
    for at in scaled {
        needs.scaling(
            &at.kind,
            at.object.namespace.as_deref(),
            &at.object.to_string(),
        );
    }
    // Pods are followed through ReplicaSets, for inventories and for what a wait is told.
    let seen = [
        session.builtin("v1", "Pod").await?,
        session.builtin("apps/v1", "ReplicaSet").await?,
    ];
    let running = found
        .iter()
        .map(|item| &item.at)
        .filter(|at| shape::template(&at.kind).is_some())
        .map(|at| &at.object);
    let known = request.workloads.iter().map(|(_, workload)| workload);
    for workload in running.chain(known).chain(&request.scaled) {
        let namespace = workload.namespace.as_deref().unwrap_or(&scope.namespace);
        for kind in &seen {
            needs.watching(kind, Some(namespace), &workload.to_string());
        }
        if request.evicts {
            let [pods, _] = &seen;
            needs.evicting(pods, Some(namespace), &workload.to_string());
        }
    }
    Ok(needs)
}

/// What is done for hooks beside making their Jobs: Secrets are read for their results, and the Jobs of a VNF that is
/// terminated are removed, whichever operation left them.
pub(super) async fn of_hooks(
    session: &Session,
    scope: &Scope,
    request: &SurveyRequest,
    needs: &mut Needs,
) -> Result<(), CallError> {
    let namespace = Some(scope.namespace.as_str());
    for item in &request.items {
        let Some(hook) = &item.hook else { continue };
        let of = match &hook.result {
            ResultFrom::Secret(name) => Of::Named(name.clone()),
            ResultFrom::Optional | ResultFrom::TerminationMessage if hook.registers_vim => {
                Of::NotKnownYet
            }
            ResultFrom::Optional | ResultFrom::TerminationMessage => continue,
        };
        let secrets = session.builtin("v1", "Secret").await?;
        needs.reading(&secrets, namespace, of, &hooks::title(item));
    }
    if request.ends_hooks {
        let jobs = session.builtin("batch/v1", "Job").await?;
        needs.removing(&jobs, namespace, "the Jobs of hooks");
    }
    Ok(())
}
