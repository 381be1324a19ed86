//! Beginning an operation.

use super::instance::product_of;
use super::{Executor, invalid, refused};
use crate::unit::Session;
use cairn_domain::ids::{VnfInstanceId, VnfLcmOpOccId, VnfPkgId};
use cairn_domain::lcm_op_occ::VnfLcmOpOccCommand;
use cairn_domain::operation::{AdditionalParams, Levels, Operation, Params};
use cairn_domain::planning::autoscaled;
use cairn_domain::ports::{Accepted, Caller, CommandError, PortError, Reliance, Request, Unit};
use cairn_domain::problem::Problem;
use cairn_domain::request::{Package, resolve, seal_request};
use cairn_domain::secret::SecretRef;
use cairn_domain::vnf_instance::{VnfInstance, VnfProduct};
use cairn_domain::vnfd::Vnfd;
use serde_json::{Map, Value};
use tracing::warn;

impl Executor {
    pub(super) async fn start_operation(
        &self,
        caller: &Caller,
        request: &Request,
        id: &VnfInstanceId,
        operation: Operation,
        body: &Map<String, Value>,
        if_match: Option<u64>,
    ) -> Result<Accepted, CommandError> {
        let (instance, version) = self.instance(caller, id, if_match).await?;
        let changes_vnfd = operation == Operation::ModifyInfo && body.contains_key("vnfdId");
        instance
            .check(operation, changes_vnfd)
            .map_err(|r| refused(r.into()))?;
        let (product, vnfd) = self.package_of(&instance, operation, body).await?;
        let mut body = body.clone();
        let ids = &self.ports.ids;
        let secrets = seal_request(&mut body, &vnfd.sensitive, &mut || SecretRef(ids.fresh()));
        let package = Package {
            product: &product,
            vnfd: &vnfd,
        };
        let (params, mut additional) =
            resolve(operation, &instance, package, &body).map_err(CommandError::Invalid)?;
        remember_def_files(&instance, &params, &mut additional);
        self.check_outside(&instance, &params, &additional, &body)
            .await?;
        let before = instance.info_now();
        let patched = match &params {
            Params::ModifyInfo { changes } => Some(instance.info_after(changes)),
            _ => None,
        };
        let op = VnfLcmOpOccId::parse(ids.fresh())
            .map_err(|e| CommandError::Port(PortError::Corrupt(e.to_string())))?;
        let start = VnfLcmOpOccCommand::Start {
            at: self.ports.clock.now(),
            id: op.clone(),
            vnf_instance_id: id.clone(),
            by: caller.by.clone(),
            tenant: caller.tenant.clone(),
            request: body,
            params,
            additional,
            inventory: instance.vnfcs().to_vec(),
        };
        let mut session = Session::begin(op.clone(), instance, version);
        session.decide(start).map_err(refused)?;
        let accepted = Accepted::Operation(op);
        let after = patched.or_else(|| session.instance().map(VnfInstance::info_now));
        let mut relies_on = after.map_or_else(Vec::new, |after| {
            self.ports.targets.begins_to_rely_on(&before, &after)
        });
        if operation == Operation::ChangeVnfpkg {
            relies_on.push(Reliance::Package(product.vnf_pkg_id));
        }
        let unit = Unit {
            secrets,
            relies_on,
            ..self.keyed(caller, request, &accepted)
        };
        self.write(session.into_unit(unit), accepted).await
    }

    /// The descriptor, or what stands for it where the operation works on the record alone: a VNF must not be there
    /// for ever because its package cannot be read any more.
    async fn vnfd_for(
        &self,
        operation: Operation,
        instance: &VnfInstance,
        body: &Map<String, Value>,
    ) -> Result<Vnfd, CommandError> {
        match self.vnfd_of(instance).await {
            Err(CommandError::Port(PortError::Corrupt(why)))
                if operation == Operation::Terminate =>
            {
                warn!(vnf_instance.id = %instance.id, %why, "terminating without the descriptor");
                Ok(Vnfd::unreadable(&instance.product, secret_names(body)))
            }
            other => other,
        }
    }

    /// The package that the operation works with: that of the instance, or the one that it is changed to. What is
    /// secret in either is secret in the request.
    async fn package_of(
        &self,
        instance: &VnfInstance,
        operation: Operation,
        body: &Map<String, Value>,
    ) -> Result<(VnfProduct, Vnfd), CommandError> {
        let own = self.vnfd_for(operation, instance, body).await?;
        if operation != Operation::ChangeVnfpkg {
            return Ok((instance.product.clone(), own));
        }
        let named = body.get("vnfdId").and_then(Value::as_str);
        let (record, mut next) = self.enabled_package(named.unwrap_or_default()).await?;
        let product = product_of(&record, &next)?;
        next.sensitive.extend(own.sensitive);
        Ok((product, next))
    }

    async fn vnfd_of(&self, instance: &VnfInstance) -> Result<Vnfd, CommandError> {
        let id = &instance.product.vnf_pkg_id;
        let record = self.ports.packages.get(id).await?;
        record.and_then(|record| record.vnfd).ok_or_else(|| {
            CommandError::Port(PortError::Corrupt(format!(
                "the package {id} of VNF instance {} is gone",
                instance.id
            )))
        })
    }

