//! Where everything that must last lies: streams of events, the work queue, deliveries, bodies, secrets,
//! packages and VIMs, on PostgreSQL and SQLite.
//!
//! The one way to write events is [`EventStore`]'s unit of work: events of several streams, their state rows,
//! work queue, secrets, bodies and the answer to an `Idempotency-Key`, all or nothing, checked against the lease
//! of its runner. Nothing here decides anything about VNFs. Start reading at [`Stores`], then `unit.rs`.

mod blobs;
mod codec;
mod cqrs;
mod deliveries;
mod error;
mod event_log;
mod group;
mod key;
mod packages;
mod pieces;
mod seal;
mod signal;
mod states;
#[cfg(test)]
mod tests;
mod unit;
mod upcast;
mod vault;
mod vims;
mod work;

pub use blobs::SqlBlobs;
pub use cqrs::{CqrsStore, Stored};
pub use deliveries::SqlDeliveries;
pub use error::StoreError;
pub use event_log::EventStore;
pub use key::KeyFile;
pub use packages::PackageStore;
pub use vault::SqlVault;
pub use vims::SqlVims;
pub use work::SqlWorkQueue;

use cairn_db::Database;
use seal::Sealer;
use std::sync::Arc;

/// The implementations of the ports on one database under one key.
#[derive(Clone)]
pub struct Stores {
    /// `EventLog`.
    pub events: Arc<EventStore>,
    /// `WorkQueue`.
    pub work: Arc<SqlWorkQueue>,
    /// `Blobs`.
    pub blobs: Arc<SqlBlobs>,
    /// `Vault`.
    pub vault: Arc<SqlVault>,
    /// `Deliveries`.
    pub deliveries: Arc<SqlDeliveries>,
    /// `Vims`.
    pub vims: Arc<SqlVims>,
    /// Records and content of packages, which the `Packages` port is made of.
    pub packages: Arc<PackageStore>,
}

impl Stores {
    /// Opens the stores, once the key has proved to be the database's.
    ///
    /// # Errors
    ///
    /// [`StoreError::WrongKey`] when the database was written under another key; [`StoreError::Db`].
    pub async fn open(database: Database, key: &KeyFile) -> Result<Self, StoreError> {
        key::prove(&database, key).await?;
        let sealer = Arc::new(Sealer::new(key));
        let vault = Arc::new(SqlVault::new(database.clone(), sealer.clone()));
        Ok(Self {
            events: Arc::new(EventStore::new(database.clone(), Some(sealer.clone()))),
            work: Arc::new(SqlWorkQueue::new(database.clone())),
            blobs: Arc::new(SqlBlobs::new(database.clone(), sealer.clone())),
            deliveries: Arc::new(SqlDeliveries::new(database.clone())),
            vims: Arc::new(SqlVims::new(database.clone(), vault.clone())),
            packages: Arc::new(PackageStore::new(database, sealer)),
            vault,
        })
    }
}
