//! Recorded logs in, rows out, on both databases.

mod log;
mod rebuilt;
mod rows;

use crate::model;
use cairn_db::testing::TestDatabase;
use cairn_db::{Database, args};

/// A database beside a log in memory: the place where the real log keeps its head is empty, so that it is asked.
async fn opened(test: &TestDatabase) -> Database {
    let database = test.open().await;
    let sql = "DELETE FROM log_position";
    database.execute(sql, args![]).await.unwrap();
    database
}

/// Every byte of the read models, as text.
async fn dump(database: &Database) -> Vec<String> {
    let mut lines = Vec::new();
    for target in model::live() {
        let (columns, order) = match target.model {
            model::Model::Timeline => (
                "vnf_instance_id || ' ' || position || ' ' || recorded_at || ' ' || aggregate_type \
                 || ' ' || aggregate_id || ' ' || sequence || ' ' || coalesce(tenant, '-') || ' ' || body",
                "vnf_instance_id, position",
            ),
            _ => (
                "id || ' ' || tenant || ' ' || version || ' ' || position || ' ' || \
                 created_position || ' ' || deleted || ' ' || frozen || ' ' || \
                 coalesce(halted, '-') || ' ' || coalesce(package, '-') || ' ' || state",
                "id",
            ),
        };
        let sql = format!("SELECT {columns} FROM {} ORDER BY {order}", target.table);
        for row in database.fetch_all(&sql, args![]).await.unwrap() {
            lines.push(format!("{}: {}", target.table, row.text(0).unwrap()));
        }
    }
    lines
}
