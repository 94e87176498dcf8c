//! A checkpoint: what a tenant's chain was at some moment, to be signed and kept where the chain is not.
//!
//! What is signed is a line of JSON, byte for byte as [`Checkpoint::payload`] writes it: no spaces, the fields in this
//! order, `format` first. A payload that reads the same and is written otherwise is refused, so that there is one text
//! for one statement.
//!
//! Not here: keys and signatures. The server signs, and whoever keeps the file verifies.

use super::{Bounds, Entry, Hash, Link};
use crate::id::TenantId;
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// Changes whenever the bytes of a payload do.
const FORMAT: &str = "reveille.audit.checkpoint.1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub tenant: TenantId,
    /// The oldest entry that was kept; older ones were pruned in time.
    pub first_seq: u64,
    /// The newest entry.
    pub last: Link,
    /// When that was recorded; nothing if it was pruned already.
    pub last_at: Option<Millis>,
    pub at: Millis,
    /// The server's key that signs it.
    pub key_id: String,
}

/// Why a text is no checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCheckpoint {
    #[error("it is not a checkpoint: {0}")]
    Unreadable(String),
    #[error("it is of another format, {0:?}")]
    OtherFormat(String),
    #[error("it is not written as checkpoints are")]
    Rewritten,
}

/// As it stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    format: String,
    tenant: String,
    first_seq: u64,
    last_seq: u64,
    last_hash: String,
    last_at: Option<String>,
    at: String,
    key_id: String,
}

impl Checkpoint {
    /// Of a chain with these bounds, whose newest entry is `newest` if it is kept.
    pub fn of(tenant: TenantId, bounds: &Bounds, newest: Option<&Entry>, at: Millis, key_id: &str) -> Self {
        let last_at = newest.map(|entry| entry.draft.at);
        let first_seq = bounds.boundary.seq + 1;
        Self { tenant, first_seq, last: bounds.head, last_at, at, key_id: key_id.to_owned() }
    }

    /// The text that is signed.
    pub fn payload(&self) -> String {
        let payload = Payload {
            format: FORMAT.to_owned(),
            tenant: self.tenant.to_string(),
            first_seq: self.first_seq,
            last_seq: self.last.seq,
            last_hash: self.last.hash.to_string(),
            last_at: self.last_at.map(Millis::rfc3339),
            at: self.at.rfc3339(),
            key_id: self.key_id.clone(),
        };
        serde_json::to_string(&payload).unwrap_or_default()
    }

    pub fn read(payload: &str) -> Result<Self, BadCheckpoint> {
        let unreadable = |problem: &dyn std::fmt::Display| BadCheckpoint::Unreadable(problem.to_string());
        let read: Payload = serde_json::from_str(payload).map_err(|error| unreadable(&error))?;
        if read.format != FORMAT {
            return Err(BadCheckpoint::OtherFormat(read.format));
        }
        let hash = Hash::parse(&read.last_hash)
            .ok_or_else(|| unreadable(&"last_hash is not 64 hexadecimal digits"))?;
        let moment = |text: &str| match text.parse::<jiff::Timestamp>() {
            Ok(at) => Ok(Millis(at.as_millisecond())),
            Err(error) => Err(unreadable(&error)),
        };
        let checkpoint = Self {
            tenant: TenantId::parse(&read.tenant).map_err(|error| unreadable(&error))?,
            first_seq: read.first_seq,
            last: Link { seq: read.last_seq, hash },
            last_at: read.last_at.as_deref().map(moment).transpose()?,
            at: moment(&read.at)?,
            key_id: read.key_id,
        };
        if checkpoint.payload() == payload { Ok(checkpoint) } else { Err(BadCheckpoint::Rewritten) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let head = Link { seq: 12, hash: Hash([0xab; 32]) };
        let bounds = Bounds { boundary: Link { seq: 4, hash: Hash::default() }, head };
        let last_at = Some(Millis(790));
        let of = Checkpoint::of(
            TenantId::known("größe\"x"),
            &bounds,
            None,
            Millis(1_790),
            "ed25519:0011223344556677",
        );
        Checkpoint { last_at, ..of }
    }

    /// Checkpoints are kept for years: a change of these bytes breaks every one of them.
    #[test]
    fn the_bytes_under_the_signature_stay_as_they_are() {
        let text = format!(
            "{{\"format\":\"reveille.audit.checkpoint.1\",\"tenant\":\"größe\\\"x\",\"first_seq\":5,\"last_seq\":12,\
             \"last_hash\":\"{}\",\"last_at\":\"1970-01-01T00:00:00.790Z\",\"at\":\"1970-01-01T00:00:01.790Z\",\
             \"key_id\":\"ed25519:0011223344556677\"}}",
            "ab".repeat(32)
        );
        assert_eq!(checkpoint().payload(), text);
        assert_eq!(Checkpoint::read(&text), Ok(checkpoint()));
        let pruned = Checkpoint { last_at: None, ..checkpoint() };
        assert!(pruned.payload().contains("\"last_at\":null,"), "{}", pruned.payload());
        assert_eq!(Checkpoint::read(&pruned.payload()), Ok(pruned));
    }

    #[test]
    fn another_text_for_the_same_is_none() {
        let payload = checkpoint().payload();
        let refused = |payload: &str| Checkpoint::read(payload).unwrap_err();
        assert_eq!(refused(&payload.replace(",\"at\"", ", \"at\"")), BadCheckpoint::Rewritten);
        assert_eq!(refused(&payload.replace("abab", "ABAB")), BadCheckpoint::Rewritten);
        assert!(matches!(
            refused(&payload.replace("checkpoint.1", "checkpoint.2")),
            BadCheckpoint::OtherFormat(_)
        ));
        for bad in ["", "{}", "[]", &payload[1..], &payload.replace("first_seq", "first")] {
            assert!(matches!(refused(bad), BadCheckpoint::Unreadable(_)), "{bad}");
        }
    }
}
