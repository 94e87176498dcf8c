//! Which addresses are not public, and what they are instead.
//!
//! From the special-purpose registries of IANA, and the addresses where clouds keep their metadata
//! services. The first row that contains an address says what it is.

use super::AddressBlock;
use std::net::IpAddr;

/// What an address is that is not a public one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("a cloud's metadata service, which only a rule for exactly this address allows")]
    Metadata,
    #[error("the unspecified address")]
    Unspecified,
    #[error("a loopback address")]
    Loopback,
    #[error("a link-local address")]
    LinkLocal,
    #[error("a private address")]
    Private,
    #[error("an address shared behind a carrier's NAT")]
    Shared,
    #[error("an address for documentation")]
    Documentation,
    #[error("an address for benchmarks")]
    Benchmark,
    #[error("a multicast address")]
    Multicast,
    #[error("the broadcast address")]
    Broadcast,
    #[error("a reserved address")]
    Reserved,
}

const NOT_PUBLIC: [(AddressBlock, Why); 34] = [
    // AWS, GCP, Azure and most others; Alibaba; Oracle; the Azure host, which looks public.
    (AddressBlock::v4([169, 254, 169, 254], 32), Why::Metadata),
    (AddressBlock::v4([100, 100, 100, 200], 32), Why::Metadata),
    (AddressBlock::v4([192, 0, 0, 192], 32), Why::Metadata),
    (AddressBlock::v4([168, 63, 129, 16], 32), Why::Metadata),
    (AddressBlock::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), Why::Metadata),
    (AddressBlock::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Why::Metadata),
    (AddressBlock::v4([0, 0, 0, 0], 32), Why::Unspecified),
    (AddressBlock::v4([0, 0, 0, 0], 8), Why::Reserved),
    (AddressBlock::v4([10, 0, 0, 0], 8), Why::Private),
    (AddressBlock::v4([100, 64, 0, 0], 10), Why::Shared),
    (AddressBlock::v4([127, 0, 0, 0], 8), Why::Loopback),
    (AddressBlock::v4([169, 254, 0, 0], 16), Why::LinkLocal),
    (AddressBlock::v4([172, 16, 0, 0], 12), Why::Private),
    (AddressBlock::v4([192, 0, 0, 0], 24), Why::Reserved),
    (AddressBlock::v4([192, 0, 2, 0], 24), Why::Documentation),
    (AddressBlock::v4([192, 88, 99, 0], 24), Why::Reserved),
    (AddressBlock::v4([192, 168, 0, 0], 16), Why::Private),
    (AddressBlock::v4([198, 18, 0, 0], 15), Why::Benchmark),
    (AddressBlock::v4([198, 51, 100, 0], 24), Why::Documentation),
    (AddressBlock::v4([203, 0, 113, 0], 24), Why::Documentation),
    (AddressBlock::v4([224, 0, 0, 0], 4), Why::Multicast),
    (AddressBlock::v4([255, 255, 255, 255], 32), Why::Broadcast),
    (AddressBlock::v4([240, 0, 0, 0], 4), Why::Reserved),
    (AddressBlock::v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Why::Unspecified),
    (AddressBlock::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Why::Loopback),
    (AddressBlock::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Why::Private),
    (AddressBlock::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Why::LinkLocal),
    // Site-local, the predecessor of unique-local.
    (AddressBlock::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Why::Private),
    (AddressBlock::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Why::Multicast),
    (AddressBlock::v6([0x2001, 0x2, 0, 0, 0, 0, 0, 0], 48), Why::Benchmark),
    // Protocol assignments, Teredo among them.
    (AddressBlock::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Why::Reserved),
    (AddressBlock::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Why::Documentation),
    (AddressBlock::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Why::Documentation),
    // The NAT64 prefix for local use: no telling where the IPv4 address stands in it.
    (AddressBlock::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), Why::Private),
];

/// All IPv6 unicast addresses that were ever given out; the rest is reserved.
const GIVEN_OUT_V6: AddressBlock = AddressBlock::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

impl Why {
    /// What an address is, if not public unicast.
    pub(super) fn not_public(address: IpAddr) -> Option<Self> {
        let listed = NOT_PUBLIC.iter().find(|(net, _)| net.contains(address)).map(|(_, why)| *why);
        let beyond = address.is_ipv6() && !GIVEN_OUT_V6.contains(address);
        listed.or(beyond.then_some(Self::Reserved))
    }
}
