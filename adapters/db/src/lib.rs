//! PostgreSQL and SQLite as one type: pools, transactions, rows, migrations.
//!
//! One SQL text serves both databases wherever they agree; where they do not, [`Dialect`] names the
//! difference. What a statement is given are [`Arg`]s, what it answers are [`Row`]s of integers, texts and
//! bytes, so that one decoder serves both. This crate knows nothing of VNFs, and never lets a password into
//! an error. Start reading at [`Database`].

mod connect;
mod database;
mod dialect;
mod error;
mod migrate;
mod owner;
mod run;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod value;

pub use database::{Database, DbOptions, Tx};
pub use dialect::Dialect;
pub use error::DbError;
pub use owner::OwnerLock;
pub use value::{Arg, Row};
