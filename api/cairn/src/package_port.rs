//! The `Packages` port: records and content from the store, what is in them from `cairn-packages`.

use async_trait::async_trait;
use cairn_domain::ids::{VnfPkgId, VnfdId};
use cairn_domain::merge_patch::merge_members;
use cairn_domain::ports::{
    Manifest, OnboardingState, PackageRecord, Packages, PortError, PortResult,
};
use cairn_domain::problem::Problem;
use cairn_domain::time::Timestamp;
use cairn_event_store::PackageStore;
use cairn_packages::{ErrorKind, Limits, Package, PackageError};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// How many read packages are kept in memory; content never changes once it is onboarded.
const KEPT: usize = 16;

/// Packages in the database.
pub struct StoredPackages {
    store: Arc<PackageStore>,
    limits: Limits,
    /// The latest read packages, the latest last.
    read: Mutex<Vec<(VnfPkgId, Arc<Package>)>>,
}

impl StoredPackages {
    /// On this store, with the default limits for what a package may be.
    #[must_use]
    pub fn new(store: Arc<PackageStore>) -> Self {
        Self {
            store,
            limits: Limits::default(),
            read: Mutex::new(Vec::new()),
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<(VnfPkgId, Arc<Package>)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn package(&self, id: &VnfPkgId) -> PortResult<Arc<Package>> {
        let known = self
            .kept()
            .iter()
            .find(|(known, _)| known == id)
            .map(|(_, p)| p.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let bytes = self.content(id).await?;
        let package = Arc::new(self.parse(bytes).await?.map_err(|refused| {
            PortError::Corrupt(format!(
                "package {id} was onboarded and is refused now: {refused}"
            ))
        })?);
        let mut kept = self.kept();
        kept.retain(|(known, _)| known != id);
        kept.push((id.clone(), package.clone()));
        if kept.len() > KEPT {
            kept.remove(0);
        }
        Ok(package)
    }

    /// Reading a package takes time: it must not hold up a worker of the runtime.
    async fn parse(&self, bytes: Vec<u8>) -> PortResult<Result<Package, PackageError>> {
        let limits = self.limits;
        tokio::task::spawn_blocking(move || Package::read(&bytes, &limits))
            .await
            .map_err(|e| PortError::Corrupt(format!("reading the package ended by panic: {e}")))
    }

    async fn record(&self, id: &VnfPkgId) -> PortResult<PackageRecord> {
        self.store
            .get(id)
            .await?
            .ok_or_else(|| refused(404, format!("there is no package {id}")))
    }

    /// The record of a package whose upload was refused.
    async fn fails(&self, id: &VnfPkgId, problem: Problem) -> PortResult<PackageRecord> {
        self.store
            .change(id, |now| {
                takes_content(&now)?;
                Ok(failed(now, problem))
            })
            .await
    }
}

/// A refused upload may be made again with better content; content that was taken never changes.
fn takes_content(record: &PackageRecord) -> PortResult<()> {
    match record.onboarding_state {
        OnboardingState::Created | OnboardingState::Error => Ok(()),
        OnboardingState::Processing | OnboardingState::Onboarded => Err(refused(
            409,
            format!("package {} has content already", record.id),
        )),
    }
}

/// Enables or disables a package.
fn switch(record: &mut PackageRecord, enabled: bool) -> PortResult<()> {
    let id = &record.id;
    if record.onboarding_state != OnboardingState::Onboarded {
        return Err(refused(409, format!("package {id} is not ONBOARDED")));
    }
    if record.enabled == enabled {
        let state = if enabled { "ENABLED" } else { "DISABLED" };
        return Err(refused(409, format!("package {id} is {state} already")));
    }
    record.enabled = enabled;
    Ok(())
}

fn refused(status: u16, detail: String) -> PortError {
    PortError::Refused(Problem::new(status, detail))
}

fn failed(record: PackageRecord, problem: Problem) -> PackageRecord {
    PackageRecord {
        onboarding_state: OnboardingState::Error,
        enabled: false,
        failure: Some(problem),
        ..record
    }
}

fn onboarded(record: PackageRecord, package: &Package) -> PackageRecord {
    PackageRecord {
        onboarding_state: OnboardingState::Onboarded,
        enabled: true,
        vnfd: Some(package.vnfd.clone()),
        checksum: Some(package.digest.clone()),
        artifacts: package.artifacts.clone(),
        failure: None,
        ..record
    }
}

#[async_trait]
impl Packages for StoredPackages {
    async fn create(
        &self,
        id: VnfPkgId,
        user_defined_data: Map<String, Value>,
        at: Timestamp,
    ) -> PortResult<PackageRecord> {
        let record = PackageRecord {
            id,
            onboarding_state: OnboardingState::Created,
            enabled: false,
            vnfd: None,
            checksum: None,
            artifacts: Vec::new(),
            failure: None,
            user_defined_data,
            created_at: at,
        };
        self.store.create(&record).await?;
        Ok(record)
    }

    async fn upload(&self, id: &VnfPkgId, csar: Vec<u8>) -> PortResult<PackageRecord> {
        takes_content(&self.record(id).await?)?;
        let package = match self.parse(csar.clone()).await? {
            Ok(package) => package,
            Err(why) => return self.fails(id, Problem::new(422, why.to_string())).await,
        };
        // Reading took a while: the record is looked at again, and what others changed in it meanwhile stays.
        let kept = self.store.onboard(id, &csar, |now| {
            takes_content(&now)?;
            Ok(onboarded(now, &package))
        });
        match kept.await {
            Err(PortError::Refused(problem)) => self.fails(id, problem).await,
            other => other,
        }
    }

    async fn list(&self) -> PortResult<Vec<PackageRecord>> {
        self.store.list().await
    }

    async fn get(&self, id: &VnfPkgId) -> PortResult<Option<PackageRecord>> {
        self.store.get(id).await
    }

    async fn by_vnfd(&self, id: &VnfdId) -> PortResult<Option<PackageRecord>> {
        self.store.by_vnfd(id).await
    }

    async fn modify(
        &self,
        id: &VnfPkgId,
        enabled: Option<bool>,
        user_defined_data: &Map<String, Value>,
    ) -> PortResult<()> {
        let changed = self.store.change(id, |mut record| {
            if let Some(enabled) = enabled {
                switch(&mut record, enabled)?;
            }
            merge_members(&mut record.user_defined_data, user_defined_data);
            Ok(record)
        });
        changed.await.map(drop)
    }

    async fn delete(&self, id: &VnfPkgId) -> PortResult<()> {
        self.store.delete(id).await?;
        self.kept().retain(|(known, _)| known != id);
        Ok(())
    }

    async fn content(&self, id: &VnfPkgId) -> PortResult<Vec<u8>> {
        self.record(id).await?;
        self.store
            .content(id)
            .await?
            .ok_or_else(|| refused(409, format!("package {id} has no content yet")))
    }

    async fn artifact(&self, id: &VnfPkgId, path: &str) -> PortResult<Vec<u8>> {
        let package = self.package(id).await?;
        package
            .artifact(path)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| refused(404, format!("package {id} has no file {path:?}")))
    }

    async fn vnfd_yaml(&self, id: &VnfPkgId) -> PortResult<String> {
        Ok(self.package(id).await?.vnfd_yaml().to_owned())
    }

    async fn manifests(
        &self,
        id: &VnfPkgId,
        def_files: Option<&[String]>,
    ) -> PortResult<Vec<Manifest>> {
        let package = self.package(id).await?;
        match package.manifests(def_files) {
            Ok(manifests) => Ok(manifests.into_iter().map(Into::into).collect()),
            Err(wrong) if wrong.kind == ErrorKind::DefFiles => {
                Err(refused(422, wrong.message.clone()))
            }
            Err(wrong) => Err(refused(422, wrong.to_string())),
        }
    }
}
