//! Which cluster an instance runs on, and how it is reached.

use cairn_domain::ids::VimId;
use cairn_domain::ports::{PortError, PortResult, Vault, Vims};
use cairn_domain::problem::Problem;
use cairn_domain::vim::{
    ClusterAccess, Credential, SealedCredential, VimConnectionInfo, VimTarget,
};
use cairn_domain::vnf_instance::VnfInfo;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Resolves `vimConnectionInfo` to a cluster.
pub struct Targets {
    vims: Arc<dyn Vims>,
    vault: Arc<dyn Vault>,
    configured: Vec<VimId>,
}

impl Targets {
    /// `configured`: VIMs that the platform adapter was started with; the first is the default.
    pub fn new(vims: Arc<dyn Vims>, vault: Arc<dyn Vault>, configured: Vec<VimId>) -> Self {
        Self {
            vims,
            vault,
            configured,
        }
    }

    /// Where an instance runs: its first `vimConnectionInfo` entry, else the default VIM.
    ///
    /// # Errors
    ///
    /// `Refused` 422 for a VIM that is not known or not usable; `Unavailable` and `Corrupt` of the stores.
    pub async fn access(&self, info: &VnfInfo) -> PortResult<ClusterAccess> {
        let Some(entry) = info.vim_connection_info.values().next() else {
            return self.configured.first().cloned().map(ClusterAccess::Configured).ok_or_else(|| {
                PortError::Refused(Problem::new(
                    422,
                    "there is no default VIM; give vimConnectionInfo, or start with --kubeconfig",
                ))
            });
        };
        let entry = parse(entry)?;
        self.of(&entry).await
    }

    async fn of(&self, entry: &VimConnectionInfo) -> PortResult<ClusterAccess> {
        match target(entry)? {
            VimTarget::Direct {
                endpoint,
                ca_pem,
                credential,
            } => Ok(ClusterAccess::Direct {
                endpoint,
                ca_pem,
                credential: self.reveal(credential).await?,
            }),
            VimTarget::Registered(id) => self.registered(&id).await,
        }
    }

    async fn registered(&self, id: &VimId) -> PortResult<ClusterAccess> {
        if let Some(info) = self.vims.get(id).await? {
            return match target(&info)? {
                VimTarget::Direct {
                    endpoint,
                    ca_pem,
                    credential,
                } => Ok(ClusterAccess::Direct {
                    endpoint,
                    ca_pem,
                    credential: self.reveal(credential).await?,
                }),
                VimTarget::Registered(_) => Err(unknown(id)),
            };
        }
        if self.configured.contains(id) {
            return Ok(ClusterAccess::Configured(id.clone()));
        }
        Err(unknown(id))
    }

    async fn reveal(&self, sealed: SealedCredential) -> PortResult<Credential> {
        match sealed {
            SealedCredential::None => Ok(Credential::None),
            SealedCredential::BearerToken(token) => {
                Ok(Credential::BearerToken(self.vault.reveal(&token).await?))
            }
            SealedCredential::ClientCertificate { certificate, key } => {
                Ok(Credential::ClientCertificate {
                    certificate,
                    key: self.vault.reveal(&key).await?,
                })
            }
        }
    }

    /// Checks that every entry of a request without an endpoint names a VIM that is known.
    ///
    /// # Errors
    ///
    /// `Refused` 422 naming the VIM.
    pub async fn check(&self, entries: Option<&Map<String, Value>>) -> PortResult<()> {
        for entry in entries
            .into_iter()
            .flat_map(Map::values)
            .filter(|e| !e.is_null())
        {
            if let VimTarget::Registered(id) = target(&parse(entry)?)?
                && !self.configured.contains(&id)
                && self.vims.get(&id).await?.is_none()
            {
                return Err(unknown(&id));
            }
        }
        Ok(())
    }
}

fn parse(entry: &Value) -> PortResult<VimConnectionInfo> {
    VimConnectionInfo::parse(entry)
        .map_err(|e| PortError::Refused(Problem::new(422, e.to_string())))
}

fn target(info: &VimConnectionInfo) -> PortResult<VimTarget> {
    info.target()
        .map_err(|e| PortError::Refused(Problem::new(422, e.to_string())))
}

fn unknown(id: &VimId) -> PortError {
    PortError::Refused(Problem::new(
        422,
        format!(
            "vimConnectionInfo names VIM {id}, which is not registered; register it under /cairn/v1/vims, or give interfaceInfo.endpoint"
        ),
    ))
}
