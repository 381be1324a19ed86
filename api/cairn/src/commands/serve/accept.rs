//! Taking connections: bounded in number, and none is kept open by a client that never finishes its request's head.

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections at one time; further ones wait in the listener's queue.
const CONNECTIONS: usize = 4096;
/// From the first byte of a request to the end of its head.
const HEAD: Duration = Duration::from_secs(10);

/// Answers on `listener` until `stop`; then lets requests that are under way end.
///
/// # Errors
///
/// When the listener fails.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection ended by panic");
                }
                continue;
            }
            accepted = listener.accept(), if connections.len() < CONNECTIONS => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let served = graceful.watch(serve(&builder, router.clone(), stream).into_owned());
                connections.spawn(async move {
                    if let Err(error) = served.await {
                        tracing::debug!(%error, "a connection ended early");
                    }
                });
            }
            // A client that left before it was accepted is no fault of the listener.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            // Too many open files: those that are open must end first.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    graceful.shutdown().await;
    Ok(())
}

type Connection<'a> = hyper_util::server::conn::auto::Connection<
    'a,
    TokioIo<TcpStream>,
    TowerToHyperService<Router>,
    TokioExecutor,
>;

fn serve(builder: &Builder<TokioExecutor>, router: Router, stream: TcpStream) -> Connection<'_> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is slower than it could be");
    }
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}
