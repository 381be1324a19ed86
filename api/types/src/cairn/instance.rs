//! An instance with what SOL003 has no word for.

use crate::public_url::PublicUrl;
use crate::vnf_instance::VnfInstanceDto;
use cairn_domain::ports::Row;
use cairn_domain::vnf_instance::VnfInstance;
use serde::Serialize;

/// The SOL003 instance, its provisioning state, its place in the log, and what failed operations left behind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CairnVnfInstance {
    #[serde(flatten)]
    instance: VnfInstanceDto,
    provisioning: ProvisioningDto,
    position: u64,
    leftovers: Vec<String>,
}

/// The state and what it is heading for, while something moves.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ProvisioningDto {
    state: &'static str,
    target: Option<&'static str>,
}

impl CairnVnfInstance {
    /// The instance as our own API shows it.
    #[must_use]
    pub fn of(row: &Row<VnfInstance>, url: &PublicUrl) -> Self {
        let Row {
            state: instance,
            version: _,
            position,
        } = row;
        let (state, target) = instance.provisioning();
        Self {
            instance: VnfInstanceDto::of(instance, url),
            provisioning: ProvisioningDto {
                state: state.as_str(),
                target: target.map(cairn_domain::vnf_instance::Provisioning::as_str),
            },
            position: *position,
            leftovers: instance
                .leftovers
                .iter()
                .map(|left| left.object.to_string())
                .collect(),
        }
    }
}
