//! Packets that nobody could deal with, over HTTP.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct PacketQuery {
    /// 50 unless told, at most 100.
    pub limit: Option<String>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadPacketPage {
    pub items: Vec<DeadPacket>,
    /// Nothing on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
