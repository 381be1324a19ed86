//! Group commit on SQLite: units that wait for the one writer are written in one transaction, each in a savepoint
//! of its own, so that one wait for the disk serves them all.
//!
//! PostgreSQL has no part in it: there units of several replicas lock rows of each other, in an order that holds
//! within one unit only.

use crate::EventStore;
use crate::error::{commit, port};
use crate::unit;
use cairn_db::Tx;
use cairn_domain::ports::{Appended, PortError, PortResult, Unit};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// Most units in one transaction: it must stay short, as readers of what it writes wait for it.
const TOGETHER: usize = 64;

struct Waiting {
    unit: Unit,
    answer: oneshot::Sender<PortResult<Appended>>,
}

/// The units that wait, and whose turn it is to write them.
#[derive(Default)]
pub(crate) struct Group {
    waiting: Mutex<VecDeque<Waiting>>,
    turn: tokio::sync::Mutex<()>,
}

/// Writes a unit together with those that wait beside it. Whoever has the turn writes for all.
pub(crate) async fn append(store: &EventStore, unit: Unit) -> PortResult<Appended> {
    let group = store.group();
    let (answer, mut answered) = oneshot::channel();
    group.lock().push_back(Waiting { unit, answer });
    let _turn = group.turn.lock().await;
    loop {
        match answered.try_recv() {
            Ok(result) => return result,
            Err(oneshot::error::TryRecvError::Empty) => {}
            // Whoever wrote it was dropped in the middle: nobody knows whether it committed.
            Err(oneshot::error::TryRecvError::Closed) => {
                return Err(PortError::Unavailable("the write was cut short".to_owned()));
            }
        }
        let some = group.take();
        together(store, some).await;
    }
}

impl Group {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        // Each change is one operation, so a poisoned queue is as good as before.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.lock();
        let some = waiting.len().min(TOGETHER);
        waiting.drain(..some).collect()
    }
}

/// Writes some units in one transaction and answers each once it is committed.
async fn together(store: &EventStore, some: Vec<Waiting>) {
    let mut answers = Vec::with_capacity(some.len());
    let mut results = Vec::with_capacity(some.len());
    let mut units = Vec::with_capacity(some.len());
    for waiting in some {
        answers.push(waiting.answer);
        units.push(waiting.unit);
    }
    let committed = write_all(store, units, &mut results).await;
    for (index, answer) in answers.into_iter().enumerate() {
        let result = match (&committed, results.get_mut(index).and_then(Option::take)) {
            // What was refused is so, whatever became of the others.
            (_, Some(refused @ Err(_))) => refused,
            (Ok(()), Some(result)) => result,
            (Err(failed), _) => Err(failed.clone()),
            (Ok(()), None) => Err(PortError::Unavailable("it was not written".to_owned())),
        };
        if answer.send(result).is_err() {
            tracing::debug!("nobody waits any more for the answer to an append");
        }
    }
}

/// What came of each unit, in order; those after a failure of the whole have none.
async fn write_all(
    store: &EventStore,
    units: Vec<Unit>,
    results: &mut Vec<Option<PortResult<Appended>>>,
) -> PortResult<()> {
    let mut tx = store.database().begin().await.map_err(port)?;
    for unit in units {
        results.push(Some(in_savepoint(&mut tx, store, unit).await?));
    }
    tx.commit().await.map_err(commit)
}

/// Writes one unit; the outer error is one of the whole transaction.
async fn in_savepoint(
    tx: &mut Tx,
    store: &EventStore,
    unit: Unit,
) -> PortResult<PortResult<Appended>> {
    tx.execute_script("SAVEPOINT unit").await.map_err(port)?;
    let result = unit::write(tx, store, unit).await;
    if !matches!(result, Ok(Appended::Written(_))) {
        // A full disk ends the transaction itself, and this then fails.
        let back = "ROLLBACK TO unit";
        tx.execute_script(back).await.map_err(port)?;
    }
    tx.execute_script("RELEASE unit").await.map_err(port)?;
    Ok(result)
}
