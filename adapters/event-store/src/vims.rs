//! Registered VIMs; their credentials lie in the vault.

use crate::error::{commit, port};
use crate::states;
use crate::vault::SqlVault;
use async_trait::async_trait;
use cairn_db::{Database, Row, Tx, args};
use cairn_domain::ids::VimId;
use cairn_domain::ports::{PortError, PortResult, Vault, Vims};
use cairn_domain::problem::Problem;
use cairn_domain::secret::{SealedSecret, references};
use cairn_domain::time::Timestamp;
use cairn_domain::vim::{VimChange, VimConnectionInfo};
use cairn_domain::vnf_instance::{VnfInstance, effective, registered};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `Vims` on PostgreSQL or SQLite.
pub struct SqlVims {
    database: Database,
    vault: Arc<SqlVault>,
}

impl SqlVims {
    pub(crate) fn new(database: Database, vault: Arc<SqlVault>) -> Self {
        Self { database, vault }
    }

    /// A connection as plain text, to compare two whose secrets lie under different references.
    async fn in_the_clear(
        &self,
        info: &VimConnectionInfo,
        fresh: &[SealedSecret],
    ) -> PortResult<Value> {
        let mut value = serde_json::to_value(info).map_err(|error| unwritable(&error))?;
        let mut texts = BTreeMap::new();
        for reference in references(&value) {
            let known = fresh.iter().find(|(name, _)| *name == reference);
            let secret = match known {
                Some((_, secret)) => secret.clone(),
                None => self.vault.reveal(&reference).await?,
            };
            texts.insert(reference.0, secret.reveal().to_owned());
        }
        reveal_in(&mut value, &texts);
        Ok(value)
    }

    async fn same(
        &self,
        id: &VimId,
        info: &VimConnectionInfo,
        fresh: &[SealedSecret],
    ) -> PortResult<bool> {
        match self.get(id).await? {
            Some(kept) => {
                Ok(self.in_the_clear(&kept, &[]).await? == self.in_the_clear(info, fresh).await?)
            }
            None => Ok(false),
        }
    }
}

#[async_trait]
impl Vims for SqlVims {
    async fn register(
        &self,
        id: VimId,
        info: VimConnectionInfo,
        secrets: Vec<SealedSecret>,
        at: Timestamp,
    ) -> PortResult<()> {
        let written = serde_json::to_string(&info).map_err(|error| unwritable(&error))?;
        let mut tx = self.database.begin().await.map_err(port)?;
        let added = tx
            .execute(
                "INSERT INTO vims (vim_id, ordinal, created_at, info) VALUES ($1, \
                 (SELECT COALESCE(max(ordinal), 0) + 1 FROM vims), $2, $3) \
                 ON CONFLICT (vim_id) DO NOTHING",
                args![id.as_str(), at.as_millis(), written],
            )
            .await
            .map_err(port)?;
        if added == 1 {
            self.vault.write_in(&mut tx, &secrets).await?;
            return tx.commit().await.map_err(commit);
        }
        tx.rollback().await.map_err(port)?;
        if self.same(&id, &info, &secrets).await? {
            return Ok(());
        }
        let detail = format!("a VIM of the name {id} is registered with another content");
        Err(PortError::Refused(Problem::new(409, detail)))
    }

    async fn list(&self) -> PortResult<Vec<(VimId, VimConnectionInfo)>> {
        let rows = self
            .database
            .fetch_all(
                "SELECT vim_id, info FROM vims ORDER BY ordinal, vim_id",
                args![],
            )
            .await
            .map_err(port)?;
        rows.iter().map(read).collect()
    }

    async fn get(&self, id: &VimId) -> PortResult<Option<VimConnectionInfo>> {
        let row = self
            .database
            .fetch_optional(
                "SELECT vim_id, info FROM vims WHERE vim_id = $1",
                args![id.as_str()],
            )
            .await
            .map_err(port)?;
        row.map(|row| read(&row).map(|(_, info)| info)).transpose()
    }

    async fn change(
        &self,
        id: &VimId,
        change: VimChange,
        secrets: Vec<SealedSecret>,
    ) -> PortResult<VimConnectionInfo> {
        let mut tx = self.database.begin().await.map_err(port)?;
        let info = change
            .applied_to(lock(&mut tx, id).await?)
            .map_err(|why| PortError::Refused(Problem::new(422, why.to_string())))?;
        let written = serde_json::to_string(&info).map_err(|error| unwritable(&error))?;
        tx.execute(
            "UPDATE vims SET info = $2 WHERE vim_id = $1",
            args![id.as_str(), written],
        )
        .await
        .map_err(port)?;
        self.vault.write_in(&mut tx, &secrets).await?;
        tx.commit().await.map_err(commit)?;
        Ok(info)
    }

    async fn remove(&self, id: &VimId) -> PortResult<()> {
        let mut tx = self.database.begin().await.map_err(port)?;
        lock(&mut tx, id).await?;
        let user = states::find_living(&mut tx, |instance| uses(instance, id)).await?;
        if let Some(user) = user {
            let detail = format!("VIM {id} is used by VNF instance {}", user.id);
            return Err(PortError::Refused(Problem::new(409, detail)));
        }
        tx.execute("DELETE FROM vims WHERE vim_id = $1", args![id.as_str()])
            .await
            .map_err(port)?;
        tx.commit().await.map_err(commit)
    }
}

/// Locks a VIM's row and reads it; 404 where there is none.
async fn lock(tx: &mut Tx, id: &VimId) -> PortResult<VimConnectionInfo> {
    let lock = tx.dialect().for_update();
    let row = tx
        .fetch_optional(
            &format!("SELECT vim_id, info FROM vims WHERE vim_id = $1{lock}"),
            args![id.as_str()],
        )
        .await
        .map_err(port)?;
    match row {
        Some(row) => read(&row).map(|(_, info)| info),
        None => Err(PortError::Refused(Problem::new(
            404,
            format!("there is no VIM {id}"),
        ))),
    }
}

/// Whether an instance names a VIM without an address of its own, which is what points to a registered one.
fn uses(instance: &VnfInstance, id: &VimId) -> bool {
    let info = match &instance.claim {
        Some(claim) => effective(&instance.info, &claim.overlay),
        None => instance.info.clone(),
    };
    registered(&info).any(|named| named == id.as_str())
}

fn reveal_in(value: &mut Value, texts: &BTreeMap<String, String>) {
    if let Some(reference) = cairn_domain::secret::reference(value) {
        *value = texts
            .get(&reference.0)
            .map_or(Value::Null, |text| Value::String(text.clone()));
        return;
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|v| reveal_in(v, texts)),
        Value::Array(entries) => entries.iter_mut().for_each(|v| reveal_in(v, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn read(row: &Row) -> PortResult<(VimId, VimConnectionInfo)> {
    let id = VimId::parse(row.text(0).map_err(port)?)
        .map_err(|error| PortError::Corrupt(error.to_string()))?;
    let info = serde_json::from_str(&row.text(1).map_err(port)?)
        .map_err(|error| PortError::Corrupt(format!("VIM {id} cannot be read: {error}")))?;
    Ok((id, info))
}

fn unwritable(error: &serde_json::Error) -> PortError {
    PortError::Corrupt(format!("a VIM cannot be written: {error}"))
}
