//! Asking a service that the operator has named: one GET, or one form.
//!
//! The same connections as those to agents, without rules about addresses, since nobody but the operator writes the URL.

use super::dial::{self, TlsClient};
use super::exchange::exchange;
use super::target::A2aTarget;
use crate::{A2aError, A2aReply, AddressRules};
use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::rustls::RootCertStore;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("reveille/", env!("CARGO_PKG_VERSION")));

/// Follows no redirects and asks no proxies. An answer is at most [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX) long.
pub struct HttpFetcher {
    tls: TlsClient,
}

impl Default for HttpFetcher {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpFetcher {
    /// Trusts the certificates that this machine trusts, as they are now.
    pub fn new() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self { tls: TlsClient::new(roots) }
    }

    pub async fn get(&self, url: &str, patience: Duration) -> Result<A2aReply, A2aError> {
        let target = A2aTarget::parse(url)?;
        let request = Request::builder().method(Method::GET).body(Bytes::new());
        self.send(&target, request.map_err(|error| refused(&error))?, patience).await
    }

    /// Sends a form that is coded already.
    pub async fn post_form(
        &self,
        url: &str,
        form: String,
        authorization: Option<String>,
        patience: Duration,
    ) -> Result<A2aReply, A2aError> {
        let target = A2aTarget::parse(url)?;
        let mut request = Request::builder()
            .method(Method::POST)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|error| refused(&error))?;
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::try_from(authorization)
                .map_err(|_| A2aError::Refused("the authorization is no valid header".to_owned()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        self.send(&target, request, patience).await
    }

    async fn send(
        &self,
        target: &A2aTarget,
        mut request: Request<Bytes>,
        patience: Duration,
    ) -> Result<A2aReply, A2aError> {
        let host = HeaderValue::try_from(&*target.authority)
            .map_err(|_| A2aError::Refused("the host is no valid header".to_owned()))?;
        *request.uri_mut() = target.path.clone().into();
        for (name, value) in [
            (HOST, host),
            (ACCEPT, HeaderValue::from_static("application/json")),
            (USER_AGENT, AGENT),
            (CONNECTION, HeaderValue::from_static("close")),
        ] {
            request.headers_mut().insert(name, value);
        }
        let sent = async {
            let addresses = dial::resolve(&AddressRules::anywhere(), target).await?;
            let socket = dial::connect(&addresses).await?;
            let handed_over = Box::new(|| {});
            if target.secure {
                exchange(self.tls.wrap(target, socket).await?, request, handed_over).await
            } else {
                exchange(socket, request, handed_over).await
            }
        };
        timeout(patience, sent).await.unwrap_or(Err(A2aError::TimedOut))
    }
}

fn refused(error: &hyper::http::Error) -> A2aError {
    A2aError::Refused(error.to_string())
}
