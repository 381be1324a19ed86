//! Rows that hold the folded state of an aggregate, one for each stream.

use crate::error::port;
use crate::kept::Kept;
use crate::{Projections, corrupt};
use cairn_db::{Row, Tx, args};
use cairn_domain::history::{Envelope, StreamId};
use cairn_domain::ids::{InvalidId, Tenant};
use cairn_domain::ports::PortResult;
use cairn_domain::root::Pure;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An aggregate that is shown as it is.
pub(crate) trait Shown: Pure {
    /// The event, if it is one of this aggregate.
    fn event(envelope: &Envelope) -> Option<&Self::Event>;
    /// The stream of this id.
    fn stream(id: &str) -> Result<StreamId, InvalidId>;
    /// The rows of it that were read lately.
    fn kept(projections: &Projections) -> &Kept<Self>
    where
        Self: Sized;
    /// Whose it is.
    fn tenant(&self) -> &Tenant;
    /// Lists and reads do not show it any more.
    fn is_deleted(&self) -> bool;
    /// The halted operation that claims it.
    fn halted(&self) -> Option<&str> {
        None
    }
    /// The packages that it needs, one a line.
    fn packages_needed(&self) -> Option<String> {
        None
    }
}

pub(crate) fn columns(integer: &str) -> String {
    format!(
        "id TEXT PRIMARY KEY, tenant TEXT NOT NULL, version {integer} NOT NULL, \
         position {integer} NOT NULL, created_position {integer} NOT NULL, \
         deleted {integer} NOT NULL, frozen {integer} NOT NULL, halted TEXT, package TEXT, \
         state TEXT NOT NULL"
    )
}

/// What is indexed beside the key, by the last part of the index's name.
pub(crate) const INDEXES: [(&str, &str); 3] = [
    ("in_order", "(tenant, created_position) WHERE deleted = 0"),
    ("halted", "(tenant, halted) WHERE halted IS NOT NULL"),
    ("packages", "(tenant, package) WHERE deleted = 0"),
];

/// A row as events are folded into it.
#[derive(Clone)]
pub(crate) struct Line<S> {
    pub state: S,
    pub version: u64,
    pub position: u64,
    pub created_position: u64,
    /// An event of the stream could not be read: the row stays as it was before that one.
    pub frozen: bool,
}

/// The columns of a [`Line`], in order.
pub(crate) const LINE: &str = "state, version, position, created_position, frozen";

impl<S: Shown> Line<S> {
    /// Reads the columns of [`LINE`], the first of which stand first.
    pub(crate) fn read(row: &Row, table: &str, id: &str) -> PortResult<Self> {
        Ok(Self {
            state: serde_json::from_str(&row.text(0).map_err(port)?)
                .map_err(|why| corrupt(&format!("{table} {id}"), why))?,
            version: row.count(1).map_err(port)?,
            position: row.count(2).map_err(port)?,
            created_position: row.count(3).map_err(port)?,
            frozen: row.int(4).map_err(port)? != 0,
        })
    }

    /// The row as those who read it share it.
    pub(crate) fn shared(self) -> Line<Arc<S>> {
        Line {
            state: Arc::new(self.state),
            version: self.version,
            position: self.position,
            created_position: self.created_position,
            frozen: self.frozen,
        }
    }

    /// The row with the events that follow it.
    pub(crate) fn with(line: Option<Self>, events: &[Envelope]) -> Option<Self> {
        events
            .iter()
            .fold(line, |line, envelope| match S::event(envelope) {
                Some(event) => step(line, envelope, event),
                None => line,
            })
    }
}

impl<S: Clone> Line<Arc<S>> {
    /// The row as more can be folded into it.
    pub(crate) fn owned(self) -> Line<S> {
        Line {
            state: Arc::unwrap_or_clone(self.state),
            version: self.version,
            position: self.position,
            created_position: self.created_position,
            frozen: self.frozen,
        }
    }
}

/// Folds events into the rows of their streams. Each row is read and written once, however many events it gets.
pub(crate) async fn apply<S: Shown>(
    tx: &mut Tx,
    table: &str,
    events: &[&Envelope],
) -> PortResult<()> {
    let mut lines: BTreeMap<String, Option<Line<S>>> = BTreeMap::new();
    for envelope in events {
        let Some(event) = S::event(envelope) else {
            continue;
        };
        let id = envelope.stream.aggregate_id();
        let line = match lines.remove(id) {
            Some(line) => line,
            None => read(tx, table, id).await?,
        };
        lines.insert(id.to_owned(), step(line, envelope, event));
    }
    for (id, line) in lines {
        if let Some(line) = line {
            write(tx, table, &id, line).await?;
        }
    }
    Ok(())
}

/// One event more. A place left out in the stream is an event that could not be read: from there on the
/// state cannot be known, and the row is frozen.
fn step<S: Shown>(line: Option<Line<S>>, envelope: &Envelope, event: &S::Event) -> Option<Line<S>> {
    match line {
        None if envelope.sequence == 1 => S::evolve(None, event).map(|state| Line {
            state,
            version: 1,
            position: envelope.position,
            created_position: envelope.position,
            frozen: false,
        }),
        None => None,
        Some(line) if line.frozen => Some(line),
        Some(line) if envelope.sequence != line.version + 1 => {
            tracing::error!(
                stream = %envelope.stream, version = line.version,
                "an event after this version cannot be read; the row stays as it is"
            );
            Some(Line {
                frozen: true,
                ..line
            })
        }
        Some(line) => S::evolve(Some(line.state), event).map(|state| Line {
            state,
            version: envelope.sequence,
            position: envelope.position,
            created_position: line.created_position,
            frozen: false,
        }),
    }
}

async fn read<S: Shown>(tx: &mut Tx, table: &str, id: &str) -> PortResult<Option<Line<S>>> {
    let row = tx
        .fetch_optional(
            &format!("SELECT {LINE} FROM {table} WHERE id = $1"),
            args![id],
        )
        .await
        .map_err(port)?;
    row.map(|row| Line::read(&row, table, id)).transpose()
}

async fn write<S: Shown>(tx: &mut Tx, table: &str, id: &str, line: Line<S>) -> PortResult<()> {
    let state = serde_json::to_string(&line.state).map_err(|why| corrupt(table, why))?;
    tx.execute(
        &format!(
            "INSERT INTO {table} \
             (id, tenant, version, position, created_position, deleted, frozen, halted, package, \
             state) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (id) DO UPDATE SET version = excluded.version, \
             position = excluded.position, deleted = excluded.deleted, frozen = excluded.frozen, \
             halted = excluded.halted, package = excluded.package, state = excluded.state"
        ),
        args![
            id,
            line.state.tenant().as_str(),
            line.version,
            line.position,
            line.created_position,
            i64::from(line.state.is_deleted()),
            i64::from(line.frozen),
            line.state.halted(),
            line.state.packages_needed(),
            state,
        ],
    )
    .await
    .map_err(port)?;
    Ok(())
}