    /// What can be judged from other records, before anything begins.
    async fn check_outside(
        &self,
        instance: &VnfInstance,
        params: &Params,
        additional: &AdditionalParams,
        body: &Map<String, Value>,
    ) -> Result<(), CommandError> {
        match params {
            Params::Instantiate { levels, .. } => {
                let vims = body.get("vimConnectionInfo").and_then(Value::as_object);
                self.ports.targets.check(vims).await.map_err(invalid)?;
                let pkg = &instance.product.vnf_pkg_id;
                self.check_manifests(pkg, levels, additional).await
            }
            Params::ChangeVnfpkg {
                product,
                levels,
                info,
                ..
            } => {
                self.check_patched_vims(instance, info).await?;
                self.check_manifests(&product.vnf_pkg_id, levels, additional)
                    .await
            }
            Params::Scale { levels, .. } | Params::ScaleToLevel { levels } => {
                let pkg = &instance.product.vnf_pkg_id;
                let files = additional.def_files.as_deref();
                let manifests = self
                    .ports
                    .packages
                    .manifests(pkg, files)
                    .await
                    .map_err(invalid)?;
                refuse_autoscaled(instance, levels, &manifests)
            }
            Params::ModifyInfo { changes } => {
                if let Some(vnfd_id) = changes.get("vnfdId").and_then(Value::as_str) {
                    self.enabled_package(vnfd_id).await?;
                }
                self.check_patched_vims(instance, changes).await
            }
            Params::Heal { .. } | Params::Terminate { .. } => Ok(()),
        }
    }

    /// The manifests that are named are in the package, and they have the workload of every VDU.
    async fn check_manifests(
        &self,
        pkg: &VnfPkgId,
        levels: &Levels,
        additional: &AdditionalParams,
    ) -> Result<(), CommandError> {
        let files = additional.def_files.as_deref();
        let manifests = self.ports.packages.manifests(pkg, files).await;
        refuse_missing_workloads(levels, &manifests.map_err(invalid)?)
    }

    /// A PATCH of `vimConnectionInfo` is judged by what it leads to, for it may name single members only.
    async fn check_patched_vims(
        &self,
        instance: &VnfInstance,
        changes: &Map<String, Value>,
    ) -> Result<(), CommandError> {
        if !changes.contains_key("vimConnectionInfo") {
            return Ok(());
        }
        let after = Value::Object(instance.info_after(changes).vim_connection_info);
        let whole = Map::from_iter([("vimConnectionInfo".to_owned(), after.clone())]);
        cairn_domain::request::check_vims(&whole).map_err(CommandError::Invalid)?;
        self.ports
            .targets
            .check(after.as_object())
            .await
            .map_err(invalid)
    }
}

/// Every parameter that is not read here: which of them are secret only the descriptor could say.
fn secret_names(body: &Map<String, Value>) -> Vec<String> {
    let given = body.get("additionalParams").and_then(Value::as_object);
    given
        .into_iter()
        .flat_map(Map::keys)
        .filter(|name| !matches!(name.as_str(), "namespace" | "lcm-kubernetes-def-files"))
        .cloned()
        .collect()
}

/// TERMINATE, HEAL and SCALE work on what INSTANTIATE made, in its order; another package has other manifests.
fn remember_def_files(instance: &VnfInstance, params: &Params, additional: &mut AdditionalParams) {
    if additional.def_files.is_none()
        && params.operation() != Operation::ChangeVnfpkg
        && let Some(info) = &instance.instantiated
    {
        additional.def_files.clone_from(&info.def_files);
    }
}

fn refuse_missing_workloads(
    levels: &Levels,
    manifests: &[cairn_domain::ports::Manifest],
) -> Result<(), CommandError> {
    for (vdu, workload) in &levels.workloads {
        let found = manifests.iter().any(|m| {
            m.value["kind"]
                .as_str()
                .is_some_and(cairn_domain::planning::is_workload)
                && m.value["metadata"]["name"] == workload.as_str()
        });
        if !found {
            return Err(CommandError::Invalid(Problem::new(
                422,
                format!(
                    "lcm-kubernetes-def-files: none of the manifests has the workload {workload:?} of VDU {vdu}"
                ),
            )));
        }
    }
    Ok(())
}

fn refuse_autoscaled(
    instance: &VnfInstance,
    levels: &Levels,
    manifests: &[cairn_domain::ports::Manifest],
) -> Result<(), CommandError> {
    let before = instance
        .instantiated
        .as_ref()
        .map(|info| &info.levels.vdu_replicas);
    let scaled = levels
        .workloads
        .iter()
        .filter(|(vdu, _)| before.and_then(|b| b.get(*vdu)) != levels.vdu_replicas.get(*vdu));
    let targets = autoscaled(manifests);
    for (_, workload) in scaled {
        let hit = targets
            .iter()
            .find(|(target, _)| target.split('/').next_back() == Some(workload));
        if let Some((target, autoscaler)) = hit {
            return Err(CommandError::NotNow(format!(
                "{target} is scaled by HorizontalPodAutoscaler/{autoscaler} of the package; change the autoscaler instead"
            )));
        }
    }
    Ok(())
}
