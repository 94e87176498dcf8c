//! Where messages may go: public addresses, and what the operator allows beside them.
//!
//! The decision is about addresses, never about names: a name is whatever its owner's DNS says at
//! the moment. A pure function, so that the tables below and their tests are all there is to trust.

mod net;
mod why;

pub use net::{AddressBlock, BadRule};
pub use why::Why;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the word `loopback` stands for.
const LOOPBACK: [AddressBlock; 2] =
    [AddressBlock::v4([127, 0, 0, 0], 8), AddressBlock::v6([0, 0, 0, 0, 0, 0, 0, 1], 128)];

/// What the word `private` stands for: RFC 1918 and unique-local. The shared space of carriers
/// (100.64.0.0/10) is somebody else's network and has to be named.
const PRIVATE: [AddressBlock; 4] = [
    AddressBlock::v4([10, 0, 0, 0], 8),
    AddressBlock::v4([172, 16, 0, 0], 12),
    AddressBlock::v4([192, 168, 0, 0], 16),
    AddressBlock::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
];

/// The networks that are allowed beside public unicast addresses; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRules {
    allow: Vec<AddressBlock>,
    /// No address is asked about.
    anywhere: bool,
}

impl AddressRules {
    /// For a URL that the operator wrote, and nobody else can.
    pub fn anywhere() -> Self {
        Self { allow: Vec::new(), anywhere: true }
    }

    /// Reads what the operator wrote: networks (`10.0.0.0/8`, `fd00::/8`), single addresses, and
    /// the words `loopback` and `private`.
    pub fn parse(entries: &[String]) -> Result<Self, BadRule> {
        let mut allow = Vec::new();
        for entry in entries {
            match entry.trim() {
                "loopback" => allow.extend(LOOPBACK),
                "private" => allow.extend(PRIVATE),
                network => allow.push(AddressBlock::parse(network)?),
            }
        }
        Ok(Self { allow, anywhere: false })
    }

    /// Whether one of the networks that were written down has this address.
    pub fn lists(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|net| net.contains(address))
    }

    /// Whether a connection may go to this address.
    ///
    /// An IPv6 address that carries an IPv4 address is judged by that one, because that is where a
    /// gateway would take it. A metadata service hands out the machine's own credentials, so no
    /// wide network lets one in by accident: only a rule for exactly that address does.
    pub fn permits(&self, address: IpAddr) -> Result<(), Why> {
        let address = judged(address);
        let Some(why) = Why::not_public(address).filter(|_| !self.anywhere) else { return Ok(()) };
        let allowed = match why {
            Why::Metadata => self.allow.iter().any(|net| net.is_only(address)),
            _ => self.allow.iter().any(|net| net.contains(address)),
        };
        if allowed { Ok(()) } else { Err(why) }
    }
}

/// The address that a connection to this one would end at.
fn judged(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => inner_v4(v6).map_or(address, IpAddr::V4),
    }
}

/// The IPv4 address inside an IPv4-mapped, IPv4-compatible, NAT64 or 6to4 address.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        // The unspecified address and loopback look IPv4-compatible and are not.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}
