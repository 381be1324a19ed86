//! Bringing a database to the schema that this binary knows. The rules are in `migrations/README.md`.

use crate::{Database, DbError, Dialect, Tx, args};

struct Migration {
    version: i64,
    name: &'static str,
    postgres: &'static str,
    sqlite: &'static str,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            postgres: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
        }
    };
}

const MIGRATIONS: [Migration; 1] = [migration!(1, "0001_log")];

/// The newest schema that this binary knows.
fn known() -> i64 {
    MIGRATIONS.last().map_or(0, |last| last.version)
}

/// Applies what is missing, all of it in one transaction. Several processes may do so at once.
pub(crate) async fn run(database: &Database) -> Result<(), DbError> {
    if is_present(database).await {
        return Ok(());
    }
    let mut tx = database.begin().await?;
    tx.lock_schema().await?;
    let found = applied(&mut tx).await?;
    if found > known() {
        return Err(DbError::NewerSchema {
            found,
            known: known(),
        });
    }
    if found == known() {
        return tx.rollback().await;
    }
    for migration in MIGRATIONS.iter().filter(|m| m.version > found) {
        let script = match tx.dialect() {
            Dialect::Postgres => migration.postgres,
            Dialect::Sqlite => migration.sqlite,
        };
        tx.execute_script(script).await?;
        let now = tx.dialect().now_ms();
        tx.execute(
            &format!(
                "INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, {now})"
            ),
            args![migration.version, migration.name],
        )
        .await?;
    }
    tx.commit().await
}

/// Whether the schema is the one that is known, seen without writing anything: `history` must not wait for the
/// writer of a SQLite file. Any error here (there is no table yet) is found again by what follows.
async fn is_present(database: &Database) -> bool {
    let newest = database.fetch_optional("SELECT max(version) FROM schema_migrations", args![]);
    matches!(newest.await, Ok(Some(row)) if matches!(row.opt_int(0), Ok(Some(v)) if v == known()))
}

async fn applied(tx: &mut Tx) -> Result<i64, DbError> {
    let integer = match tx.dialect() {
        Dialect::Postgres => "BIGINT",
        Dialect::Sqlite => "INTEGER",
    };
    tx.execute_script(&format!(
        "CREATE TABLE IF NOT EXISTS schema_migrations \
         (version {integer} PRIMARY KEY, name TEXT NOT NULL, applied_at {integer} NOT NULL)"
    ))
    .await?;
    let newest = tx
        .fetch_optional("SELECT max(version) FROM schema_migrations", Vec::new())
        .await?;
    newest.map_or(Ok(0), |row| Ok(row.opt_int(0)?.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one_without_gaps() {
        for (number, migration) in (1..).zip(&MIGRATIONS) {
            assert_eq!(migration.version, number);
            assert!(
                migration.name.starts_with(&format!("{number:04}_")),
                "{}",
                migration.name
            );
        }
    }

    #[test]
    fn both_databases_get_the_same_tables() {
        let tables = |sql: &'static str| -> Vec<&'static str> {
            sql.lines()
                .filter(|line| line.starts_with("CREATE TABLE"))
                .collect()
        };
        for migration in &MIGRATIONS {
            assert_eq!(tables(migration.postgres), tables(migration.sqlite));
        }
    }
}
