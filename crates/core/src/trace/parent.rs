//! `traceparent`: `00-<trace id>-<span id>-<flags>`, as W3C Trace Context (level 1) has it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// How long version 00 is, and how much of a later version is understood.
const LEN: usize = 55;
/// No version at all.
const VERSION_INVALID: u8 = 0xff;
/// The one flag of level 1: whoever called may have recorded it. The others are not passed on.
const SAMPLED: u8 = 1;

/// A whole story, across every system that takes part in it. Never all zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

/// One part of a story. Never all zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

/// Where in which story something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether whoever set this may have recorded it.
    pub sampled: bool,
}

impl TraceId {
    /// For a digest of nothing but zeros, which nobody has seen.
    pub(super) const LAST: Self = Self([0xff; 16]);

    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    pub(super) const LAST: Self = Self([0xff; 8]);

    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }
}

impl TraceParent {
    /// Nothing if the rules are broken anywhere. A version that is not known yet is read by its beginning,
    /// which every version shares.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, rest) = text.as_bytes().split_at_checked(LEN)?;
        let [version] = hex(&known[..2])?;
        let may_follow = match version {
            0 => rest.is_empty(),
            VERSION_INVALID => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        if !may_follow || [known[2], known[35], known[52]] != *b"---" {
            return None;
        }
        let [flags] = hex(&known[53..])?;
        Some(Self {
            trace: TraceId::new(hex(&known[3..35])?)?,
            span: SpanId::new(hex(&known[36..52])?)?,
            sampled: flags & SAMPLED != 0,
        })
    }
}

/// Lower-case digits only: another spelling would be another id to whoever compares texts.
fn hex<const LEN: usize>(digits: &[u8]) -> Option<[u8; LEN]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    debug_assert_eq!(digits.len(), 2 * LEN);
    let mut bytes = [0; LEN];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

/// 32 digits, in either case: what older clients use as their own trace ids.
pub(super) fn loose_trace_id(digits: &str) -> Option<TraceId> {
    if digits.len() != 32 {
        return None;
    }
    TraceId::new(hex(digits.to_ascii_lowercase().as_bytes())?)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

macro_rules! shown_in_hex {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
shown_in_hex!(TraceId SpanId);

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a traceparent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_valid_is_kept_and_written_as_version_00() {
        let check = |text: &str, written: &str| {
            assert_eq!(TraceParent::parse(text).map(|parent| parent.to_string()).as_deref(), Some(written));
        };
        let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        check(GOOD, GOOD);
        check(unsampled, unsampled);
        // Flags that are not known yet are not passed on.
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff", GOOD);
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe", unsampled);
        // Nor are later versions, but their beginning is understood.
        check("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", GOOD);
        check("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-holds", GOOD);
        check("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-", GOOD);
    }

    #[test]
    fn what_breaks_a_rule_is_nothing() {
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0G",
            "00-4bf92f3577b34da6a3ce929d0e0e473-000f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad:?}");
        }
        assert_eq!(TraceParent::parse(&format!("{GOOD}{}", "0".repeat(10 * 1024))), None);
    }

    #[test]
    fn it_is_stored_as_it_is_written() {
        let parent = TraceParent::parse(GOOD).unwrap();
        let stored = serde_json::to_string(&parent).unwrap();
        assert_eq!(stored, format!("{GOOD:?}"));
        assert_eq!(serde_json::from_str::<TraceParent>(&stored).unwrap(), parent);
        assert!(serde_json::from_str::<TraceParent>("\"00-\"").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_is_read_back(text in ".{0,80}", tail in "[0-9a-f-]{40,70}") {
            for text in [text, format!("00-{tail}"), format!("7e-4bf92f3577b34da6{tail}")] {
                if let Some(parent) = TraceParent::parse(&text) {
                    prop_assert_eq!(TraceParent::parse(&parent.to_string()), Some(parent));
                }
            }
        }
    }
}
