//! The admin listener: health, readiness and metrics, on an address, a thread and a runtime of their own, so that
//! nothing that callers do to the others keeps a probe from its answer.

use super::http::{self, HttpLimits};
use anyhow::{Context, Result};
use reveille_engine::Engine;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Probes and scrapers are few.
const CONNECTIONS_MAX: usize = 256;

pub fn start(listener: TcpListener, engine: Engine, stopped: watch::Receiver<bool>) -> Result<()> {
    let listener = listener.into_std().context("the admin listener")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime of the admin listener")?;
    let serve = move || {
        runtime.block_on(async move {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    let router = reveille_api::admin_router(engine);
                    http::serve(listener, router, None, HttpLimits::new(CONNECTIONS_MAX), stopped).await;
                }
                Err(error) => tracing::error!(%error, "admin listener not started"),
            }
        });
    };
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(serve)
        .context("starting the admin listener")?;
    Ok(())
}
