//! URLs that agents register. One that is taken has no credentials in it, names the host that another reader of the
//! same text would go to, and never leads to an address that is not public.
//!
//! What is not public is asked of the standard library here and of our own tables there.

use super::FuzzTarget;
use crate::signal::FuzzSignal;
use hyper::http::Uri;
use reveille_a2a::{A2aTarget, AddressRules, URL_BYTES_MAX};
use std::net::{IpAddr, Ipv4Addr};
use url::Host;

const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

pub const TARGET: FuzzTarget = FuzzTarget {
    name: "agent_urls",
    dictionary: &[
        "http://",
        "https://",
        "HTTP://",
        "//",
        "/",
        "\\",
        "@",
        ":",
        "?",
        "#",
        ".",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1%25lo]",
        "169.254.169.254",
        "10.0.0.1",
        "0.0.0.0",
        "localhost",
        "agent.example",
        "①②⑦",
        "。",
        "%31",
        "%00",
        "\t",
        "8.8.8.8",
        "xn--",
        "[fd00::1]",
        "192.168.1.1",
        "100.64.0.1",
        "224.0.0.1",
        "\n169.254.0.0/16",
        "\nprivate",
        "\n10.0.0.0/8",
    ],
    run,
};

/// The first line is a URL, the others are what an operator allows.
fn run(input: &[u8], signal: &mut FuzzSignal) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let url = lines.next().unwrap_or_default();
    let entries: Vec<String> = lines.map(str::to_owned).collect();
    allowed_networks(&entries, signal);
    let target = match A2aTarget::parse(url) {
        Ok(target) => target,
        Err(refusal) => return signal.see_words(&refusal.to_string()),
    };
    assert!(url.len() <= URL_BYTES_MAX && !url.contains(char::is_whitespace), "taken: {url:?}");
    assert!(!target.authority.contains(['@', '/', '\\', '\r', '\n']), "authority {:?}", target.authority);
    signal.see((
        target.secure,
        std::mem::discriminant(&target.host),
        target.port == 80 || target.port == 443,
    ));
    seen_by_another(url, &target);
    let address = match target.host {
        Host::Domain(_) => return,
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
    };
    let permitted = AddressRules::default().permits(address);
    signal.see(permitted.is_ok());
    assert!(permitted.is_err() || is_public(address), "{url:?} leads to {address}");
}

/// A name that another reader finds in the same text is the name that is asked for.
fn seen_by_another(url: &str, target: &A2aTarget) {
    let (Ok(other), Host::Domain(name)) = (url.parse::<Uri>(), &target.host) else { return };
    let Some(host) = other.host().filter(|host| host.is_ascii() && !host.contains('%')) else { return };
    assert!(host.eq_ignore_ascii_case(name), "{url:?} is {name:?} here and {host:?} elsewhere");
}

/// No network lets the metadata service in by accident, whatever else an operator allows.
fn allowed_networks(entries: &[String], signal: &mut FuzzSignal) {
    let rules = match AddressRules::parse(entries) {
        Ok(rules) => rules,
        Err(problem) => return signal.see_words(&problem.to_string()),
    };
    let is_named = entries.iter().any(|entry| {
        let address = entry.trim().split('/').next().unwrap_or_default();
        address.parse::<IpAddr>().is_ok_and(|address| address == METADATA)
    });
    assert!(is_named || rules.permits(METADATA).is_err(), "{entries:?} let the metadata service in");
}

fn is_public(address: IpAddr) -> bool {
    let v4 = match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(v6) => v6.to_ipv4(),
    };
    let is_inner = v4.is_some_and(|v4| {
        v4.is_loopback()
            || v4.is_private()
            || v4.is_link_local()
            || v4.is_multicast()
            || v4.is_unspecified()
            || v4.is_broadcast()
            || v4.is_documentation()
    });
    let is_inner_v6 = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    };
    !is_inner && !is_inner_v6
}
