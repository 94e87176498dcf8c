//! Packets that nobody could deal with.

use super::text::{cursor, limit};
use crate::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_api_types::dead_packet::{DeadPacket, PacketQuery};

/// They carry their content, so a page has fewer than others.
const PAGE_LEN_MAX: usize = 100;

/// Where the page begins, and how many are on it.
pub fn packet_query(query: &PacketQuery) -> Result<(Option<u64>, usize), ApiError> {
    Ok((cursor(query.cursor.as_deref())?, limit(query.limit.as_deref())?.min(PAGE_LEN_MAX)))
}

pub fn dead_packet(packet: &reveille_store::DeadPacket) -> DeadPacket {
    let about = &packet.about;
    DeadPacket {
        id: packet.key.clone(),
        subject: about.subject.clone(),
        reason: about.reason.clone(),
        deliveries: about.deliveries,
        buried_at: about.buried_at.rfc3339(),
        bytes: about.len,
        content: STANDARD.encode(&packet.content),
    }
}
