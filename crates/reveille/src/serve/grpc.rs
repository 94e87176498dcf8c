//! Serving gRPC: a limit on connections, and an orderly end.

use crate::config::Config;
use anyhow::{Context, Result};
use futures_util::{Stream, stream};
use reveille_engine::Engine;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::transport::server::{Connected, TcpConnectInfo};
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// How long one call may take.
const CALL_MAX: Duration = Duration::from_mins(1);
/// Calls at the same time on one connection.
const CALLS_MAX: u32 = 64;
/// How a client that is gone without a word is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long to wait after a failed accept.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves from now on, or says what is wrong with the certificate. It is that of the doors: with it gRPC speaks
/// TLS only, as the doors do.
pub fn start(
    listener: TcpListener,
    config: &Config,
    engine: Engine,
    stopped: watch::Receiver<bool>,
) -> Result<()> {
    let doors = &config.doors;
    let (builder, scheme) = match (&doors.tls_cert, &doors.tls_key) {
        (Some(cert), Some(key)) => (Server::builder().tls_config(identity(cert, key)?), "https"),
        _ => (Ok(Server::builder()), "http"),
    };
    let builder = builder.context("doors.tls_cert and doors.tls_key cannot be used for gRPC")?;
    eprintln!("grpc on {scheme}://{}", listener.local_addr()?);
    let served = serve(builder, listener, engine, config.grpc.connections_max, stopped);
    tokio::spawn(async move {
        if let Err(error) = served.await {
            tracing::error!("{error:#}");
        }
    });
    Ok(())
}

fn identity(cert: &Path, key: &Path) -> Result<ServerTlsConfig> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("reading {}", path.display()));
    Ok(ServerTlsConfig::new().identity(Identity::from_pem(read(cert)?, read(key)?)))
}

async fn serve(
    builder: Server,
    listener: TcpListener,
    engine: Engine,
    connections_max: usize,
    mut stopped: watch::Receiver<bool>,
) -> Result<()> {
    let stop = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    builder
        .timeout(CALL_MAX)
        .max_concurrent_streams(CALLS_MAX)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .add_routes(reveille_api::grpc::services(engine))
        .serve_with_incoming_shutdown(connections(listener, connections_max), stop)
        .await
        .context("serving gRPC")
}

/// Connections as they come, while there is room; those beyond wait in the system's queue.
fn connections(listener: TcpListener, max: usize) -> impl Stream<Item = io::Result<GrpcConnection>> {
    let room = Arc::new(Semaphore::new(max));
    stream::unfold((listener, room), |(listener, room)| async move {
        let place = room.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    return Some((Ok(GrpcConnection { stream, _place: place }), (listener, room)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a gRPC connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    })
}

/// A connection with its place, which is free again when it ends.
struct GrpcConnection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Connected for GrpcConnection {
    type ConnectInfo = TcpConnectInfo;
    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for GrpcConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, into)
    }
}

impl AsyncWrite for GrpcConnection {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
