//! The bytes that a stock worker would have written for a packet.
//!
//! A Python worker checks a signature by parsing the packet and serialising it again with the upb
//! library's "deterministic" order. What was signed must therefore be, byte for byte, what upb
//! writes, and upb differs from prost in three ways:
//!
//! - fields stand in ascending order, also `auth_token` (18) before the handshake payloads (19 to
//!   22), which prost writes where the oneof's first field (10) would stand;
//! - a map entry always has both its key and its value, even when they are empty;
//! - map keys are in byte order, except that a key stands *before* its own prefixes: `workflow_id`,
//!   `workflow`, and the empty key last.
//!
//! Rather than write every message a second time, this takes what prost wrote and puts it in order,
//! guided by the descriptors.

use std::cmp::Ordering;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::cap::BusPacket;
use crate::record::{Malformed, ProtoRecord, records};
use crate::shape::{self, FieldShape, Shape};

/// Serialises a packet as upb does.
#[expect(clippy::expect_used, reason = "prost has just written these bytes")]
pub fn encode(packet: &BusPacket) -> Vec<u8> {
    reorder(shape::bus_packet(), &packet.encode_to_vec()).expect("prost writes whole records")
}

/// A record in its final form, with what decides its place.
struct EncodedRecord {
    number: u32,
    map_key: Option<Vec<u8>>,
    bytes: Vec<u8>,
}

fn reorder(shape: &Shape, message: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut pieces = Vec::new();
    for record in records(message) {
        let record = record?;
        pieces.push(match shape.fields.get(&record.number).and_then(FieldShape::message) {
            Some(inner) => nested(inner, &record)?,
            None => EncodedRecord { number: record.number, map_key: None, bytes: record.raw.to_vec() },
        });
    }
    if shape.is_map_entry {
        add_missing(shape, &mut pieces);
    }
    // Stable, so that the elements of a list keep their order.
    pieces.sort_by(|a, b| a.number.cmp(&b.number).then_with(|| map_key_order(a, b)));
    Ok(pieces.into_iter().flat_map(|piece| piece.bytes).collect())
}

fn nested(shape: &Shape, record: &ProtoRecord<'_>) -> Result<EncodedRecord, Malformed> {
    let inner = reorder(shape, record.value)?;
    // An entry is in order by now, and its key is its first field.
    let map_key = match records(&inner).next() {
        Some(key) if shape.is_map_entry => Some(key?.value.to_vec()),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(record.raw.len());
    encode_key(record.number, WireType::LengthDelimited, &mut bytes);
    encode_varint(inner.len() as u64, &mut bytes);
    bytes.extend(inner);
    Ok(EncodedRecord { number: record.number, map_key, bytes })
}

/// Writes the key or value of a map entry that prost omitted because it is empty.
fn add_missing(shape: &Shape, pieces: &mut Vec<EncodedRecord>) {
    for (&number, field) in &shape.fields {
        if pieces.iter().any(|piece| piece.number == number) {
            continue;
        }
        let mut bytes = Vec::new();
        encode_key(number, field.wire_type, &mut bytes);
        let zeros = match field.wire_type {
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            _ => 1,
        };
        bytes.resize(bytes.len() + zeros, 0);
        pieces.push(EncodedRecord { number, map_key: None, bytes });
    }
}

fn map_key_order(a: &EncodedRecord, b: &EncodedRecord) -> Ordering {
    let (Some(a), Some(b)) = (&a.map_key, &b.map_key) else { return Ordering::Equal };
    let common = a.len().min(b.len());
    a[..common].cmp(&b[..common]).then(b.len().cmp(&a.len()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cap::bus_packet::Payload;
    use crate::cap::{Handshake, JobRequest, WorkerHandshakeResult};

    fn position(bytes: &[u8], part: &[u8]) -> usize {
        bytes.windows(part.len()).position(|window| window == part).unwrap()
    }

    #[test]
    fn a_key_stands_before_its_own_prefix() {
        let keys = ["", "a", "workflow", "workflow_id", "workfloz", "b"];
        let labels: BTreeMap<_, _> = keys.iter().map(|key| ((*key).to_owned(), "v".to_owned())).collect();
        let payload = Payload::JobRequest(JobRequest { labels, ..Default::default() });
        let bytes = encode(&BusPacket { payload: Some(payload), ..Default::default() });
        let request = records(&bytes).next().unwrap().unwrap().value;
        let written: Vec<_> = records(request)
            .map(|entry| records(entry.unwrap().value).next().unwrap().unwrap().value.to_vec())
            .collect();
        assert_eq!(written, [&b"a"[..], b"b", b"workflow_id", b"workflow", b"workfloz", b""]);
    }

    #[test]
    fn a_map_entry_has_its_key_and_value_even_when_empty() {
        let env = BTreeMap::from([(String::new(), String::new())]);
        let request = Payload::JobRequest(JobRequest { env, ..Default::default() });
        let bytes = encode(&BusPacket { payload: Some(request), ..Default::default() });
        assert_eq!(bytes, b"\x52\x06\x32\x04\x0a\x00\x12\x00");

        let capabilities = BTreeMap::from([("a".to_owned(), false)]);
        let handshake = Payload::Handshake(Handshake { capabilities, ..Default::default() });
        let bytes = encode(&BusPacket { payload: Some(handshake), ..Default::default() });
        assert_eq!(bytes, b"\x8a\x01\x07\x22\x05\x0a\x01a\x10\x00");
    }

    #[test]
    fn the_session_token_stands_before_a_handshake_payload() {
        let result = WorkerHandshakeResult { accepted: true, ..Default::default() };
        let bytes = encode(&BusPacket {
            auth_token: "token".to_owned(),
            payload: Some(Payload::WorkerHandshakeResult(result)),
            ..Default::default()
        });
        assert!(position(&bytes, b"token") < position(&bytes, b"\xb2\x01\x02\x10\x01"));
    }
}
