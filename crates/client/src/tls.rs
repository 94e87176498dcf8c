//! Whom the client believes over TLS, and what it shows of itself.
//!
//! Without more words the system's certificates are believed (or those in `SSL_CERT_FILE`). A server with a certificate
//! of its own making is believed by naming whoever signed it, and by nothing less: there is no way to skip the check.

use crate::Error;
use rustls_native_certs::load_native_certs;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

#[derive(Clone, Default)]
pub(crate) struct Tls {
    authorities: Option<RootCerts>,
    identity: Option<ClientCert>,
}

impl Tls {
    /// Only these authorities are believed.
    pub fn trusting(self, pem: &[u8]) -> Result<Self, Error> {
        let authorities = certificates(pem, "the certificate authority")?;
        Ok(Self { authorities: Some(RootCerts::new_with_certs(&authorities)), ..self })
    }

    /// For servers that ask their clients for a certificate.
    pub fn showing(self, chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let chain = certificates(chain, "the client's certificate")?;
        let key =
            PrivateKey::from_pem(key).map_err(|error| Error::Tls(format!("the client's key: {error}")))?;
        Ok(Self { identity: Some(ClientCert::new_with_certs(&chain, key)), ..self })
    }

    pub fn config(&self) -> TlsConfig {
        TlsConfig::builder()
            .root_certs(self.authorities.clone().unwrap_or_else(those_of_the_system))
            .client_cert(self.identity.clone())
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build()
    }
}

/// Files of the system that cannot be read are passed over: what they would have said is then not believed.
fn those_of_the_system() -> RootCerts {
    let found = load_native_certs().certs;
    let found: Vec<_> = found.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    RootCerts::new_with_certs(&found)
}

fn certificates(pem: &[u8], whose: &str) -> Result<Vec<Certificate<'static>>, Error> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(Error::Tls(format!("{whose}: {error}"))),
        }
    }
    if found.is_empty() {
        return Err(Error::Tls(format!("{whose}: no certificate in this PEM")));
    }
    Ok(found)
}
