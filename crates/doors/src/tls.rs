//! TLS for both doors, and for HTTP, from a certificate and its key.
//!
//! The two differ only in when it begins: a NATS client reads INFO in the clear first, a Redis client starts with the
//! handshake. A client that does not finish the handshake in time, or that speaks something else, is disconnected;
//! until then it counts as a connection like any other.
//!
//! Deliberately not here: who a client is (the [`Gate`](crate::Gate) says that; a certificate only lets it speak), and
//! when the files are read again.

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
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// How long a client may take for the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// What a door needs to speak TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct DoorTls(TlsAcceptor);

/// Why TLS is not possible.
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
    #[error("{} cannot be used to check clients: {problem}", path.display())]
    BadAuthority { path: PathBuf, problem: String },
}

/// Where TLS is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// A certificate, followed in its file by its chain.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Authorities of which every client must show a certificate.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    pub fn load(&self) -> Result<DoorTls, TlsError> {
        let chain = certificates(&self.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|source| TlsError::NoKey { path: self.key.clone(), source })?;
        let provider = Arc::new(ring::default_provider());
        let unusable = |source| TlsError::Unusable { cert: self.cert.clone(), key: self.key.clone(), source };
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let bad = |problem: String| TlsError::BadAuthority { path: path.clone(), problem };
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| bad(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| bad(error.to_string()))?)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(unusable)?;
        Ok(DoorTls(TlsAcceptor::from(Arc::new(config))))
    }

    /// What is in the files now, to see whether anything has changed.
    pub fn contents(&self) -> Vec<Option<Vec<u8>>> {
        let paths = [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()];
        paths.into_iter().map(|path| path.and_then(|path| std::fs::read(path).ok())).collect()
    }
}

impl DoorTls {
    /// Reads a certificate, followed in its file by its chain, and its private key.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        TlsFiles { cert: cert.to_owned(), key: key.to_owned(), client_ca: None }.load()
    }

    /// The server's side of the handshake, for whoever limits its time.
    pub async fn handshake<Socket>(&self, socket: Socket) -> io::Result<TlsStream<Socket>>
    where
        Socket: AsyncRead + AsyncWrite + Unpin,
    {
        self.0.accept(socket).await
    }

    /// The server's side of the handshake. Returns nothing if it failed, took too long, or the door closed meanwhile.
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
