//! The decision as tables: which addresses, under which rules, and why not.

use proptest::prelude::*;
use reveille_a2a::{AddressRules, BadRule, Why};
use std::net::IpAddr;

fn rules(entries: &[&str]) -> AddressRules {
    parse(entries).unwrap()
}

fn parse(entries: &[&str]) -> Result<AddressRules, BadRule> {
    AddressRules::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>())
}

fn check(entries: &[&str], table: &[(&str, Result<(), Why>)]) {
    let rules = rules(entries);
    for (address, expected) in table {
        assert_eq!(rules.permits(address.parse().unwrap()), *expected, "{address} under {entries:?}");
    }
}

#[test]
fn without_rules_only_public_unicast_is_allowed() {
    check(
        &[],
        &[
            ("1.1.1.1", Ok(())),
            ("93.184.216.34", Ok(())),
            ("9.255.255.255", Ok(())),
            ("11.0.0.0", Ok(())),
            ("100.63.255.255", Ok(())),
            ("100.128.0.0", Ok(())),
            ("172.15.255.255", Ok(())),
            ("172.32.0.0", Ok(())),
            ("198.17.255.255", Ok(())),
            ("198.20.0.0", Ok(())),
            ("223.255.255.255", Ok(())),
            ("2606:4700:4700::1111", Ok(())),
            ("2001:200::1", Ok(())),
            ("0.0.0.0", Err(Why::Unspecified)),
            ("0.1.2.3", Err(Why::Reserved)),
            ("10.0.0.1", Err(Why::Private)),
            ("100.64.0.1", Err(Why::Shared)),
            ("100.127.255.255", Err(Why::Shared)),
            ("127.0.0.1", Err(Why::Loopback)),
            ("127.255.255.254", Err(Why::Loopback)),
            ("169.254.0.1", Err(Why::LinkLocal)),
            ("169.254.169.254", Err(Why::Metadata)),
            ("168.63.129.16", Err(Why::Metadata)),
            ("172.16.0.1", Err(Why::Private)),
            ("172.31.255.255", Err(Why::Private)),
            ("192.0.0.8", Err(Why::Reserved)),
            ("192.0.2.1", Err(Why::Documentation)),
            ("192.168.1.1", Err(Why::Private)),
            ("198.18.0.1", Err(Why::Benchmark)),
            ("198.19.255.255", Err(Why::Benchmark)),
            ("198.51.100.7", Err(Why::Documentation)),
            ("203.0.113.7", Err(Why::Documentation)),
            ("224.0.0.1", Err(Why::Multicast)),
            ("239.255.255.255", Err(Why::Multicast)),
            ("240.0.0.1", Err(Why::Reserved)),
            ("255.255.255.255", Err(Why::Broadcast)),
            ("::", Err(Why::Unspecified)),
            ("::1", Err(Why::Loopback)),
            ("fe80::1", Err(Why::LinkLocal)),
            ("febf::1", Err(Why::LinkLocal)),
            ("fec0::1", Err(Why::Private)),
            ("fc00::1", Err(Why::Private)),
            ("fd12:3456::1", Err(Why::Private)),
            ("fd00:ec2::254", Err(Why::Metadata)),
            ("ff02::1", Err(Why::Multicast)),
            ("2001:db8::1", Err(Why::Documentation)),
            ("3fff::1", Err(Why::Documentation)),
            ("2001::1", Err(Why::Reserved)),
            ("100::1", Err(Why::Reserved)),
            ("4000::1", Err(Why::Reserved)),
            ("64:ff9b:1::a00:1", Err(Why::Private)),
        ],
    );
}

#[test]
fn an_address_that_carries_an_ipv4_address_is_judged_by_it() {
    check(
        &["10.0.0.0/8"],
        &[
            ("::ffff:127.0.0.1", Err(Why::Loopback)),
            ("::ffff:169.254.169.254", Err(Why::Metadata)),
            ("::ffff:1.1.1.1", Ok(())),
            ("::ffff:10.1.2.3", Ok(())),
            ("::127.0.0.1", Err(Why::Loopback)),
            ("::192.168.0.1", Err(Why::Private)),
            ("2002:7f00:1::1", Err(Why::Loopback)),
            ("2002:a9fe:a9fe::", Err(Why::Metadata)),
            ("2002:101:101::1", Ok(())),
            ("64:ff9b::127.0.0.1", Err(Why::Loopback)),
            ("64:ff9b::192.168.0.1", Err(Why::Private)),
            ("64:ff9b::1.1.1.1", Ok(())),
            // The form of SIIT is nobody's address.
            ("::ffff:0:127.0.0.1", Err(Why::Reserved)),
        ],
    );
}

