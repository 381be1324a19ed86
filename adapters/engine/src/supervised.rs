//! Tasks whose panic is seen: the one place where a task is spawned.

use std::future::Future;
use tokio::task::JoinHandle;
use tracing::{Instrument, error};

/// Spawns a task that runs on when its handle is dropped. A panic is logged with the task's name.
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<Option<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let span = tracing::info_span!("task", name);
    spawn_bare(
        async move {
            match spawn_bare(future).await {
                Ok(output) => Some(output),
                Err(failed) => {
                    error!(task = name, error = %failed, "a task ended by panic or was aborted");
                    None
                }
            }
        }
        .instrument(span),
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervised spawn that others must use"
)]
fn spawn_bare<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}
