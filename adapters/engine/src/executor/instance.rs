//! Creating and deleting identifiers.

use super::{Executor, invalid};
use crate::executor::refused;
use cairn_domain::history::{EventBody, StreamId};
use cairn_domain::ids::{VnfInstanceId, VnfdId};
use cairn_domain::merge_patch::merge_members;
use cairn_domain::ports::{
    Accepted, Append, Caller, CommandError, PackageRecord, Reliance, Request, StateAfter, Unit,
};
use cairn_domain::problem::Problem;
use cairn_domain::request::seal_request;
use cairn_domain::secret::SecretRef;
use cairn_domain::vnf_instance::{self, VnfInfo, VnfInstance, VnfInstanceCommand, VnfProduct};
use cairn_domain::vnfd::Vnfd;
use serde_json::{Map, Value};

impl Executor {
    pub(super) async fn create_instance(
        &self,
        caller: &Caller,
        request: &Request,
        body: &Map<String, Value>,
    ) -> Result<Accepted, CommandError> {
        let named = body
            .get("vnfdId")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let (record, vnfd) = self.enabled_package(named).await?;
        let mut body = body.clone();
        let ids = &self.ports.ids;
        let secrets = seal_request(&mut body, &vnfd.sensitive, &mut || SecretRef(ids.fresh()));
        let id = VnfInstanceId::parse(ids.fresh()).map_err(|e| fresh_id(&e))?;
        let create = VnfInstanceCommand::Create {
            at: self.ports.clock.now(),
            id: id.clone(),
            by: caller.by.clone(),
            tenant: caller.tenant.clone(),
            product: product_of(&record, &vnfd)?,
            info: initial_info(&vnfd, &body),
        };
        let accepted = Accepted::Instance(id.clone());
        let unit = Unit {
            secrets,
            relies_on: vec![Reliance::Package(record.id.clone())],
            ..self.keyed(caller, request, &accepted)
        };
        self.write(decided(&id, None, 0, create, unit)?, accepted)
            .await
    }

    pub(super) async fn delete_instance(
        &self,
        caller: &Caller,
        request: &Request,
        id: &VnfInstanceId,
        if_match: Option<u64>,
    ) -> Result<Accepted, CommandError> {
        let (instance, version) = self.instance(caller, id, if_match).await?;
        let delete = VnfInstanceCommand::Delete {
            at: self.ports.clock.now(),
            by: caller.by.clone(),
            tenant: caller.tenant.clone(),
        };
        let unit = self.keyed(caller, request, &Accepted::Done);
        self.write(
            decided(id, Some(instance), version, delete, unit)?,
            Accepted::Done,
        )
        .await
    }

    /// A living instance of the caller's tenant, at the version that the caller expects.
    pub(super) async fn instance(
        &self,
        caller: &Caller,
        id: &VnfInstanceId,
        if_match: Option<u64>,
    ) -> Result<(VnfInstance, u64), CommandError> {
        let (instance, version) = self
            .ports
            .log
            .instance(id)
            .await?
            .filter(|(instance, _)| !instance.deleted && instance.tenant == caller.tenant)
            .ok_or_else(|| CommandError::NotFound(vnf_instance::Rejection::NotFound.to_string()))?;
        match if_match {
            Some(expected) if expected != version => Err(CommandError::Changed { is: version }),
            Some(_) | None => Ok((instance, version)),
        }
    }

    /// The ONBOARDED and ENABLED package of a descriptor.
    pub(super) async fn enabled_package(
        &self,
        vnfd_id: &str,
    ) -> Result<(PackageRecord, Vnfd), CommandError> {
        let unknown = |detail: String| CommandError::Invalid(Problem::new(422, detail));
        let id = VnfdId::parse(vnfd_id).map_err(|e| unknown(format!("vnfdId: {e}")))?;
        let record = self
            .ports
            .packages
            .by_vnfd(&id)
            .await
            .map_err(invalid)?
            .ok_or_else(|| {
                unknown(format!(
                    "vnfdId: no onboarded package has the VNFD {id}; onboard it first"
                ))
            })?;
        if !record.enabled {
            return Err(unknown(format!(
                "vnfdId: the package {} of VNFD {id} is DISABLED; enable it first",
                record.id
            )));
        }
        let vnfd = record.vnfd.clone().ok_or_else(|| {
            cairn_domain::ports::PortError::Corrupt(format!(
                "package {} is ONBOARDED without a VNFD",
                record.id
            ))
        })?;
        Ok((record, vnfd))
    }
}

fn fresh_id(error: &cairn_domain::ids::InvalidId) -> CommandError {
    CommandError::Port(cairn_domain::ports::PortError::Corrupt(error.to_string()))
}

/// What an instance takes from its package.
pub(super) fn product_of(record: &PackageRecord, vnfd: &Vnfd) -> Result<VnfProduct, CommandError> {
    Ok(VnfProduct {
        vnfd_id: VnfdId::parse(vnfd.vnfd_id.as_str()).map_err(|e| fresh_id(&e))?,
        vnf_pkg_id: record.id.clone(),
        vnf_provider: vnfd.provider.clone(),
        vnf_product_name: vnfd.product_name.clone(),
        vnf_software_version: vnfd.software_version.clone(),
        vnfd_version: vnfd.descriptor_version.clone(),
    })
}

/// Metadata of the request over the defaults of the VNFD (SOL003 5.5.2.3).
fn initial_info(vnfd: &Vnfd, body: &Map<String, Value>) -> VnfInfo {
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut metadata = vnfd.metadata.clone();
    if let Some(Value::Object(given)) = body.get("metadata") {
        merge_members(&mut metadata, given);
    }
    VnfInfo {
        vnf_instance_name: text("vnfInstanceName"),
        vnf_instance_description: text("vnfInstanceDescription"),
        metadata,
        extensions: vnfd.extensions.clone(),
        vnf_configurable_properties: vnfd.vnf_configurable_properties.clone(),
        vim_connection_info: Map::new(),
    }
}

/// The unit of a command that concerns the instance alone.
fn decided(
    id: &VnfInstanceId,
    instance: Option<VnfInstance>,
    version: u64,
    command: VnfInstanceCommand,
    unit: Unit,
) -> Result<Unit, CommandError> {
    let events = vnf_instance::decide(instance.as_ref(), command)
        .map_err(|rejection| refused(rejection.into()))?;
    let after = events.iter().fold(instance, vnf_instance::evolve);
    let mut unit = unit;
    if let Some(after) = after {
        unit.appends.push(Append {
            stream: StreamId::VnfInstance(id.clone()),
            expected_version: version,
            vnf_instance_id: Some(id.clone()),
            events: events.into_iter().map(EventBody::VnfInstance).collect(),
            state: StateAfter::VnfInstance(Box::new(after)),
        });
    }
    Ok(unit)
}
