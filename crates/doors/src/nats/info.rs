//! INFO, the first line a NATS client reads: what this server is and can do.

use super::NatsLimits;
use std::net::SocketAddr;

/// The NATS server release whose client protocol this door follows. Clients compare it before they
/// use newer features.
const VERSION: &str = "2.10.0";

/// Protocol level 1: the server may send INFO again later. We never do, but clients expect it.
const PROTOCOL: u8 = 1;

#[derive(serde::Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "clients read them under these names")]
struct Info<'a> {
    server_id: &'a str,
    server_name: &'a str,
    version: &'a str,
    proto: u8,
    host: String,
    port: u16,
    headers: bool,
    max_payload: usize,
    client_id: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auth_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_required: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls_available: bool,
}

/// What a client must do before it is served.
pub(super) struct Demands {
    pub secret: bool,
    pub tls: bool,
}

/// The whole line.
pub(super) fn line(
    address: Option<SocketAddr>,
    limits: &NatsLimits,
    client_id: u64,
    demands: &Demands,
) -> String {
    let info = Info {
        server_id: "REVEILLE",
        server_name: "reveille",
        version: VERSION,
        proto: PROTOCOL,
        host: address.map(|address| address.ip().to_string()).unwrap_or_default(),
        port: address.map_or(0, |address| address.port()),
        headers: true,
        max_payload: limits.payload_len_max,
        client_id,
        auth_required: demands.secret,
        tls_required: demands.tls,
        tls_available: demands.tls,
    };
    // Strings and numbers always serialize; the line would be valid even without them.
    let json = serde_json::to_string(&info).unwrap_or_else(|_| "{}".to_owned());
    format!("INFO {json}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_line_that_clients_understand() {
        let address = "127.0.0.1:4222".parse().unwrap();
        assert_eq!(
            line(Some(address), &NatsLimits::default(), 7, &Demands { secret: true, tls: true }),
            "INFO {\"server_id\":\"REVEILLE\",\"server_name\":\"reveille\",\"version\":\"2.10.0\",\"proto\":1,\
             \"host\":\"127.0.0.1\",\"port\":4222,\"headers\":true,\"max_payload\":1048576,\"client_id\":7,\
             \"auth_required\":true,\"tls_required\":true,\"tls_available\":true}\r\n"
        );
        let undemanding = line(None, &NatsLimits::default(), 7, &Demands { secret: false, tls: false });
        assert!(undemanding.ends_with("\"client_id\":7}\r\n"), "{undemanding}");
    }
}
