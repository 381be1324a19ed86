//! What goes into statements and what comes out of them.

use crate::DbError;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column, Row as _, TypeInfo, ValueRef};

/// A value bound to a placeholder. The type is known even for NULL, as PostgreSQL wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// TEXT.
    Text(Option<String>),
    /// BIGINT, INTEGER.
    Int(Option<i64>),
    /// BYTEA, BLOB.
    Bytes(Vec<u8>),
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Arg {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<&str>> for Arg {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<Option<String>> for Arg {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Arg {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Arg {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Arg {
    fn from(number: u32) -> Self {
        Self::Int(Some(i64::from(number)))
    }
}

impl From<u64> for Arg {
    /// Counts above `i64::MAX` cannot be stored; they become that, which no stored count reaches.
    fn from(number: u64) -> Self {
        Self::Int(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<usize> for Arg {
    fn from(number: usize) -> Self {
        Self::from(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// The arguments of a statement, in the order of its placeholders `$1`, `$2`, ….
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::Arg::from($value)),*] };
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row of an answer. Columns are read by their place, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(Vec<Cell>);

impl Row {
    /// A text.
    ///
    /// # Errors
    ///
    /// [`DbError::Column`] when the column holds something else.
    pub fn text(&self, column: usize) -> Result<String, DbError> {
        self.opt_text(column)?.ok_or(DbError::Column {
            column,
            wanted: "a text",
        })
    }

    /// A text or NULL.
    ///
    /// # Errors
    ///
    /// As [`Row::text`].
    pub fn opt_text(&self, column: usize) -> Result<Option<String>, DbError> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Ok(Some(text.clone())),
            Some(Cell::Null) => Ok(None),
            Some(Cell::Int(_) | Cell::Bytes(_)) | None => Err(DbError::Column {
                column,
                wanted: "a text",
            }),
        }
    }

    /// An integer.
    ///
    /// # Errors
    ///
    /// As [`Row::text`].
    pub fn int(&self, column: usize) -> Result<i64, DbError> {
        self.opt_int(column)?.ok_or(DbError::Column {
            column,
            wanted: "an integer",
        })
    }

    /// An integer or NULL.
    ///
    /// # Errors
    ///
    /// As [`Row::text`].
    pub fn opt_int(&self, column: usize) -> Result<Option<i64>, DbError> {
        match self.0.get(column) {
            Some(Cell::Int(number)) => Ok(Some(*number)),
            Some(Cell::Null) => Ok(None),
            Some(Cell::Text(_) | Cell::Bytes(_)) | None => Err(DbError::Column {
                column,
                wanted: "an integer",
            }),
        }
    }

    /// An integer that is not negative.
    ///
    /// # Errors
    ///
    /// As [`Row::text`].
    pub fn count(&self, column: usize) -> Result<u64, DbError> {
        u64::try_from(self.int(column)?).map_err(|_| DbError::Column {
            column,
            wanted: "a count",
        })
    }

    /// Bytes.
    ///
    /// # Errors
    ///
    /// As [`Row::text`].
    pub fn bytes(&self, column: usize) -> Result<Vec<u8>, DbError> {
        match self.0.get(column) {
            Some(Cell::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Cell::Null | Cell::Int(_) | Cell::Text(_)) | None => Err(DbError::Column {
                column,
                wanted: "bytes",
            }),
        }
    }
}

impl TryFrom<&PgRow> for Row {
    type Error = sqlx::Error;

    fn try_from(row: &PgRow) -> Result<Self, sqlx::Error> {
        (0..row.len())
            .map(|i| pg_cell(row, i))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn pg_cell(row: &PgRow, i: usize) -> Result<Cell, sqlx::Error> {
    let raw = row.try_get_raw(i)?;
    if raw.is_null() {
        return Ok(Cell::Null);
    }
    match row.column(i).type_info().name() {
        "INT8" => row.try_get(i).map(Cell::Int),
        "INT4" => row.try_get::<i32, _>(i).map(|n| Cell::Int(i64::from(n))),
        "BOOL" => row.try_get::<bool, _>(i).map(|b| Cell::Int(i64::from(b))),
        "BYTEA" => row.try_get(i).map(Cell::Bytes),
        _ => row.try_get(i).map(Cell::Text),
    }
}

impl TryFrom<&SqliteRow> for Row {
    type Error = sqlx::Error;

    fn try_from(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        (0..row.len())
            .map(|i| sqlite_cell(row, i))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn sqlite_cell(row: &SqliteRow, i: usize) -> Result<Cell, sqlx::Error> {
    let raw = row.try_get_raw(i)?;
    if raw.is_null() {
        return Ok(Cell::Null);
    }
    let kind = raw.type_info().name().to_owned();
    match kind.as_str() {
        "INTEGER" => row.try_get_unchecked(i).map(Cell::Int),
        "BLOB" => row.try_get_unchecked(i).map(Cell::Bytes),
        _ => row.try_get_unchecked(i).map(Cell::Text),
    }
}
