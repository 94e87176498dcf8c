//! Packets that nobody could deal with, over HTTP.

use super::text::{cursor, limit};
use crate::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// They carry their content, so a page has fewer than others.
const PAGE_LEN_MAX: usize = 100;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PacketQuery {
    /// 50 unless told, at most 100.
    limit: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

impl PacketQuery {
    pub fn understood(&self) -> Result<(Option<u64>, usize), ApiError> {
        Ok((cursor(self.cursor.as_deref())?, limit(self.limit.as_deref())?.min(PAGE_LEN_MAX)))
    }
}

#[derive(Serialize, ToSchema)]
pub struct DeadPacketPage {
    pub items: Vec<DeadPacket>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct DeadPacket {
    /// Which packet it is: the stream that had it and its number there.
    pub id: String,
    pub subject: String,
    /// Why nobody could deal with it.
    pub reason: String,
    /// How often it was handed out.
    pub deliveries: u64,
    /// RFC 3339.
    pub buried_at: String,
    /// How many bytes it had.
    pub bytes: usize,
    /// Its content in base64, or the first 48 KiB of it.
    pub content: String,
}

impl DeadPacket {
    pub fn of(packet: &reveille_store::DeadPacket) -> Self {
        let about = &packet.about;
        Self {
            id: packet.key.clone(),
            subject: about.subject.clone(),
            reason: about.reason.clone(),
            deliveries: about.deliveries,
            buried_at: about.buried_at.rfc3339(),
            bytes: about.len,
            content: STANDARD.encode(&packet.content),
        }
    }
}
