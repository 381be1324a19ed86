//! How the database's errors become those of the port.

use cairn_db::DbError;
use cairn_domain::ports::PortError;

pub(crate) fn port(error: DbError) -> PortError {
    match error {
        DbError::Contended(why) => PortError::Conflict(why),
        DbError::Column { .. } => PortError::Corrupt(error.to_string()),
        other => PortError::Unavailable(other.to_string()),
    }
}
