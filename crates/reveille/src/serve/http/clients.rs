//! Whose connection it is: the address at the far end, or, behind a proxy that is trusted, what that proxy says.
//!
//! `X-Forwarded-For` is a list to which each proxy adds whom it heard from. Its left end is whatever the client wrote, so
//! it is read from the right, and only as far as those who wrote it are trusted.

use axum::http::HeaderMap;
use reveille_a2a::AddressRules;
use reveille_core::address::AddressGroup;
use std::net::{IpAddr, SocketAddr};

const FORWARDED_FOR: &str = "x-forwarded-for";
/// Proxies in a row that are followed.
const HOPS_MAX: usize = 16;

/// The client for whom a request is.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &AddressRules) -> IpAddr {
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    let hops = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    let mut client = peer;
    for hop in hops.take(HOPS_MAX) {
        if !trusted.lists(client) {
            break;
        }
        match address(hop.trim()) {
            Some(before) => client = before,
            // Whoever is trusted has written nonsense: what comes before it is not known.
            None => break,
        }
    }
    client
}

/// Whose connections are counted together. A proxy's are everybody's, and so are those on this machine, where any proxy
/// may run.
pub fn counted_as(peer: IpAddr, trusted: &AddressRules) -> Option<AddressGroup> {
    let is_shared = peer.to_canonical().is_loopback() || trusted.lists(peer);
    (!is_shared).then(|| AddressGroup::of(peer))
}

/// Some proxies add a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(entries: &[&str]) -> AddressRules {
        AddressRules::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn check(peer: &str, lines: &[&str], trusted: &[&str], expected: &str) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let client = client_address(peer.parse().unwrap(), &headers, &rules(trusted));
        assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{peer} {lines:?} {trusted:?}");
    }

    #[test]
    fn a_stranger_cannot_say_that_it_is_somebody_else() {
        check("192.0.2.9", &["198.51.100.1"], &[], "192.0.2.9");
        check("192.0.2.9", &["198.51.100.1"], &["10.0.0.0/8"], "192.0.2.9");
        check("10.0.0.1", &["8.8.8.8, 198.51.100.1"], &["10.0.0.0/8"], "198.51.100.1");
        check("10.0.0.1", &["8.8.8.8", "198.51.100.1"], &["10.0.0.0/8"], "198.51.100.1");
    }

    #[test]
    fn proxies_in_a_row_are_followed_as_far_as_they_are_trusted() {
        check("10.0.0.1", &["198.51.100.1, 10.0.0.2"], &["10.0.0.0/8"], "198.51.100.1");
        check("::ffff:10.0.0.1", &["2001:db8::7"], &["10.0.0.1"], "2001:db8::7");
        check("127.0.0.1", &["[2001:db8::7]:443"], &["loopback"], "2001:db8::7");
        check("127.0.0.1", &["198.51.100.1:5001"], &["loopback"], "198.51.100.1");
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], &["10.0.0.0/8"], "10.0.0.3");
        check("10.0.0.1", &[], &["10.0.0.0/8"], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"], &["10.0.0.0/8"], "10.0.0.2");
    }

    #[test]
    fn what_many_share_is_not_one_client() {
        let counted = |peer: &str| counted_as(peer.parse().unwrap(), &rules(&["10.0.0.0/8"])).is_some();
        assert!(counted("192.0.2.9") && counted("2001:db8::1"));
        assert!(
            !counted("127.0.0.1") && !counted("::1") && !counted("::ffff:127.0.0.1") && !counted("10.1.1.1")
        );
    }
}
