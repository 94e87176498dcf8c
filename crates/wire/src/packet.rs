//! Packets in and out of bytes.
//!
//! [`decode`] is the only way in: what it returns has passed every rule that a stock worker applies, so nothing after
//! it checks an envelope again. On the way out, [`validate::check`] applies the same rules; a receiver silently drops
//! packets that break them.

use bytes::Bytes;
use prost::Message;
use prost_types::Timestamp;
use reveille_core::time::Millis;

use crate::cap::bus_packet::Payload;
use crate::cap::{BusPacket, WorkerHandshakeChallenge};
use crate::shape;
use crate::validate::{self, BadField, trust};

/// The largest packet: what NATS carries by default.
pub const PACKET_LEN_MAX: usize = 1024 * 1024;

/// The only version of the protocol there is.
pub const PROTOCOL_VERSION: i32 = 1;

/// Why bytes are not a packet.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadPacket {
    #[error("the packet has {len} bytes, more than {len_max}")]
    TooLong { len: usize, len_max: usize },
    #[error("{0}")]
    NotProtobuf(prost::DecodeError),
    #[error(transparent)]
    Field(#[from] BadField),
}

/// Reads a packet from outside and checks it.
pub fn decode(received: &[u8]) -> Result<BusPacket, BadPacket> {
    limit(received, PACKET_LEN_MAX)?;
    let packet = BusPacket::decode(received).map_err(BadPacket::NotProtobuf)?;
    validate::check(&packet)?;
    if trust::is_trust_phase(&packet) {
        check_trust_bytes(received)?;
    }
    Ok(packet)
}

/// Serialises a packet that carries no signature, or a signature made elsewhere.
pub fn encode(packet: &BusPacket) -> Bytes {
    packet.encode_to_vec().into()
}

/// A packet from `sender`, in the trace `trace_id`.
pub fn envelope(sender: &str, trace_id: &str, now: Millis, payload: Payload) -> BusPacket {
    BusPacket {
        trace_id: trace_id.to_owned(),
        sender_id: sender.to_owned(),
        created_at: Some(timestamp(now)),
        protocol_version: PROTOCOL_VERSION,
        payload: Some(payload),
        ..Default::default()
    }
}

/// The same moment as the protocol writes it.
pub fn timestamp(at: Millis) -> Timestamp {
    let nanos = at.0.rem_euclid(1000) * 1_000_000;
    Timestamp { seconds: at.0.div_euclid(1000), nanos: nanos as i32 }
}

/// And back, to the millisecond before. One that no clock can say is the beginning of time.
pub fn millis(timestamp: &Timestamp) -> Millis {
    Millis(timestamp.seconds.saturating_mul(1000).saturating_add(i64::from(timestamp.nanos) / 1_000_000))
}

/// A challenge without the server's nonce, for a server whose nonce is made of the rest.
pub fn without_nonce(challenge: &WorkerHandshakeChallenge) -> Vec<u8> {
    WorkerHandshakeChallenge { server_nonce: Bytes::new(), ..challenge.clone() }.encode_to_vec()
}

fn limit(received: &[u8], len_max: usize) -> Result<(), BadPacket> {
    let len = received.len();
    if len > len_max { Err(BadPacket::TooLong { len, len_max }) } else { Ok(()) }
}

/// A trust handshake is stricter than the rest: short, and without unknown fields, since both sides sign what they
/// read.
fn check_trust_bytes(received: &[u8]) -> Result<(), BadPacket> {
    limit(received, trust::TRUST_PACKET_LEN_MAX)?;
    match shape::has_unknown_fields(shape::bus_packet(), received) {
        Ok(false) => Ok(()),
        _ => Err(BadField { field: "unknown fields", wrong: "must not be in a trust handshake" }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cap::Heartbeat;

    fn heartbeat() -> BusPacket {
        let heartbeat = Heartbeat { worker_id: "w".into(), ..Default::default() };
        envelope("w", "t", Millis(1_234), Payload::Heartbeat(heartbeat))
    }

    #[test]
    fn a_packet_survives_the_round_trip() {
        assert_eq!(decode(&encode(&heartbeat())), Ok(heartbeat()));
    }

    #[test]
    fn an_unknown_field_is_tolerated_in_an_ordinary_packet() {
        let bytes = [&encode(&heartbeat())[..], b"\xfa\x01\x01x"].concat();
        assert_eq!(decode(&bytes), Ok(heartbeat()));
    }

    #[test]
    fn a_packet_that_is_too_long_is_not_even_parsed() {
        let bytes = vec![0xff; PACKET_LEN_MAX + 1];
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "the packet has 1048577 bytes, more than 1048576");
    }

    #[test]
    fn garbage_is_an_error_that_says_so() {
        let error = decode(b"\x0a\x05ab").unwrap_err();
        assert!(matches!(error, BadPacket::NotProtobuf(_)));
        assert!(error.to_string().contains("BusPacket.trace_id"), "{error}");
        assert_eq!(decode(b"").unwrap_err().to_string(), "trace_id must not be empty");
    }

    #[test]
    fn milliseconds_become_seconds_and_a_positive_rest() {
        assert_eq!(timestamp(Millis(1_234)), Timestamp { seconds: 1, nanos: 234_000_000 });
        assert_eq!(timestamp(Millis(-1)), Timestamp { seconds: -1, nanos: 999_000_000 });
    }
}
