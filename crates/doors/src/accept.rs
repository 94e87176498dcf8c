//! The accept loop that both doors share: a limit on connections, and an orderly end.

use std::future::Future;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long to wait after a failed accept. Out of file descriptors is the usual reason, and trying
/// again at once would only burn the processor until some are free.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// How long open connections get to finish once the door closes.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Serves connections until `shutdown` turns true or its sender is gone. `refusal` is what a client
/// beyond the limit reads before it is cut off.
pub(crate) async fn accept_loop<Serve, Served>(
    listener: TcpListener,
    connections_max: usize,
    refusal: &'static [u8],
    mut shutdown: watch::Receiver<bool>,
    serve: Serve,
) where
    Serve: Fn(TcpStream) -> Served,
    Served: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    // Said once each time it happens, not once per client that knocks.
    let mut full = false;
    loop {
        tokio::select! {
            () = closed(&mut shutdown) => break,
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) if connections.len() < connections_max => {
                    // Small messages must not wait for more to come.
                    let _ = socket.set_nodelay(true);
                    full = false;
                    connections.spawn(serve(socket));
                }
                Ok((socket, peer)) => {
                    if !std::mem::replace(&mut full, true) {
                        tracing::warn!(%peer, connections_max, "connection refused, the door is full");
                    }
                    refuse(socket, refusal);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_MAX, drained).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections cut off, they did not end in time");
    }
}

/// Waits until the door closes.
pub(crate) async fn closed(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever wanted the door open.
    let _ = shutdown.wait_for(|closed| *closed).await;
}

/// Says why, as far as it fits into the empty send buffer of a new socket, and hangs up. It must
/// not wait for a client that does not read.
fn refuse(socket: TcpStream, refusal: &'static [u8]) {
    let _ = socket.try_write(refusal);
    drop(socket);
}
