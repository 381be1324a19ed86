//! Packages, grants and VIMs.

use super::PortResult;
use crate::ids::{GrantId, VimId, VnfInstanceId, VnfLcmOpOccId, VnfPkgId, VnfdId};
use crate::operation::Operation;
use crate::problem::Problem;
use crate::time::Timestamp;
use crate::vim::{VimChange, VimConnectionInfo};
use crate::vnfd::Vnfd;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// SOL003 10.5.4.3 `PackageOnboardingStateType`, and ERROR of SOL005.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OnboardingState {
    /// Created, without content.
    Created,
    /// Content is being checked.
    Processing,
    /// Usable.
    Onboarded,
    /// The content was refused.
    Error,
}

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageArtifact {
    /// Path in the CSAR.
    pub path: String,
    /// SHA-256, hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

/// Record of a package (SOL003 10.5.2.2, SOL005 9.5.2.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageRecord {
    /// Its id.
    pub id: VnfPkgId,
    /// How far it is.
    pub onboarding_state: OnboardingState,
    /// It may be used for new instances.
    pub enabled: bool,
    /// Its descriptor, once onboarded.
    pub vnfd: Option<Vnfd>,
    /// SHA-256 of the CSAR, hex, once there is content.
    pub checksum: Option<String>,
    /// Its files.
    pub artifacts: Vec<PackageArtifact>,
    /// Why it was refused.
    pub failure: Option<Problem>,
    /// `userDefinedData`.
    pub user_defined_data: Map<String, Value>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// One manifest of a package. `Debug` shows no content: it may be a Secret.
#[derive(Clone, PartialEq)]
pub struct Manifest {
    /// Its file in the CSAR.
    pub file: String,
    /// Its document in that file, from 0.
    pub document: usize,
    /// The object.
    pub value: Value,
}

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest")
            .field("file", &self.file)
            .field("document", &self.document)
            .finish_non_exhaustive()
    }
}

/// Onboarded packages, kept in the database. Content is immutable once ONBOARDED.
#[async_trait]
pub trait Packages: Send + Sync {
    /// Creates a record without content.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn create(
        &self,
        id: VnfPkgId,
        user_defined_data: Map<String, Value>,
        at: Timestamp,
    ) -> PortResult<PackageRecord>;

    /// Checks and keeps the content: the record is ONBOARDED and enabled after it, or ERROR with its reason.
    ///
    /// # Errors
    ///
    /// `Refused` 404 for an unknown package, 409 when it has content already or its vnfdId is onboarded; `Unavailable`.
    async fn upload(&self, id: &VnfPkgId, csar: Vec<u8>) -> PortResult<PackageRecord>;

    /// All records, in order of creation.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn list(&self) -> PortResult<Vec<PackageRecord>>;

    /// One record.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn get(&self, id: &VnfPkgId) -> PortResult<Option<PackageRecord>>;

    /// The ONBOARDED package of a descriptor.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn by_vnfd(&self, id: &VnfdId) -> PortResult<Option<PackageRecord>>;

    /// Enables or disables, where that is asked, and merges into `userDefinedData` (RFC 7396).
    ///
    /// # Errors
    ///
    /// `Refused` 404, 409 when it is enabled or disabled already or not ONBOARDED; `Unavailable`.
    async fn modify(
        &self,
        id: &VnfPkgId,
        enabled: Option<bool>,
        user_defined_data: &Map<String, Value>,
    ) -> PortResult<()>;

    /// Deletes a record and its content.
    ///
    /// # Errors
    ///
    /// `Refused` 404, 409 while enabled or used by an instance that is not deleted; `Unavailable`.
    async fn delete(&self, id: &VnfPkgId) -> PortResult<()>;

    /// The CSAR as it was uploaded.
    ///
    /// # Errors
    ///
    /// `Refused` 404, 409 while it has none; `Unavailable`; `Corrupt`.
    async fn content(&self, id: &VnfPkgId) -> PortResult<Vec<u8>>;

    /// One file of it.
    ///
    /// # Errors
    ///
    /// As [`Packages::content`].
    async fn artifact(&self, id: &VnfPkgId, path: &str) -> PortResult<Vec<u8>>;

    /// The VNFD: its entry file as YAML text.
    ///
    /// # Errors
    ///
    /// As [`Packages::content`].
    async fn vnfd_yaml(&self, id: &VnfPkgId) -> PortResult<String>;

    /// The manifests, in order: of `Files/kubernetes/` by path, or those named, in the order named.
    ///
    /// # Errors
    ///
    /// As [`Packages::content`]; `Refused` 422 naming a file that is not in the package.
    async fn manifests(
        &self,
        id: &VnfPkgId,
        def_files: Option<&[String]>,
    ) -> PortResult<Vec<Manifest>>;
}

/// What a grant is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRequest {
    /// The instance.
    pub instance: VnfInstanceId,
    /// The operation's id: a repeated request is the same request.
    pub op: VnfLcmOpOccId,
    /// The operation.
    pub operation: Operation,
}

/// Who grants operations (SOL003 clause 9).
#[async_trait]
pub trait Nfvo: Send + Sync {
    /// Asks for a grant; may be repeated for the same operation.
    ///
    /// # Errors
    ///
    /// `Refused` when the grant is denied; `Unavailable` when nobody answered.
    async fn grant(&self, request: GrantRequest) -> PortResult<GrantId>;
}

/// Registered VIMs, kept in the database; credentials lie in the vault.
#[async_trait]
pub trait Vims: Send + Sync {
    /// Registers one under its `vimId`; one that exists with the same content is used.
    ///
    /// # Errors
    ///
    /// `Refused` 409 when the name is taken by another; `Unavailable`.
    async fn register(
        &self,
        id: VimId,
        info: VimConnectionInfo,
        secrets: Vec<crate::secret::SealedSecret>,
        at: Timestamp,
    ) -> PortResult<()>;

    /// All, in order of registration.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn list(&self) -> PortResult<Vec<(VimId, VimConnectionInfo)>>;

    /// One.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn get(&self, id: &VimId) -> PortResult<Option<VimConnectionInfo>>;

    /// Changes one, also while instances use it: credentials are rotated so. Answers what it is now.
    ///
    /// # Errors
    ///
    /// `Refused` 404, 422 when the whole cannot be used; `Unavailable`.
    async fn change(
        &self,
        id: &VimId,
        change: VimChange,
        secrets: Vec<crate::secret::SealedSecret>,
    ) -> PortResult<VimConnectionInfo>;

    /// Removes one.
    ///
    /// # Errors
    ///
    /// `Refused` 404, 409 while an instance uses it; `Unavailable`.
    async fn remove(&self, id: &VimId) -> PortResult<()>;
}
