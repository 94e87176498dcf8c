//! TLS for both doors, from one certificate and its key.
//!
//! The two differ only in when it begins: a NATS client reads INFO in the clear first, a Redis
//! client starts with it. A client that does not finish the handshake in time, or that speaks
//! something else, is cut off; until then it counts as a connection like any other.
//!
//! Deliberately not here: client certificates (the [`Gate`](crate::Gate) says who a client is), and
//! reading the files again while the server runs.

use crate::accept::closed;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// How long a client may take to agree on keys.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// What a door needs to speak TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct DoorTls(TlsAcceptor);

/// Why there can be no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("reading {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} holds no certificate in PEM form", path.display())]
    NoCertificate { path: PathBuf, source: pem::Error },
    #[error("{} holds no private key in PEM form", path.display())]
    NoKey { path: PathBuf, source: pem::Error },
    #[error("the certificate in {} and the key in {} cannot be used together", cert.display(), key.display())]
    Unusable { cert: PathBuf, key: PathBuf, source: rustls::Error },
}

impl DoorTls {
    /// Reads a certificate, followed in its file by those that vouch for it, and its private key.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = certificates(cert)?;
        let private_key = PrivateKeyDer::from_pem_slice(&read(key)?)
            .map_err(|source| TlsError::NoKey { path: key.to_owned(), source })?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private_key))
            .map_err(|source| TlsError::Unusable { cert: cert.to_owned(), key: key.to_owned(), source })?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// The server's side of the handshake. Nothing comes back if it failed, took too long, or the
    /// door closed meanwhile.
    pub(crate) async fn accept<Socket>(
        &self,
        socket: Socket,
        mut shutdown: watch::Receiver<bool>,
    ) -> Option<TlsStream<Socket>>
    where
        Socket: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = timeout(HANDSHAKE_MAX, self.0.accept(socket));
        let outcome = tokio::select! {
            () = closed(&mut shutdown) => return None,
            outcome = handshake => outcome.unwrap_or_else(|late| Err(late.into())),
        };
        outcome
            .inspect_err(|error| tracing::debug!(%error, "a client was cut off, it did not begin TLS"))
            .ok()
    }
}

impl fmt::Debug for DoorTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls")
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<Vec<_>, _>>();
    chain
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(|source| TlsError::NoCertificate { path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
