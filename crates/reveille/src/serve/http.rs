//! The HTTP listener, with its limits: connections, header time, idle time.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// How long a client may take to send its request line and headers; also how long a connection may idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);
const HEADERS_LEN_MAX: usize = 64 * 1024;
/// How long requests that are under way at the end may take.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    loop {
        // A connection that finds no room waits in the kernel's queue.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let socket = tokio::select! {
            () = told_to_stop(&mut stopped) => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    // Out of file descriptors, most likely: give others time to close.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (router, stopped) = (router.clone(), stopped.clone());
        connections.spawn(async move {
            speak(socket, router, stopped).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FINISH_WITHIN, all).await;
}

async fn speak(socket: TcpStream, router: Router, mut stopped: watch::Receiver<bool>) {
    let _ = socket.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADERS_LEN_MAX)
        .pipeline_flush(true);
    // A WebSocket begins as a request.
    let connection =
        http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router)).with_upgrades();
    tokio::pin!(connection);
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Returns when the word is given, or when whoever could give it is gone.
async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}
