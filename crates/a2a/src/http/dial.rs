//! From a host to an open connection: resolve, check, connect, and agree on keys.

use super::target::A2aTarget;
use crate::{A2aError, AddressRules, Why};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Host;

/// How long each may take: the lookup, the connection to one address, the handshake.
pub const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How many of a host's addresses are tried before it counts as unreachable.
pub const ADDRESSES_TRIED_MAX: usize = 4;

/// The addresses behind the target, all of them permitted.
pub(super) async fn resolve(rules: &AddressRules, target: &A2aTarget) -> Result<Vec<SocketAddr>, A2aError> {
    let addresses = match &target.host {
        Host::Ipv4(address) => vec![SocketAddr::new((*address).into(), target.port)],
        Host::Ipv6(address) => vec![SocketAddr::new((*address).into(), target.port)],
        Host::Domain(name) => look_up(name, target.port).await?,
    };
    permitted(rules, &target.host, addresses)
}

async fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, A2aError> {
    match timeout(CONNECT_MAX, lookup_host((name, port))).await {
        Ok(Ok(found)) => Ok(found.collect()),
        Ok(Err(error)) => Err(A2aError::Unreachable(format!("{name}: {error}"))),
        Err(_) => Err(A2aError::Unreachable(format!("{name}: no answer from DNS in {CONNECT_MAX:?}"))),
    }
}

/// One address that is not permitted refuses the host: a name that is public and internal at once
/// is no accident.
fn permitted(
    rules: &AddressRules,
    host: &Host<String>,
    addresses: Vec<SocketAddr>,
) -> Result<Vec<SocketAddr>, A2aError> {
    for address in addresses.iter().map(SocketAddr::ip) {
        rules.permits(address).map_err(|why| A2aError::Refused(refusal(host, address, why)))?;
    }
    if addresses.is_empty() {
        return Err(A2aError::Unreachable(format!("{host} has no address")));
    }
    Ok(addresses)
}

fn refusal(host: &Host<String>, address: IpAddr, why: Why) -> String {
    match host {
        Host::Domain(name) => format!("{name} resolves to {address}, {why}"),
        _ => format!("{address} is {why}"),
    }
}

/// A connection to the first address that accepts one.
pub(super) async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, A2aError> {
    let mut words = String::from("no address to connect to");
    for address in addresses.iter().take(ADDRESSES_TRIED_MAX) {
        words = match timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => format!("{address}: {error}"),
            Err(_) => format!("{address}: no connection in {CONNECT_MAX:?}"),
        };
    }
    Err(A2aError::Unreachable(words))
}

/// What is needed to speak TLS to agents, or why it cannot be spoken here.
pub(super) struct TlsClient(Result<TlsConnector, String>);

impl TlsClient {
    pub(super) fn new(roots: RootCertStore) -> Self {
        if roots.is_empty() {
            let words = "this machine trusts no certificate authority; SSL_CERT_FILE can name some";
            return Self(Err(words.to_owned()));
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = builder.with_safe_default_protocol_versions().map(|builder| {
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            TlsConnector::from(Arc::new(config))
        });
        Self(config.map_err(|error| error.to_string()))
    }

    pub(super) async fn wrap(
        &self,
        target: &A2aTarget,
        socket: TcpStream,
    ) -> Result<TlsStream<TcpStream>, A2aError> {
        let unreachable = |error: &dyn Error| A2aError::Unreachable(format!("TLS: {}", told(error)));
        let connector = self.0.as_ref().map_err(|words| A2aError::Unreachable(words.clone()))?;
        let name = ServerName::try_from(target.certified_name()).map_err(|error| unreachable(&error))?;
        match timeout(CONNECT_MAX, connector.connect(name, socket)).await {
            Ok(handshake) => handshake.map_err(|error| unreachable(&error)),
            Err(_) => Err(A2aError::Unreachable(format!("TLS: no handshake in {CONNECT_MAX:?}"))),
        }
    }
}

/// An error with what caused it, in one line.
pub(super) fn told(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::permitted;
    use crate::{A2aError, AddressRules};
    use std::net::SocketAddr;
    use url::Host;

    fn check(addresses: &[&str]) -> Result<Vec<SocketAddr>, A2aError> {
        let host = Host::Domain("agent.example".to_owned());
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        permitted(&AddressRules::default(), &host, addresses)
    }

    #[test]
    fn one_internal_address_among_public_ones_refuses_the_host() {
        let words = "agent.example resolves to 10.0.0.7, a private address";
        assert_eq!(check(&["1.1.1.1:80", "10.0.0.7:80"]), Err(A2aError::Refused(words.to_owned())));
        assert_eq!(check(&["1.1.1.1:80", "9.9.9.9:80"]).map(|addresses| addresses.len()), Ok(2));
    }

    #[test]
    fn a_host_without_addresses_is_unreachable() {
        let words = "agent.example has no address".to_owned();
        assert_eq!(check(&[]), Err(A2aError::Unreachable(words)));
    }
}
