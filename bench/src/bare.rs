//! The ceilings: the same server stacks with nothing behind them, in processes of their own.
//!
//! `reveille-bench bare http` takes a body and answers; `bare nats` takes messages through the NATS door
//! and drops them. What the server does beyond that is what its own work costs.

use anyhow::Result;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use reveille_bus::{Bus, LocalBus};
use reveille_core::id::TenantId;
use reveille_doors::OpenGate;
use reveille_doors::nats::{self, NatsLimits};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub async fn http() -> Result<()> {
    let router = Router::new().route(
        "/v1/agents/heartbeat",
        post(|body: Bytes| async move { (StatusCode::ACCEPTED, answer(&body)) }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let router = router.clone();
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).pipeline_flush(true);
            let _ = http.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router)).await;
        });
    }
}

fn answer(body: &Bytes) -> &'static str {
    if body.is_empty() { "{}" } else { r#"{"status":"accepted"}"# }
}

pub async fn nats() -> Result<()> {
    let bus = LocalBus::default();
    let mut beats = bus.subscribe("sys.heartbeat", None).await?;
    tokio::spawn(async move { while beats.recv().await.is_some() {} });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("nats door on nats://{}", listener.local_addr()?);
    let (_stop, stopped) = watch::channel(false);
    let gate = Arc::new(OpenGate(TenantId::known("default")));
    nats::serve(listener, None, bus, gate, NatsLimits::default(), stopped).await;
    Ok(())
}
