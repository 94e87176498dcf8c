//! Packets that can never be processed, kept for a while so that someone can look at them.
//!
//! They are stored before the bus is told to forget them, so that none is lost in between. They come from outside and
//! may be anything: each is truncated, and the oldest are removed if there are too many.

use crate::{Page, StoreError};
use bytes::Bytes;
use reveille_core::time::Millis;
use serde::{Deserialize, Serialize};

/// How many are kept; with their size that is 64 MiB at most.
pub const DEAD_PACKETS_MAX: usize = 1_000;
/// How long one is kept.
pub const DEAD_PACKET_KEEP_MS: i64 = 30 * 24 * 3600 * 1000;
/// Maximum encoded size; content that does not fit is left out.
pub const DEAD_PACKET_LEN_MAX: usize = 64 * 1024;

const CONTENT_LEN_MAX: usize = 48 * 1024;
/// Maximum length of each text from outside. Escaped, they still fit beside the content.
const WORD_LEN_MAX: usize = 512;

/// A packet that could not be processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadPacket {
    /// Its identity, such as `<stream>:<sequence>`: storing it again does not duplicate it.
    pub key: String,
    pub about: AboutPacket,
    /// Its content, or the beginning of it.
    pub content: Bytes,
}

/// What is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutPacket {
    pub subject: String,
    /// Why it could not be processed.
    pub reason: String,
    /// How many times it was delivered.
    pub deliveries: u64,
    /// How long the content was.
    pub len: usize,
    pub buried_at: Millis,
}

/// The port. A packet whose storing was confirmed survives kill -9.
#[async_trait::async_trait]
pub trait DeadPackets: Send + Sync + 'static {
    /// Keeps a packet for [`DEAD_PACKET_KEEP_MS`], in place of the oldest if there are [`DEAD_PACKETS_MAX`].
    async fn bury(&self, packet: DeadPacket) -> Result<(), StoreError>;

    /// One page, most recently stored first, after `cursor` (from the page before).
    async fn buried(&self, cursor: Option<u64>, limit: usize) -> Result<Page<DeadPacket>, StoreError>;
}

impl DeadPacket {
    pub fn new(key: &str, about: AboutPacket, content: &Bytes) -> Self {
        let about = AboutPacket {
            subject: cut(about.subject),
            reason: cut(about.reason),
            len: content.len(),
            ..about
        };
        // A copy: a slice would keep the whole of what arrived in memory.
        let content = Bytes::copy_from_slice(&content[..content.len().min(CONTENT_LEN_MAX)]);
        Self { key: cut(key.to_owned()), about, content }
    }

    pub(crate) fn is_kept_at(&self, now: Millis) -> bool {
        now < self.about.buried_at + DEAD_PACKET_KEEP_MS
    }

    /// One line of JSON, and the content as it came.
    pub(crate) fn written(&self) -> Result<Vec<u8>, StoreError> {
        let mut written =
            serde_json::to_vec(&self.about).map_err(|error| StoreError::Refused(error.to_string()))?;
        written.push(b'\n');
        written.extend_from_slice(&self.content);
        Ok(written)
    }

    pub(crate) fn read(key: &str, written: &[u8]) -> Result<Self, StoreError> {
        let unreadable =
            |what: &dyn std::fmt::Display| StoreError::Corrupt(format!("the dead packet {key}: {what}"));
        let end =
            written.iter().position(|byte| *byte == b'\n').ok_or_else(|| unreadable(&"no first line"))?;
        let about = serde_json::from_slice(&written[..end]).map_err(|error| unreadable(&error))?;
        Ok(Self { key: key.to_owned(), about, content: Bytes::copy_from_slice(&written[end + 1..]) })
    }
}

fn cut(mut word: String) -> String {
    word.truncate(word.floor_char_boundary(WORD_LEN_MAX));
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_comes_is_written_within_its_limit_and_read_again() {
        let about = AboutPacket {
            subject: "\u{1}".repeat(9_999),
            reason: "ü\n".repeat(9_999),
            deliveries: u64::MAX,
            len: 0,
            buried_at: Millis(i64::MIN),
        };
        let packet = DeadPacket::new(&"\n".repeat(9_999), about, &vec![b'\n'; 1 << 20].into());
        assert_eq!(packet.about.len, 1 << 20);
        let written = packet.written().unwrap();
        assert!(packet.key.len() + written.len() <= DEAD_PACKET_LEN_MAX, "{}", written.len());
        assert_eq!(DeadPacket::read(&packet.key, &written).unwrap(), packet);
        assert!(DeadPacket::read("a", b"{}").is_err() && DeadPacket::read("a", b"\n").is_err());
    }
}
