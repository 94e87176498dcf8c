//! TLS for HTTP, from files that may change while we run: a certificate is renewed without a restart.

use anyhow::{Context, Result};
use reveille_doors::tls::{DoorTls, TlsFiles};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(5);

pub struct ReloadingTls {
    files: TlsFiles,
    current: RwLock<DoorTls>,
}

impl ReloadingTls {
    pub fn load(files: TlsFiles) -> Result<Arc<Self>> {
        let current =
            RwLock::new(files.load().context("http.tls_cert, http.tls_key and http.tls_client_ca")?);
        Ok(Arc::new(Self { files, current }))
    }

    /// What new connections begin with.
    pub fn current(&self) -> DoorTls {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again when they change. Files that cannot be used change nothing: a certificate and its key
    /// are rarely replaced in the same moment.
    pub async fn watch(self: Arc<Self>) {
        let mut seen = self.files.contents();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.files.contents();
            if now == seen {
                continue;
            }
            seen = now;
            match self.files.load() {
                Ok(tls) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = tls;
                    tracing::info!("TLS certificate reloaded");
                }
                Err(error) => {
                    tracing::error!(%error, "new TLS files unusable; the old certificate stays in use");
                }
            }
        }
    }
}
