//! Opening a connection: TCP, and TLS where the address says so.

use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::http::address::ServerAddress;

pub type HttpSender = SendRequest<Full<Bytes>>;

/// Opens connections to one server.
#[derive(Default)]
pub struct Dialer {
    /// The certificate authorities are read when they are first needed.
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Dialer {
    /// A dialer that trusts what the test says.
    #[cfg(test)]
    pub fn trusting(config: ClientConfig) -> Self {
        Self { tls: OnceLock::from(Arc::new(config)) }
    }

    pub async fn dial(&self, address: &ServerAddress) -> io::Result<HttpSender> {
        let socket = TcpStream::connect((address.host.as_str(), address.port)).await?;
        socket.set_nodelay(true)?;
        if !address.is_https {
            return shake_hands(TokioIo::new(socket)).await;
        }
        let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
        let tls = TlsConnector::from(self.tls()?);
        shake_hands(TokioIo::new(tls.connect(name, socket).await?)).await
    }

    fn tls(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(client_config(system_authorities())?);
        Ok(Arc::clone(self.tls.get_or_init(|| config)))
    }
}

async fn shake_hands(socket: impl Read + Write + Unpin + Send + 'static) -> io::Result<HttpSender> {
    let (sender, connection) = handshake(socket).await.map_err(io::Error::other)?;
    // Ends when the sender is dropped or the server hangs up.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended");
        }
    });
    Ok(sender)
}

/// The authorities that the system trusts. Without any, every handshake fails and says so.
fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "cannot read a certificate authority");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

/// The provider is named, so that an agent which brings another one changes nothing here.
pub fn client_config(roots: RootCertStore) -> io::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
