//! The A2A client over HTTP/1.1: one connection a request, to an address that was checked.
//!
//! In this order, and never another: parse the URL, resolve its host once, check every address,
//! connect to one of exactly those. A second lookup could answer differently (DNS rebinding), so
//! there is none. Nor are redirects followed or proxies of the environment asked: both would send
//! the request where nobody checked.
//!
//! A connection per request costs a round trip and keeps the pool, its limits and its stale
//! connections out of the code; agents take seconds to answer.

mod dial;
mod exchange;
mod fetch;
mod handover;
mod target;
#[cfg(test)]
mod tests;

pub use dial::{ADDRESSES_TRIED_MAX, CONNECT_MAX};
pub use exchange::HEADERS_MAX;
pub use fetch::HttpFetcher;
pub use target::{A2aTarget, URL_BYTES_MAX};

use crate::{A2aClient, A2aError, A2aReply, A2aRequest, AddressRules, REQUEST_BYTES_MAX, Received};
use dial::TlsClient;
use exchange::{exchange, http_request};
use tokio::time::timeout;
use tokio_rustls::rustls::RootCertStore;

/// Sends requests to the addresses that its rules permit.
pub struct HttpA2aClient {
    rules: AddressRules,
    tls: TlsClient,
}

impl HttpA2aClient {
    /// Trusts the certificates that this machine trusts, as they are now. A machine with none can
    /// still send to `http` URLs.
    pub fn new(rules: AddressRules) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::with_roots(rules, roots)
    }

    fn with_roots(rules: AddressRules, roots: RootCertStore) -> Self {
        Self { rules, tls: TlsClient::new(roots) }
    }

    async fn send(&self, request: A2aRequest, received: Received) -> Result<A2aReply, A2aError> {
        if request.body.len() > REQUEST_BYTES_MAX {
            return Err(A2aError::TooLarge);
        }
        let target = A2aTarget::parse(&request.url)?;
        let request = http_request(&target, request)?;
        let addresses = dial::resolve(&self.rules, &target).await?;
        let socket = dial::connect(&addresses).await?;
        if target.secure {
            exchange(self.tls.wrap(&target, socket).await?, request, received).await
        } else {
            exchange(socket, request, received).await
        }
    }
}

#[async_trait::async_trait]
impl A2aClient for HttpA2aClient {
    async fn check(&self, url: &str) -> Result<(), A2aError> {
        let target = A2aTarget::parse(url)?;
        dial::resolve(&self.rules, &target).await.map(drop)
    }

    async fn post(&self, request: A2aRequest, received: Received) -> Result<A2aReply, A2aError> {
        let patience = request.patience;
        timeout(patience, self.send(request, received)).await.unwrap_or(Err(A2aError::TimedOut))
    }
}
