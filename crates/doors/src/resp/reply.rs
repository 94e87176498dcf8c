//! Answers onto the wire, in either version of the protocol.

use bytes::Bytes;
use std::io::Write as _;

/// The versions differ in how they say "nothing" and "these pairs".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Resp2,
    Resp3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RespReply {
    Simple(&'static str),
    /// Begins with a code in capitals, such as `ERR`.
    Error(String),
    Integer(i64),
    Bulk(Bytes),
    Null,
    Array(Vec<RespReply>),
    Map(Vec<(&'static str, RespReply)>),
}

impl RespReply {
    pub const OK: Self = Self::Simple("OK");

    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    pub fn bulk(text: &'static str) -> Self {
        Self::Bulk(Bytes::from_static(text.as_bytes()))
    }

    pub fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        match (self, protocol) {
            (Self::Simple(text), _) => push_line(out, b'+', text),
            // Text echoed from a client must not end the line early.
            (Self::Error(text), _) => push_line(out, b'-', text.replace(['\r', '\n'], " ")),
            (Self::Integer(number), _) => push_line(out, b':', number),
            (Self::Bulk(bytes), _) => push_bulk(out, bytes),
            (Self::Null, Protocol::Resp2) => out.extend_from_slice(b"$-1\r\n"),
            (Self::Null, Protocol::Resp3) => out.extend_from_slice(b"_\r\n"),
            (Self::Array(items), _) => {
                push_line(out, b'*', items.len());
                for item in items {
                    item.encode(protocol, out);
                }
            }
            (Self::Map(pairs), _) => {
                match protocol {
                    Protocol::Resp2 => push_line(out, b'*', pairs.len() * 2),
                    Protocol::Resp3 => push_line(out, b'%', pairs.len()),
                }
                for (key, value) in pairs {
                    push_bulk(out, key.as_bytes());
                    value.encode(protocol, out);
                }
            }
        }
    }
}

fn push_line(out: &mut Vec<u8>, marker: u8, text: impl std::fmt::Display) {
    out.push(marker);
    // Writing to memory does not fail.
    let _ = write!(out, "{text}\r\n");
}

fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    push_line(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &RespReply, resp2: &str, resp3: &str) {
        for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut out = Vec::new();
            reply.encode(protocol, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{protocol:?}");
        }
    }

    #[test]
    fn most_answers_are_the_same_in_both_versions() {
        for (reply, expected) in [
            (RespReply::OK, "+OK\r\n"),
            (RespReply::error("ERR no"), "-ERR no\r\n"),
            (RespReply::Integer(-2), ":-2\r\n"),
            (RespReply::bulk("a\r\nb"), "$4\r\na\r\nb\r\n"),
            (RespReply::bulk(""), "$0\r\n\r\n"),
            (RespReply::Array(vec![RespReply::Integer(1), RespReply::OK]), "*2\r\n:1\r\n+OK\r\n"),
        ] {
            check(&reply, expected, expected);
        }
    }

    #[test]
    fn nothing_and_pairs_are_not() {
        check(&RespReply::Null, "$-1\r\n", "_\r\n");
        let pairs = RespReply::Map(vec![("proto", RespReply::Integer(3)), ("none", RespReply::Null)]);
        check(
            &pairs,
            "*4\r\n$5\r\nproto\r\n:3\r\n$4\r\nnone\r\n$-1\r\n",
            "%2\r\n$5\r\nproto\r\n:3\r\n$4\r\nnone\r\n_\r\n",
        );
    }

    #[test]
    fn an_error_stays_on_its_line() {
        let forged = RespReply::error("ERR unknown command 'a\r\n+OK\r\n'");
        check(&forged, "-ERR unknown command 'a  +OK  '\r\n", "-ERR unknown command 'a  +OK  '\r\n");
    }
}
