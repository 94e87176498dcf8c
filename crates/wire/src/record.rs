//! A serialised message as the list of its records, with their bytes as they came.
//!
//! Signatures cover bytes, not meaning, so code that signs or verifies must see the message at this level: a decoded
//! struct has lost the order and the unknown fields.

use prost::encoding::{WireType, decode_key, decode_varint};

/// The bytes end in the middle of a record, or are not records.
#[derive(Debug, thiserror::Error)]
#[error("not a row of whole protobuf records")]
pub(crate) struct Malformed;

/// One field of a message, once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProtoRecord<'a> {
    pub number: u32,
    pub wire_type: WireType,
    /// What the record holds, without its key or length.
    pub value: &'a [u8],
    /// The whole record.
    pub raw: &'a [u8],
}

/// Walks the records in the order in which they were written; ends after the first error.
pub(crate) fn records(message: &[u8]) -> ProtoRecords<'_> {
    ProtoRecords { rest: message }
}

pub(crate) struct ProtoRecords<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ProtoRecords<'a> {
    type Item = Result<ProtoRecord<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = split_first(self.rest);
        self.rest = record.as_ref().map_or(&[], |record| &self.rest[record.raw.len()..]);
        Some(record)
    }
}

fn split_first(message: &[u8]) -> Result<ProtoRecord<'_>, Malformed> {
    let mut rest = message;
    let (number, wire_type) = decode_key(&mut rest).map_err(|_| Malformed)?;
    let value_len = match wire_type {
        WireType::Varint => {
            let mut after = rest;
            decode_varint(&mut after).map_err(|_| Malformed)?;
            rest.len() - after.len()
        }
        WireType::ThirtyTwoBit => 4,
        WireType::SixtyFourBit => 8,
        WireType::LengthDelimited => {
            let len = decode_varint(&mut rest).map_err(|_| Malformed)?;
            usize::try_from(len).map_err(|_| Malformed)?
        }
        // No message of the protocol has ever had a group.
        WireType::StartGroup | WireType::EndGroup => return Err(Malformed),
    };
    let (value, rest) = rest.split_at_checked(value_len).ok_or(Malformed)?;
    let raw = &message[..message.len() - rest.len()];
    Ok(ProtoRecord { number, wire_type, value, raw })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(message: &[u8]) -> Option<Vec<u32>> {
        records(message).map(|record| record.map(|record| record.number).ok()).collect()
    }

    #[test]
    fn records_come_in_the_order_they_were_written() {
        // 2: "a", 1: 150, 3: four bytes, 4: eight bytes.
        let message = b"\x12\x01a\x08\x96\x01\x1d1234\x2112345678";
        assert_eq!(numbers(message), Some(vec![2, 1, 3, 4]));
        let values: Vec<_> = records(message).map(|record| record.unwrap().value).collect();
        assert_eq!(values, [&b"a"[..], b"\x96\x01", b"1234", b"12345678"]);
        let raw: Vec<_> = records(message).flat_map(|record| record.unwrap().raw.to_vec()).collect();
        assert_eq!(raw, message);
    }

    #[test]
    fn a_message_cut_short_is_an_error() {
        for message in [
            &b"\x12\x02a"[..],
            b"\x12",
            b"\x08\x96",
            b"\x1d123",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            assert_eq!(numbers(message), None, "{message:?}");
        }
    }

    #[test]
    fn a_group_is_an_error() {
        assert_eq!(numbers(b"\x0b\x0c"), None);
    }
}