#[test]
fn a_rule_allows_what_it_names_and_nothing_beside_it() {
    check(
        &["loopback"],
        &[
            ("127.0.0.1", Ok(())),
            ("::1", Ok(())),
            ("0.0.0.0", Err(Why::Unspecified)),
            ("10.0.0.1", Err(Why::Private)),
        ],
    );
    check(
        &["private"],
        &[
            ("10.9.8.7", Ok(())),
            ("172.20.0.1", Ok(())),
            ("192.168.0.1", Ok(())),
            ("fd12::1", Ok(())),
            ("127.0.0.1", Err(Why::Loopback)),
            ("100.64.0.1", Err(Why::Shared)),
            ("169.254.0.1", Err(Why::LinkLocal)),
            ("fe80::1", Err(Why::LinkLocal)),
            ("169.254.169.254", Err(Why::Metadata)),
            ("fd00:ec2::254", Err(Why::Metadata)),
        ],
    );
    check(
        &["10.1.0.0/16", " 192.168.7.7 ", "fd00:1::/32"],
        &[
            ("10.1.255.255", Ok(())),
            ("10.2.0.0", Err(Why::Private)),
            ("192.168.7.7", Ok(())),
            ("192.168.7.8", Err(Why::Private)),
            ("fd00:1::9", Ok(())),
            ("fd00:2::9", Err(Why::Private)),
        ],
    );
}

#[test]
fn a_metadata_service_is_allowed_only_by_its_own_address() {
    check(
        &["169.254.0.0/16", "fd00::/8", "0.0.0.0/0"],
        &[
            ("169.254.7.7", Ok(())),
            ("fd00::7", Ok(())),
            ("127.0.0.1", Ok(())),
            ("169.254.169.254", Err(Why::Metadata)),
            ("fd00:ec2::254", Err(Why::Metadata)),
            ("100.100.100.200", Err(Why::Metadata)),
        ],
    );
    check(
        &["169.254.169.254", "fd00:ec2::254/128"],
        &[("169.254.169.254", Ok(())), ("fd00:ec2::254", Ok(()))],
    );
}

#[test]
fn a_rule_that_means_nothing_is_told() {
    let table = [
        (
            "localhost",
            "\"localhost\" is no address rule; expected a network (10.0.0.0/8), an address, `loopback` or `private`",
        ),
        ("", "\"\" is no address rule; expected a network (10.0.0.0/8), an address, `loopback` or `private`"),
        (
            "10.0.0.0/+8",
            "\"10.0.0.0/+8\" is no address rule; expected a network (10.0.0.0/8), an address, `loopback` or `private`",
        ),
        (
            "10.0.0.0/",
            "\"10.0.0.0/\" is no address rule; expected a network (10.0.0.0/8), an address, `loopback` or `private`",
        ),
        ("10.0.0.0/33", "\"10.0.0.0/33\" counts more bits than an address of its kind has (32)"),
        ("10.1.2.3/8", "\"10.1.2.3/8\" has bits behind its prefix; the network is 10.0.0.0/8"),
        (
            "::ffff:10.0.0.1",
            "\"::ffff:10.0.0.1\" never applies: such an address is judged by the IPv4 address inside it; write 10.0.0.1",
        ),
    ];
    for (entry, words) in table {
        assert_eq!(parse(&[entry]).unwrap_err().to_string(), words);
    }
}

proptest! {
    #[test]
    fn every_address_is_decided_and_a_mapped_one_like_its_ipv4(v4: u32, v6: u128) {
        let rules = rules(&["private"]);
        let plain = IpAddr::V4(v4.into());
        let mapped = IpAddr::V6(std::net::Ipv4Addr::from(v4).to_ipv6_mapped());
        prop_assert_eq!(rules.permits(plain), rules.permits(mapped));
        let _ = rules.permits(IpAddr::V6(v6.into()));
    }

    #[test]
    fn no_entry_panics(entry in ".{0,40}") {
        let _ = AddressRules::parse(&[entry]);
    }
}

#[test]
fn whoever_may_go_anywhere_is_asked_nothing() {
    for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "8.8.8.8"] {
        assert_eq!(AddressRules::anywhere().permits(address.parse().unwrap()), Ok(()), "{address}");
    }
}
