//! What each message looks like on the wire, read from the descriptor set.
//!
//! The generated types can write themselves but cannot say which of their fields are maps or
//! messages. The descriptors can, so code that works on bytes asks here instead of repeating the
//! protocol by hand.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prost::Message;
use prost::encoding::WireType;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorSet};

use crate::record::{Malformed, records};

const BUS_PACKET: &str = ".cordum.agent.v1.BusPacket";

static SHAPES: LazyLock<BTreeMap<String, Shape>> = LazyLock::new(read_descriptors);

/// The fields of one message.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Whether this is the key-and-value message that maps are made of.
    pub is_map_entry: bool,
    pub fields: BTreeMap<u32, FieldShape>,
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct FieldShape {
    /// How a single value is written; a packed list is written differently.
    pub wire_type: WireType,
    message: Option<String>,
}

impl FieldShape {
    /// The shape of what this field holds, if it holds messages.
    pub fn message(&self) -> Option<&'static Shape> {
        SHAPES.get(self.message.as_ref()?)
    }
}

/// The envelope, from which every other shape on the bus can be reached.
pub(crate) fn bus_packet() -> &'static Shape {
    &SHAPES[BUS_PACKET]
}

/// Whether a message or anything in it has a field that the protocol does not know.
pub(crate) fn has_unknown_fields(shape: &Shape, message: &[u8]) -> Result<bool, Malformed> {
    for record in records(message) {
        let record = record?;
        let Some(field) = shape.fields.get(&record.number) else { return Ok(true) };
        let Some(inner) = field.message() else { continue };
        // A number where a message belongs is not that field.
        if record.wire_type != WireType::LengthDelimited || has_unknown_fields(inner, record.value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[expect(clippy::expect_used, reason = "the build wrote these bytes with the same library")]
fn read_descriptors() -> BTreeMap<String, Shape> {
    let set = FileDescriptorSet::decode(crate::DESCRIPTORS).expect("the descriptor set decodes");
    let mut shapes = BTreeMap::new();
    for file in &set.file {
        for message in &file.message_type {
            add(&mut shapes, &format!(".{}", file.package()), message);
        }
    }
    shapes
}

fn add(shapes: &mut BTreeMap<String, Shape>, scope: &str, message: &DescriptorProto) {
    let name = format!("{scope}.{}", message.name());
    for nested in &message.nested_type {
        add(shapes, &name, nested);
    }
    let fields = message.field.iter().map(|field| {
        let kind = field.r#type();
        let inner = (kind == Type::Message).then(|| field.type_name().to_owned());
        (field.number() as u32, FieldShape { wire_type: wire_type(kind), message: inner })
    });
    let is_map_entry = message.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry);
    shapes.insert(name, Shape { is_map_entry, fields: fields.collect() });
}

fn wire_type(kind: Type) -> WireType {
    match kind {
        Type::Double | Type::Fixed64 | Type::Sfixed64 => WireType::SixtyFourBit,
        Type::Float | Type::Fixed32 | Type::Sfixed32 => WireType::ThirtyTwoBit,
        Type::String | Type::Bytes | Type::Message => WireType::LengthDelimited,
        Type::Group => WireType::StartGroup,
        Type::Int32
        | Type::Int64
        | Type::Uint32
        | Type::Uint64
        | Type::Sint32
        | Type::Sint64
        | Type::Bool
        | Type::Enum => WireType::Varint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_map_of_the_protocol_has_text_for_keys() {
        // The order of map entries in `upb` is written for text alone.
        let maps = SHAPES.iter().filter(|(name, shape)| shape.is_map_entry && name.starts_with(".cordum."));
        let wrong: Vec<_> = maps
            .filter(|(_, shape)| shape.fields[&1].wire_type != WireType::LengthDelimited)
            .map(|(name, _)| name)
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn an_unknown_field_is_seen_at_any_depth() {
        let check = |message: &[u8]| has_unknown_fields(bus_packet(), message).unwrap();
        assert!(!check(b"\x0a\x01t"));
        assert!(check(b"\xfa\x01\x01x"), "field 31 of the envelope");
        assert!(!check(b"\x52\x03\x0a\x01j"), "job_request.job_id");
        assert!(check(b"\x52\x04\xfa\x01\x01x"), "field 31 of job_request");
        assert!(check(b"\x52\x06\x7a\x04\xfa\x01\x01x"), "field 31 of an entry of job_request.labels");
        assert!(check(b"\x52\x02\x78\x01"), "job_request.labels as a number");
    }
}
