//! Running statements on either database.

use crate::{Arg, Row};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{PgConnection, Postgres, Sqlite, SqliteConnection};
use std::pin::Pin;

type PgQuery<'q> = Query<'q, Postgres, PgArguments>;
type SqliteQuery<'q> = Query<'q, Sqlite, SqliteArguments<'q>>;

fn pg(sql: &str, args: Vec<Arg>) -> PgQuery<'_> {
    args.into_iter()
        .fold(sqlx::query(sql), |query, arg| match arg {
            Arg::Text(text) => query.bind(text),
            Arg::Int(number) => query.bind(number),
            Arg::Bytes(bytes) => query.bind(bytes),
        })
}

fn sqlite(sql: &str, args: Vec<Arg>) -> SqliteQuery<'_> {
    args.into_iter()
        .fold(sqlx::query(sql), |query, arg| match arg {
            Arg::Text(text) => query.bind(text),
            Arg::Int(number) => query.bind(number),
            Arg::Bytes(bytes) => query.bind(bytes),
        })
}

/// Boxed: sqlx's executors are generic over lifetimes, and futures that hold them are not seen to be `Send` by
/// those who await them from a trait object.
pub(crate) type Running<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

pub(crate) fn pg_execute<'a>(
    connection: &'a mut PgConnection,
    sql: &'a str,
    args: Vec<Arg>,
) -> Running<'a, u64> {
    Box::pin(async move { Ok(pg(sql, args).execute(connection).await?.rows_affected()) })
}

pub(crate) fn pg_fetch<'a>(
    connection: &'a mut PgConnection,
    sql: &'a str,
    args: Vec<Arg>,
) -> Running<'a, Vec<Row>> {
    Box::pin(async move {
        pg(sql, args)
            .fetch_all(connection)
            .await?
            .iter()
            .map(Row::try_from)
            .collect()
    })
}

pub(crate) fn pg_fetch_one<'a>(
    connection: &'a mut PgConnection,
    sql: &'a str,
    args: Vec<Arg>,
) -> Running<'a, Option<Row>> {
    Box::pin(async move {
        let row = pg(sql, args).fetch_optional(connection).await?;
        row.as_ref().map(Row::try_from).transpose()
    })
}

pub(crate) fn sqlite_fetch_one<'a>(
    connection: &'a mut SqliteConnection,
    sql: &'a str,
    args: Vec<Arg>,
) -> Running<'a, Option<Row>> {
    Box::pin(async move {
        let row = sqlite(sql, args).fetch_optional(connection).await?;
        row.as_ref().map(Row::try_from).transpose()
    })
}

pub(crate) fn sqlite_execute<'a>(
    connection: &'a mut SqliteConnection,
    sql: &'a str,
    args: Vec<Arg>,
) -> Running<'a, u64> {
    Box::pin(async move { Ok(sqlite(sql, args).execute(connection).await?.rows_affected()) })
}

pub(crate) fn sqlite_fetch<'a>(
    connection: &'a mut SqliteConnection,
    sql: &'a str,
    args: Vec<Arg>,
) -> Running<'a, Vec<Row>> {
    Box::pin(async move {
        sqlite(sql, args)
            .fetch_all(connection)
            .await?
            .iter()
            .map(Row::try_from)
            .collect()
    })
}
