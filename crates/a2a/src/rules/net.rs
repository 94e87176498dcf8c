//! A network: an address and how many of its leading bits count.

use super::inner_v4;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network in CIDR form; a single address is one of full length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressBlock {
    address: IpAddr,
    prefix: u8,
}

/// Why an entry of the operator is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    #[error("{0:?} is no address rule; expected a network (10.0.0.0/8), an address, `loopback` or `private`")]
    Unknown(String),
    #[error("{entry:?} counts more bits than an address of its kind has ({bits})")]
    PrefixTooLong { entry: String, bits: u8 },
    #[error("{entry:?} has bits behind its prefix; the network is {network}")]
    StrayBits { entry: String, network: AddressBlock },
    #[error(
        "{entry:?} never applies: such an address is judged by the IPv4 address inside it; write {inner}"
    )]
    CarriesV4 { entry: String, inner: Ipv4Addr },
}

impl AddressBlock {
    pub(super) const fn v4(octets: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = octets;
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    pub(super) const fn v6(segments: [u16; 8], prefix: u8) -> Self {
        let mut bits = 0_u128;
        let mut index = 0;
        while index < segments.len() {
            bits = bits << 16 | segments[index] as u128;
            index += 1;
        }
        Self { address: IpAddr::V6(Ipv6Addr::from_bits(bits)), prefix }
    }

    pub(super) fn parse(entry: &str) -> Result<Self, BadRule> {
        let unknown = || BadRule::Unknown(entry.to_owned());
        let (address, prefix) = match entry.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (entry, None),
        };
        let address: IpAddr = address.parse().map_err(|_| unknown())?;
        let prefix = match prefix {
            None => bits(address),
            // Nothing but digits: the standard parser also takes a plus sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| unknown())?
            }
            Some(_) => return Err(unknown()),
        };
        Self { address, prefix }.checked(entry)
    }

    fn checked(self, entry: &str) -> Result<Self, BadRule> {
        let entry = || entry.to_owned();
        if self.prefix > bits(self.address) {
            return Err(BadRule::PrefixTooLong { entry: entry(), bits: bits(self.address) });
        }
        if let IpAddr::V6(v6) = self.address
            && let Some(inner) = inner_v4(v6)
        {
            return Err(BadRule::CarriesV4 { entry: entry(), inner });
        }
        let network = self.without_stray_bits();
        if network == self { Ok(self) } else { Err(BadRule::StrayBits { entry: entry(), network }) }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, prefix: self.prefix }.without_stray_bits() == self
    }

    /// Whether this is a rule for this address and no other.
    pub(super) fn is_only(self, address: IpAddr) -> bool {
        self.address == address && self.prefix == bits(address)
    }

    fn without_stray_bits(self) -> Self {
        let prefix = u32::from(self.prefix);
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(u32::BITS - prefix).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(u128::BITS - prefix).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        };
        Self { address, ..self }
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
