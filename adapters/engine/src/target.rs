//! Which cluster an instance runs on, and how it is reached.

use cairn_domain::ids::VimId;
use cairn_domain::ports::{PortError, PortResult, Reliance, Vault, Vims};
use cairn_domain::problem::Problem;
use cairn_domain::vim::{
    ClusterAccess, Credential, SealedCredential, VimConnectionInfo, VimTarget,
};
use cairn_domain::vnf_instance::{VnfInfo, registered};
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
        let id = match self.direct(entry).await? {
            Reached::At(access) => return Ok(access),
            Reached::Named(id) => id,
        };
        match self.vims.get(&id).await? {
            Some(info) => match self.direct(&info).await? {
                Reached::At(access) => Ok(access),
                // A registered VIM stands alone: it cannot point to another.
                Reached::Named(_) => Err(unknown(&id)),
            },
            None if self.configured.contains(&id) => Ok(ClusterAccess::Configured(id)),
            None => Err(unknown(&id)),
        }
    }

    /// The address that an entry gives, with its credential, or the name of the VIM that it stands for.
    async fn direct(&self, entry: &VimConnectionInfo) -> PortResult<Reached> {
        match target(entry)? {
            VimTarget::Direct {
                endpoint,
                ca_pem,
                credential,
            } => Ok(Reached::At(ClusterAccess::Direct {
                endpoint,
                ca_pem,
                credential: self.reveal(credential).await?,
            })),
            VimTarget::Registered(id) => Ok(Reached::Named(id)),
        }
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

    /// The registered VIMs that an instance begins to name, so that none is deleted while that is written. Those that
    /// it named before are in use already.
    pub fn begins_to_rely_on(&self, before: &VnfInfo, after: &VnfInfo) -> Vec<Reliance> {
        registered(after)
            .filter(|named| !registered(before).any(|known| known == *named))
            .filter_map(|named| VimId::parse(named).ok())
            .filter(|id| !self.configured.contains(id))
            .map(Reliance::Vim)
            .collect()
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

/// What an entry leads to.
enum Reached {
    /// A cluster by address.
    At(ClusterAccess),
    /// A VIM by name.
    Named(VimId),
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
