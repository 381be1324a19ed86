//! Where the two databases differ.

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL: several processes, row locks.
    Postgres,
    /// SQLite: one owner, one writer at a time.
    Sqlite,
}

impl Dialect {
    /// The database's clock in milliseconds since 1970. On PostgreSQL it moves on within a transaction.
    #[must_use]
    pub fn now_ms(self) -> &'static str {
        match self {
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        }
    }

    /// A placeholder for the text of a JSON column.
    #[must_use]
    pub fn json(self, placeholder: &str) -> String {
        match self {
            Self::Postgres => format!("CAST({placeholder} AS JSON)"),
            Self::Sqlite => placeholder.to_owned(),
        }
    }

    /// A lock on the rows read. SQLite's immediate transaction has locked everything already.
    #[must_use]
    pub fn for_update(self) -> &'static str {
        match self {
            Self::Postgres => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// The same, leaving out rows that another transaction has locked.
    #[must_use]
    pub fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
            Self::Sqlite => "",
        }
    }

    /// A lock that lets others read the rows under the same lock, and change nothing.
    #[must_use]
    pub fn for_share(self) -> &'static str {
        match self {
            Self::Postgres => " FOR SHARE",
            Self::Sqlite => "",
        }
    }
}
