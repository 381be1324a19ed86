//! Packages as they are kept: records as JSON, content as encrypted pieces. What they mean is known to
//! `cairn-packages`; the binary makes the `Packages` port of the two.

use crate::error::{commit, port};
use crate::pieces::{self, Pieces};
use crate::seal::Sealer;
use crate::states;
use cairn_db::{Database, DbError, Row, Tx, args};
use cairn_domain::ids::{VnfPkgId, VnfdId};
use cairn_domain::ports::{OnboardingState, PackageRecord, PortError, PortResult};
use cairn_domain::problem::Problem;
use cairn_domain::vnf_instance::VnfInstance;
use std::sync::Arc;

/// Records and content of packages.
pub struct PackageStore {
    database: Database,
    sealer: Arc<Sealer>,
}

impl PackageStore {
    pub(crate) fn new(database: Database, sealer: Arc<Sealer>) -> Self {
        Self { database, sealer }
    }

    /// Keeps a new record.
    ///
    /// # Errors
    ///
    /// `Refused` 409 when the id is taken; `Unavailable`.
    pub async fn create(&self, record: &PackageRecord) -> PortResult<()> {
        let added = self
            .database
            .execute(
                "INSERT INTO packages (id, ordinal, created_at, state, vnfd_id, record) \
                 VALUES ($1, (SELECT COALESCE(max(ordinal), 0) + 1 FROM packages), \
                 $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
                args![
                    record.id.as_str(),
                    record.created_at.as_millis(),
                    state_name(record.onboarding_state),
                    vnfd_id(record),
                    written(record)?,
                ],
            )
            .await
            .map_err(port)?;
        if added == 1 {
            Ok(())
        } else {
            Err(refused(409, "the package exists already"))
        }
    }

    /// Changes a record as it is now, whose row is locked meanwhile: of two changes at one time none is lost.
    ///
    /// # Errors
    ///
    /// `Refused` 404; what `change` refuses; `Refused` 409 when another ONBOARDED package has its vnfdId;
    /// `Corrupt`, `Unavailable`.
    pub async fn change(
        &self,
        id: &VnfPkgId,
        change: impl FnOnce(PackageRecord) -> PortResult<PackageRecord> + Send,
    ) -> PortResult<PackageRecord> {
        let mut tx = self.database.begin().await.map_err(port)?;
        let after = change(locked(&mut tx, id).await?)?;
        replace(&mut tx, &after).await?;
        tx.commit().await.map_err(commit)?;
        Ok(after)
    }

    /// Changes a record as [`PackageStore::change`] does, and keeps its content, both or neither: of two uploads at
    /// one time the slower one must not put its content under the record of the other.
    ///
    /// # Errors
    ///
    /// `Refused` 413 above 512 MiB, and as [`PackageStore::change`].
    pub async fn onboard(
        &self,
        id: &VnfPkgId,
        bytes: &[u8],
        change: impl FnOnce(PackageRecord) -> PortResult<PackageRecord> + Send,
    ) -> PortResult<PackageRecord> {
        pieces::check_size(bytes)?;
        let mut tx = self.database.begin().await.map_err(port)?;
        let after = change(locked(&mut tx, id).await?)?;
        replace(&mut tx, &after).await?;
        tx.execute(
            "DELETE FROM package_chunks WHERE package_id = $1",
            args![id.as_str()],
        )
        .await
        .map_err(port)?;
        Pieces::Package
            .write(&mut tx, &self.sealer, id.as_str(), bytes)
            .await?;
        tx.commit().await.map_err(commit)?;
        Ok(after)
    }

