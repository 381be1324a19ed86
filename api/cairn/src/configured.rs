//! The registered VIMs together with the one that `serve` was started with.

use async_trait::async_trait;
use cairn_domain::ids::VimId;
use cairn_domain::ports::{PortError, PortResult, Vims};
use cairn_domain::problem::Problem;
use cairn_domain::secret::SealedSecret;
use cairn_domain::time::Timestamp;
use cairn_domain::vim::{VimChange, VimConnectionInfo};
use std::sync::Arc;

/// Name of the VIM that `--kubeconfig` or `--simulated` registers.
pub const DEFAULT_VIM: &str = "default";

/// `Vims` with the configured one in front of the registered ones.
pub struct WithConfigured {
    inner: Arc<dyn Vims>,
    configured: Option<(VimId, VimConnectionInfo)>,
}

impl WithConfigured {
    /// `endpoint` is shown, never used: the adapter knows the cluster by its name.
    #[must_use]
    pub fn new(inner: Arc<dyn Vims>, configured: Option<VimId>) -> Self {
        let configured = configured.map(|id| {
            let info = VimConnectionInfo {
                vim_id: Some(id.clone()),
                vim_type: cairn_domain::vim::VIM_TYPES[0].to_owned(),
                interface_info: serde_json::Map::new(),
                access_info: serde_json::Map::new(),
                extra: serde_json::Map::new(),
            };
            (id, info)
        });
        Self { inner, configured }
    }

    fn is_configured(&self, id: &VimId) -> bool {
        self.configured
            .as_ref()
            .is_some_and(|(known, _)| known == id)
    }

    fn fixed(id: &VimId) -> PortError {
        PortError::Refused(Problem::new(
            409,
            format!("VIM {id} was set when the server was started; change it there"),
        ))
    }
}

#[async_trait]
impl Vims for WithConfigured {
    async fn register(
        &self,
        id: VimId,
        info: VimConnectionInfo,
        secrets: Vec<SealedSecret>,
        at: Timestamp,
    ) -> PortResult<()> {
        if self.is_configured(&id) {
            return Err(Self::fixed(&id));
        }
        self.inner.register(id, info, secrets, at).await
    }

    async fn list(&self) -> PortResult<Vec<(VimId, VimConnectionInfo)>> {
        let registered = self.inner.list().await?;
        Ok(self
            .configured
            .clone()
            .into_iter()
            .chain(registered)
            .collect())
    }

    async fn get(&self, id: &VimId) -> PortResult<Option<VimConnectionInfo>> {
        match &self.configured {
            Some((known, info)) if known == id => Ok(Some(info.clone())),
            Some(_) | None => self.inner.get(id).await,
        }
    }

    async fn change(
        &self,
        id: &VimId,
        change: VimChange,
        secrets: Vec<SealedSecret>,
    ) -> PortResult<VimConnectionInfo> {
        if self.is_configured(id) {
            return Err(Self::fixed(id));
        }
        self.inner.change(id, change, secrets).await
    }

    async fn remove(&self, id: &VimId) -> PortResult<()> {
        if self.is_configured(id) {
            return Err(Self::fixed(id));
        }
        self.inner.remove(id).await
    }
}