    /// The content; `None` where there is none.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unavailable`.
    pub async fn content(&self, id: &VnfPkgId) -> PortResult<Option<Vec<u8>>> {
        let rows = self
            .database
            .fetch_all(
                "SELECT chunks, content FROM package_chunks WHERE package_id = $1 ORDER BY chunk",
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        if rows.is_empty() {
            return Ok(None);
        }
        Pieces::Package
            .join(&self.sealer, id.as_str(), &rows)
            .map(Some)
    }

    /// All records, in order of creation.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unavailable`.
    pub async fn list(&self) -> PortResult<Vec<PackageRecord>> {
        let rows = self
            .database
            .fetch_all("SELECT record FROM packages ORDER BY ordinal, id", args![])
            .await
            .map_err(port)?;
        rows.iter().map(read).collect()
    }

    /// One record.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unavailable`.
    pub async fn get(&self, id: &VnfPkgId) -> PortResult<Option<PackageRecord>> {
        let row = self
            .database
            .fetch_optional(
                "SELECT record FROM packages WHERE id = $1",
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        row.as_ref().map(read).transpose()
    }

    /// The ONBOARDED package of a descriptor.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unavailable`.
    pub async fn by_vnfd(&self, id: &VnfdId) -> PortResult<Option<PackageRecord>> {
        let row = self
            .database
            .fetch_optional(
                "SELECT record FROM packages WHERE vnfd_id = $1 AND state = 'ONBOARDED'",
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        row.as_ref().map(read).transpose()
    }

    /// Deletes a record and its content.
    ///
    /// # Errors
    ///
    /// `Refused` 404; `Refused` 409 while it is enabled or an instance that is not deleted was made of it;
    /// `Unavailable`.
    pub async fn delete(&self, id: &VnfPkgId) -> PortResult<()> {
        let mut tx = self.database.begin().await.map_err(port)?;
        if locked(&mut tx, id).await?.enabled {
            return Err(refused(
                409,
                &format!("package {id} is ENABLED; disable it first"),
            ));
        }
        let uses = |instance: &VnfInstance| instance.packages().any(|used| used == id);
        if let Some(user) = states::find_living(&mut tx, uses).await? {
            let detail = format!("package {id} is in use by VNF instance {}", user.id);
            return Err(refused(409, &detail));
        }
        for sql in [
            "DELETE FROM package_chunks WHERE package_id = $1",
            "DELETE FROM packages WHERE id = $1",
        ] {
            tx.execute(sql, args![id.as_str()]).await.map_err(port)?;
        }
        tx.commit().await.map_err(commit)
    }
}

/// A record, whose row is locked until the transaction ends.
async fn locked(tx: &mut Tx, id: &VnfPkgId) -> PortResult<PackageRecord> {
    let lock = tx.dialect().for_update();
    let row = tx
        .fetch_optional(
            &format!("SELECT record FROM packages WHERE id = $1{lock}"),
            args![id.as_str()],
        )
        .await
        .map_err(port)?
        .ok_or_else(|| refused(404, &format!("there is no package {id}")))?;
    read(&row)
}

async fn replace(tx: &mut Tx, record: &PackageRecord) -> PortResult<()> {
    let replaced = tx
        .execute(
            "UPDATE packages SET state = $2, vnfd_id = $3, record = $4 WHERE id = $1",
            args![
                record.id.as_str(),
                state_name(record.onboarding_state),
                vnfd_id(record),
                written(record)?,
            ],
        )
        .await;
    match replaced {
        Ok(_) => Ok(()),
        // The one constraint that this statement can violate: one ONBOARDED package for each VNFD.
        Err(DbError::Constraint { .. }) => {
            let id = vnfd_id(record).unwrap_or_default();
            Err(refused(
                409,
                &format!("a package with vnfdId {id} is onboarded already"),
            ))
        }
        Err(other) => Err(port(other)),
    }
}

fn vnfd_id(record: &PackageRecord) -> Option<String> {
    record
        .vnfd
        .as_ref()
        .map(|vnfd| vnfd.vnfd_id.as_str().to_owned())
}

fn written(record: &PackageRecord) -> PortResult<String> {
    serde_json::to_string(record).map_err(|error| {
        PortError::Corrupt(format!("package {} cannot be written: {error}", record.id))
    })
}

fn read(row: &Row) -> PortResult<PackageRecord> {
    serde_json::from_str(&row.text(0).map_err(port)?)
        .map_err(|error| PortError::Corrupt(format!("a package cannot be read: {error}")))
}

fn state_name(state: OnboardingState) -> &'static str {
    match state {
        OnboardingState::Created => "CREATED",
        OnboardingState::Processing => "PROCESSING",
        OnboardingState::Onboarded => "ONBOARDED",
        OnboardingState::Error => "ERROR",
    }
}

fn refused(status: u16, detail: &str) -> PortError {
    PortError::Refused(Problem::new(status, detail))
}
